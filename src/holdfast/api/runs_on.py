"""Existing Lambda functions that the engine calls as tasks: `@task(runs_on=Lambda("arn…"))`.

    @task(runs_on=Lambda("arn:aws:lambda:eu-west-1:111122223333:function:weigh"))
    def weigh(parcel: Parcel) -> Weight: ...

The declaration has the types, but no code: its body is `...`, or `raise NotImplementedError` if
mypy requires a return.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from holdfast.errors import WorkflowError

_EMPTY: Final = frozenset(
    {
        *("RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"),
        *("LOAD_GLOBAL", "LOAD_COMMON_CONSTANT", "RAISE_VARARGS"),
    }
)


@dataclass(frozen=True, slots=True)
class Lambda:
    """A Lambda function by its ARN, which may also name a version or an alias."""

    arn: str

    def __post_init__(self) -> None:
        from holdfast.asl.resources import read_resource  # noqa: PLC0415 - few modules need it

        resource = read_resource(self.arn)
        if resource is None or resource.kind != "lambda":
            raise WorkflowError(
                "HF188",
                f"Lambda({self.arn!r}) is not the ARN of a function",
                help='Lambda("arn:aws:lambda:eu-west-1:111122223333:function:weigh")',
            )


def stand_in(function: Callable[..., Any], where: Lambda) -> Callable[..., Any]:
    """Return a function with the same signature that refuses calls outside of an engine.

    Raises WorkflowError HF189 when `function` has code, because that code would never run.
    """
    name = function.__name__
    if not _is_empty(function):
        raise WorkflowError(
            "HF189",
            f"the task {name} runs on {where.arn}, and its body would never run",
            help=f"def {name}(…) -> …: ...",
        )

    @functools.wraps(function)
    def refuse(*_: Any, **__: Any) -> Any:
        raise WorkflowError(
            "HF186",
            f"{name} runs on {where.arn} and was called outside an engine",
            help=f"holdfast.testing: World({{{name}: …}}).run(workflow, …); or start the workflow",
        )

    return refuse


def _is_empty(function: Callable[..., Any]) -> bool:
    import dis  # noqa: PLC0415 - few modules need it

    code = getattr(function, "__code__", None)
    if code is None:
        return False
    constants = {id(one) for one in code.co_consts} - {id(None), id(...), id(function.__doc__)}
    operations = {one.opname for one in dis.get_instructions(code)}
    return not constants and operations <= _EMPTY and {*code.co_names} <= {"NotImplementedError"}
