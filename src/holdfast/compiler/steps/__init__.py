"""Durable calls: what each one asks for, and what it is given."""

from __future__ import annotations
