"""TestState: runs one state once, and shows everything that it computes on the way."""

from __future__ import annotations
