"""`holdfast completion`: a script with which a shell completes commands and options.

The script is made from the parser, so it has every command and option of this version.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.cli.arguments import command
from holdfast.cli.console import FINE


@dataclass(frozen=True, slots=True)
class Word:
    """A command with its one-line help and its options."""

    about: str
    options: tuple[str, ...]


def add(commands: Any) -> None:
    parser = command(
        commands, "completion", completion, "Print a script that completes commands in a shell."
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(commands=commands)


def completion(arguments: argparse.Namespace) -> int:
    print(_SCRIPTS[arguments.shell](dict(_words(arguments.commands))))
    return FINE


def _words(commands: Any) -> Iterator[tuple[str, Word]]:
    about = {one.dest: one.help or "" for one in commands._choices_actions}  # noqa: SLF001
    for name, parser in commands.choices.items():
        options = [
            option
            for action in parser._actions  # noqa: SLF001
            for option in action.option_strings
            if option.startswith("--")
        ]
        yield name, Word(about[name], tuple(options))


def _bash(words: Mapping[str, Word]) -> str:
    cases = "\n".join(
        f"        {name}) words='{' '.join(word.options)}' ;;" for name, word in words.items()
    )
    return f"""# eval "$(holdfast completion bash)"
_holdfast() {{
    local words
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then
        words='{" ".join(words)}'
    fi
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _holdfast holdfast"""


def _zsh(words: Mapping[str, Word]) -> str:
    abouts = "\n".join(f"        '{name}:{_quotable(word.about)}'" for name, word in words.items())
    cases = "\n".join(
        f"        {name}) compadd -- {' '.join(word.options)} ;;" for name, word in words.items()
    )
    return f"""#compdef holdfast
# eval "$(holdfast completion zsh)"
_holdfast() {{
    local -a commands
    commands=(
{abouts}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    if [[ "$words[CURRENT]" != -* ]]; then
        _files
        return
    fi
    case "$words[2]" in
{cases}
    esac
}}
compdef _holdfast holdfast"""


def _fish(words: Mapping[str, Word]) -> str:
    lines = ["# holdfast completion fish | source"]
    for name, word in words.items():
        about = _quotable(word.about)
        lines.append(f"complete -c holdfast -f -n __fish_use_subcommand -a {name} -d '{about}'")
        lines += [
            f"complete -c holdfast -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
            for option in word.options
        ]
    return "\n".join(lines)


def _quotable(text: str) -> str:
    """Return the text for single quotes. zsh reads the part before a colon as the command, so
    colons are escaped.
    """
    return text.replace("'", "\u2019").replace(":", " -")


_SCRIPTS: Final[Mapping[str, Callable[[Mapping[str, Word]], str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
