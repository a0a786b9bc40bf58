"""The types of values, as the compiler knows them before a run."""

from __future__ import annotations
