"""Amazon States Language: parsing and checking definitions, evaluating their expressions."""

from __future__ import annotations
