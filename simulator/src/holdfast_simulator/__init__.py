"""The simulator runs the real handlers with storage in memory, virtual time and injected faults."""

from __future__ import annotations
