"""The HTTP API: routes to the front door, errors to statuses. The same code serves `serve`.

Powertools' resolver reads API Gateway's payload format 2.0. The tenant is what the authoriser
verified: the `tenant` claim of a JWT, or `default` for an IAM caller of this account. A request
with an `X-Amz-Target` is a call of AWS's own protocol and passes the resolver by.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.aws import protocol
from holdfast.aws.host import Host
from holdfast.errors import HoldfastError, RequestError, ServiceFault
from holdfast.limits import BODY_BYTES_MAX
from holdfast.runtime.storage import format_control
from holdfast.runtime.storage.json_values import parse_json_once, require_plain
from holdfast.runtime.storage.keys import TENANT_DEFAULT, is_tenant

#: The filters of the list, its page size, and where the page begins.
LIST_PARAMETERS: Final = ("workflow", "status", "limit", "after")


def api_handler(
    host: Host, region: str | None = None
) -> Callable[[Mapping[str, Any], Any], dict[str, Any]]:
    """-> a Lambda handler for every route of the HTTP API. `region`: see `states_handler`."""
    routes, states = _routes(host), protocol.states_handler(host, region)

    def handle(request: Mapping[str, Any], context: Any) -> dict[str, Any]:
        is_for_states = protocol.is_states_call(request)
        try:
            tenant = tenant_of(request)
        except RequestError as error:
            if is_for_states:
                return protocol.refusal(400, "AccessDeniedException", error.message)
            return _refusal(error)
        return states(request, context, tenant) if is_for_states else routes(request, context)

    return handle


def _routes(host: Host) -> Callable[[Mapping[str, Any], Any], dict[str, Any]]:
    from aws_lambda_powertools.event_handler import (  # noqa: PLC0415
        APIGatewayHttpResolver,
        Response,
    )

    app = APIGatewayHttpResolver()
    front = host.front

    def answer(make: Callable[[], Any], status: int = 200) -> Response[str]:
        try:
            return _json(status, host.perform(make()))
        except RequestError as error:
            return _json(error.status, _problem(error))
        except HoldfastError as error:
            host.log_fault("a request was not served", error)
            return _json(503, _problem(error))

    def _json(status: int, value: Any) -> Response[str]:
        return Response(status, "application/json", json.dumps(value, ensure_ascii=False))

    def query(name: str) -> str | None:
        return (app.current_event.query_string_parameters or {}).get(name)

    def parameters(known: tuple[str, ...]) -> Mapping[str, str]:
        return known_parameters(app.current_event.query_string_parameters or {}, known)

    def tenant() -> str:
        return tenant_of(app.current_event.raw_event)

    def body() -> dict[str, Any]:
        return body_of(app.current_event.raw_event)

    @app.post("/executions")
    def start() -> Any:
        return answer(lambda: front.start(tenant(), body(), os.urandom(8)), 201)

    @app.get("/executions")
    def executions() -> Any:
        return answer(lambda: front.executions(tenant(), parameters(LIST_PARAMETERS)))

    @app.get("/executions/<identifier>")
    def describe(identifier: str) -> Any:
        return answer(lambda: front.describe(tenant(), identifier))

    @app.get("/executions/<identifier>/history")
    def history(identifier: str) -> Any:
        return answer(lambda: front.history(tenant(), identifier, query("after")))

    @app.post("/executions/<identifier>/stop")
    def stop(identifier: str) -> Any:
        return answer(lambda: front.stop(tenant(), identifier, body(), os.urandom(8)))

    @app.post("/events")
    def event() -> Any:
        return answer(lambda: front.event(tenant(), body(), os.urandom(10)))

    @app.get("/events")
    def events() -> Any:
        return answer(lambda: front.events(tenant()))

    @app.post("/answers")
    def give_answer() -> Any:
        return answer(lambda: front.answer(tenant(), body()))

    @app.get("/doctor")
    def doctor() -> Any:
        asked = {"after": query("after"), "execution": query("execution")}
        return answer(lambda: front.doctor(tenant(), asked, is_repairing=False))

    @app.post("/doctor")
    def repair() -> Any:
        return answer(lambda: front.doctor(tenant(), body(), is_repairing=True))

    @app.get("/workflows")
    def workflows() -> Any:
        return _json(200, {"workflows": [_workflow(item) for item in front.workflows.items()]})

    @app.get("/format")
    def format_asked() -> Any:
        return answer(lambda: format_control.show(front.formats))

    @app.post("/format")
    def ask_format() -> Any:
        return answer(
            lambda: format_control.ask(operators_body(app.current_event.raw_event), front.formats)
        )

    @app.not_found
    def nothing(_error: Exception) -> Any:
        event = app.current_event
        return _json(404, _problem(_no_route(event.http_method, event.path)))

    # The resolver keeps the request that it works on in its class: two at once, as `serve` has
    # them, would be given each other's.
    one_at_a_time = threading.Lock()

    def resolve(request: Mapping[str, Any], context: Any) -> dict[str, Any]:
        if request["rawPath"].endswith("\n"):
            # The resolver's patterns match before it too: `order-1\n` would be order-1.
            method = request["requestContext"]["http"]["method"]
            return _refusal(_no_route(method, request["rawPath"]))
        with one_at_a_time:
            return app.resolve(dict(request), context)

    return resolve


def _workflow(item: tuple[str, Any]) -> dict[str, Any]:
    name, definition = item
    events = sorted(definition.source_map.get("events", {}))
    return {"workflow": name, "definition": definition.hash, "events": events}


def _no_route(method: str, path: str) -> RequestError:
    shown = repr(path)[1:-1]  # a line feed as an escape
    return RequestError("HF208", f"there is no route {method} {shown}"[:200], status=404)


def _problem(error: HoldfastError) -> dict[str, Any]:
    # AWS's text of a refusal names roles and tables: it goes to the log, not to callers.
    is_fault = isinstance(error, ServiceFault)
    message = "a service that this stack works with failed" if is_fault else error.message
    problem = {"code": error.code, "message": message}
    return {"error": {**problem, "help": error.help} if error.help else problem}


def _refusal(error: RequestError) -> dict[str, Any]:
    """-> API Gateway's response for a caller whom no route serves."""
    return {
        "statusCode": error.status,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(_problem(error)),
        "isBase64Encoded": False,
    }


