"""The protocol: handlers as generators of effects, and the formats of what they store."""

from __future__ import annotations
