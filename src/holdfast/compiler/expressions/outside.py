"""Constants of the author's module: the compiler reads them and writes them into the state
machine.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from math import isfinite
from types import ModuleType
from typing import Any, Final

from holdfast.api.tasks import Task
from holdfast.api.tools import Tools
from holdfast.api.workflows import Workflow
from holdfast.compiler.context import NOTHING, TypedQuery, Unit
from holdfast.compiler.expressions.query import Constant, literal
from holdfast.compiler.types.annotations import (
    from_annotation,
    is_model,
    of_constant,
    written,
    written_key,
)
from holdfast.compiler.types.types import DURATION, INT, STR, DictOf, EnumOf, TextOf, Type

#: A double represents every integer up to this one exactly.
INTEGER_MAX: Final = 2**53
#: A constant with more values than this is refused. For example, a cache of a library can contain
#: millions.
CONSTANT_VALUES_MAX: Final = 10_000


def tasks_by_name(found: Any) -> Mapping[Any, Task[..., Any] | Workflow[..., Any]] | None:
    """Return the tasks and workflows of `choice(…)`, or of a dict of them; None for any other
    object. The keys of a dict are texts, ints, or members of one enum.
    """
    if isinstance(found, Tools):
        return found.tasks
    if not isinstance(found, dict) or not found:
        return None
    is_all = all(isinstance(one, Task | Workflow) for one in found.values())
    return found if is_all and type_of_names(found) is not None else None


def type_of_names(tasks: Mapping[Any, object]) -> Type | None:
    """Return the one type that the keys of a table of tasks have."""
    types = {STR if isinstance(one, TextOf) else one for one in map(of_constant, tasks)}
    found = next(iter(types)) if len(types) == 1 else None
    return found if found in (STR, INT) or isinstance(found, EnumOf) else None


def from_outside(unit: Unit, node: ast.expr, found: Any) -> TypedQuery:
    """Return a constant of the author's module, as a value in the state machine."""
    if isinstance(found, timedelta) and found.microseconds == 0:
        return TypedQuery(Constant(int(found.total_seconds())), DURATION)
    if isinstance(found, datetime) and not _is_fixed(found):
        return unit.refused(
            node,
            "HF003",
            f"the offset of `{unit.text(node)}` changes with the date, and its text keeps one",
            "datetime(2026, 3, 1, 9, tzinfo=timezone.utc), or pass it as an argument",
        )
    text = written(found)
    if text is not None:
        kind: Any = datetime if isinstance(found, datetime) else type(found)
        return TypedQuery(Constant(text), from_annotation(kind))
    if isinstance(found, Task | Workflow):
        name, taken = unit.text(node), ", ".join(inspect.signature(found.function).parameters)
        return unit.refused(
            node, "HF003", f"`{name}` is called or is a branch, it is no value", f"{name}({taken})"
        )
    tools = tasks_by_name(found)
    if tools is not None:
        found = [*tools]
    if _is_larger(found, CONSTANT_VALUES_MAX):
        return unit.refused(
            node,
            "HF003",
            f"`{unit.text(node)}` holds more than {CONSTANT_VALUES_MAX:,} values, "
            "which is too many for a constant in a state machine",
            "pass it as an argument, or use it inside a @task",
        )
    plain = _json_constant(found)
    if plain is NOTHING:
        kind = "module" if isinstance(found, ModuleType) else type(found).__name__
        return unit.refused(
            node,
            "HF003",
            f"`{unit.text(node)}` is {kind}: "
            "only JSON constants can be used from outside the workflow",
            _way_out(unit.text(node), found),
        )
    return TypedQuery(literal(plain), of_constant(found))


def _way_out(name: str, found: Any) -> str:
    if isinstance(found, range):
        return f"list({name})"
    if isinstance(found, type) and is_model(found):
        return (
            f"a class is no value here: write it where it is used, "
            f"{name}.model_validate_json(…) after the call of the helper"
        )
    if is_model(type(found)):
        cls, maker = type(found).__name__, name.rpartition(".")[2].lower()
        return f"def {maker}() -> {cls}: return {cls}(…), and {maker}() here"
    return "pass it as an argument, or use it inside a @task"


def _is_fixed(moment: datetime) -> bool:
    """Return True when the moment has no offset, or one of whole minutes that is the same at all
    times. In a time zone Python's `moment + days(1)` may have another offset.
    """
    if moment.tzinfo is None:
        return True
    offset = moment.tzinfo.utcoffset(None)
    return offset is not None and offset % timedelta(minutes=1) == timedelta()


def _is_larger(found: object, values_max: int) -> bool:
    """Return True when the lists and dicts in `found` contain more values than `values_max`.

    It reads at most that many values, so that a large object does not delay the compiler.
    """
    seen, unread = 0, [found]
    while unread:
        value = unread.pop()
        if isinstance(value, list | tuple | dict | set | frozenset):
            seen += len(value)
            if seen > values_max:
                return True
            unread.extend(value.values() if isinstance(value, dict) else value)
    return False


def _is_too_large(key: object) -> bool:
    return isinstance(key, int) and abs(key) > INTEGER_MAX


def _json_constant(value: object) -> Any:
    """Return the JSON of a constant; NOTHING when it has none."""
    match value:
        case Enum():
            return _json_constant(value.value)
        case int() if abs(value) > INTEGER_MAX:
            return NOTHING
        case float() if not isfinite(value):
            return NOTHING
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            items = [_json_constant(item) for item in value]
            return NOTHING if any(item is NOTHING for item in items) else items
        case set() | frozenset():
            # Sort the items, because Python orders a set differently in each process. Otherwise the
            # definition, and so its hash, would differ, too.
            items = [_json_constant(item) for item in sorted(value, key=repr)]
            return NOTHING if any(item is NOTHING for item in items) else items
        case dict() if isinstance(of_constant(value), DictOf) and not any(
            map(_is_too_large, value)
        ):
            rows = {written_key(key): _json_constant(item) for key, item in value.items()}
            return NOTHING if any(item is NOTHING for item in rows.values()) else rows
        case _:
            return NOTHING
