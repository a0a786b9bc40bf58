"""Durable calls (tasks, waits, child workflows): their actions and their arguments."""

from __future__ import annotations
