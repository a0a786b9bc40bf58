"""Holdfast's AWS resources as a CDK construct: `from holdfast.infra import Holdfast`."""

from __future__ import annotations

from importlib import import_module
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

#: The module of each name.
_PLACES: Final = {
    "AlarmBounds": "bounds",
    "Group": "groups",
    "Holdfast": "construct",
    "JwtIssuer": "settings",
    "Size": "sizes",
}
_CDK: Final = frozenset({"aws_cdk", "constructs", "jsii"})


def __getattr__(name: str) -> Any:
    """Import the CDK only for a name that needs it, because the import takes seconds."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with plain_errors(name):
        try:
            return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name not in _CDK:
                raise
            raise HoldfastError(
                "HF410",
                f"the construct needs the package {error.name}",
                help="install `holdfast[infra]`",
            ) from None
