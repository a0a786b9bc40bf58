"""Calls of workflows that a task makes by mistake: the message, and the right way."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_HELP: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sleep": "time.sleep(…) in the task; or sleep(…) in the workflow, which costs nothing",
        "sleep_until": "sleep_until(…) in the workflow, before it calls the task",
        "publish": "publish(…) in the workflow, between tasks: each task does a part of the work",
        "note": "note(…) in the workflow, with the result of the task",
        "execution_id": "task_context().execution in the task",
        "execution_name": "task_context().name in the task",
        "execution_started": "execution_started() in the workflow, which gives the task the moment",
        "wait_for_event": "wait_for_event(…) in the workflow, which gives the task its data",
        "ask": "ask(…) in the workflow, which gives the task the answer",
        "receive": "with receive(…) as request: in the workflow",
        "again": "return again(…) in the workflow",
    }
)


def message_of(function: str, task: str) -> str:
    return f"{function}() is a step of workflows, and `{task}` is a task"


def help_for(function: str) -> str:
    default = f"{function}(…) in the workflow, with the result of the task; or a Client in the task"
    return _HELP.get(function, default)
