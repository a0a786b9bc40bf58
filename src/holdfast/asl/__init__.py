"""Amazon States Language (ASL): parses and checks definitions, and evaluates their expressions."""

from __future__ import annotations
