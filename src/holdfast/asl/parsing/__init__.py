"""Definitions in Amazon States Language, read into programs."""

from __future__ import annotations
