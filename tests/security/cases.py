"""The form of a case of bad input, and the counted results of many generated ones.

A class of bad input has its hand-written cases in a table of `Case` rows in a test file, and its
generated ones from a function that is registered here:

    @generator("tokens", full=100_000)
    def forged(draw: Random) -> Outcome: ...

It makes one case from `draw`, puts it to a door, asserts what must hold, and says what the door
did. Any exception is a finding. A case that must be refused raises if it is accepted, because no
other code examines accepted input. Every case has a `Random` of its own, so that it can be
repeated alone: `python -m tests.security --class tokens --seed 1 --first 4711 --cases 1`.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, TypeAlias

import pytest

Outcome: TypeAlias = Literal["refused", "accepted"]
Generator: TypeAlias = Callable[[Random], Outcome]

#: Processor time. The product stops an expression after 0.75 s; the rest is for a machine whose
#: cores are shared, where the same work takes two to three times as long. Tracing for coverage
#: makes a case slower still.
CASE_SECONDS_MAX: Final = 3.0 if sys.gettrace() is None else 20.0
#: Of any time: a case that waits for a lock uses no processor.
WAIT_SECONDS_MAX: Final = 30.0

#: By the name of the class; `FULL_CASES` says how many make a full run of it.
GENERATORS: Final[dict[str, Generator]] = {}
FULL_CASES: Final[dict[str, int]] = {}


@dataclass(frozen=True, slots=True)
class Case:
    """A hand-written row: the request, and the code of the answer."""

    name: str
    given: Any
    code: str


def each(*cases: Case) -> pytest.MarkDecorator:
    """Return the decorator that runs a test with every row as its argument `case`."""
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two rows have one name"
    return pytest.mark.parametrize("case", cases, ids=names)


class TooSlow(BaseException):
    """A case that does not end. No `except Exception` on its way may hide it."""


class FindingError(AssertionError):
    """A generated case after which something does not hold, and how to repeat it."""


@dataclass(frozen=True, slots=True)
class Tally:
    cases: int
    refused: int
    accepted: int
    worst_seconds: float
    worst_number: int


def generator(name: str, *, full: int) -> Callable[[Generator], Generator]:
    """`full`: the number of cases of a full run, as `python -m tests.security` does it."""

    def register(function: Generator) -> Generator:
        GENERATORS[name] = function
        FULL_CASES[name] = full
        return function

    return register


def run_generated(name: str, cases: int, seed: int, *, first: int = 0) -> Tally:
    """Raises FindingError for the first case that breaks something, or takes over a second."""
    run_one, counts = GENERATORS[name], {"refused": 0, "accepted": 0}
    worst, worst_number = 0.0, first
    for number in range(first, first + cases):
        began = time.process_time()
        try:
            with time_limit():
                outcome = run_one(Random(f"{name}:{seed}:{number}"))
        except (Exception, TooSlow) as error:
            again = f"--class {name} --seed {seed} --first {number} --cases 1"
            raise FindingError(f"{type(error).__name__}: {error} ({again})") from error
        counts[outcome] += 1
        took = time.process_time() - began
        if took > worst:
            worst, worst_number = took, number
    return Tally(cases, counts["refused"], counts["accepted"], worst, worst_number)


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise TooSlow in the block. Only for the main thread, the only one with signals.

    What earlier tests left is frozen: a single collection of it may take half of the limit. It
    stays frozen, because all tests and modules are in it, and each later collection would look
    through them. The garbage of the case itself is collected, and counts.
    """

    def ring(_number: int, _frame: Any) -> None:
        raise TooSlow(f"over {CASE_SECONDS_MAX} s of work, or {WAIT_SECONDS_MAX} s of waiting")

    handlers = {name: signal.signal(name, ring) for name in (signal.SIGPROF, signal.SIGALRM)}
    gc.collect()
    gc.freeze()
    signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS_MAX)
    signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for name, handler in handlers.items():
            signal.signal(name, handler)
