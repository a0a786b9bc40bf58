"""HTTP endpoints as steps of a workflow: `http.post(url, json=…, connection=…)`."""

from __future__ import annotations

from typing import Final

from holdfast.api.services import HttpCall, error_class
from holdfast.api.task_errors import TaskError

__all__ = ["delete", "get", "head", "options", "patch", "post", "put", "status_error"]

get: Final = HttpCall("GET")
post: Final = HttpCall("POST")
put: Final = HttpCall("PUT")
patch: Final = HttpCall("PATCH")
delete: Final = HttpCall("DELETE")
head: Final = HttpCall("HEAD")
options: Final = HttpCall("OPTIONS")


def status_error(status: int) -> type[TaskError]:
    """Return the error of a response with this status, 400 or above: `NotFound =
    http.status_error(404)`.

    Assign it at the top of a module, and catch it in a workflow: `except NotFound:`.
    """
    return error_class(f"States.Http.StatusCode.{status}")
