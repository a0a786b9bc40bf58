"""The routes of the HTTP API: for each one its command, and the parameters and fields it accepts.

`http` finds the route of a request, calls its command and writes the response.

A route refuses query parameters and body fields that it does not know (HF219). Otherwise a misspelt
`stauts` would list every execution, and a misspelt `now` would start an undo that the caller did
not want.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from holdfast.aws import bodies, protocol
from holdfast.aws.host import Host
from holdfast.aws.identity import caller_of, require_operator, tenant_of
from holdfast.errors import RequestError
from holdfast.resources import FORMS_PATH
from holdfast.runtime.commands.lookup import no_execution
from holdfast.runtime.effects import JsonResult
from holdfast.runtime.storage import format_control

if TYPE_CHECKING:
    from holdfast.runtime.commands.api import Front
    from holdfast.runtime.commands.questions import QuestionAction


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to one route. `named`: the part of the path that the route writes in braces."""

    host: Host
    request: Mapping[str, Any]
    region: str | None
    route: str
    named: str

    @property
    def front(self) -> Front:
        return self.host.front

    @property
    def tenant(self) -> str:
        return tenant_of(self.request)

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.get("queryStringParameters") or {}

    @property
    def execution(self) -> str:
        """The id in the path. Raises RequestError HF207 for an ARN of another region or account."""
        return require_here(self.named, self.request, self.region)

    @property
    def caller(self) -> str | None:
        return caller_of(self.request)

    def body(self) -> dict[str, Any]:
        """Return the fields of the body. Raises RequestError HF219, HF241 to HF243."""
        found = bodies.body_of(self.request)
        require_known("field", found, self.route, ROUTES[self.route].fields)
        return found

    def command(self) -> dict[str, Any]:
        """Return the body, with the verified caller as `by` if the client names no operator."""
        return {"by": self.caller or "", **self.body()}


Command = Callable[[Asked], JsonResult]


def _ok(_answer: Any) -> int:
    return 200


@dataclass(frozen=True, slots=True)
class Route:
    """`status`: the status of the response to an answer of the command."""

    command: Command
    query: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    status: Callable[[Any], int] = _ok


def require_known(what: str, given: Iterable[str], route: str, known: tuple[str, ...]) -> None:
    """Raises RequestError HF219 for a parameter or field that the route does not accept."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise RequestError(
            "HF219",
            f"{route} has no {what} {unknown[0]!r:.90}",
            help=f"known: {', '.join(known) or 'none'}",
        )


def require_here(identifier: str, request: Mapping[str, Any], region: str | None) -> str:
    """Return the identifier of an execution. Raises RequestError HF207 for an ARN of another region
    or account.

    An execution in this stack may have the same name, and must not be stopped instead of that one.
    """
    if identifier.startswith("arn:"):
        place = [*identifier.split(":")[3:5], "", ""][:2]
        own = region or os.environ.get("AWS_REGION"), request["requestContext"].get("accountId")
        if any(known not in {None, found} for known, found in zip(own, place, strict=True)):
            raise no_execution(identifier)
    return identifier


# -- executions ------------------------------------------------------------------------------------

#: What makes an id unique: 8 random bytes of an execution's, 10 of an event's, 16 of a token's.
_RUN_BYTES: Final = 8
_EVENT_BYTES: Final = 10
_TOKEN_BYTES: Final = 16


def _start(asked: Asked) -> JsonResult:
    return asked.front.start(asked.tenant, asked.body(), os.urandom(_RUN_BYTES))


def _status_of_start(answer: Mapping[str, Any]) -> int:
    """Return 201 when the execution runs or has succeeded, 200 when it already existed and has not
    succeeded.
    """
    return 201 if answer.get("started", True) else 200


def _executions(asked: Asked) -> JsonResult:
    """API Gateway joins repeated parameters with commas, but a value of `where` may contain a
    comma, so they are read from the raw query.
    """
    query: Mapping[str, Any] = asked.query
    if "where" in query:
        pairs = parse_qsl(str(asked.request.get("rawQueryString", "")), keep_blank_values=True)
        query = {**query, "where": [value for name, value in pairs if name == "where"]}
    return asked.front.executions(asked.tenant, query)


def _describe(asked: Asked) -> JsonResult:
    return asked.front.describe(asked.tenant, asked.execution, with_forks=True)


def _history(asked: Asked) -> JsonResult:
    return asked.front.history(asked.tenant, asked.execution, asked.query.get("after"))


def _stop(asked: Asked) -> JsonResult:
    body = asked.body()
    return asked.front.stop(asked.tenant, asked.execution, body, os.urandom(_RUN_BYTES))


def _retry(asked: Asked) -> JsonResult:
    chance = os.urandom(_RUN_BYTES)
    return asked.front.retry(asked.tenant, asked.execution, asked.body(), chance, asked.caller)


_Act = Callable[[str, str, Mapping[str, Any], bytes], JsonResult]


def _acting(act: Callable[[Front], _Act]) -> Command:
    """Return the command that gives an execution what an operator asks for."""
    return lambda asked: act(asked.front)(
        asked.tenant, asked.execution, asked.command(), os.urandom(_RUN_BYTES)
    )


def _bulk(asked: Asked) -> JsonResult:
    command = asked.command()
    known = ROUTES["GET /executions"].query
    require_known("filter", _filters_of(command), "GET /executions", known)
    return asked.front.bulk(asked.tenant, command, os.urandom(_RUN_BYTES))


def _filters_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a bulk operation, without the fields that choose a page of a list."""
    filters = asked.get("filters")
    if not isinstance(filters, dict):
        return {}
    places = {"limit", "after"} & filters.keys()
    if places:
        raise RequestError("HF219", f"a bulk operation has no filter {min(places)!r}")
    return filters


