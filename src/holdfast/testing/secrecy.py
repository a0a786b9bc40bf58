"""Secrets in a test: encrypted as in a local stack, so that both runs have the same text."""

from __future__ import annotations

from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from holdfast.api.boundary import JsonValue
from holdfast.api.sealing import LocalVault, Seals

SEALS: Final = Seals(LocalVault(), "test")
_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)
#: The text that pydantic writes in place of a secret that is not empty.
_STARS: Final = "**********"


def to_json(value: object) -> Any:
    """Return the JSON of a value from the test or the workflow."""
    plain = to_jsonable_python(value)
    if not _has_stars(plain):
        return plain
    return SEALS.merged(plain, _ANYTHING.dump_python(value))


def _has_stars(plain: JsonValue) -> bool:
    match plain:
        case dict():
            return any(map(_has_stars, plain.values()))
        case list():
            return any(map(_has_stars, plain))
        case _:
            return plain == _STARS
