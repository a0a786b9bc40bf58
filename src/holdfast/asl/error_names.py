"""The error names that Amazon States Language reserves, as definitions and histories write them.

Source: AWS Step Functions Developer Guide, "Handling errors in Step Functions workflows".
"""

from __future__ import annotations

from typing import Final

# Wildcards, with which a Retry or Catch matches many errors.
ALL: Final = "States.ALL"
TASK_FAILED: Final = "States.TaskFailed"

TIMEOUT: Final = "States.Timeout"
HEARTBEAT_TIMEOUT: Final = "States.HeartbeatTimeout"
RUNTIME: Final = "States.Runtime"
DATA_LIMIT_EXCEEDED: Final = "States.DataLimitExceeded"
NO_CHOICE_MATCHED: Final = "States.NoChoiceMatched"
QUERY_EVALUATION_ERROR: Final = "States.QueryEvaluationError"
REFERENCE_PATH_CONFLICT: Final = "States.ReferencePathConflict"

# The errors of a distributed Map.
EXCEED_TOLERATED_FAILURE_THRESHOLD: Final = "States.ExceedToleratedFailureThreshold"
ITEM_READER_FAILED: Final = "States.ItemReaderFailed"
RESULT_WRITER_FAILED: Final = "States.ResultWriterFailed"

# The errors of an HTTP task. The status of the response follows the prefix.
HTTP_SOCKET: Final = "States.Http.Socket"
HTTP_STATUS_CODE_PREFIX: Final = "States.Http.StatusCode."

# Errors as results: the field that tells the object of an error from an object of the author, and
# the error in the place of a branch that did not end.
RETURNED_MARK: Final = "Holdfast.Exception"
BRANCH_CANCELLED: Final = "BranchCancelled"
BRANCH_CANCELLED_CAUSE: Final = "the branches were decided before this one ended"

# More branches or iterations than one Parallel or inline Map may have.
TOO_MANY_LANES: Final = "Holdfast.TooManyLanes"
_IN_PARTS: Final = (
    "Give it parts of the list in a loop, in Python `for first in range(0, len(items), 1_000): "
    "each(items[first : first + 1_000], …)`, or make the Map a distributed one."
)


def too_many_lanes_cause(count: int, lanes_max: int) -> str:
    return f"{count} branches or iterations in one state; {lanes_max} are allowed. {_IN_PARTS}"
