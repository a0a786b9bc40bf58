"""A later command: its time, and the definition of the execution that waits for it.

The definition is built in. It is here, below the engine, because a replay of the history of a later
start begins with it, too.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from holdfast.asl.parsing.parse import definition_hash
from holdfast.asl.program import Json
from holdfast.asl.resources import AGAIN
from holdfast.asl.timestamps import nanos_of
from holdfast.core.attempt_facts import WORKER_LOST

#: During an outage of DynamoDB an attempt fails as if its worker had crashed. All of these retries
#: together take more than an hour, so a built-in workflow survives an outage of that length.
OUTAGE_RETRY: Final = [
    {
        "ErrorEquals": [WORKER_LOST],
        "IntervalSeconds": 30,
        "MaxAttempts": 12,
        "BackoffRate": 2,
        "MaxDelaySeconds": 600,
    }
]


def later_ms(arguments: Json, now_ms: int) -> int:
    """Return when a later command has its effect: `delay` seconds after `now_ms`, or at the time
    `at`, and not before `now_ms`.
    """
    given: Any = arguments
    nanos = nanos_of(str(given["at"])) if "at" in given else None
    after_ms = 1_000 * given.get("delay", 0) if nanos is None else nanos // 1_000_000 - now_ms
    return now_ms + max(round(after_ms), 0)


def is_waiting(definition: str) -> bool:
    """Return True for the hash of the definition of a later start. The execution has not begun with
    its workflow yet.
    """
    return definition == waiting_for(AGAIN)[1]


@cache
def waiting_for(command: str) -> tuple[dict[str, Any], str]:
    """Return the definition that waits until `at`, and then carries out the command with
    `arguments`; and its hash.
    """
    states: dict[str, Any] = {
        "wait": {"Type": "Wait", "Timestamp": "{% $states.input.at %}", "Next": command},
        command: {
            "Type": "Task",
            "Resource": f"holdfast:{command}",
            "Retry": OUTAGE_RETRY,
            "Arguments": "{% $states.input.arguments %}",
            "End": True,
        },
    }
    asl = {"QueryLanguage": "JSONata", "StartAt": "wait", "States": states}
    return asl, definition_hash(asl)
