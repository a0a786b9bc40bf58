"""The simulator: the real handlers in a world of memory, virtual time and faults."""

from __future__ import annotations
