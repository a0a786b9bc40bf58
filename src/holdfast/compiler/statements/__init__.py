"""Python statements -> IR."""

from __future__ import annotations
