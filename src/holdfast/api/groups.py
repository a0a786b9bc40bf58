"""Task groups: `@task(group="payments")`. The tasks of a group run in a function of their own."""

from __future__ import annotations

import re
from typing import Final

from holdfast.api.runs_on import RunsOn, place_name
from holdfast.errors import WorkflowError

#: The form of a group's name, which becomes part of the names of AWS resources and of an
#: environment variable.
_GROUP: Final = re.compile(r"(?=.{1,20}$)[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*")


def require_group(group: str, task: str, runs_on: RunsOn | None) -> None:
    """Raises WorkflowError: HF421 for what cannot be the name of a group, HF423 for a task that
    runs elsewhere.
    """
    if runs_on is not None:
        raise WorkflowError(
            "HF423",
            f"the task {task} is in the group {group!r} and runs on {place_name(runs_on)}",
            help="leave out `group` or `runs_on`: a function or a machine has its own role already",
        )
    if not _GROUP.fullmatch(group):
        raise WorkflowError(
            "HF421",
            f"the task {task} is in the group {group!r}",
            help="a group has up to 20 lower-case letters, digits and hyphens, and each word of it "
            "begins with a letter: "
            '@task(group="payments")',
        )
