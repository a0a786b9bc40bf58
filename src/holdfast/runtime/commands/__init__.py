"""The operations on executions: start, stop, events, answers, queries."""

from __future__ import annotations
