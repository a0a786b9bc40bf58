"""Migration: whether an execution may continue with another definition, and how its state
changes.
"""

from __future__ import annotations
