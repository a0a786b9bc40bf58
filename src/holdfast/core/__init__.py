"""The pure core: events, the state they fold to, and what follows from a fact."""

from __future__ import annotations
