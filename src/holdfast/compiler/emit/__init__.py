"""The emission: from the intermediate form (IR) to states of Amazon States Language."""

from __future__ import annotations
