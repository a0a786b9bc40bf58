"""Migration: may an execution move from the definition it began with to another one, and how."""

from __future__ import annotations
