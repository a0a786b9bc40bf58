"""Durable calls: the actions they request, and their arguments."""

from __future__ import annotations
