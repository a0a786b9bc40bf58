"""What every command of the command line has in common: its exit code, and how it says things.

Results go to stdout, as tables or with `--json` as one line; everything else goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from holdfast.errors import RequestError

FINE: Final = 0
NEGATIVE: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130


def json_argument(text: str, option: str) -> Any:
    """-> the value of JSON itself, of `@FILE`, or of `-`, stdin. Raises RequestError HF282."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise RequestError("HF282", f"{option}: {text[1:]}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise RequestError(
            "HF282", f"{option} is not JSON: {error}", help=f'{option} \'{{"key": "value"}}\''
        ) from None


def say(arguments: argparse.Namespace, answer: Any, sentence: str) -> int:
    """Says the sentence, or with `--json` the answer itself; -> the exit code."""
    if arguments.json:
        print_json(answer)
    else:
        print(sentence)
    return FINE


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
