"""The types of the fields of error classes (`api/error_fields.py`), for workflows that read
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.api.error_fields import error_fields
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.failures import ErrorClasses
from holdfast.compiler.types.models import secret_in
from holdfast.compiler.types.types import Type, join

Default = str | int | bool | None
_MISSING: Final = object()


def common_fields(classes: Iterable[type[BaseException]]) -> tuple[tuple[str, Type], ...]:
    """Return the fields that an error has, whichever of these classes it belongs to."""
    found: dict[str, Type] | None = None
    for cls in classes:
        fields = {name: from_annotation(part) for name, part in error_fields(cls).items()}
        if found is None:
            found = fields
        else:
            found = {name: join(found[name], fields[name]) for name in found if name in fields}
    return tuple((name, type_) for name, type_ in (found or {}).items() if not secret_in(type_))


def coded_names(classes: Iterable[type[BaseException]], world: ErrorClasses) -> tuple[str, ...]:
    """Return the names of the classes with fields that a handler for `classes` may catch."""
    known = {one for cls in classes for one in (cls, *world.subclasses(cls))}
    return tuple(sorted({one.__name__ for one in known if error_fields(one)}))


def defaults_of(cls: type[BaseException]) -> dict[str, Default] | None:
    """Return the values of the fields of `cls(text)`; None when a value is not a constant that JSON
    can express.
    """
    found: dict[str, Default] = {}
    for name in error_fields(cls):
        value = getattr(cls, name, _MISSING)
        if value is None or isinstance(value, str | int | bool):
            found[name] = value
        elif value is not _MISSING:
            return None
    return found
