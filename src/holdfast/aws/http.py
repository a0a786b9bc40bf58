"""The HTTP API of Holdfast: each route is one command. `holdfast serve` runs the same code.

`routing` reads API Gateway's payload format 2.0. The authoriser verifies the tenant: the `tenant`
claim of a JWT, or `default` for an IAM caller of this account. A request with an `X-Amz-Target`
header is a call of AWS's own protocol, which `protocol` serves.

A route refuses query parameters and body fields that it does not know (HF219). Otherwise a misspelt
`stauts` would list every execution, and a misspelt `now` would start an undo that the caller did
not want.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from holdfast.aws import protocol
from holdfast.aws.forms import form_handler
from holdfast.aws.host import Host
from holdfast.aws.identity import caller_of, require_operator, tenant_of
from holdfast.aws.routing import Response, Router
from holdfast.errors import HoldfastError, RequestError, ServiceFault
from holdfast.limits import BODY_BYTES_MAX
from holdfast.resources import FORMS_PATH
from holdfast.runtime.commands.lookup import no_execution
from holdfast.runtime.commands.questions import QuestionAction
from holdfast.runtime.effects import Clock, JsonResult
from holdfast.runtime.storage import format_control
from holdfast.runtime.storage.json_values import parse_json_once, require_plain

#: For each route, the query parameters and the body fields that it accepts.
KNOWN: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "POST /executions": ((), ("workflow", "input", "name", "priority")),
    "GET /executions": (
        (
            *("workflow", "status", "error", "name", "paused"),
            *("since", "until", "ended_since", "ended_until", "limit", "after"),
            *("waiting_for", "waiting_since", "last_error", "parent", "definition", "where"),
        ),
        (),
    ),
    "GET /counts": (("by", "workflow", "status", "since", "until", "after"), ()),
    "GET /executions/{id}": ((), ()),
    "GET /executions/{id}/history": (("after",), ()),
    "POST /executions/{id}/stop": ((), ("error", "cause", "now")),
    "POST /executions/{id}/retry": ((), ("reason",)),
    "POST /executions/{id}/pause": ((), ("reason", "by", "timers")),
    "POST /executions/{id}/resume": ((), ("reason", "by")),
    "POST /executions/{id}/priority": ((), ("priority", "reason", "by")),
    "POST /executions/{id}/skip": ((), ("step", "result", "reason", "by")),
    "POST /executions/{id}/fork": ((), ("step", "input", "set", "on", "reason", "by")),
    "POST /executions/{id}/migration": ((), ("to", "dry_run", "reason", "by")),
    "GET /positions": (("workflow", "after"), ()),
    "GET /definitions/{hash}": ((), ()),
    "POST /bulk": (
        (),
        (
            *("operation", "filters", "fields", "reason", "by", "rate", "name", "expected"),
            *("dry_run", "after"),
        ),
    ),
    "GET /pauses": ((), ()),
    "POST /pauses": ((), ("task", "workflow", "all", "paused", "until", "reason", "by")),
    "GET /limits": ((), ()),
    "GET /limits/{name}": (("key",), ()),
    "POST /limits/{name}": (
        (),
        ("rate", "burst", "concurrency", "paused", "clear", "reason", "by"),
    ),
    "GET /schedules": ((), ()),
    "POST /schedules": (
        (),
        (
            *("name", "workflow", "cron", "every", "zone", "input", "time_as", "overlap"),
            *("missing", "repeated", "catch_up", "jitter", "pause_on_failure"),
        ),
    ),
    "GET /schedules/{name}": ((), ()),
    "POST /schedules/{name}/pause": ((), ("reason", "by")),
    "POST /schedules/{name}/resume": ((), ("reason", "by")),
    "POST /schedules/{name}/backfill": ((), ("since", "until")),
    "DELETE /schedules/{name}": ((), ()),
    "POST /events": ((), ("name", "key", "data", "id", "execution")),
    "GET /events": (("name", "key"), ()),
    "POST /events/drop": ((), ("name", "key", "id", "reason", "by")),
    "POST /requests": ((), ("name", "key", "data", "id", "execution")),
    "GET /requests/{id}": ((), ()),
    "POST /answers": ((), ("token", "output", "error", "cause", "by")),
    "GET /questions": (("assignee", "workflow", "limit", "after"), ()),
    "GET /questions/{id}": ((), ()),
    "POST /questions/{id}/answer": ((), ("output", "error", "cause", "by")),
    "POST /questions/{id}/claim": ((), ("by",)),
    "POST /questions/{id}/release": ((), ("by",)),
    "POST /questions/{id}/delegate": ((), ("to", "by")),
    "GET /pools": ((), ()),
    "POST /pools/{name}/announce": ((), ("worker", "tasks", "slots", "busy", "since")),
    "POST /pools/{name}/poll": ((), ("worker", "tasks")),
    "POST /pools/{name}/fetch": ((), ("token",)),
    "POST /pools/{name}/heartbeat": ((), ("token",)),
    "POST /pools/{name}/answer": ((), ("token", "result")),
    "GET /doctor": (("execution", "after"), ()),
    "POST /doctor": ((), ("execution", "after")),
    "GET /workflows": ((), ()),
    "POST /workflows": ((), ("workflow_id", "steps", "timeout_seconds")),
    "GET /workflows/{name}": ((), ()),
    "DELETE /workflows/{name}": ((), ()),
    "GET /format": ((), ()),
    "POST /format": ((), ("format",)),
}


def api_handler(
    host: Host, region: str | None = None
) -> Callable[[Mapping[str, Any], Any], dict[str, Any]]:
    """Return a Lambda handler for every route of the HTTP API. `region`: see `states_handler`."""
    routes, states = _routes(host, region), protocol.states_handler(host, region)
    forms = form_handler(host)

    def handle(request: Mapping[str, Any], context: Any) -> dict[str, Any]:
        if host.forms_scheme is not None and str(request["rawPath"]).startswith(FORMS_PATH):
            return forms(request)
        is_for_states = protocol.is_states_call(request)
        try:
            tenant = tenant_of(request)
        except RequestError as error:
            if is_for_states:
                return protocol.refusal(400, "AccessDeniedException", error.message)
            return _refusal(error)
        host.look(host.ports.perform(Clock()))
        return states(request, context, tenant) if is_for_states else routes(request)

    return handle


def _routes(host: Host, region: str | None) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    app = Router(lambda method, path: _json(404, _problem(_no_route(method, path))))
    front = host.front

    def answer(
        make: Callable[[], Any], route: str, status_of: Callable[[Any], int] = lambda _: 200
    ) -> Response:
        try:
            _require_known("query parameter", app.query, route, 0)
            value = host.perform(make())
        except RequestError as error:
            return _json(error.status, _problem(error))
        except HoldfastError as error:
            host.log_fault("a request was not served", error)
            return _json(503, _problem(error))
        return _json(status_of(value), value)

    def _json(status: int, value: Any) -> Response:
        return Response(status, json.dumps(value, ensure_ascii=False))

    def request() -> Mapping[str, Any]:
        return app.request

    def query(name: str) -> str | None:
        return app.query.get(name)

    def tenant() -> str:
        return tenant_of(request())

    def body(route: str) -> dict[str, Any]:
        return _require_known("field", body_of(request()), route, 1)

    def here(identifier: str) -> str:
        return require_here(identifier, request(), region)

    def asked_by_caller(route: str) -> dict[str, Any]:
        """Return the body, with the verified caller as `by` if the client names no operator."""
        return {"by": caller_of(request()) or "", **body(route)}

    @app.post("/executions")
    def start() -> Any:
        route = "POST /executions"
        return answer(
            lambda: front.start(tenant(), body(route), os.urandom(8)), route, _status_of_start
        )

    @app.get("/executions")
    def executions() -> Any:
        return answer(
            lambda: front.executions(tenant(), _with_conditions(app.query, request())),
            "GET /executions",
        )

    @app.get("/counts")
    def counts() -> Any:
        return answer(lambda: front.counts(tenant(), app.query), "GET /counts")

    @app.get("/executions/<identifier>")
    def describe(identifier: str) -> Any:
        return answer(
            lambda: front.describe(tenant(), here(identifier), with_forks=True),
            "GET /executions/{id}",
        )

    @app.get("/executions/<identifier>/history")
    def history(identifier: str) -> Any:
        return answer(
            lambda: front.history(tenant(), here(identifier), query("after")),
            "GET /executions/{id}/history",
        )

    @app.post("/executions/<identifier>/stop")
    def stop(identifier: str) -> Any:
        route = "POST /executions/{id}/stop"
        return answer(
            lambda: front.stop(tenant(), here(identifier), body(route), os.urandom(8)), route
        )

    @app.post("/executions/<identifier>/retry")
    def retry(identifier: str) -> Any:
        route = "POST /executions/{id}/retry"
        return answer(
            lambda: front.retry(
                tenant(), here(identifier), body(route), os.urandom(8), caller_of(request())
            ),
            route,
        )

    @app.post("/executions/<identifier>/pause")
    def pause(identifier: str) -> Any:
        route = "POST /executions/{id}/pause"
        return answer(
            lambda: front.pause(tenant(), here(identifier), asked_by_caller(route), os.urandom(8)),
            route,
        )

    @app.post("/executions/<identifier>/resume")
    def resume(identifier: str) -> Any:
        route = "POST /executions/{id}/resume"
        return answer(
            lambda: front.resume(tenant(), here(identifier), asked_by_caller(route), os.urandom(8)),
            route,
        )

    @app.post("/executions/<identifier>/priority")
    def priority(identifier: str) -> Any:
        route = "POST /executions/{id}/priority"
        act = front.change_priority
        return answer(
            lambda: act(tenant(), here(identifier), asked_by_caller(route), os.urandom(8)), route
        )

    @app.post("/executions/<identifier>/skip")
    def skip(identifier: str) -> Any:
        route = "POST /executions/{id}/skip"
        return answer(
            lambda: front.skip(tenant(), here(identifier), asked_by_caller(route), os.urandom(8)),
            route,
        )

    @app.post("/executions/<identifier>/fork")
    def fork(identifier: str) -> Any:
        route = "POST /executions/{id}/fork"
        return answer(
            lambda: front.fork(tenant(), here(identifier), asked_by_caller(route), os.urandom(8)),
            route,
        )

    @app.post("/executions/<identifier>/migration")
    def migrate(identifier: str) -> Any:
        route, act = "POST /executions/{id}/migration", front.migrate
        return answer(
            lambda: act(tenant(), here(identifier), asked_by_caller(route), os.urandom(8)), route
        )

    @app.get("/positions")
    def positions() -> Any:
        return answer(lambda: front.positions(tenant(), app.query), "GET /positions")

    @app.get("/definitions/<identifier>")
    def definition(identifier: str) -> Any:
        return answer(lambda: front.definition(tenant(), identifier), "GET /definitions/{hash}")

    @app.post("/bulk")
    def bulk() -> Any:
        def give() -> JsonResult:
            asked = asked_by_caller("POST /bulk")
            _require_known("filter", _filters_of(asked), "GET /executions", 0)
            return front.bulk(tenant(), asked, os.urandom(8))

        return answer(give, "POST /bulk")

    @app.get("/pauses")
    def pauses() -> Any:
        return answer(front.pauses, "GET /pauses")

    @app.post("/pauses")
    def change_pause() -> Any:
        def change() -> JsonResult:
            require_operator(request())
            return front.change_pause(asked_by_caller("POST /pauses"))

        return answer(change, "POST /pauses")

    @app.get("/limits")
    def limits() -> Any:
        return answer(front.limits, "GET /limits")

    @app.get("/limits/<name>")
    def limit(name: str) -> Any:
        return answer(
            lambda: front.limit(name, app.query),
            "GET /limits/{name}",
        )

    @app.post("/limits/<name>")
    def change_limit(name: str) -> Any:
        def change() -> JsonResult:
            require_operator(request())
            return front.change_limit(name, asked_by_caller("POST /limits/{name}"))

        return answer(change, "POST /limits/{name}")

    @app.get("/schedules")
    def schedules() -> Any:
        return answer(lambda: front.schedules(tenant()), "GET /schedules")

    @app.post("/schedules")
    def create_schedule() -> Any:
        route = "POST /schedules"
        return answer(lambda: front.create_schedule(tenant(), body(route)), route)

    @app.get("/schedules/<name>")
    def schedule(name: str) -> Any:
        return answer(lambda: front.schedule(tenant(), name), "GET /schedules/{name}")

    @app.post("/schedules/<name>/pause")
    def pause_schedule(name: str) -> Any:
        route = "POST /schedules/{name}/pause"
        return answer(lambda: front.pause_schedule(tenant(), name, asked_by_caller(route)), route)

    @app.post("/schedules/<name>/resume")
    def resume_schedule(name: str) -> Any:
        route = "POST /schedules/{name}/resume"
        return answer(lambda: front.resume_schedule(tenant(), name, asked_by_caller(route)), route)

    @app.post("/schedules/<name>/backfill")
    def backfill_schedule(name: str) -> Any:
        route = "POST /schedules/{name}/backfill"
        return answer(lambda: front.backfill_schedule(tenant(), name, body(route)), route)

    @app.delete("/schedules/<name>")
    def delete_schedule(name: str) -> Any:
        route = "DELETE /schedules/{name}"
        return answer(lambda: front.delete_schedule(tenant(), name), route)

    @app.post("/events")
    def event() -> Any:
        route = "POST /events"
        return answer(lambda: front.event(tenant(), body(route), os.urandom(10)), route)

    @app.get("/events")
    def events() -> Any:
        return answer(lambda: front.events(tenant(), app.query), "GET /events")

    @app.post("/events/drop")
    def drop_event() -> Any:
        route = "POST /events/drop"
        return answer(lambda: front.drop_event(tenant(), asked_by_caller(route)), route)

    @app.post("/requests")
    def send_request() -> Any:
        route = "POST /requests"
        return answer(lambda: front.request(tenant(), body(route), os.urandom(10)), route)

    @app.get("/requests/<request_id>")
    def reply(request_id: str) -> Any:
        return answer(lambda: front.reply(tenant(), request_id), "GET /requests/{id}")

    @app.post("/answers")
    def give_answer() -> Any:
        route = "POST /answers"
        return answer(lambda: front.answer(tenant(), asked_by_caller(route)), route)

    @app.get("/questions")
    def questions() -> Any:
        asked = app.query
        return answer(lambda: front.questions(tenant(), asked), "GET /questions")

    @app.get("/questions/<identifier>")
    def question(identifier: str) -> Any:
        return answer(
            lambda: _with_link(front.question(tenant(), identifier), request(), host.forms_scheme),
            "GET /questions/{id}",
        )

    def act_on_question(identifier: str, action: QuestionAction) -> Any:
        route = f"POST /questions/{{id}}/{action}"
        act = front.act_on_question
        return answer(lambda: act(action, tenant(), identifier, asked_by_caller(route)), route)

    @app.post("/questions/<identifier>/answer")
    def answer_question(identifier: str) -> Any:
        return act_on_question(identifier, "answer")

    @app.post("/questions/<identifier>/claim")
    def claim_question(identifier: str) -> Any:
        return act_on_question(identifier, "claim")

    @app.post("/questions/<identifier>/release")
    def release_question(identifier: str) -> Any:
        return act_on_question(identifier, "release")

    @app.post("/questions/<identifier>/delegate")
    def delegate_question(identifier: str) -> Any:
        return act_on_question(identifier, "delegate")

    @app.get("/pools")
    def pools() -> Any:
        return answer(lambda: front.pools(tenant()), "GET /pools")

    def act_in_pool(name: str, action: str) -> Any:
        from holdfast.stepfunctions import pools  # noqa: PLC0415 - few stacks have pools

        # The operations of a pool use no ARN, so the region and the account are not needed.
        service = protocol.service_of(host, (tenant(), "", ""))
        route = f"POST /pools/{{name}}/{action}"
        act = pools.ACTIONS[action]
        return answer(lambda: act(service, name, body(route), os.urandom(16)), route)

    @app.post("/pools/<name>/announce")
    def announce_in_pool(name: str) -> Any:
        return act_in_pool(name, "announce")

    @app.post("/pools/<name>/poll")
    def poll_pool(name: str) -> Any:
        return act_in_pool(name, "poll")

    @app.post("/pools/<name>/fetch")
    def fetch_in_pool(name: str) -> Any:
        return act_in_pool(name, "fetch")

    @app.post("/pools/<name>/heartbeat")
    def beat_in_pool(name: str) -> Any:
        return act_in_pool(name, "heartbeat")

    @app.post("/pools/<name>/answer")
    def answer_in_pool(name: str) -> Any:
        return act_in_pool(name, "answer")

    @app.get("/doctor")
    def doctor() -> Any:
        asked = {"after": query("after"), "execution": query("execution")}
        return answer(lambda: front.doctor(tenant(), asked, is_repairing=False), "GET /doctor")

    @app.post("/doctor")
    def repair() -> Any:
        route = "POST /doctor"
        return answer(lambda: front.doctor(tenant(), body(route), is_repairing=True), route)

    @app.get("/workflows")
    def workflows() -> Any:
        return answer(lambda: front.list_workflows(tenant()), "GET /workflows")

    @app.post("/workflows")
    def register() -> Any:
        def give() -> JsonResult:
            body("POST /workflows")
            return front.register(tenant(), text_of(request()))

        return answer(give, "POST /workflows", _status_of_registration)

    @app.get("/workflows/<name>")
    def workflow(name: str) -> Any:
        return answer(lambda: front.workflow(tenant(), name), "GET /workflows/{name}")

    @app.delete("/workflows/<name>")
    def remove_workflow(name: str) -> Any:
        route = "DELETE /workflows/{name}"
        return answer(lambda: front.remove_workflow(tenant(), name), route)

    @app.get("/format")
    def format_asked() -> Any:
        return answer(lambda: format_control.show(front.formats), "GET /format")

    @app.post("/format")
    def ask_format() -> Any:
        route = "POST /format"

        def ask() -> Any:
            require_operator(request())
            return format_control.ask(body(route), front.formats)

        return answer(ask, route)

    return app.resolve


def _require_known(
    what: str, given: Mapping[str, Any] | None, route: str, place: int
) -> dict[str, Any]:
    """Return the parameters or fields. Raises RequestError HF219 for one that the route does not
    accept.
    """
    known = KNOWN[route][place]
    unknown = sorted((given or {}).keys() - set(known))
    if unknown:
        raise RequestError(
            "HF219",
            f"{route} has no {what} {unknown[0]!r:.90}",
            help=f"known: {', '.join(known) or 'none'}",
        )
    return dict(given or {})


def _with_conditions(query: Mapping[str, str], request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters, with a list of every `where`. API Gateway joins repeated parameters
    with commas, but a value may contain a comma, so they are read from the raw query.
    """
    if "where" not in query:
        return query
    pairs = parse_qsl(str(request.get("rawQueryString", "")), keep_blank_values=True)
    return {**query, "where": [value for name, value in pairs if name == "where"]}


