"""The calls of the HTTP API, each as a generator that yields requests and waits.

Nothing here sends, sleeps or reads a clock. `client.py` and `async_client.py` perform the effects,
so that both have the same calls, waits and errors:

    effect = next(operation)            # Call("GET", "/executions/order-17")
    effect = operation.send(answer)     # Sleep(0.1)
    effect = operation.send(None)       # Call(…)
    StopIteration.value                 # the result of the operation
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, TypeVar, Unpack, cast
from urllib.parse import quote, urlencode

from holdfast.errors import HoldfastError, RequestError, ServiceFault, is_passing
from holdfast.remote.answers import Counts, Description, Filters, Json, Page, QuestionPage, Started
from holdfast.remote.errors import ExecutionFailed, ReplyTimeout, RequestRejected, ResultTimeout
from holdfast.remote.values import json_bytes

T = TypeVar("T")

#: The greatest number of executions in one page of the API. The next constant is the number of
#: pages that one call reads.
PAGE_EXECUTIONS_MAX: Final = 100
PAGES_MAX: Final = 50
#: The most parts that one count reads. Each part has at least 2,000 entries, except the last one of
#: a list.
COUNT_PARTS_MAX: Final = 500
LISTED_MAX: Final = PAGE_EXECUTIONS_MAX * PAGES_MAX
#: The time between two checks of an execution. It grows during a long wait, because AWS bills each
#: check as a read.
POLL_SECONDS: Final = 0.1
POLL_SECONDS_MAX: Final = 5.0
POLL_GROWTH: Final = 1.3
FAULTS_MAX: Final = 5
#: The resource of the step in which a bulk operation gives its commands (`asl/resources.py`).
BULK_ACT: Final = "bulk:act"


@dataclass(frozen=True, slots=True)
class Call:
    """A request. The reply is the JSON of the response; a refusal is raised as an error."""

    method: Literal["GET", "POST", "DELETE"]
    target: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(frozen=True, slots=True)
class Now:
    """The reply is the time of a clock that never goes back, in seconds."""


Effect: TypeAlias = Call | Sleep | Now
Operation: TypeAlias = Generator[Effect, Any, T]


# -- one execution ---------------------------------------------------------------------------------


def start(
    workflow: str, data: object, *, name: str | None = None, priority: int | None = None
) -> Operation[Started]:
    """Start the workflow with this name. The same name and input give the same execution."""
    fields = {"workflow": workflow, "input": data, "name": name, "priority": priority}
    return cast("Started", (yield from _post("/executions", fields)))


def describe(execution: str) -> Operation[Description]:
    """Return the execution. `execution`: its id, its name, WORKFLOW:NAME, or its ARN."""
    return cast("Description", (yield from _get(_path(execution))))


def history(execution: str) -> Operation[list[Json]]:
    """Return every event, page by page."""
    return (yield from _pages(f"{_path(execution)}/history", "events"))


def logs(execution: str) -> Operation[list[Json]]:
    """Return the log lines of the execution's tasks, and of executions that it called. Only `serve`
    answers: the lines of a deployed stack are in CloudWatch.
    """
    return list((yield from _get(f"{_path(execution)}/logs"))["lines"])


def stop(
    execution: str, error: str | None = None, cause: str | None = None, *, now: bool = False
) -> Operation[Json]:
    """Stop the execution: it undoes its work and ends as ABORTED. With `now` it ends at once, and
    work that is not undone yet stays.
    """
    fields = {"error": error, "cause": cause, "now": now or None}
    return (yield from _post(f"{_path(execution)}/stop", fields))


def retry(execution: str, reason: str | None = None) -> Operation[Json]:
    """Continue a failed execution from the step that failed."""
    return (yield from _post(f"{_path(execution)}/retry", {"reason": reason}))


def pause(
    execution: str,
    reason: str,
    *,
    by: str | None = None,
    timers: Literal["freeze", "run"] = "freeze",
) -> Operation[Json]:
    """Pause the execution: nothing new begins in it."""
    fields = {"reason": reason, "by": by, "timers": timers}
    return (yield from _post(f"{_path(execution)}/pause", fields))


def resume(execution: str, reason: str, *, by: str | None = None) -> Operation[Json]:
    """Let a paused execution continue."""
    return (yield from _post(f"{_path(execution)}/resume", {"reason": reason, "by": by}))


def skip(
    execution: str, step: str, result: object, reason: str, *, by: str | None = None
) -> Operation[Json]:
    """Give an open or failed step a result, in place of its own."""
    fields = {"step": step, "reason": reason, "by": by}
    return (yield from _post(f"{_path(execution)}/skip", fields, result=result))


def fork(
    execution: str,
    step: str,
    reason: str,
    *,
    by: str | None = None,
    changes: Mapping[str, object] = {},
) -> Operation[Json]:
    """Start a copy of the execution that continues from one of its steps. `changes` may contain
    `input` for the first step, `set` for variables by name, and `on`: "latest" lets the copy run on
    the newest definition.
    """
    fields = {"step": step, "reason": reason, "by": by}
    return (yield from _post(f"{_path(execution)}/fork", fields, **changes))


def migrate(
    execution: str,
    *,
    to: str = "latest",
    dry_run: bool = False,
    reason: str | None = None,
    by: str | None = None,
) -> Operation[Json]:
    """Continue the execution with another definition, from its present place. `to` is "latest",
    "back" (to the one before its last migration), or the beginning of a hash. `dry_run`: only
    return whether that is possible, and why not.
    """
    fields = {"to": to, "dry_run": dry_run or None, "reason": reason, "by": by}
    return (yield from _post(f"{_path(execution)}/migration", fields))


def positions(workflow: str) -> Operation[Json]:
    """Return the positions of the running executions of the workflow: `positions`, each with the
    ids of its executions, and `definitions` by hash. Executions that have not waited yet are not
    included.
    """
    found: list[Json] = []
    after: str | None = None
    while True:
        page = yield from _get(f"/positions{_query({'workflow': workflow, 'after': after})}")
        found += page["positions"]
        after = page.get("next")
        if after is None:
            break
    definitions = {}
    for name in sorted({row["definition"] for row in found}):
        definitions[name] = yield from definition(name)
    return {"workflow": workflow, "positions": found, "definitions": definitions}


def definition(hash: str) -> Operation[Json]:  # noqa: A002
    """Return a stored definition: `hash`, `asl` and `map`."""
    return (yield from _get(f"/definitions/{quote(hash, safe='')}"))


def workflows() -> Operation[list[Json]]:
    """Return the deployed workflows and the registered graphs, with the hashes of their newest
    definitions. A graph has a `version`.
    """
    return list((yield from _get("/workflows"))["workflows"])


def workflow(name: str) -> Operation[Json]:
    """Return a workflow with its `picture`, and the `document` of a graph."""
    return (yield from _get(_workflow(name)))


def remove_workflow(name: str) -> Operation[Json]:
    """Remove a registered graph. Its executions go on, and no further one starts."""
    return (yield from _call(Call("DELETE", _workflow(name))))


def _workflow(name: str) -> str:
    return f"/workflows/{quote(name, safe='')}"


def register(document: str | Mapping[str, object]) -> Operation[Json]:
    """Register a graph of steps as a workflow, or a new version of it: see docs/reference/dag.md.

    Return `workflow`, `version`, `definition`, and `registered`: False when that version already
    exists.
    """
    text = document if isinstance(document, str) else json_bytes(dict(document)).decode()
    answer: Json = yield Call("POST", "/workflows", text.encode())
    return answer


# -- bulk operations -------------------------------------------------------------------------------


def bulk(
    operation: str,
    filters: Filters,
    reason: str,
    *,
    by: str | None = None,
    fields: Mapping[str, object] = {},
    rate: float | None = None,
    name: str | None = None,
    expected: int | None = None,
) -> Operation[Started]:
    """Start a bulk operation: give the command `operation` to each execution that the filters
    select, `rate` a second. `fields` are those of the command. The same `name` starts only one.
    """
    asked = _bulk(operation, filters, reason, by, fields)
    more = {"rate": rate, "name": name, "expected": expected}
    return cast("Started", (yield from _post("/bulk", {**asked, **more})))


def bulk_dry_run(
    operation: str,
    filters: Filters,
    reason: str,
    *,
    by: str | None = None,
    fields: Mapping[str, object] = {},
) -> Operation[Json]:
    """Return how many executions a bulk operation would select now (`matching`), and a `sample`.
    Nothing is changed. After `PAGES_MAX` requests the answer has `next`: there are more.
    """
    asked = {**_bulk(operation, filters, reason, by, fields), "dry_run": True}
    found = yield from _post("/bulk", asked)
    for _ in range(PAGES_MAX - 1):
        if "next" not in found:
            break
        more = yield from _post("/bulk", {**asked, "after": found["next"]})
        sample = found["sample"] or more["sample"]
        found = {**more, "matching": found["matching"] + more["matching"], "sample": sample}
    return found


def bulk_report(execution: str) -> Operation[dict[str, str]]:
    """Return the outcome for each execution that a bulk operation has selected: "done", or the
    reason why the command was refused.
    """
    found: dict[str, str] = {}
    for event in (yield from history(execution)):
        details = event.get("taskSucceededEventDetails", {})
        if details.get("resource") == BULK_ACT:
            found |= json.loads(details["output"])["outcomes"]
    return found


def _bulk(
    operation: str,
    filters: Filters,
    reason: str,
    by: str | None,
    fields: Mapping[str, object],
) -> dict[str, object]:
    chosen = {name: _filter_text(value) for name, value in filters.items()}
    given = {name: value for name, value in chosen.items() if value is not None}
    asked = {"operation": operation, "filters": given, "fields": dict(fields)}
    return {**asked, "reason": reason, "by": by}


def change_priority(
    execution: str, priority: int, reason: str, *, by: str | None = None
) -> Operation[Json]:
    """Change the execution's place in queues of limits: 0 goes first, 9 last."""
    fields = {"priority": priority, "reason": reason, "by": by}
    return (yield from _post(f"{_path(execution)}/priority", fields))


