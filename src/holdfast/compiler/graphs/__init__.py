"""Graphs of steps, and their translation to states."""

from __future__ import annotations
