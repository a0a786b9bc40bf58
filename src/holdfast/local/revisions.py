"""Lambda functions as moto stores them: code, configuration, versions and aliases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from moto.awslambda.exceptions import UnknownFunctionException
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

from holdfast.local import intercept

LATEST: Final = "$LATEST"


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a function's code and configuration, as moto stores it."""

    name: str
    arn: str
    version: str
    handler: str
    runtime: str
    timeout_seconds: int
    memory_mb: int
    region: str
    digest: str
    own_variables: tuple[tuple[str, str], ...]
    code: bytes = field(repr=False, compare=False)


def find_revision(region: str, name: str, qualifier: str | None) -> tuple[Revision, str]:
    """Return the revision, and the ARN of the function in the call. Raises moto's errors."""
    with intercept.LOCK:
        backend = get_backend("lambda")[DEFAULT_ACCOUNT_ID][region]
        # The name may be a partial ARN, such as 123456789012:function:NAME.
        known = name.rpartition("function:")[2] if not name.startswith("arn:") else name
        try:
            function = backend.get_function(known, qualifier)
        except UnknownFunctionException:
            arn = f"arn:aws:lambda:{region}:{DEFAULT_ACCOUNT_ID}:function:"
            unknown = f"{arn}{known.removeprefix(arn)}"
            # A call without a version gets the number of the version that ran, as recordings of AWS
            # show.
            is_qualified = unknown.count(":") > arn.count(":")
            version = "" if is_qualified else f":{qualifier or LATEST}"
            raise UnknownFunctionException(f"{unknown}{version}") from None
        revision = revision_of(function)
    named = known.split(":function:")[-1].partition(":")[2] or qualifier
    return revision, revision.arn if named is None else f"{revision.arn}:{named}"


def revision_of(function: Any) -> Revision:
    return Revision(
        name=function.function_name,
        arn=":".join(function.function_arn.split(":")[:7]),
        version=str(function.version),
        handler=function.handler or "",
        runtime=function.run_time or "",
        timeout_seconds=int(function.timeout or 3),
        memory_mb=int(function.memory_size or 128),
        region=function.region,
        digest=str(getattr(function, "code_digest", "")),
        own_variables=tuple(sorted((function.environment_vars or {}).items())),
        code=bytes(getattr(function, "code_bytes", None) or b""),
    )
