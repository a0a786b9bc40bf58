"""The fields of an error: the annotations of an author's exception class, which its cause contains
as JSON.

    class Declined(TaskError):
        code: str

A worker reports an error as the name of its class and a text, the cause. For a class with declared
fields the cause is JSON: `{"message":"…","fields":{"code":"51"}}`. For any other class it is the
text of the error. Workers of an earlier release write the text for every class, so a reader treats
a cause without this JSON as the text.

A field is an annotation in the body of a subclass of `TaskError`. `ClassVar` and names with a
leading underscore do not count. The errors of libraries have no fields: otherwise an update of a
library would change the data that workflows get.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from holdfast.api.boundary import normalise_payload
from holdfast.api.task_errors import TaskError
from holdfast.api.tracebacks import error_text
from holdfast.limits import CAUSE_CHARACTERS_MAX

#: The beginning of the JSON that is the cause of an error with fields. An error without fields must
#: not have a cause that begins like this, because it would be read as one with fields.
OPENING: Final = '{"message":'


def error_fields(cls: type[BaseException]) -> Mapping[str, Any]:
    """Return the annotations of the fields, by name; empty for a class without any."""
    if not issubclass(cls, TaskError):
        return {}
    names = [name for base in reversed(cls.__mro__) for name in _own(base)]
    if not names:
        return {}
    hints = _hints(cls)
    return {
        name: hints[name]
        for name in dict.fromkeys(names)
        if name in hints and typing.get_origin(hints[name]) is not ClassVar
    }


def _own(base: type) -> list[str]:
    annotations = vars(base).get("__annotations__", {})
    return [name for name in annotations if not name.startswith("_")]


def _hints(cls: type[BaseException]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:
        # An annotation names a type that is imported only under TYPE_CHECKING, so the fields cannot
        # be read.
        return {}


def cause_of_error(error: BaseException, shown: Callable[[str], str] = str) -> str:
    """Return the cause of the error. `shown` removes the secrets from each of its texts."""
    text, fields = shown(error_text(error)), error_fields(type(error))
    if not fields:
        return text[:CAUSE_CHARACTERS_MAX]
    values = {}
    for name, annotation in fields.items():
        try:
            values[name] = _shown(normalise_payload(annotation, getattr(error, name)), shown)
        except KeyboardInterrupt:
            raise
        except Exception as reason:  # noqa: BLE001 - the author's value, and its own code
            # A workflow that reads the field fails with AttributeError. The note is in the kept
            # traceback, and tells the author why.
            error.add_note(f"its field {name} is left out: {type(reason).__name__}")
    cause = written_cause(text, values)
    # Of an error that is too large keep only the text. Its JSON would be cut at the maximum length,
    # and could not be read.
    return cause if len(cause) <= CAUSE_CHARACTERS_MAX else text[:CAUSE_CHARACTERS_MAX]


def written_cause(text: str, values: Mapping[str, Any]) -> str:
    whole = {"message": text, "fields": values}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _shown(value: Any, shown: Callable[[str], str]) -> Any:
    match value:
        case str():
            return shown(value)
        case list():
            return [_shown(item, shown) for item in value]
        case dict():
            return {shown(key): _shown(item, shown) for key, item in value.items()}
        case _:
            return value
