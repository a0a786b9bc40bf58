"""One module for each operation on executions. docs/explanation/one-door.md has the table."""

from __future__ import annotations
