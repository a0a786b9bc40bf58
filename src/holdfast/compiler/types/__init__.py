"""What the compiler knows of values before they are there."""

from __future__ import annotations
