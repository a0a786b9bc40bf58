"""The laptop cloud: the whole system in one process, on moto, with our own pump."""

from __future__ import annotations
