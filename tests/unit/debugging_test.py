"""Breakpoints under `serve --debug`: the clock of the local cloud stops with the task."""

from __future__ import annotations

import io
import sys

import pytest

from holdfast.local.debugging import DebugClock, breakpoints

NINE = 9 * 60_000


class Real:
    """The clock of the machine; each reading takes a millisecond."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms


class Slow(io.StringIO):
    """A person who thinks for nine minutes before each command."""

    def __init__(self, text: str, real: Real) -> None:
        super().__init__(text)
        self._real = real

    def readline(self, *arguments: int) -> str:  # type: ignore[override]
        for _ in range(600):
            self._real.now_ms += NINE // 600
            CLOCKS[-1]()  # the pump of the local cloud goes on reading
        return super().readline(*arguments)


CLOCKS: list[DebugClock] = []


def charge(pence: int) -> int:
    doubled = pence * 2
    breakpoint()  # noqa: T100
    return doubled


@pytest.fixture
def real() -> Real:
    return Real()


@pytest.fixture
def clock(real: Real, monkeypatch: pytest.MonkeyPatch) -> DebugClock:
    # pytest's own hook for breakpoint() is another one.
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    made = DebugClock(real)
    CLOCKS[:] = [made]
    return made


def test_a_breakpoint_shows_the_variables_of_the_task_and_stops_the_clock(
    clock: DebugClock, real: Real
) -> None:
    output = io.StringIO()
    before_ms = clock()

    with breakpoints(clock, stdin=Slow("p doubled\nc\n", real), stdout=output):
        assert charge(21) == 42

    assert "42" in output.getvalue()
    assert real.now_ms - before_ms > 2 * NINE
    assert clock() - before_ms < 100


def test_the_clock_goes_on_after_the_prompt(clock: DebugClock, real: Real) -> None:
    with breakpoints(clock, stdin=Slow("c\n", real), stdout=io.StringIO()):
        charge(1)
    before_ms = clock()
    real.now_ms += 2_000

    assert 2_000 <= clock() - before_ms < 2_100


def test_a_process_that_an_editor_has_stopped_as_a_whole_has_missed_nothing(
    clock: DebugClock, real: Real
) -> None:
    before_ms = clock()
    real.now_ms += NINE

    assert clock() - before_ms < 100


def test_the_hook_of_an_editor_stays(clock: DebugClock, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: called.append("editor"))

    with breakpoints(clock):
        assert charge(2) == 4

    assert called == ["editor"]


def test_the_hook_of_python_comes_back(clock: DebugClock) -> None:
    with breakpoints(clock):
        assert sys.breakpointhook is not sys.__breakpointhook__
    assert sys.breakpointhook is sys.__breakpointhook__
