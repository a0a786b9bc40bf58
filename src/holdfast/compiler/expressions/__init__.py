"""From Python expressions to JSONata, by the types of their parts."""

from __future__ import annotations