# -- flow control ----------------------------------------------------------------------------------


def _change_pause(asked: Asked) -> JsonResult:
    require_operator(asked.request)
    return asked.front.change_pause(asked.command())


def _change_limit(asked: Asked) -> JsonResult:
    require_operator(asked.request)
    return asked.front.change_limit(asked.named, asked.command())


def _ask_format(asked: Asked) -> JsonResult:
    require_operator(asked.request)
    return format_control.ask(asked.body(), asked.front.formats)


# -- events, questions, pools ----------------------------------------------------------------------


def _event(asked: Asked) -> JsonResult:
    return asked.front.event(asked.tenant, asked.body(), os.urandom(_EVENT_BYTES))


def _request(asked: Asked) -> JsonResult:
    return asked.front.request(asked.tenant, asked.body(), os.urandom(_EVENT_BYTES))


def _question(asked: Asked) -> JsonResult:
    """Add the link to the question's form, under the host name with which the caller calls this
    API.
    """
    shown: dict[str, Any] = yield from asked.front.question(asked.tenant, asked.named)
    scheme = asked.host.forms_scheme
    if scheme is None:
        return shown
    domain = asked.request["requestContext"]["domainName"]
    return {**shown, "link": f"{scheme}://{domain}{FORMS_PATH}{shown['token']}"}


def _on_question(action: QuestionAction) -> Route:
    fields = {
        "answer": ("output", "error", "cause", "by"),
        "claim": ("by",),
        "release": ("by",),
        "delegate": ("to", "by"),
    }
    return Route(
        lambda asked: asked.front.act_on_question(
            action, asked.tenant, asked.named, asked.command()
        ),
        fields=fields[action],
    )


def _in_pool(action: str, *fields: str) -> Route:
    def command(asked: Asked) -> JsonResult:
        from holdfast.stepfunctions import pools  # noqa: PLC0415 - few stacks have pools

        # The operations of a pool use no ARN, so the region and the account are not needed.
        service = protocol.service_of(asked.host, (asked.tenant, "", ""))
        act = pools.ACTIONS[action]
        return act(service, asked.named, asked.body(), os.urandom(_TOKEN_BYTES))

    return Route(command, fields=fields)


# -- repair, definitions ---------------------------------------------------------------------------


def _doctor(asked: Asked) -> JsonResult:
    wanted = {name: asked.query.get(name) for name in ("after", "execution")}
    return asked.front.doctor(asked.tenant, wanted, is_repairing=False)


def _repair(asked: Asked) -> JsonResult:
    return asked.front.doctor(asked.tenant, asked.body(), is_repairing=True)


def _register(asked: Asked) -> JsonResult:
    asked.body()
    return asked.front.register(asked.tenant, bodies.text_of(asked.request))


def _status_of_registration(answer: Mapping[str, Any]) -> int:
    """Return 201 for a new version, 200 for one that exists."""
    return 201 if answer["registered"] else 200


# -- the table -------------------------------------------------------------------------------------

_BY: Final = ("reason", "by")
_LIST: Final = (
    *("workflow", "status", "error", "name", "paused"),
    *("since", "until", "ended_since", "ended_until", "limit", "after"),
    *("waiting_for", "waiting_since", "last_error", "parent", "definition", "where"),
)
_SCHEDULE: Final = (
    *("name", "workflow", "cron", "every", "zone", "input", "time_as", "overlap"),
    *("missing", "repeated", "catch_up", "jitter", "pause_on_failure"),
)

