"""The testing kit: runs workflows as Python and compiled, on a virtual clock, with scripted
results.
"""

from __future__ import annotations

from holdfast.testing.checking import check_workflow
from holdfast.testing.compare import Difference
from holdfast.testing.outcomes import ScriptError, fails, in_turn, never, real, takes
from holdfast.testing.replay import Replayed, replay
from holdfast.testing.timeline import Call
from holdfast.testing.world import Run, World

__all__ = [
    "Call",
    "Difference",
    "Replayed",
    "Run",
    "ScriptError",
    "World",
    "check_workflow",
    "fails",
    "in_turn",
    "never",
    "real",
    "replay",
    "takes",
]
