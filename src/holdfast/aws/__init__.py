"""AWS: effects performed with botocore, and the bodies of the Lambda functions.

In a workflow, an attribute of this package is a service of AWS: `aws.s3.put_object(Bucket=…)` is a
step. So no module of this package may have the name of a service.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.api.services import AwsService
    from holdfast.api.task_errors import TaskError


def error(name: str) -> type[TaskError]:
    """Return the class of a service's error: `NoSuchKey = aws.error("S3.NoSuchKeyException")`.

    Assign it at the top of a module, and catch it in a workflow: `except NoSuchKey:`.
    """
    from holdfast.api.services import error_class  # noqa: PLC0415

    return error_class(name)


def __getattr__(name: str) -> AwsService:
    # Python looks for an attribute `host` here before it imports the module `holdfast.aws.host`.
    # Without this error, `from holdfast.aws import host` would give a service of that name.
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is not None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from holdfast.api.services import service_of  # noqa: PLC0415

    return service_of(name)
