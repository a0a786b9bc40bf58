"""The stored formats: records, item keys, definitions, and how they are encoded."""

from __future__ import annotations
