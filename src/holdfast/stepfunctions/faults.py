"""AWS's exceptions, with AWS's names and texts.

They have no codes of Holdfast: clients of Step Functions expect names such as
`StateMachineDoesNotExist`.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from holdfast.runtime.storage.json_values import printable

#: The status of every exception. AWS's model gives none a status of its own, and the pages of the
#: operations (AWS API reference, "Errors") name this one for each, although the descriptions of
#: ConflictException and ServiceQuotaExceededException mention 409 and 402.
HTTP_STATUS: Final = 400


class StatesFault(Exception):  # noqa: N818
    """A refusal for a caller of the API. `code` is the name of the exception.

    `extra` has further members of the exception (`resourceName`, `reason`).
    """

    def __init__(self, code: str, message: str, **extra: Any) -> None:
        # The message quotes the refused value. A lone surrogate in it is replaced, because it could
        # not be encoded in the response.
        self.message = printable(message)
        super().__init__(self.message)
        self.code = code
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def invalid_arn(reason: str) -> StatesFault:
    return StatesFault("InvalidArn", f"Invalid Arn: '{reason}'")


def invalid_name(name: str) -> StatesFault:
    return StatesFault("InvalidName", f"Invalid Name: '{name}'")


def invalid_token() -> StatesFault:
    """Return the error for an invalid token of a task or a page."""
    return StatesFault("InvalidToken", "Invalid Token: 'Invalid token'")


#: AWS's ValidationExceptionReason.
Reason: TypeAlias = Literal[
    "API_DOES_NOT_SUPPORT_LABELED_ARNS",
    "MISSING_REQUIRED_PARAMETER",
    "CANNOT_UPDATE_COMPLETED_MAP_RUN",
    "INVALID_ROUTING_CONFIGURATION",
]


def validation(message: str, reason: Reason | None = None) -> StatesFault:
    """Return a validation error. Most have no `reason`: AWS's model has only these four."""
    extra = {} if reason is None else {"reason": reason}
    return StatesFault("ValidationException", message, **extra)


def state_machine_does_not_exist(arn: str) -> StatesFault:
    return StatesFault("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")


def state_machine_deleting(arn: str) -> StatesFault:
    return StatesFault("StateMachineDeleting", f"State Machine Deleting: '{arn}'")


def execution_does_not_exist(arn: str) -> StatesFault:
    return StatesFault("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")


def activity_does_not_exist(arn: str) -> StatesFault:
    return StatesFault("ActivityDoesNotExist", f"Activity Does Not Exist: '{arn}'")


def resource_not_found(arn: str) -> StatesFault:
    return StatesFault("ResourceNotFound", f"Resource not found: '{arn}'", resourceName=arn)


def no_such_reference() -> StatesFault:
    """Return the error for a missing alias, or for a missing version to which an alias should
    route.
    """
    return StatesFault("ResourceNotFound", "Request references a resource that does not exist.")


def unstorable(reason: str) -> StatesFault:
    """Return the error for a definition that AWS would accept but Holdfast cannot store."""
    told = f"Invalid State Machine Definition: 'INVALID_JSON_DESCRIPTION: {reason}'"
    return StatesFault("InvalidDefinition", told)


def quota_exceeded(reason: str) -> StatesFault:
    text = f"The request would cause a service quota to be exceeded: {reason}"
    return StatesFault("ServiceQuotaExceededException", text)


def conflict(message: str) -> StatesFault:
    return StatesFault("ConflictException", message)


_CONCURRENT: Final = "Concurrent requests change the same resource; try again"


def concurrent() -> StatesFault:
    """Return the error for a request whose every try came after the change of another writer."""
    return conflict(_CONCURRENT)


def throttled() -> StatesFault:
    """Return the same error for an operation whose exceptions AWS documents without a
    ConflictException. Every AWS SDK repeats a throttled request.
    """
    return StatesFault("ThrottlingException", _CONCURRENT)


def type_not_supported() -> StatesFault:
    return StatesFault(
        "StateMachineTypeNotSupported",
        "This operation is not supported by this type of state machine",
    )
