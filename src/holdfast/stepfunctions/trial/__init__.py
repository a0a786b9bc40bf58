"""TestState: one state, run once, with everything that it computes on the way."""

from __future__ import annotations
