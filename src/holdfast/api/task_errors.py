"""The errors that a task passes to its workflow.

In ASL the name of the class is the name of the error, and its `str()` is the Cause.
"""

from __future__ import annotations


class TaskError(Exception):
    """The base of the errors that tasks raise and workflows catch by name."""


class WaitTimeout(TaskError):  # noqa: N818
    """An event, a person or a task did not answer in time (`States.Timeout`)."""


class HeartbeatMissed(Exception):  # noqa: N818
    """A task gave no heartbeat for longer than its `heartbeat` allows.

    A workflow gets `States.HeartbeatTimeout`, which `except WaitTimeout` catches.
    """


class BlockTimeout(WaitTimeout):
    """A `with timeout(…)` block did not end in time."""


class InvalidArguments(TaskError):  # noqa: N818
    """A task was called with arguments that do not fit its annotations."""


class InvalidResult(TaskError):  # noqa: N818
    """A task returned a value that does not fit its annotation."""


class GroupFailed(TaskError):  # noqa: N818
    """The Lambda function of a task's group crashed, could not be called, or gave no result."""


class RequestCancelled(TaskError):  # noqa: N818
    """The workflow that had received a request was stopped or cancelled before it replied."""


class BranchCancelled(TaskError):  # noqa: N818
    """A branch did not end, because `tolerate` or `at_least` decided the call before.

    With `return_exceptions=True` it is the result of that branch. It is never raised.
    """


class StepInterrupted(TaskError):  # noqa: N818
    """The worker of an attempt was lost, and the task has `at_most_once=True`, so no other worker
    runs the attempt again. The function may have run, in part or to its end.
    """


class CompensationFailed(TaskError):  # noqa: N818
    """An undo step of `compensating` failed; the remaining undo steps were still run."""
