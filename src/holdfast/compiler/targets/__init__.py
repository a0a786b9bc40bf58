"""Definitions that AWS Step Functions itself can run."""

from __future__ import annotations
