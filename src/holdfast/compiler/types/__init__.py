"""The types of values: what the compiler knows before a run."""

from __future__ import annotations
