"""Bulk operations: the built-in workflow that gives one command to each execution that a filter
selects.

A bulk operation is an execution, so it has what a long job needs: it survives crashes; operators
can pause, resume, stop and show it; its history is the report. A worker carries out its two steps
(`worker/bulk_pages.py`):

    ┌─► select   reads one page of the list     commit: the ids of the page, the next place
    │   act      one command for each id        commit: the outcome of each
    │   wait     until the rate allows more
    └── more?

The page is committed before the first command. If a worker crashes within a page, the next worker
has the same page. The id of each command is made of the bulk execution and the target execution, so
the next worker finds the commands that are stored and stores none twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from holdfast.asl.parsing.parse import definition_hash
from holdfast.asl.resources import BULK_ACT, BULK_SELECT
from holdfast.core.later import OUTAGE_RETRY
from holdfast.runtime.storage.definitions import Definition

#: The name of the published value that counts how many commands were done.
PROGRESS: Final = "progress"
PAGE_MAX: Final = 100
#: A bulk operation gives the commands of this many seconds at once and then waits, so that on
#: average it keeps to the requested rate.
_BURST_SECONDS: Final = 5
RATE_DEFAULT: Final = 20.0
RATE_MAX: Final = 100.0
#: The lowest rate is one command a minute.
RATE_MIN: Final = 1 / 60

_FAILED: Final = ("FAILED", "TIMED_OUT")
_ALL: Final = ("RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")


@dataclass(frozen=True, slots=True)
class Operation:
    """One command that a bulk operation can give. `fields` are those of the command's request,
    apart from reason and author.

    `statuses`: executions with these statuses are selected. `on_request`: further statuses that are
    selected only if the filter names them.
    """

    fields: tuple[str, ...]
    statuses: tuple[str, ...]
    on_request: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


OPERATIONS: Final[dict[str, Operation]] = {
    # An aborted execution was stopped by an operator. So a bulk retry includes such executions only
    # if its filter names their status.
    "retry": Operation((), _FAILED, on_request=("ABORTED",)),
    "pause": Operation(("timers",), ("RUNNING",)),
    "resume": Operation((), ("RUNNING",)),
    "migrate": Operation(("to",), ("RUNNING",)),
    "stop": Operation(("error", "cause", "now"), ("RUNNING",)),
    "skip": Operation(
        ("step", "result"), ("RUNNING", *_FAILED), on_request=("ABORTED",), required=("step",)
    ),
    "fork": Operation(("step", "input", "set", "on"), _ALL, required=("step",)),
    "event": Operation(("name", "data"), ("RUNNING",), required=("name", "data")),
}


@cache
def definition() -> Definition:
    """Return the definition that all bulk operations have."""
    count = {
        "done": "{% $progress.done + $states.result.done %}",
        "refused": "{% $progress.refused + $states.result.refused %}",
    }
    states: dict[str, Any] = {
        "begin": {
            "Type": "Pass",
            "Assign": {
                "request": "{% $states.input %}",
                "after": None,
                "progress": {"done": 0, "refused": 0},
            },
            "Output": {},
            "Next": "select",
        },
        "select": {
            "Type": "Task",
            "Resource": f"holdfast:{BULK_SELECT}",
            "Retry": OUTAGE_RETRY,
            "Arguments": {"request": "{% $request %}", "after": "{% $after %}"},
            "Assign": {
                "chosen": "{% $states.result.executions %}",
                "after": "{% $states.result.after %}",
            },
            "Output": {},
            "Next": "act",
        },
        "act": {
            "Type": "Task",
            "Resource": f"holdfast:{BULK_ACT}",
            "Retry": OUTAGE_RETRY,
            "Arguments": {"request": "{% $request %}", "executions": "{% $chosen %}"},
            "Assign": {"progress": count, "pause": "{% $states.result.pause %}"},
            "Output": {},
            "Next": "tell",
        },
        "tell": {
            "Type": "Pass",
            "Holdfast": {"Publish": {PROGRESS: "{% $progress %}"}},
            "Next": "more",
        },
        "more": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $after = null %}", "Next": "end"}],
            "Default": "wait",
        },
        "wait": {"Type": "Wait", "Seconds": "{% $pause %}", "Next": "select"},
        "end": {"Type": "Succeed", "Output": "{% $progress %}"},
    }
    asl = {"QueryLanguage": "JSONata", "StartAt": "begin", "States": states}
    return Definition(asl, {}, definition_hash(asl))


def page_of(rate: float) -> int:
    """Return how many commands one step gives."""
    return min(PAGE_MAX, max(1, int(rate * _BURST_SECONDS)))


def pause_of(commands: int, rate: float) -> int:
    """Return the seconds between a page of this many commands and the next page."""
    return max(1, round(commands / rate))
