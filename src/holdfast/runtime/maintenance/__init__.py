"""The sweeper, the quarantine and the diagnostics of executions that do not move."""

from __future__ import annotations
