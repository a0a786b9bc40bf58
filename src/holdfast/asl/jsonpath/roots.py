"""Where paths begin, and what a text is that is none."""

from __future__ import annotations

from typing import Final

INPUT: Final = "$"
CONTEXT: Final = "$$"
PATH_CHARACTERS_MAX: Final = 20_000


class PathSyntaxError(ValueError):
    """A text that is no path, or no intrinsic function."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"{text!r:.80}: {problem}")
