"""The client that waits in the calling thread: for scripts, Django, Lambda functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack, assert_never, overload

from holdfast.api.workflows import Workflow
from holdfast.remote.answers import ExecutionRow, Filters, Started
from holdfast.remote.connecting import Api, Token, connect
from holdfast.remote.faces import blocking, blocking_of_one
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


class Client:
    """A client of the API: at a URL, of a deployed stack, or by default of this project's `serve`.

    `stack`: its address is found through CloudFormation, and calls are signed with IAM. `token`: a
    JWT, or a function that returns one, for an API with a JWT authoriser. `iam`: sign the requests
    to `endpoint` with the credentials that the AWS CLI would use. Several threads may use one
    client; a process that forks may use it, too.
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
    def of(cls, api: Api) -> Client:
        """Return a client of an API that is not reached over HTTP, for example in this process."""
        made = cls.__new__(cls)
        made._api = api  # noqa: SLF001
        return made

    @overload
    def start(
        self,
        workflow: str,
        data: object = ...,
        /,
        *,
        name: str | None = None,
        priority: int | None = None,
        at: datetime | None = None,
    ) -> Handle[Any]: ...
    @overload
    def start(
        self,
        workflow: Callable[[*Ts], R],
        /,
        *arguments: *Ts,
        name: str | None = None,
        priority: int | None = None,
        at: datetime | None = None,
    ) -> Handle[R]: ...
    # mypy does not see that `*Any` accepts `*Ts`, so it would report this overload.
    def start(  # type: ignore[misc]
        self,
        workflow: Any,
        /,
        *arguments: Any,
        name: str | None = None,
        priority: int | None = None,
        at: datetime | None = None,
    ) -> Handle[Any]:
        """Start a workflow with its own arguments, or the workflow of a name with its input.

        `name` is the business key: the same name and input start only one execution. `priority` is
        the place in queues of limits, from 0 (first) to 9 (last). With `at` the execution begins at
        that time, which has a zone. Raises NotFound; Conflict when the name belongs to another
        input.
        """
        wanted = typed_start(workflow, arguments)
        started = self.perform(
            executions.start(wanted.workflow, wanted.input, name=name, priority=priority, at=at)
        )
        return Handle(self, started["execution"], wanted.parse, started)

    @overload
    def handle(self, execution: str, /) -> Handle[Any]: ...
    @overload
    def handle(self, execution: str, workflow: Workflow[..., R], /) -> Handle[R]: ...
    def handle(self, execution: str, workflow: Workflow[..., Any] | None = None, /) -> Handle[Any]:
        """Return the handle of an execution that was started earlier. It sends nothing."""
        return Handle(self, execution, reader_of(workflow))

    def list(self, **filters: Unpack[Filters]) -> Iterator[ExecutionRow]:
        """Yield the executions that the filters select, newest first. Each page is read when it is
        needed.
        """
        after = None
        while True:
            page = self.page(after=after, **filters)
            yield from page.rows
            after = page.after
            if after is None:
                return

    page = blocking(executions.page)
    counts = blocking(executions.counts)
    describe = blocking(executions.describe)
    history = blocking(executions.history)
    logs = blocking(executions.logs)
    wait = blocking(executions.wait)
    wait_for_published = blocking(executions.wait_for_published)
    output = blocking(executions.output)
    stop = blocking(executions.stop)
    retry = blocking(executions.retry)
    pause = blocking(executions.pause)
    resume = blocking(executions.resume)
    skip = blocking(executions.skip)
    fork = blocking(executions.fork)
    migrate = blocking(definitions.migrate)
    positions = blocking(definitions.positions)
    definition = blocking(definitions.definition)
    workflows = blocking(definitions.workflows)
    workflow = blocking(definitions.workflow)
    register = blocking(definitions.register)
    remove_workflow = blocking(definitions.remove_workflow)
    change_priority = blocking(executions.change_priority)
    bulk = blocking(in_bulk.bulk)
    bulk_dry_run = blocking(in_bulk.bulk_dry_run)
    bulk_report = blocking(in_bulk.bulk_report)
    event = blocking(messages.event)
    events = blocking(messages.events)
    drop_event = blocking(messages.drop_event)
    request = blocking(messages.request)
    reply = blocking(messages.reply)
    answer = blocking(people.answer)
    questions = blocking(people.questions)
    question = blocking(people.question)
    claim = blocking(people.claim)
    release = blocking(people.release)
    delegate = blocking(people.delegate)
    change_pause = blocking(flow.change_pause)
    pauses = blocking(flow.pauses)
    schedules = blocking(flow.schedules)
    schedule = blocking(flow.schedule)
    create_schedule = blocking(flow.create_schedule)
    change_schedule = blocking(flow.change_schedule)
    delete_schedule = blocking(flow.delete_schedule)
    limits = blocking(flow.limits)
    limit = blocking(flow.limit)
    change_limit = blocking(flow.change_limit)
    format = blocking(stack.format)
    ask_format = blocking(stack.ask_format)
    pools = blocking(stack.pools)
    doctor = blocking(stack.doctor)
    clock_lead = blocking(stack.clock_lead)
    advance = blocking(stack.advance)

    def perform(self, operation: Operation[T], /) -> T:
        """Perform an operation of `holdfast.remote.operations`."""
        reply: Any = None
        try:
            effect = next(operation)
            while True:
                match effect:
                    case Call():
                        try:
                            reply = self._api.call(effect)
                        except Exception as error:  # noqa: BLE001  # the operation decides
                            effect = operation.throw(error)
                            continue
                    case Sleep(seconds):
                        time.sleep(seconds)
                        reply = None
                    case Now():
                        reply = time.monotonic()
                    case _:
                        assert_never(effect)
                effect = operation.send(reply)
        except StopIteration as ended:
            result: T = ended.value
            return result


class Handle(Generic[R]):
    """One execution. `started` is the API's response to the start, None for an older execution."""

    def __init__(
        self,
        client: Client,
        execution: str,
        parse: Callable[[Any], R],
        started: Started | None = None,
    ) -> None:
        self.execution = execution
        self.started = started
        self.perform = client.perform
        self._parse = parse

    def __repr__(self) -> str:
        return f"Handle({self.execution!r})"

    def result(self, timeout: float | None = None) -> R:
        """Return the result of the workflow when it has ended. Wait for at most `timeout` seconds.

        Raises ExecutionFailed, ResultTimeout.
        """
        return self._parse(self.perform(executions.output(self.execution, timeout)))

    describe = blocking_of_one(executions.describe)
    history = blocking_of_one(executions.history)
    wait = blocking_of_one(executions.wait)
    wait_for_published = blocking_of_one(executions.wait_for_published)
    stop = blocking_of_one(executions.stop)
    retry = blocking_of_one(executions.retry)
    pause = blocking_of_one(executions.pause)
    resume = blocking_of_one(executions.resume)
    skip = blocking_of_one(executions.skip)
    fork = blocking_of_one(executions.fork)
    migrate = blocking_of_one(definitions.migrate)
    change_priority = blocking_of_one(executions.change_priority)
