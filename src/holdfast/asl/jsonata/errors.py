"""Converts every error of jsonata-python to a `JsonataError` with JSONata's own code."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from jsonata import JException

from holdfast.asl.jsonata.values import JsonataError, budget_error

_ITEM_TYPES: Final = {
    "a": "arrays",
    "b": "booleans",
    "f": "functions",
    "n": "numbers",
    "o": "objects",
    "s": "strings",
}
_CODE: Final = re.compile(r"[DSTU]\d{4}")
_PLACE: Final = re.compile(r"(\{{2,3})\w+\}{2,3}")
# Messages of the library that have no code or a wrong one, and the code that each should have.
_SENTENCES: Final = {
    "both integer and fractional parts are empty": "D3085",
    "invalid grouping in picture argument": "D3086",
}


def _template(code: str) -> str:
    """Return the library's text for a code. The library was translated from Java, and there the
    word "function" was replaced by "Object"; this restores it.
    """
    text: str = JException.error_codes.get(code, "")
    return re.sub(r"\bObject\b", "function", text)


def _shown(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)[:200]
    except (TypeError, ValueError, RecursionError):
        return "a function"


def _message(code: str, arguments: tuple[Any, ...]) -> str:
    """Return the text with its placeholders filled in order: `{{…}}` as JSON, `{{{…}}}`
    unchanged.
    """
    left = list(arguments)

    def fill(place: re.Match[str]) -> str:
        value = left.pop(0) if left else None
        if len(place[1]) == 3:
            return str(value)
        return _shown(value)

    return _PLACE.sub(fill, _template(code))


def _code_of_sentence(sentence: str) -> str | None:
    """Return the code for a text: the library's date functions raise the text of a code without the
    code.
    """
    wanted = sentence.replace("'", '"')
    codes: dict[str, str] = JException.error_codes
    for code in codes:
        start = _template(code).split("{{")[0]
        if len(start) > 10 and wanted.startswith(start.replace("Object", "function")):
            return code
    return _SENTENCES.get(sentence)


def _arguments(code: str, error: JException) -> tuple[Any, ...]:
    """Return the values for the placeholders of the text. The library passes two of them at the
    wrong place: the value that has no negative, and the radix.
    """
    match code:
        case "D1002":
            return (error.expected,)
        case "D3100":
            return (error.location,)
        case _:
            return (error.current, error.expected, _ITEM_TYPES.get(error.extra, error.extra))


def _translate_library_error(error: JException) -> JsonataError:
    code = str(error.error)
    if code == "Unexpected" and isinstance(error.__context__, Exception):
        # The library's `and` and `or` replace the error of their right side by this one. The
        # original error is its context.
        return translate(error.__context__)
    position = error.location if isinstance(error.location, int) and error.location >= 0 else None
    if code == "S0301" and error.current is not None:
        # The expression has an unknown escape, which the library reports as an empty regex.
        code = "S0103"
    if _CODE.fullmatch(code):
        return JsonataError(code, _message(code, _arguments(code, error)), position)
    return JsonataError(_code_of_sentence(code) or "D1000", code, position)


def translate(error: Exception) -> JsonataError:
    """Return the error as a JsonataError. Never raises: an unexpected error becomes D1000 with the
    name of its type.
    """
    match error:
        case JsonataError():
            return error
        case JException():
            return _translate_library_error(error)
        case RecursionError():
            return budget_error("nests too deep")
        case MemoryError() | TimeoutError():
            return budget_error("took too much memory or time")
        case _:
            code = _code_of_sentence(str(error))
            if code:
                return JsonataError(code, str(error))
            return JsonataError(
                "D1000", f"The expression cannot be evaluated ({type(error).__name__})"
            )


def translate_syntax(error: Exception, text: str) -> JsonataError:
    """Return like `translate`, but also for the errors of the parser in a text that ends or starts
    too early.
    """
    if isinstance(error, IndexError):
        code = "S0106" if "/*" in text else "S0101"
        return JsonataError(code, _message(code, ()), len(text))
    if isinstance(error, KeyError):
        return JsonataError("S0204", _message("S0204", error.args))
    if isinstance(error, RecursionError | JException | JsonataError):
        return translate(error)
    known = translate(error)
    if known.code != "D1000":
        return known
    return JsonataError("S0500", f"The expression cannot be parsed ({type(error).__name__})")
