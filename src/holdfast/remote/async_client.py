"""The client for asyncio: for FastAPI and other services with an event loop.

Each request runs in a thread of `asyncio.to_thread`. A wait for a result sleeps in the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack, assert_never, overload

from holdfast.api.workflows import Workflow
from holdfast.remote.answers import ExecutionRow, Filters, Started
from holdfast.remote.connecting import Api, Token, connect
from holdfast.remote.faces import awaited, awaited_of_one
from holdfast.remote.operations import (
    definitions,
    executions,
    flow,
    in_bulk,
    messages,
    people,
    stack,
)
from holdfast.remote.operations.requests import Call, Now, Operation, Sleep
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
        at: datetime | None = None,
    ) -> AsyncHandle[Any]: ...
    @overload
    async def start(
        self,
        workflow: Callable[[*Ts], R],
        /,
        *arguments: *Ts,
        name: str | None = None,
        priority: int | None = None,
        at: datetime | None = None,
    ) -> AsyncHandle[R]: ...
    # mypy does not see that `*Any` accepts `*Ts`, so it would report this overload.
    async def start(  # type: ignore[misc]
        self,
        workflow: Any,
        /,
        *arguments: Any,
        name: str | None = None,
        priority: int | None = None,
        at: datetime | None = None,
    ) -> AsyncHandle[Any]:
        """Start a workflow like `Client.start`."""
        wanted = typed_start(workflow, arguments)
        started = await self.perform(
            executions.start(wanted.workflow, wanted.input, name=name, priority=priority, at=at)
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

    page = awaited(executions.page)
    counts = awaited(executions.counts)
    describe = awaited(executions.describe)
    history = awaited(executions.history)
    logs = awaited(executions.logs)
    wait = awaited(executions.wait)
    wait_for_published = awaited(executions.wait_for_published)
    output = awaited(executions.output)
    stop = awaited(executions.stop)
    retry = awaited(executions.retry)
    pause = awaited(executions.pause)
    resume = awaited(executions.resume)
    skip = awaited(executions.skip)
    fork = awaited(executions.fork)
    migrate = awaited(definitions.migrate)
    positions = awaited(definitions.positions)
    definition = awaited(definitions.definition)
    workflows = awaited(definitions.workflows)
    workflow = awaited(definitions.workflow)
    register = awaited(definitions.register)
    remove_workflow = awaited(definitions.remove_workflow)
    change_priority = awaited(executions.change_priority)
    bulk = awaited(in_bulk.bulk)
    bulk_dry_run = awaited(in_bulk.bulk_dry_run)
    bulk_report = awaited(in_bulk.bulk_report)
    event = awaited(messages.event)
    events = awaited(messages.events)
    drop_event = awaited(messages.drop_event)
    request = awaited(messages.request)
    reply = awaited(messages.reply)
    answer = awaited(people.answer)
    questions = awaited(people.questions)
    question = awaited(people.question)
    claim = awaited(people.claim)
    release = awaited(people.release)
    delegate = awaited(people.delegate)
    change_pause = awaited(flow.change_pause)
    pauses = awaited(flow.pauses)
    schedules = awaited(flow.schedules)
    schedule = awaited(flow.schedule)
    create_schedule = awaited(flow.create_schedule)
    change_schedule = awaited(flow.change_schedule)
    delete_schedule = awaited(flow.delete_schedule)
    limits = awaited(flow.limits)
    limit = awaited(flow.limit)
    change_limit = awaited(flow.change_limit)
    format = awaited(stack.format)
    ask_format = awaited(stack.ask_format)
    pools = awaited(stack.pools)
    doctor = awaited(stack.doctor)
    clock_lead = awaited(stack.clock_lead)
    advance = awaited(stack.advance)

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
        return self._parse(await self.perform(executions.output(self.execution, timeout)))

    describe = awaited_of_one(executions.describe)
    history = awaited_of_one(executions.history)
    wait = awaited_of_one(executions.wait)
    wait_for_published = awaited_of_one(executions.wait_for_published)
    stop = awaited_of_one(executions.stop)
    retry = awaited_of_one(executions.retry)
    pause = awaited_of_one(executions.pause)
    resume = awaited_of_one(executions.resume)
    skip = awaited_of_one(executions.skip)
    fork = awaited_of_one(executions.fork)
    migrate = awaited_of_one(definitions.migrate)
    change_priority = awaited_of_one(executions.change_priority)