# -- the end of an execution -----------------------------------------------------------------------


def wait(execution: str, timeout: float | None = None) -> Operation[Description]:
    """Return the execution when it has ended, or as it is after `timeout` seconds.

    If the API fails, the request is repeated, up to `FAULTS_MAX` times in a row: the execution
    itself still runs.
    """
    deadline = math.inf if timeout is None else (yield Now()) + timeout
    interval, faults = POLL_SECONDS, 0
    while True:
        try:
            found = yield from describe(execution)
        except ServiceFault as fault:
            faults += 1
            if faults > FAULTS_MAX or not is_passing(fault):
                raise
        else:
            faults = 0
            if found["status"] != "RUNNING" or (yield Now()) >= deadline:
                return found
        # Sleep at most until the deadline, so that the last check happens at the deadline.
        yield Sleep(max(0.0, min(interval, deadline - (yield Now()))))
        interval = min(interval * POLL_GROWTH, POLL_SECONDS_MAX)


def output(execution: str, timeout: float | None = None) -> Operation[Any]:
    """Return the output as JSON when the execution has ended.

    Raises ExecutionFailed, ResultTimeout, and RequestError HF290.
    """
    ended = yield from wait(execution, timeout)
    match ended["status"]:
        case "SUCCEEDED":
            return _output(ended)
        case "RUNNING":
            assert timeout is not None
            raise ResultTimeout(ended["execution"], timeout)
        case status:
            error, cause = ended.get("error"), ended.get("cause")
            raise ExecutionFailed(ended["execution"], status, error, cause)


