"""IR -> states of Amazon States Language."""

from __future__ import annotations
