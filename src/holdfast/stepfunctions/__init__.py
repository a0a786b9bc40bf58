"""AWS's API for state machines, answered from Holdfast's log. Layout: docs/explanation/step-functions.md."""

from __future__ import annotations
