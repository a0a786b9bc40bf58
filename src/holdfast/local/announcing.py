"""Under `serve`, a question that opens and each reminder are a line on the terminal, with the link
to the form.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from holdfast import resources
from holdfast.runtime.effects import Publish


def announced(publish: Callable[[Publish], None]) -> Callable[[Publish], None]:
    """Return a performer that prints an event about a question, and then publishes the event."""

    def perform(effect: Publish) -> None:
        if effect.source == resources.QUESTION_SOURCE:
            sys.stderr.write(f"{line_of(effect.detail)}\n")
            sys.stderr.flush()
        publish(effect)

    return perform


def line_of(detail: Mapping[str, Any]) -> str:
    """Return the line for the terminal. Unprintable characters of the title become spaces: a title
    with escape sequences could otherwise rewrite the person's screen.
    """
    what = f"reminder, until {detail['until']}," if "reminder" in detail else "question"
    asked = f"{what} for {detail['assignee']}: {detail['title']}"
    shown = "".join(one if one.isprintable() else " " for one in asked)
    return f"{shown} {detail['link']}"
