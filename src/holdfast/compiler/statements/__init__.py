"""Python statements, and their translation to the intermediate form (IR)."""

from __future__ import annotations
