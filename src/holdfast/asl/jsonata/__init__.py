"""JSONata, the newer query language: two engines, their functions and their budgets."""

from __future__ import annotations
