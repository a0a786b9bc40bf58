"""Tasks that run in a container of their own: the call that starts it.

The call is one of ECS or Batch, as a state machine makes it. The worker in the container fetches
its attempt, and answers by the token, so the engine waits as for any callback.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from holdfast.asl.resources import CONTAINER
from holdfast.integrations.shaping import to_text
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded

NOT_STARTED: Final = "ContainerNotStarted"


def start(
    effect: RunTask, call: Callable[[RunTask], TaskSucceeded | TaskFailed]
) -> TaskSucceeded | TaskFailed:
    """Start the container by `call`. ECS reports a container that it cannot place in a successful
    answer.
    """
    request = replace(
        effect,
        kind="service",
        name=effect.name.removeprefix(CONTAINER),
        arguments=effect.arguments["request"],
    )
    result = call(request)
    if isinstance(result, TaskSucceeded) and result.output.get("Failures"):
        return TaskFailed(NOT_STARTED, to_text(result.output["Failures"]))
    return result
