"""The roots of paths, and the error for a text that is not a path."""

from __future__ import annotations

from typing import Final

INPUT: Final = "$"
CONTEXT: Final = "$$"
PATH_CHARACTERS_MAX: Final = 20_000


class PathSyntaxError(ValueError):
    """A text that is neither a path nor an intrinsic function."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"{text!r:.80}: {problem}")