def tenant_of(request: Mapping[str, Any]) -> str:
    """Raises RequestError HF240 (403) when the verified identity names no usable tenant.

    Only who signs as IAM does is `default`; of an authoriser of another kind nothing is known.
    """
    authorizer = request.get("requestContext", {}).get("authorizer") or {}
    if not authorizer.keys() - {"iam"}:
        return TENANT_DEFAULT
    claims = (authorizer.get("jwt") or {}).get("claims") or {}
    tenant = claims.get("tenant")
    if not isinstance(tenant, str) or not is_tenant(tenant):
        raise RequestError("HF240", "the identity has no usable `tenant` claim", status=403)
    return tenant


def known_parameters(given: Mapping[str, str], known: tuple[str, ...]) -> Mapping[str, str]:
    """-> the parameters of a request. Raises RequestError HF204 for one that the route lacks: a
    filter that was ignored would show everything, and a script would act on all of it.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        expected = ", ".join(known) or "none"
        raise RequestError(
            "HF204", f"there is no parameter {unknown[0]!r:.90} here; known: {expected}"
        )
    return given


def operators_body(request: Mapping[str, Any]) -> dict[str, Any]:
    """Refuses operations on the whole stack for a tenant. Raises RequestError HF252 (403)."""
    if (request.get("requestContext", {}).get("authorizer") or {}).keys() - {"iam"}:
        raise RequestError(
            "HF252",
            "this concerns the whole stack, and a token speaks for one tenant",
            status=403,
            help="see docs/how-to/operate.md, Upgrade and rollback, for stacks that take tokens",
        )
    return body_of(request)


def body_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """-> the JSON object in the body. Raises RequestError HF241 to HF243."""
    text = request.get("body") or ""
    if len(text) > BODY_BYTES_MAX:
        raise RequestError("HF241", f"the body is over {BODY_BYTES_MAX} bytes", status=413)
    try:
        raw = (
            base64.b64decode(text, validate=True)
            if request.get("isBase64Encoded")
            else text.encode()
        )
        if len(raw) > BODY_BYTES_MAX:
            raise RequestError("HF241", f"the body is over {BODY_BYTES_MAX} bytes", status=413)
        value = parse_json_once(raw or b"{}")
    except (ValueError, RecursionError):
        raise RequestError(
            "HF242", "the body is not JSON", help="send UTF-8, with each field of an object once"
        ) from None
    if not isinstance(value, dict):
        raise RequestError("HF242", "the body is not a JSON object")
    require_plain(value, "the body")
    return value
