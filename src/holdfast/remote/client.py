"""The client that waits in the calling thread: for scripts, Django, Lambda functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack, assert_never, overload

from holdfast.api.tasks import Workflow
from holdfast.remote import operations
from holdfast.remote.answers import ExecutionRow, Filters, Started
from holdfast.remote.connecting import Api, Token, connect
from holdfast.remote.faces import blocking, blocking_of_one
from holdfast.remote.operations import Call, Now, Operation, Sleep
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
    ) -> Handle[Any]: ...
    @overload
    def start(
        self,
        workflow: Callable[[*Ts], R],
        /,
        *arguments: *Ts,
        name: str | None = None,
        priority: int | None = None,
    ) -> Handle[R]: ...
    # mypy does not see that `*Any` accepts `*Ts`, so it would report this overload.
    def start(  # type: ignore[misc]
        self,
        workflow: Any,
        /,
        *arguments: Any,
        name: str | None = None,
        priority: int | None = None,
    ) -> Handle[Any]:
        """Start a workflow with its own arguments, or the workflow of a name with its input.

        `name` is the business key: the same name and input start only one execution. `priority` is
        the place in queues of limits, from 0 (first) to 9 (last). Raises NotFound; Conflict when
        the name belongs to another input.
        """
        wanted = typed_start(workflow, arguments)
        started = self.perform(
            operations.start(wanted.workflow, wanted.input, name=name, priority=priority)
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

    page = blocking(operations.page)
    counts = blocking(operations.counts)
    describe = blocking(operations.describe)
    history = blocking(operations.history)
    logs = blocking(operations.logs)
    wait = blocking(operations.wait)
    output = blocking(operations.output)
    stop = blocking(operations.stop)
    retry = blocking(operations.retry)
    pause = blocking(operations.pause)
    resume = blocking(operations.resume)
    skip = blocking(operations.skip)
    fork = blocking(operations.fork)
    migrate = blocking(operations.migrate)
    positions = blocking(operations.positions)
    definition = blocking(operations.definition)
    workflows = blocking(operations.workflows)
    workflow = blocking(operations.workflow)
    register = blocking(operations.register)
    remove_workflow = blocking(operations.remove_workflow)
    change_priority = blocking(operations.change_priority)
    bulk = blocking(operations.bulk)
    bulk_dry_run = blocking(operations.bulk_dry_run)
    bulk_report = blocking(operations.bulk_report)
    event = blocking(operations.event)
    events = blocking(operations.events)
    drop_event = blocking(operations.drop_event)
    request = blocking(operations.request)
    reply = blocking(operations.reply)
    answer = blocking(operations.answer)
    questions = blocking(operations.questions)
    question = blocking(operations.question)
    claim = blocking(operations.claim)
    release = blocking(operations.release)
    delegate = blocking(operations.delegate)
    change_pause = blocking(operations.change_pause)
    pauses = blocking(operations.pauses)
    schedules = blocking(operations.schedules)
    schedule = blocking(operations.schedule)
    create_schedule = blocking(operations.create_schedule)
    change_schedule = blocking(operations.change_schedule)
    delete_schedule = blocking(operations.delete_schedule)
    limits = blocking(operations.limits)
    limit = blocking(operations.limit)
    change_limit = blocking(operations.change_limit)
    format = blocking(operations.format)
    ask_format = blocking(operations.ask_format)
    pools = blocking(operations.pools)
    doctor = blocking(operations.doctor)
    clock_lead = blocking(operations.clock_lead)
    advance = blocking(operations.advance)

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
        return self._parse(self.perform(operations.output(self.execution, timeout)))

    describe = blocking_of_one(operations.describe)
    history = blocking_of_one(operations.history)
    wait = blocking_of_one(operations.wait)
    stop = blocking_of_one(operations.stop)
    retry = blocking_of_one(operations.retry)
    pause = blocking_of_one(operations.pause)
    resume = blocking_of_one(operations.resume)
    skip = blocking_of_one(operations.skip)
    fork = blocking_of_one(operations.fork)
    migrate = blocking_of_one(operations.migrate)
    change_priority = blocking_of_one(operations.change_priority)
