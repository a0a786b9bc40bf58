"""The operations on one execution, its end, and the lists of executions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, Unpack, cast

from holdfast.errors import RequestError, ServiceFault, is_passing
from holdfast.remote.answers import Counts, Description, Filters, Json, Page, Started
from holdfast.remote.errors import (
    ExecutionFailed,
    NotPublished,
    PublishedTimeout,
    ResultTimeout,
)
from holdfast.remote.operations.requests import (
    POLL_GROWTH,
    POLL_SECONDS,
    POLL_SECONDS_MAX,
    Now,
    Operation,
    Sleep,
    all_pages,
    get,
    path_part,
    post,
    query_text,
)

#: The greatest number of executions in one page of the API. The next constant is the number of
#: pages that one call reads.
PAGE_EXECUTIONS_MAX: Final = 100
PAGES_MAX: Final = 50
LISTED_MAX: Final = PAGE_EXECUTIONS_MAX * PAGES_MAX
FAULTS_MAX: Final = 5
#: The most parts that one count reads. Each part has at least 2,000 entries, except the last one of
#: a list.
COUNT_PARTS_MAX: Final = 500


def start(
    workflow: str,
    data: object,
    *,
    name: str | None = None,
    priority: int | None = None,
    at: datetime | None = None,
) -> Operation[Started]:
    """Start the workflow with this name, now or at a time. The same name, input and time give the
    same execution.
    """
    fields = {"workflow": workflow, "input": data, "name": name, "priority": priority}
    if at is not None:
        fields["at"] = at.isoformat()
    return cast("Started", (yield from post("/executions", fields)))


def describe(execution: str) -> Operation[Description]:
    """Return the execution. `execution`: its id, its name, WORKFLOW:NAME, or its ARN."""
    return cast("Description", (yield from get(path_of(execution))))


def history(execution: str) -> Operation[list[Json]]:
    """Return every event, page by page."""
    return (yield from all_pages(f"{path_of(execution)}/history", "events"))


def logs(execution: str) -> Operation[list[Json]]:
    """Return the log lines of the execution's tasks, and of executions that it called. Only `serve`
    answers: the lines of a deployed stack are in CloudWatch.
    """
    return list((yield from get(f"{path_of(execution)}/logs"))["lines"])


def stop(
    execution: str, error: str | None = None, cause: str | None = None, *, now: bool = False
) -> Operation[Json]:
    """Stop the execution: it undoes its work and ends as ABORTED. With `now` it ends at once, and
    work that is not undone yet stays.
    """
    fields = {"error": error, "cause": cause, "now": now or None}
    return (yield from post(f"{path_of(execution)}/stop", fields))


def retry(execution: str, reason: str | None = None) -> Operation[Json]:
    """Continue a failed execution from the step that failed."""
    return (yield from post(f"{path_of(execution)}/retry", {"reason": reason}))


def pause(
    execution: str,
    reason: str,
    *,
    by: str | None = None,
    timers: Literal["freeze", "run"] = "freeze",
) -> Operation[Json]:
    """Pause the execution: nothing new begins in it."""
    fields = {"reason": reason, "by": by, "timers": timers}
    return (yield from post(f"{path_of(execution)}/pause", fields))


def resume(execution: str, reason: str, *, by: str | None = None) -> Operation[Json]:
    """Let a paused execution continue."""
    return (yield from post(f"{path_of(execution)}/resume", {"reason": reason, "by": by}))


def skip(
    execution: str, step: str, result: object, reason: str, *, by: str | None = None
) -> Operation[Json]:
    """Give an open or failed step a result, in place of its own."""
    fields = {"step": step, "reason": reason, "by": by}
    return (yield from post(f"{path_of(execution)}/skip", fields, result=result))


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
    return (yield from post(f"{path_of(execution)}/fork", fields, **changes))


def change_priority(
    execution: str, priority: int, reason: str, *, by: str | None = None
) -> Operation[Json]:
    """Change the execution's place in queues of limits: 0 goes first, 9 last."""
    fields = {"priority": priority, "reason": reason, "by": by}
    return (yield from post(f"{path_of(execution)}/priority", fields))


# -- the end of an execution -----------------------------------------------------------------------


def wait(execution: str, timeout: float | None = None) -> Operation[Description]:
    """Return the execution when it has ended, or as it is after `timeout` seconds.

    If the API fails, the request is repeated, up to `FAULTS_MAX` times in a row: the execution
    itself still runs.
    """
    return (yield from _look(execution, _has_ended, timeout))


def wait_for_published(
    execution: str,
    name: str,
    until: Callable[[Any], object] | None = None,
    timeout: float | None = None,
) -> Operation[Any]:
    """Return the value that the execution has published under `name`, as JSON, when `until` returns
    True for it. Without `until`, the first value counts. `until` sees the newest value of each
    look, so it may miss a value that is replaced between two looks.

    Raises NotPublished when the execution ends without such a value, and PublishedTimeout after
    `timeout` seconds.
    """

    def is_wanted(found: Description) -> bool:
        values = _published(found)
        return name in values and (until is None or bool(until(values[name])))

    found = yield from _look(execution, lambda one: is_wanted(one) or _has_ended(one), timeout)
    if is_wanted(found):
        return _published(found)[name]
    if _has_ended(found):
        raise NotPublished(found["execution"], name, found["status"])
    assert timeout is not None
    raise PublishedTimeout(found["execution"], name, timeout)


def _has_ended(found: Description) -> bool:
    return found["status"] != "RUNNING"


def _published(found: Description) -> Json:
    if "published" in found.get("omitted", ()):
        raise RequestError(
            "HF290",
            f"the published values of execution {found['execution']} are too large for an answer "
            "of the API",
            help="publish the key of an object in a bucket of yours",
        )
    return found.get("published", {})


def _look(
    execution: str, is_over: Callable[[Description], bool], timeout: float | None
) -> Operation[Description]:
    """Describe the execution until `is_over`, or until `timeout` seconds have passed."""
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
            if is_over(found) or (yield Now()) >= deadline:
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
    chosen = {name: filter_text(value) for name, value in filters.items()}
    found = Page([], after)
    for _ in range(PAGES_MAX):
        size = str(min(limit - len(found.rows), PAGE_EXECUTIONS_MAX))
        query = query_text({**chosen, "after": found.after, "limit": size})
        answer = yield from get(f"/executions{query}")
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
    times = {"since": filter_text(since), "until": filter_text(until)}
    total: dict[tuple[str, ...], int] = {}
    oldest: Json | None = None
    began, after = "", None
    for _ in range(COUNT_PARTS_MAX):
        part = yield from get(f"/counts{query_text({**chosen, **times, 'after': after})}")
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


def filter_text(value: object) -> str | list[str] | None:
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


def path_of(execution: str) -> str:
    return f"/executions/{path_part('the execution', execution)}"