def _output(ended: Description) -> Any:
    if "output" in ended.get("omitted", ()):
        raise RequestError(
            "HF290",
            f"the result of execution {ended['execution']} is too large for an answer of the API",
            help="let the workflow return the key of an object in a bucket of yours",
        )
    return ended["output"]


# -- lists -----------------------------------------------------------------------------------------


def page(
    *, limit: int = PAGE_EXECUTIONS_MAX, after: str | None = None, **filters: Unpack[Filters]
) -> Operation[Page]:
    """Return the newest `limit` executions that the filters select; `after`: only older ones.

    After `PAGES_MAX` requests the page ends early, and its `after` says where to continue.
    """
    chosen = {name: _filter_text(value) for name, value in filters.items()}
    found = Page([], after)
    for _ in range(PAGES_MAX):
        size = str(min(limit - len(found.rows), PAGE_EXECUTIONS_MAX))
        query = _query({**chosen, "after": found.after, "limit": size})
        answer = yield from _get(f"/executions{query}")
        found = Page([*found.rows, *answer["executions"]], answer.get("next"))
        if found.after is None or len(found.rows) >= limit:
            break
    return found


def counts(
    *,
    by: Sequence[str] = ("status",),
    workflow: str | None = None,
    status: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> Operation[Counts]:
    """Count executions by `workflow`, `status` or `wait`, or several of them. After
    `COUNT_PARTS_MAX` requests the rest is not counted.
    """
    chosen = {"workflow": workflow, "status": status, "by": ",".join(by)}
    times = {"since": _filter_text(since), "until": _filter_text(until)}
    total: dict[tuple[str, ...], int] = {}
    oldest: Json | None = None
    began, after = "", None
    for _ in range(COUNT_PARTS_MAX):
        part = yield from _get(f"/counts{_query({**chosen, **times, 'after': after})}")
        for row in part["counts"]:
            labels = tuple(row[name] for name in by)
            total[labels] = total.get(labels, 0) + row["count"]
        found = part.get("oldest")
        if found is not None and (oldest is None or found["since"] < oldest["since"]):
            oldest = found
        began, after = began or part["at"], part.get("next")
        if after is None:
            break
    rows = [
        {**dict(zip(by, labels, strict=True)), "count": number}
        for labels, number in sorted(total.items())
    ]
    return Counts(rows, oldest, began, after)


def _filter_text(value: object) -> str | list[str] | None:
    match value:
        case None | False:
            return None
        case True:
            return "true"
        case datetime():
            # A time without a zone is in the zone of this machine, as it is in `datetime` itself.
            return value.astimezone().isoformat()
        case list() | tuple():
            return list(map(str, value))
        case _:
            return str(value)


# -- events and answers ----------------------------------------------------------------------------


def event(
    name: str,
    key: str,
    data: object,
    *,
    id: str | None = None,  # noqa: A002
    execution: str | None = None,
) -> Operation[Json]:
    """Send an event to the executions that wait for it. If it is sent twice with the same `id`, it
    counts once. With `execution` only that one may use it.
    """
    fields = {"name": name, "key": key, "id": id, "execution": execution}
    return (yield from _post("/events", fields, data=data))


def request(
    name: str,
    key: str,
    data: object,
    *,
    id: str | None = None,  # noqa: A002
    execution: str | None = None,
    timeout: float | None = 60.0,
) -> Operation[Any]:
    """Send a request to an execution that waits for such requests, and return its reply as JSON. If
    a request is sent twice with the same `id`, it counts once.

    Raises RequestRejected. Raises ReplyTimeout after `timeout` seconds, with the id for `reply`.
    """
    fields = {"name": name, "key": key, "id": id, "execution": execution}
    asked = yield from _post("/requests", fields, data=data)
    return (yield from reply(asked["request"], timeout))


def reply(request: str, timeout: float | None = None) -> Operation[Any]:
    """Return the reply to a request that was sent earlier.

    Raises RequestRejected, and ReplyTimeout after `timeout` seconds.
    """
    deadline = math.inf if timeout is None else (yield Now()) + timeout
    interval = POLL_SECONDS
    while True:
        found = yield from _get(f"/requests/{quote(request, safe='')}")
        match found["status"]:
            case "ANSWERED":
                return found["output"]
            case "REJECTED":
                raise RequestRejected(request, found["error"], found["cause"])
        if (yield Now()) >= deadline:
            assert timeout is not None
            raise ReplyTimeout(request, timeout)
        yield Sleep(max(0.0, min(interval, deadline - (yield Now()))))
        interval = min(interval * POLL_GROWTH, POLL_SECONDS_MAX)


def events(name: str | None = None, key: str | None = None) -> Operation[list[Json]]:
    """Return the stored events with a name and key, the oldest first. Without them return the
    newest events for which no execution has waited.
    """
    found = yield from _get(f"/events{_query({'name': name, 'key': key})}")
    return list(found["events"])


def drop_event(
    name: str,
    key: str,
    id: str,  # noqa: A002
    reason: str,
    *,
    by: str | None = None,
) -> Operation[Json]:
    """Drop a stored event: no execution can use it from now on, and the caller of a request gets a
    rejection. `used_by` in the result names the executions that have already used it.
    """
    fields = {"name": name, "key": key, "id": id, "reason": reason, "by": by}
    return (yield from _post("/events/drop", fields))


def answer(
    question: str,
    output: object = None,
    *,
    error: str | None = None,
    cause: str | None = None,
    by: str | None = None,
) -> Operation[Json]:
    """Answer a question with an output, or fail its wait with an error. `question` is its id, or a
    token that `describe` shows.
    """
    fields = {"error": error, "cause": cause, "by": by}
    kept = {"output": output} if error is None else {}
    if ":" in question:
        return (yield from _post(f"{_question(question)}/answer", fields, **kept))
    return (yield from _post("/answers", {"token": question, **fields}, **kept))


# -- questions to people ---------------------------------------------------------------------------


def questions(
    *,
    assignee: str | None = None,
    workflow: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Operation[QuestionPage]:
    """Return up to `limit` open questions after the place `after`."""
    size = None if limit is None else str(limit)
    asked = {"assignee": assignee, "workflow": workflow, "limit": size, "after": after}
    found = yield from _get(f"/questions{_query(asked)}")
    return QuestionPage(found["questions"], found.get("next"))


def question(question: str) -> Operation[Json]:
    """Return one question, with the schema of its answer."""
    return (yield from _get(_question(question)))


def claim(question: str, by: str) -> Operation[Json]:
    """Record that `by` works on the question. Other people then cannot answer it."""
    return (yield from _post(f"{_question(question)}/claim", {"by": by}))


def release(question: str, by: str) -> Operation[Json]:
    """Release a claimed question, so that other people can answer it."""
    return (yield from _post(f"{_question(question)}/release", {"by": by}))


def delegate(question: str, to: str, by: str) -> Operation[Json]:
    """Give the question to another person or role."""
    return (yield from _post(f"{_question(question)}/delegate", {"to": to, "by": by}))


# -- pauses of a task, a workflow or the stack -----------------------------------------------------


def change_pause(
    reason: str,
    *,
    paused: bool,
    task: str | None = None,
    workflow: str | None = None,
    all: bool | None = None,  # noqa: A002
    until: datetime | None = None,
    by: str | None = None,
) -> Operation[Json]:
    """Pause or resume one task, one workflow, or with `all` the whole stack."""
    fields = {
        "reason": reason,
        "paused": paused,
        "task": task,
        "workflow": workflow,
        "all": all,
        "until": None if until is None else until.astimezone().isoformat(),
        "by": by,
    }
    return (yield from _post("/pauses", fields))


def pauses() -> Operation[list[Json]]:
    """Return the pauses of tasks, workflows and the stack."""
    return list((yield from _get("/pauses"))["pauses"])


# -- schedules -------------------------------------------------------------------------------------


def schedules() -> Operation[list[Json]]:
    """Return the schedules, by name."""
    return list((yield from _get("/schedules"))["schedules"])


def schedule(name: str) -> Operation[Json]:
    """Return one schedule with its next nominal times."""
    return (yield from _get(_schedule(name)))


def create_schedule(fields: Mapping[str, object]) -> Operation[Json]:
    """Create a schedule. `fields`: those of `POST /schedules`."""
    return (yield from _post("/schedules", fields))


def change_schedule(
    name: str,
    change: Literal["pause", "resume", "backfill"],
    fields: Mapping[str, object],
) -> Operation[Json]:
    """Pause or resume a schedule (`reason`, `by`), or make up for a range of past times (`since`,
    `until`).
    """
    return (yield from _post(f"{_schedule(name)}/{change}", fields))


def delete_schedule(name: str) -> Operation[Json]:
    """Delete a schedule that was created by a command. Executions that it has started continue."""
    return (yield from _call(Call("DELETE", _schedule(name))))


def _schedule(name: str) -> str:
    return f"/schedules/{quote(name, safe='')}"


# -- limits ----------------------------------------------------------------------------------------


def limits() -> Operation[list[Json]]:
    """Return the limits of tasks and of workflows, and their queues."""
    return list((yield from _get("/limits"))["limits"])


def limit(name: str, *, key: str | None = None) -> Operation[Json]:
    """Return one limit. `key` is a value of its key parameter; then the queue of that value is
    included.
    """
    return (yield from _get(f"/limits/{quote(name, safe='')}{_query({'key': key})}"))


def change_limit(
    name: str,
    reason: str,
    *,
    by: str | None = None,
    rate: float | None = None,
    burst: int | None = None,
    concurrency: int | None = None,
    paused: bool | None = None,
    clear: bool | None = None,
) -> Operation[Json]:
    """Change a limit's values, or restore those of the code."""
    fields = {
        "reason": reason,
        "by": by,
        "rate": rate,
        "burst": burst,
        "concurrency": concurrency,
        "paused": paused,
        "clear": clear,
    }
    return (yield from _post(f"/limits/{quote(name, safe='')}", fields))


# -- the stack -------------------------------------------------------------------------------------


def format() -> Operation[Json]:  # noqa: A001
    """Return `format`, which the stack writes, and `readable`, the formats that its code reads."""
    return (yield from _get("/format"))


def ask_format(number: int) -> Operation[Json]:
    """Request a newer format. This cannot be undone."""
    return (yield from _post("/format", {"format": number}))


def pools() -> Operation[list[Json]]:
    """Return the pools with their workers and the number of tasks that wait."""
    return list((yield from _get("/pools"))["pools"])


def doctor(execution: str | None = None, *, repair: bool = False) -> Operation[list[Json]]:
    """Return all findings, page by page. `execution`: only the findings about that execution."""
    asked = {"execution": execution}
    if not repair:
        return (yield from _pages("/doctor", "findings", asked))
    found: list[Json] = []
    while True:
        told = yield from _post("/doctor", asked)
        found += told["findings"]
        if "next" not in told:
            return found
        asked = {"after": told["next"]}


def clock_lead() -> Operation[int]:
    """Return by how many seconds the clock of a `serve` is ahead; 0 for a deployed stack."""
    try:
        found = yield from _get("/health")
    except HoldfastError:
        # A deployed stack has no such route. If the API has another error, the next request shows
        # it.
        return 0
    return int(found.get("clock_lead_seconds", 0))


def advance(milliseconds: int) -> Operation[Json]:
    """Move the clock of a `serve` forward. A deployed stack has AWS's clock."""
    return (yield from _post("/clock", {"milliseconds": milliseconds}))


# -- requests --------------------------------------------------------------------------------------


def _get(target: str) -> Operation[Json]:
    return (yield from _call(Call("GET", target)))


def _call(call: Call) -> Operation[Json]:
    answer: Json = yield call
    return answer


def _post(target: str, fields: Mapping[str, object], **kept: object) -> Operation[Json]:
    """Send the fields that are not None, and the fields in `kept` unchanged, because None is a
    value in JSON.
    """
    sent = {name: value for name, value in fields.items() if value is not None}
    return (yield from _call(Call("POST", target, json_bytes({**sent, **kept}))))


def _pages(target: str, rows: str, asked: Mapping[str, str | None] = {}) -> Operation[list[Json]]:
    found: list[Json] = []
    while True:
        answer = yield from _get(f"{target}{_query(asked)}")
        found += answer[rows]
        if "next" not in answer:
            return found
        asked = {"after": answer["next"]}


def _query(parameters: Mapping[str, str | Sequence[str] | None]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given, doseq=True)}" if given else ""


def _path(execution: str) -> str:
    return f"/executions/{quote(execution, safe='')}"


def _question(question: str) -> str:
    return f"/questions/{quote(question, safe='')}"
