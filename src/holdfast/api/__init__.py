"""The names that users import to write workflows."""

from __future__ import annotations
