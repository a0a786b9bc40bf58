"""AWS: the effects performed by botocore, and the bodies of the Lambda functions.

For workflows, an attribute is a service of AWS: `aws.s3.put_object(Bucket=…)` is a step. No module
of this package has the name of a service.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.api.services import AwsService
    from holdfast.api.tasks import TaskError


def error(name: str) -> type[TaskError]:
    """The class of a service's error: `NoSuchKey = aws.error("S3.NoSuchKeyException")`.

    Name it at the top of a module, and catch it in a workflow: `except NoSuchKey:`.
    """
    from holdfast.api.services import error_class  # noqa: PLC0415

    return error_class(name)


def __getattr__(name: str) -> AwsService:
    # `from holdfast.aws import host` asks for an attribute before it imports the module.
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is not None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from holdfast.api.services import service_of  # noqa: PLC0415

    return service_of(name)
