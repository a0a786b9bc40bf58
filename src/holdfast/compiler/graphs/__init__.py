"""Graphs of steps (`Dag`), and their translation to states."""

from __future__ import annotations
