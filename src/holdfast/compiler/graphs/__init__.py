"""Graphs of steps -> states."""

from __future__ import annotations
