"""The client for asyncio: for FastAPI and other services with an event loop.

Each request runs in a thread of `asyncio.to_thread`. A wait for a result sleeps in the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack, assert_never, overload

from holdfast.api.tasks import Workflow
from holdfast.remote import operations
from holdfast.remote.answers import ExecutionRow, Filters, Started
from holdfast.remote.connecting import Api, Token, connect
from holdfast.remote.faces import awaited, awaited_of_one
from holdfast.remote.operations import Call, Now, Operation, Sleep
from holdfast.remote.values import reader_of, typed_start

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class AsyncClient:
    """`Client` for an event loop: the same settings and methods, but the methods must be
    awaited.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        stack: str | None = None,
        token: Token | None = None,
        iam: bool = False,
    ) -> None:
        self._api = connect(endpoint, stack, token, iam=iam)

    @classmethod
    def of(cls, api: Api) -> AsyncClient:
        """Return a client of an API that is not reached over HTTP, for example in this process."""
        made = cls.__new__(cls)
        made._api = api  # noqa: SLF001
        return made

    @overload
    async def start(
        self,
        workflow: str,
        data: object = ...,
        /,
        *,
        name: str | None = None,
        priority: int | None = None,
    ) -> AsyncHandle[Any]: ...
    @overload
    async def start(
        self,
        workflow: Callable[[*Ts], R],
        /,
        *arguments: *Ts,
        name: str | None = None,
        priority: int | None = None,
    ) -> AsyncHandle[R]: ...
    # mypy does not see that `*Any` accepts `*Ts`, so it would report this overload.
    async def start(  # type: ignore[misc]
        self,
        workflow: Any,
        /,
        *arguments: Any,
        name: str | None = None,
        priority: int | None = None,
    ) -> AsyncHandle[Any]:
        """Start a workflow like `Client.start`."""
        wanted = typed_start(workflow, arguments)
        started = await self.perform(
            operations.start(wanted.workflow, wanted.input, name=name, priority=priority)
        )
        return AsyncHandle(self, started["execution"], wanted.parse, started)

    @overload
    def handle(self, execution: str, /) -> AsyncHandle[Any]: ...
    @overload
    def handle(self, execution: str, workflow: Workflow[..., R], /) -> AsyncHandle[R]: ...
    def handle(
        self, execution: str, workflow: Workflow[..., Any] | None = None, /
    ) -> AsyncHandle[Any]:
        """Return the handle of an execution that was started earlier. It sends nothing."""
        return AsyncHandle(self, execution, reader_of(workflow))

    async def list(self, **filters: Unpack[Filters]) -> AsyncIterator[ExecutionRow]:
        """Yield the executions that the filters select, newest first. Each page is read when it is
        needed.
        """
        after = None
        while True:
            page = await self.page(after=after, **filters)
            for row in page.rows:
                yield row
            after = page.after
            if after is None:
                return

    page = awaited(operations.page)
    counts = awaited(operations.counts)
    describe = awaited(operations.describe)
    history = awaited(operations.history)
    logs = awaited(operations.logs)
    wait = awaited(operations.wait)
    output = awaited(operations.output)
    stop = awaited(operations.stop)
    retry = awaited(operations.retry)
    pause = awaited(operations.pause)
    resume = awaited(operations.resume)
    skip = awaited(operations.skip)
    fork = awaited(operations.fork)
    migrate = awaited(operations.migrate)
    positions = awaited(operations.positions)
    definition = awaited(operations.definition)
    workflows = awaited(operations.workflows)
    workflow = awaited(operations.workflow)
    register = awaited(operations.register)
    remove_workflow = awaited(operations.remove_workflow)
    change_priority = awaited(operations.change_priority)
    bulk = awaited(operations.bulk)
    bulk_dry_run = awaited(operations.bulk_dry_run)
    bulk_report = awaited(operations.bulk_report)
    event = awaited(operations.event)
    events = awaited(operations.events)
    drop_event = awaited(operations.drop_event)
    request = awaited(operations.request)
    reply = awaited(operations.reply)
    answer = awaited(operations.answer)
    questions = awaited(operations.questions)
    question = awaited(operations.question)
    claim = awaited(operations.claim)
    release = awaited(operations.release)
    delegate = awaited(operations.delegate)
    change_pause = awaited(operations.change_pause)
    pauses = awaited(operations.pauses)
    schedules = awaited(operations.schedules)
    schedule = awaited(operations.schedule)
    create_schedule = awaited(operations.create_schedule)
    change_schedule = awaited(operations.change_schedule)
    delete_schedule = awaited(operations.delete_schedule)
    limits = awaited(operations.limits)
    limit = awaited(operations.limit)
    change_limit = awaited(operations.change_limit)
    format = awaited(operations.format)
    ask_format = awaited(operations.ask_format)
    pools = awaited(operations.pools)
    doctor = awaited(operations.doctor)
    clock_lead = awaited(operations.clock_lead)
    advance = awaited(operations.advance)

    async def perform(self, operation: Operation[T], /) -> T:
        """Perform an operation of `holdfast.remote.operations`."""
        reply: Any = None
        try:
            effect = next(operation)
            while True:
                match effect:
                    case Call():
                        try:
                            reply = await asyncio.to_thread(self._api.call, effect)
                        except Exception as error:  # noqa: BLE001  # the operation decides
                            effect = operation.throw(error)
                            continue
                    case Sleep(seconds):
                        await asyncio.sleep(seconds)
                        reply = None
                    case Now():
                        reply = time.monotonic()
                    case _:
                        assert_never(effect)
                effect = operation.send(reply)
        except StopIteration as ended:
            result: T = ended.value
            return result


class AsyncHandle(Generic[R]):
    """One execution. `started` is the API's response to the start, None for an older execution."""

    def __init__(
        self,
        client: AsyncClient,
        execution: str,
        parse: Callable[[Any], R],
        started: Started | None = None,
    ) -> None:
        self.execution = execution
        self.started = started
        self.perform = client.perform
        self._parse = parse

    def __repr__(self) -> str:
        return f"AsyncHandle({self.execution!r})"

    async def result(self, timeout: float | None = None) -> R:  # noqa: ASYNC109
        """Return the result of the workflow when it has ended. Wait for at most `timeout` seconds.

        Raises ExecutionFailed, ResultTimeout.
        """
        return self._parse(await self.perform(operations.output(self.execution, timeout)))

    describe = awaited_of_one(operations.describe)
    history = awaited_of_one(operations.history)
    wait = awaited_of_one(operations.wait)
    stop = awaited_of_one(operations.stop)
    retry = awaited_of_one(operations.retry)
    pause = awaited_of_one(operations.pause)
    resume = awaited_of_one(operations.resume)
    skip = awaited_of_one(operations.skip)
    fork = awaited_of_one(operations.fork)
    migrate = awaited_of_one(operations.migrate)
    change_priority = awaited_of_one(operations.change_priority)
