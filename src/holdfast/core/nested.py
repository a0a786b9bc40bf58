"""The result that a finished child execution gives to its parent: DescribeExecution, in PascalCase.

The format is that of recorded results of `states:startExecution.sync` and `.sync:2`. A failure has
the input as text in both: so AWS answered six kinds of ends in measurements that were published on
GitHub (floci-io/floci, test AslExecutorNestedSyncFailureTest, September 2026).
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.asl import error_names
from holdfast.asl.program import Json
from holdfast.core.state import Execution


def finished_output(state: Execution, *, as_json: bool) -> Json:
    """Return the output of the nested task. `as_json` (`.sync:2`): input and output are JSON, not
    text.
    """
    return _description(state, as_json=as_json)


def finished_error(state: Execution) -> tuple[str, str]:
    """Return error and cause of the nested task. The cause is the whole description as text."""
    return error_names.TASK_FAILED, _text(_description(state, as_json=False))


def _description(state: Execution, *, as_json: bool) -> dict[str, Any]:
    origin = state.origin
    assert origin is not None
    assert state.stopped_ms is not None

    def shown(value: Json) -> Json:
        return value if as_json else _text(value)

    texts = {"Cause": state.cause, "Error": state.error}
    found: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
    found |= {
        "ExecutionArn": origin["execution_arn"],
        "Input": shown(state.input),
        "InputDetails": {"Included": True},
        "Name": origin["execution_name"],
    }
    if state.status == "SUCCEEDED":
        found |= {"Output": shown(state.output), "OutputDetails": {"Included": True}}
    found |= {
        "RedriveCount": state.redrives,
        **_redrive_status(state),
        "StartDate": state.started_ms,
        "StateMachineArn": origin["state_machine_arn"],
        "Status": state.status,
        "StopDate": state.stopped_ms,
    }
    return found


def _redrive_status(state: Execution) -> dict[str, str]:
    if state.status != "SUCCEEDED":
        return {"RedriveStatus": "REDRIVABLE"}
    return {
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
    }


def _text(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
