"""Python statements, and their translation to the IR."""

from __future__ import annotations