#: The names of the routes are those of `resources.ROUTES`, without AWS's own protocol.
ROUTES: Final[Mapping[str, Route]] = {
    "POST /executions": Route(
        _start, fields=("workflow", "input", "name", "priority", "at"), status=_status_of_start
    ),
    "GET /executions": Route(_executions, _LIST),
    "GET /counts": Route(
        lambda asked: asked.front.counts(asked.tenant, asked.query),
        ("by", "workflow", "status", "since", "until", "after"),
    ),
    "GET /executions/{id}": Route(_describe),
    "GET /executions/{id}/history": Route(_history, ("after",)),
    "POST /executions/{id}/stop": Route(_stop, fields=("error", "cause", "now")),
    "POST /executions/{id}/retry": Route(_retry, fields=("reason",)),
    "POST /executions/{id}/pause": Route(
        _acting(lambda front: front.pause), fields=(*_BY, "timers")
    ),
    "POST /executions/{id}/resume": Route(_acting(lambda front: front.resume), fields=_BY),
    "POST /executions/{id}/priority": Route(
        _acting(lambda front: front.change_priority), fields=("priority", *_BY)
    ),
    "POST /executions/{id}/skip": Route(
        _acting(lambda front: front.skip), fields=("step", "result", *_BY)
    ),
    "POST /executions/{id}/fork": Route(
        _acting(lambda front: front.fork), fields=("step", "input", "set", "on", *_BY)
    ),
    "POST /executions/{id}/migration": Route(
        _acting(lambda front: front.migrate), fields=("to", "dry_run", *_BY)
    ),
    "GET /positions": Route(
        lambda asked: asked.front.positions(asked.tenant, asked.query), ("workflow", "after")
    ),
    "GET /definitions/{hash}": Route(
        lambda asked: asked.front.definition(asked.tenant, asked.named)
    ),
    "POST /bulk": Route(
        _bulk,
        fields=(
            *("operation", "filters", "fields", *_BY, "rate", "name", "expected"),
            *("dry_run", "after"),
        ),
    ),
    "GET /pauses": Route(lambda asked: asked.front.pauses()),
    "POST /pauses": Route(
        _change_pause, fields=("task", "workflow", "all", "paused", "until", *_BY)
    ),
    "GET /limits": Route(lambda asked: asked.front.limits()),
    "GET /limits/{name}": Route(
        lambda asked: asked.front.limit(asked.named, asked.query), ("key",)
    ),
    "POST /limits/{name}": Route(
        _change_limit, fields=("rate", "burst", "concurrency", "paused", "clear", *_BY)
    ),
    "GET /schedules": Route(lambda asked: asked.front.schedules(asked.tenant)),
    "POST /schedules": Route(
        lambda asked: asked.front.create_schedule(asked.tenant, asked.body()), fields=_SCHEDULE
    ),
    "GET /schedules/{name}": Route(lambda asked: asked.front.schedule(asked.tenant, asked.named)),
    "POST /schedules/{name}/pause": Route(
        lambda asked: asked.front.pause_schedule(asked.tenant, asked.named, asked.command()),
        fields=_BY,
    ),
    "POST /schedules/{name}/resume": Route(
        lambda asked: asked.front.resume_schedule(asked.tenant, asked.named, asked.command()),
        fields=_BY,
    ),
    "POST /schedules/{name}/backfill": Route(
        lambda asked: asked.front.backfill_schedule(asked.tenant, asked.named, asked.body()),
        fields=("since", "until"),
    ),
    "DELETE /schedules/{name}": Route(
        lambda asked: asked.front.delete_schedule(asked.tenant, asked.named)
    ),
    "POST /events": Route(
        _event, fields=("name", "key", "data", "error", "cause", "id", "execution", "at")
    ),
    "GET /events": Route(
        lambda asked: asked.front.events(asked.tenant, asked.query), ("name", "key")
    ),
    "POST /events/drop": Route(
        lambda asked: asked.front.drop_event(asked.tenant, asked.command()),
        fields=("name", "key", "id", *_BY),
    ),
    "POST /requests": Route(_request, fields=("name", "key", "data", "id", "execution")),
    "GET /requests/{id}": Route(lambda asked: asked.front.reply(asked.tenant, asked.named)),
    "POST /answers": Route(
        lambda asked: asked.front.answer(asked.tenant, asked.command()),
        fields=("token", "output", "error", "cause", "by"),
    ),
    "GET /questions": Route(
        lambda asked: asked.front.questions(asked.tenant, asked.query),
        ("assignee", "workflow", "limit", "after"),
    ),
    "GET /questions/{id}": Route(_question),
    "POST /questions/{id}/answer": _on_question("answer"),
    "POST /questions/{id}/claim": _on_question("claim"),
    "POST /questions/{id}/release": _on_question("release"),
    "POST /questions/{id}/delegate": _on_question("delegate"),
    "GET /pools": Route(lambda asked: asked.front.pools(asked.tenant)),
    "POST /pools/{name}/announce": _in_pool(
        "announce", "worker", "tasks", "slots", "busy", "since"
    ),
    "POST /pools/{name}/poll": _in_pool("poll", "worker", "tasks"),
    "POST /pools/{name}/fetch": _in_pool("fetch", "token"),
    "POST /pools/{name}/heartbeat": _in_pool("heartbeat", "token", "progress"),
    "POST /pools/{name}/answer": _in_pool("answer", "token", "result"),
    "GET /doctor": Route(_doctor, ("execution", "after")),
    "POST /doctor": Route(_repair, fields=("execution", "after")),
    "GET /workflows": Route(lambda asked: asked.front.list_workflows(asked.tenant)),
    "POST /workflows": Route(
        _register,
        fields=("workflow_id", "steps", "timeout_seconds"),
        status=_status_of_registration,
    ),
    "GET /workflows/{name}": Route(lambda asked: asked.front.workflow(asked.tenant, asked.named)),
    "DELETE /workflows/{name}": Route(
        lambda asked: asked.front.remove_workflow(asked.tenant, asked.named)
    ),
    "GET /format": Route(lambda asked: format_control.show(asked.front.formats)),
    "POST /format": Route(_ask_format, fields=("format",)),
}
