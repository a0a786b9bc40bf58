"""The types of values that the compiler knows before a run."""

from __future__ import annotations