def _filters_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a bulk operation, without the fields that choose a page of a list."""
    filters = asked.get("filters")
    if not isinstance(filters, dict):
        return {}
    places = {"limit", "after"} & filters.keys()
    if places:
        raise RequestError("HF219", f"a bulk operation has no filter {min(places)!r}")
    return filters


def _status_of_start(answer: Mapping[str, Any]) -> int:
    """Return 201 when the execution runs or has succeeded, 200 when it already existed and has not
    succeeded.
    """
    return 201 if answer.get("started", True) else 200


def _status_of_registration(answer: Mapping[str, Any]) -> int:
    """Return 201 for a new version, 200 for one that exists."""
    return 201 if answer["registered"] else 200


def _with_link(
    found: JsonResult, request: Mapping[str, Any], forms_scheme: str | None
) -> JsonResult:
    """Add the link to the question's form, under the host name with which the caller calls this
    API.
    """
    shown: dict[str, Any] = yield from found
    if forms_scheme is None:
        return shown
    domain = request["requestContext"]["domainName"]
    return {**shown, "link": f"{forms_scheme}://{domain}{FORMS_PATH}{shown['token']}"}


def _no_route(method: str, path: str) -> RequestError:
    # Write control characters as escapes, because a line feed would split the line of the log.
    shown = repr(path)[1:-1]
    return RequestError("HF208", f"there is no route {method} {shown}"[:200], status=404)


#: The codes of faults whose text was written by Holdfast and has no secrets, so that callers may
#: see it. The disk of `serve`, whose callers are on the same machine, is full or fails; or the
#: executions of a key change too fast.
_FAULTS_IN_OUR_WORDS: Final = frozenset({"HF284", "HF285", "HF562"})


_FAULT: Final = (
    "a service that this stack works with failed; the log of the API's function says which, and why"
)


def _problem(error: HoldfastError) -> dict[str, Any]:
    # AWS's text of a refusal names roles and tables, which callers must not see. So replace the
    # text of every other fault.
    is_fault = isinstance(error, ServiceFault) and error.code not in _FAULTS_IN_OUR_WORDS
    message = _FAULT if is_fault else error.message
    problem: dict[str, Any] = {"code": error.code, "message": message}
    if isinstance(error, RequestError) and error.diagnostics:
        problem["diagnostics"] = error.diagnostics
    return {"error": {**problem, "help": error.help} if error.help else problem}


def _refusal(error: RequestError) -> dict[str, Any]:
    """Return API Gateway's response for a request to an unknown route."""
    return {
        "statusCode": error.status,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(_problem(error)),
        "isBase64Encoded": False,
    }


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


def text_of(request: Mapping[str, Any]) -> str:
    """Return the text of a body that `body_of` accepts."""
    return _bytes_of(request).decode()


def _bytes_of(request: Mapping[str, Any]) -> bytes:
    """Raises RequestError HF241, ValueError."""
    text = request.get("body") or ""
    if len(text) > BODY_BYTES_MAX:
        raise _too_long()
    is_binary = request.get("isBase64Encoded")
    raw = base64.b64decode(text, validate=True) if is_binary else text.encode()
    if len(raw) > BODY_BYTES_MAX:
        raise _too_long()
    return raw


def _too_long() -> RequestError:
    return RequestError("HF241", f"the body is over {BODY_BYTES_MAX} bytes", status=413)


def body_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object in the body. Raises RequestError HF241 to HF243."""
    try:
        raw = _bytes_of(request)
        value = parse_json_once(raw or b"{}")
    except (ValueError, RecursionError):
        raise RequestError(
            "HF242", "the body is not JSON", help="send UTF-8, with each field of an object once"
        ) from None
    if not isinstance(value, dict):
        raise RequestError("HF242", "the body is not a JSON object")
    require_plain(value, "the body")
    return value
