"""Where a task runs, when it does not run in the engine's own worker.

Functions that exist already, which the engine calls: `@task(runs_on=Lambda("arn…"))`.

    @task(runs_on=Lambda("arn:aws:lambda:eu-west-1:111122223333:function:weigh"))
    def weigh(parcel: Parcel) -> Weight: ...

The declaration has the types, and no code: its body is `...`, or `raise NotImplementedError` where
mypy wants a return.

Machines of your own, which poll for work: `@task(runs_on=Worker("gpu"))`. The function has its
code, and `holdfast worker --pool gpu` runs it there.

Containers: `@task(runs_on=Fargate(…))`, `@task(runs_on=BatchJob(…))`. The engine starts one for
each attempt, and `holdfast worker --once` in it runs the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeAlias, assert_never

from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass

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


class PoolNameError(WorkflowError, ValueError):
    """A text that is not the name of a pool. Where a workflow computes the text, it is the
    ValueError with which the engine fails the step.
    """


@dataclass(frozen=True, slots=True)
class Worker:
    """The machines that run `holdfast worker --pool POOL`. They poll, so none has an address."""

    pool: str

    def __post_init__(self) -> None:
        from holdfast.asl.resources import is_pool_name  # noqa: PLC0415 - few modules need it

        if not is_pool_name(self.pool):
            raise PoolNameError(
                "HF430",
                f"Worker({self.pool!r:.100}) is not the name of a pool",
                help='1 to 80 of A-Z a-z 0-9 _ -: Worker("gpu")',
            )


@dataclass(frozen=True, slots=True)
class Fargate:
    """A container of ECS on Fargate, one for each attempt. `container`: its name in the task
    definition. `public_ip`: for subnets without a NAT gateway.
    """

    cluster: str
    task_definition: str
    container: str
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...] = ()
    public_ip: bool = False

    def __post_init__(self) -> None:
        named = (self.cluster, self.task_definition, self.container, *self.subnets)
        if not self.subnets or not all(named) or isinstance(self.subnets, str):
            raise WorkflowError(
                "HF436",
                f"{self!r:.200} lacks a name or its subnets",
                help='Fargate("films", "render:7", "main", subnets=("subnet-0a1b2c",))',
            )


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job of AWS Batch, one for each attempt."""

    queue: str
    definition: str

    def __post_init__(self) -> None:
        if not self.queue or not self.definition:
            raise WorkflowError(
                "HF436",
                f"{self!r:.200} lacks its queue or its definition",
                help='BatchJob(queue="gpu", definition="render:7")',
            )


#: The places in which a container runs one attempt and then ends.
Container: TypeAlias = Fargate | BatchJob
RunsOn: TypeAlias = Lambda | Worker | Container


def require_plain(function: Callable[..., Any], runs_on: RunsOn | None, *, has_more: bool) -> None:
    """Refuse limits and a batch for a task that another process runs: the engine holds back the
    attempts that it runs itself. Raises WorkflowError HF431.
    """
    if isinstance(runs_on, Worker | Fargate | BatchJob) and has_more:
        raise WorkflowError(
            "HF431",
            f"the task {function.__name__} runs on {place_name(runs_on)}, and has limits or a "
            "batch",
            help="the slots of a pool, or the size of a cluster or queue, are the limit",
        )


def require_pools(name: str, runs_on: RunsOn | None) -> None:
    """Refuse a call that chooses a pool for a task of another place: no worker has its code."""
    if not isinstance(runs_on, Worker):
        raise WorkflowError(
            "HF008",
            f"a call cannot choose the pool of `{name}`, which runs on no pool",
            help=f'@task(runs_on=Worker("hosts")) on `{name}`, and a timeout for its work',
        )


def place_name(runs_on: RunsOn) -> str:
    match runs_on:
        case Lambda(arn):
            return arn
        case Worker(pool):
            return f"the pool {pool}"
        case Fargate(cluster):
            return f"Fargate, cluster {cluster}"
        case BatchJob(queue):
            return f"AWS Batch, queue {queue}"
        case _:
            assert_never(runs_on)


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
