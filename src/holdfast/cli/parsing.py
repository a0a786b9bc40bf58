"""The parser of the command line, with a hint for a word that is almost a known one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from holdfast.errors import nearest

#: Matches argparse's own message: "argument COMMAND: invalid choice: 'lsit' (choose from 'list',
#: 'show')".
_CHOICE: Final = re.compile(r"invalid choice: '([^']*)'.*\(choose from (.*)\)", re.DOTALL)
_WORD: Final = re.compile(r"[\w.-]+")


class Parser(argparse.ArgumentParser):
    """A parser whose errors suggest the word that was probably meant. Its subcommands use the same
    class.
    """

    def parse_args(  # type: ignore[override]  # argparse has overloads for the namespace
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            # Use the parser of the command, because it has the options that the user may have
            # meant.
            used: argparse.ArgumentParser = getattr(found, "parser", self)
            used.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(used, unknown)}")
        return found

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return the value of an argument. None of them may be empty: a variable of the shell that
        is not set would otherwise be taken for a name, or for the current folder.
        """
        is_command = action.nargs == argparse.PARSER  # its own parser reads the arguments
        if not arg_string and action.default != arg_string and not is_command:
            raise argparse.ArgumentError(action, "the text is empty: is a variable not set?")
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        choice = _CHOICE.search(message)
        if choice is not None:
            message += _hint(choice[1], _WORD.findall(choice[2]))
        super().error(message)


def _meant(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    options = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001
    hints = (_hint(word.partition("=")[0], options) for word in unknown if word.startswith("-"))
    return next(filter(None, hints), "")


def _hint(word: str, known: Sequence[str]) -> str:
    near = nearest(word, known)
    return "" if near is None else f"\n  = help: did you mean {near}?"
