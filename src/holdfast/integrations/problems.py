"""Failures of a call, before they get the form in which a state machine receives them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from holdfast.asl import error_names
from holdfast.runtime.effects import TaskFailed


class Unusable(Exception):  # noqa: N818
    """The task's arguments are no valid request. The text names the field, in AWS's words."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal by a service. `code` is the code in the response, `status` the HTTP status.

    `shape_code` is the model's name for the error where it differs from the code (SQS has both).
    """

    code: str
    message: str
    status: int
    request_id: str
    extended_request_id: str | None = None
    shape_code: str | None = None


def unusable(arguments: Any, problem: Unusable) -> TaskFailed:
    """Return the failure for arguments that are no valid request. AWS finds it before it schedules
    the task, so no state can catch it. A cause that the author of a public program noted begins
    with the state and the event of its entry, as those of other fields of a state do.
    """
    text = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
    return TaskFailed(
        error_names.RUNTIME,
        f"The Parameters '{text}' could not be used to start the Task: [{problem}]",
    )
