"""AWS's API for state machines, on top of Holdfast's log. See
docs/explanation/step-functions.md.
"""

from __future__ import annotations
