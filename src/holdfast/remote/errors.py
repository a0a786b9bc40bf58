"""The errors of the client: refusals of the API, and executions that have not succeeded.

Each is an error of `holdfast.errors`, with a code that docs/reference/errors.md explains.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.errors import HoldfastError, RequestError, ServiceFault

#: The code of an answer that did not come from an API of Holdfast.
NO_API: Final = "HF272"
#: API Gateway sends such an answer when the function of the API failed to start, crashed, or took
#: too long.
_FAILED_FUNCTION: Final = "of a stack, the log of the API's function has the cause"


class NotFound(RequestError):  # noqa: N818
    """No execution, workflow, limit or event has that name."""


class Forbidden(RequestError):  # noqa: N818
    """The credentials, or the token of an answer, do not allow the request."""


class Conflict(RequestError):  # noqa: N818
    """The present state of the execution, or of the name, does not allow the request."""


class AlreadyEnded(Conflict):
    """The execution has ended or is being stopped."""


class ExecutionFailed(HoldfastError):  # noqa: N818
    """The execution ended as FAILED, TIMED_OUT or ABORTED. `error` and `cause` are those of its
    end.
    """

    def __init__(self, execution: str, status: str, error: str | None, cause: str | None) -> None:
        told = ": ".join(text for text in (error, cause) if text)
        super().__init__(
            "HF288",
            f"execution {execution} ended as {status}{f', {told}' if told else ''}",
            help=f"`holdfast history {execution}` shows the step that failed",
        )
        self.execution = execution
        self.status = status
        self.error = error
        self.cause = cause


class ResultTimeout(HoldfastError, TimeoutError):  # noqa: N818
    """The execution still runs after the time that the caller wanted to wait."""

    def __init__(self, execution: str, seconds: float) -> None:
        super().__init__(
            "HF289",
            f"execution {execution} has not ended after {seconds:g} s",
            help="it goes on: ask for its result again",
        )
        self.execution = execution


class NotPublished(HoldfastError):  # noqa: N818
    """The execution has ended, and its published value is not what the caller waits for."""

    def __init__(self, execution: str, name: str, status: str) -> None:
        super().__init__(
            "HF566",
            f"execution {execution} has ended as {status} and did not publish such a `{name}`",
            help=f"`holdfast show {execution}` shows what it has published",
        )
        self.execution = execution
        self.status = status


class PublishedTimeout(HoldfastError, TimeoutError):  # noqa: N818
    """The execution has not published the value in the time that the caller wanted to wait."""

    def __init__(self, execution: str, name: str, seconds: float) -> None:
        super().__init__(
            "HF567",
            f"execution {execution} has not published such a `{name}` after {seconds:g} s",
            help="it goes on: wait for the value again",
        )
        self.execution = execution


class RequestRejected(HoldfastError):  # noqa: N818
    """The execution rejected the request with this `error` and `cause`."""

    def __init__(self, request: str, error: str, cause: str) -> None:
        told = ": ".join(text for text in (error, cause) if text)
        super().__init__("HF564", f"the request {request} was rejected: {told}")
        self.request = request
        self.error = error
        self.cause = cause


class ReplyTimeout(HoldfastError, TimeoutError):  # noqa: N818
    """No execution has replied to the request in the time that the caller wanted to wait."""

    def __init__(self, request: str, seconds: float) -> None:
        super().__init__(
            "HF565",
            f"the request {request} has no reply after {seconds:g} s",
            help=f"it is kept for 14 days: client.reply({request!r}), or the same request with "
            f"--id {request}",
        )
        self.request = request


#: The codes of refusals because the execution has ended.
_ENDED_CODES: Final = frozenset({"HF237"})
_BY_STATUS: Final[dict[int, type[RequestError]]] = {
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
}


def error_of(where: str, status: int, answer: Any) -> RequestError | ServiceFault:
    """Return the error in a response; HF272 for a response that does not come from an API of
    Holdfast.
    """
    error = answer.get("error") if isinstance(answer, dict) else None
    kind = _BY_STATUS.get(status, RequestError)
    if not isinstance(error, dict) or not {"code", "message"} <= error.keys():
        said = answer.get("message", "") if isinstance(answer, dict) else ""
        said = f": {said}" if said else ", which is no answer of Holdfast"
        # A 404 from another server does not mean that the execution does not exist, so raise a
        # general error.
        kind = kind if kind is Forbidden else RequestError
        fix = _FAILED_FUNCTION if status >= 500 else ""
        return kind(NO_API, f"{where} answered with HTTP status {status}{said}", help=fix)
    code, message = str(error["code"]), str(error["message"])
    if status >= 500:
        return ServiceFault(code, message)
    kind = AlreadyEnded if code in _ENDED_CODES else kind
    return kind(code, message, status=status, help=str(error.get("help", "")))
