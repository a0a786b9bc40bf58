"""`--watch`: a command prints its result again and again, until Ctrl-C or until it will not
change.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final

from holdfast.cli.console import FINE

WATCH_SECONDS: Final = 2.0
WATCH_SECONDS_MIN: Final = 0.5
_CLEAR: Final = "\x1b[H\x1b[2J"


def add_watch(parser: argparse.ArgumentParser, until: str) -> None:
    parser.add_argument(
        "--watch",
        nargs="?",
        type=_interval,
        const=WATCH_SECONDS,
        metavar="SECONDS",
        help=f"print it every {WATCH_SECONDS:g} seconds, or so many, until {until}",
    )


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    # Refuse short intervals, because AWS bills the reads of each repetition.
    if not WATCH_SECONDS_MIN <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {WATCH_SECONDS_MIN:g} up")
    return seconds


def watched(arguments: argparse.Namespace, look: Callable[[], bool]) -> int:
    """Call `look`, which prints, once; with `--watch` again and again as long as it returns
    True.
    """
    while True:
        if arguments.watch is not None and sys.stdout.isatty():
            sys.stdout.write(_CLEAR)
        goes_on = look()
        sys.stdout.flush()
        if arguments.watch is None or not goes_on:
            return FINE
        time.sleep(arguments.watch)
