"""JSONata, the newer query language of ASL: two engines, their functions and their budgets."""

from __future__ import annotations
