"""Holdfast's AWS resources as a CDK construct: `from holdfast.infra import Holdfast`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import HoldfastError

from .plain_errors import plain_errors

if TYPE_CHECKING:
    from .bounds import AlarmBounds as AlarmBounds
    from .construct import Holdfast as Holdfast
    from .groups import Group as Group
    from .settings import JwtIssuer as JwtIssuer
    from .sizes import Size as Size

__all__ = ["AlarmBounds", "Group", "Holdfast", "JwtIssuer", "Size"]

_CDK: Final = frozenset({"aws_cdk", "constructs", "jsii"})


def __getattr__(name: str) -> Any:
    """Import the CDK only for a name that needs it, because the import takes seconds."""
    if name == "AlarmBounds":
        from .bounds import AlarmBounds  # noqa: PLC0415

        return AlarmBounds
    if name == "JwtIssuer":
        from .settings import JwtIssuer  # noqa: PLC0415

        return JwtIssuer
    if name == "Size":
        from .sizes import Size  # noqa: PLC0415

        return Size
    if name not in {"Group", "Holdfast"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with plain_errors(name):
        try:
            from .construct import Holdfast  # noqa: PLC0415
            from .groups import Group  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if error.name not in _CDK:
                raise
            raise HoldfastError(
                "HF410",
                f"the construct needs the package {error.name}",
                help="install `holdfast[infra]`",
            ) from None
    return Group if name == "Group" else Holdfast
