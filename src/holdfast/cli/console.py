"""The parts that all commands use: exit codes, and printing.

Results go to stdout, as tables or with `--json` as one line. Everything else goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from holdfast.errors import RequestError

FINE: Final = 0
NEGATIVE: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130


def counted(number: int, what: str) -> str:
    """Return the number with its noun, in the plural unless the number is one: "1 execution"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def unreadable(file: Path, error: Exception) -> RequestError:
    """Return HF282 for a file that a command was given."""
    why = error.strerror if isinstance(error, OSError) else str(error)
    return RequestError("HF282", f"{file} cannot be read: {why}", help="name another file")


def store_text(file: Path, text: str) -> None:
    """Write the file that a command was given. Raises RequestError HF282."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestError(
            "HF282",
            f"{file} cannot be written: {error.strerror}",
            help="name a file in a folder that exists and is yours",
        ) from None


def json_argument(text: str, option: str) -> Any:
    """Return the JSON value of the text; of the file for `@FILE`; of stdin for `-`. Raises
    RequestError HF282.
    """
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refuse_constant)
    except OSError as error:
        raise RequestError(
            "HF282",
            f"{option}: {text[1:]}: {error.strerror}",
            help=f"{option} @FILE reads a file, and {option} JSON takes the value itself",
        ) from None
    except (ValueError, RecursionError) as error:
        raise RequestError(
            "HF282",
            f"{option} is not JSON: {error}",
            help=f'{option} true, or 17, or \'"text"\', or \'{{"key": "value"}}\'',
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    """Refuse a number that Python reads although JSON has none such: NaN, Infinity."""
    raise ValueError(f"it has no {name}")


def say(arguments: argparse.Namespace, answer: Any, sentence: str) -> int:
    """Print the sentence, or with `--json` the answer itself; returns the exit code."""
    if arguments.json:
        print_json(answer)
    else:
        print(harmless(sentence))
    return FINE


def print_json(value: Any) -> None:
    """Print one line of JSON. Control characters are written as JSON escapes."""
    text = json.dumps(value, ensure_ascii=False)
    print(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


#: Characters that a terminal obeys or cannot show: control characters, characters that change the
#: direction of text, and characters that cannot be encoded. Executions contain texts from
#: strangers, which must not control the terminal.
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(value: Any) -> Any:
    """Return the same JSON or text in a form that is safe to print. Newlines and tabs are kept."""
    match value:
        case str():
            return _OBEYED.sub("\ufffd", value)
        case dict():
            return {harmless(key): harmless(item) for key, item in value.items()}
        case list():
            return [harmless(item) for item in value]
        case _:
            return value
