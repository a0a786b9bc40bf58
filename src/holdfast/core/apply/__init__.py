"""The meaning of each event: how it changes the state of an execution."""

from __future__ import annotations
