"""The HTTP API of Holdfast: each route of `routes` is one command. `holdfast serve` runs the same
code.

A request has API Gateway's payload format 2.0. The authoriser verifies the tenant: the `tenant`
claim of a JWT, or `default` for an IAM caller of this account. A request with an `X-Amz-Target`
header is a call of AWS's own protocol, which `protocol` serves.

No library finds the route, because each start of the API imports this module: the import of the
router of Powertools took more CPU time than all modules of Holdfast.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.aws import protocol
from holdfast.aws.forms import form_handler
from holdfast.aws.host import Host
from holdfast.aws.identity import tenant_of
from holdfast.aws.routes import ROUTES, Asked, require_known
from holdfast.errors import HoldfastError, RequestError, ServiceFault
from holdfast.resources import FORMS_PATH

#: The characters that a name in a path may have: no slash, no question mark and no line feed.
_NAME: Final = re.compile(r"[-._~()'!*:@,;=+&$%<> \[\]{}|^\w]+")
#: The names of the routes, by the route with empty braces.
_BY_SHAPE: Final = {re.sub(r"{\w+}", "{}", route): route for route in ROUTES}


def api_handler(
    host: Host, region: str | None = None
) -> Callable[[Mapping[str, Any], Any], dict[str, Any]]:
    """Return a Lambda handler for every route of the HTTP API. `region`: see `states_handler`."""
    states, forms = protocol.states_handler(host, region), form_handler(host)

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
        host.look_now()
        return states(request, context, tenant) if is_for_states else _answer(host, request, region)

    return handle


def _answer(host: Host, request: Mapping[str, Any], region: str | None) -> dict[str, Any]:
    """Perform the command of the route. Return its answer, or its refusal."""
    try:
        asked = _asked(host, request, region)
        route = ROUTES[asked.route]
        require_known("query parameter", asked.query, asked.route, route.query)
        value = host.perform(route.command(asked))
    except RequestError as error:
        return _refusal(error)
    except HoldfastError as error:
        host.log_fault("a request was not served", error)
        return _response(503, _problem(error))
    return _response(route.status(value), value)


def _asked(host: Host, request: Mapping[str, Any], region: str | None) -> Asked:
    """Find the route by the method and the path. Raises RequestError HF208.

    API Gateway has already decoded the path, so a `%` in it belongs to the name. It is not decoded
    a second time.
    """
    method = str(request["requestContext"]["http"]["method"])
    path = str(request["rawPath"])
    plain = _BY_SHAPE.get(f"{method} {path}")
    if plain is not None:
        return Asked(host, request, region, plain, "")
    parts = path.split("/")  # "", "executions", a name, "history"
    named, shape = "".join(parts[2:3]), "/".join([*parts[:2], "{}", *parts[3:]])
    route = _BY_SHAPE.get(f"{method} {shape}")
    if route is None or not _NAME.fullmatch(named):
        raise _no_route(method, path)
    return Asked(host, request, region, route, named)


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
    return _response(error.status, _problem(error))


def _response(status: int, value: Any) -> dict[str, Any]:
    return {
        "statusCode": status,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(value, ensure_ascii=False),
        "isBase64Encoded": False,
    }
