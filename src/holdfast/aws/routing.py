"""Finds the function for a request by its method and path, in API Gateway's payload format 2.0.

No library is used, because each start of the API imports this module: the import of the router of
Powertools took more CPU time than all modules of Holdfast.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Route: TypeAlias = Callable[..., Any]

#: A parameter in a path, and the characters that its value may have: no slash, no question mark and
#: no line feed.
_PARAMETER: Final = re.compile(r"<(\w+)>")
_VALUE: Final = r"(?P<\1>[-._~()'!*:@,;=+&$%<> \[\]{}|^\\w]+)"


class Response(NamedTuple):
    """An answer in JSON."""

    status: int
    body: str

    def to_gateway(self) -> dict[str, Any]:
        return {
            "statusCode": self.status,
            "headers": {"Content-Type": "application/json"},
            "body": self.body,
            "isBase64Encoded": False,
        }


class Router:
    """Routes by method and path. The present request is stored for each thread, because `serve` has
    many.
    """

    def __init__(self, not_found: Callable[[str, str], Response]) -> None:
        self._not_found = not_found
        self._routes: list[tuple[str, re.Pattern[str], Route]] = []
        self._current = threading.local()

    def get(self, path: str) -> Callable[[Route], Route]:
        return self._add("GET", path)

    def post(self, path: str) -> Callable[[Route], Route]:
        return self._add("POST", path)

    def delete(self, path: str) -> Callable[[Route], Route]:
        return self._add("DELETE", path)

    @property
    def request(self) -> Mapping[str, Any]:
        request: Mapping[str, Any] = self._current.request
        return request

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters of the request."""
        return self.request.get("queryStringParameters") or {}

    def resolve(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return API Gateway's response."""
        method = str(request["requestContext"]["http"]["method"])
        path = str(request["rawPath"])
        self._current.request = request
        for of_method, pattern, function in self._routes:
            found = pattern.fullmatch(path) if of_method == method else None
            if found is not None:
                # API Gateway has already decoded the path, so a `%` in it belongs to the
                # identifier. Do not decode it a second time.
                response: Response = function(**found.groupdict())
                return response.to_gateway()
        return self._not_found(method, path).to_gateway()

    def _add(self, method: str, path: str) -> Callable[[Route], Route]:
        pattern = re.compile(_PARAMETER.sub(_VALUE, path))

        def add(function: Route) -> Route:
            self._routes.append((method, pattern, function))
            return function

        return add
