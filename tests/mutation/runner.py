"""Runs the fast tests of the engine against each mutant, in a process of its own.

The tests are collected once; each mutant is planted into a fork of that process. Only tests that
run the changed line are run: first those that have found a mutant of the same function before, then
the quickest and those that have found most. The first that fails has found it; so has one that does
not end.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import CORE, Module, Mutant
from tests.mutation.planting import NotImportable, plant, plant_nothing

#: Of processor time, for one test. The slowest that is asked takes a fraction of it.
TEST_SECONDS_MAX: Final = 3
#: A test that takes longer than this on healthy code is not asked.
ASKED_SECONDS_MAX: Final = 1.0
#: How long the tests of one mutant may take together, on healthy code. The score is a lower bound.
MUTANT_SECONDS_MAX: Final = 6.0
MEMORY_BYTES_MAX: Final = 3 * 2**30
#: The finder of a mutant with which a module cannot be imported.
IMPORT: Final = "import"

_PASSED, _FAILED, _NOT_IMPORTABLE, _NOT_PLANTED = range(4)


class NotPlanted(Exception):  # noqa: N818
    """The planter failed, or its process ended: no test was asked, so nothing has been found."""


@dataclass(frozen=True)
class Baseline:
    """A run of healthy code, planted as mutants are: `seconds` of each test, and `lines` by file:
    the tests that run them.
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, frozenset[str]]]
    failed: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    """`killer` is the test that found it, or `IMPORT`; None for a survivor, and for one that could
    not be planted: then `problem` says why.
    """

    mutant: Mutant
    killer: str | None
    asked: int
    problem: str | None = None


class Mutation:
    """A plugin of pytest that plays mutants instead of running the tests once."""

    def __init__(
        self,
        chosen: Sequence[tuple[Module, Sequence[Mutant]]],
        tell: Callable[[str], None],
        told: Callable[[Outcome], None],
        until: float,
    ) -> None:
        self._chosen = chosen
        self._tell = tell
        self._told = told
        self._until = until
        self._killers: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._found: Counter[str] = Counter()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        began = time.monotonic()
        baseline: Baseline = _in_fork(lambda: measure(items))
        self._tell(f"{len(items)} tests on healthy code: {time.monotonic() - began:.0f} s")
        if baseline.failed:
            self._tell(f"left out, since they fail without a mutant: {', '.join(baseline.failed)}")
        for module, mutants in self._chosen:
            self._tell(f"{module.name}: {len(mutants)} mutants")
            for mutant in mutants:
                if time.monotonic() > self._until:
                    self._tell("the time is over")
                    return True
                self._told(self._play(module, mutant, items, baseline))
        return True

    def _play(
        self,
        module: Module,
        mutant: Mutant,
        items: Mapping[str, pytest.Item],
        baseline: Baseline,
    ) -> Outcome:
        names = self._asked(mutant, baseline)
        try:
            killer = find_killer(module, mutant, [items[name] for name in names])
        except NotPlanted as error:
            return Outcome(mutant, None, 0, str(error))
        if killer not in {None, IMPORT}:
            self._found[killer] += 1
            known = self._killers[mutant.module, mutant.function]
            self._killers[mutant.module, mutant.function] = [
                killer,
                *(name for name in known if name != killer),
            ]
        return Outcome(mutant, killer, len(names))

    def _asked(self, mutant: Mutant, baseline: Baseline) -> list[str]:
        by_line = baseline.lines.get(mutant.module, {})
        names = {name for line in mutant.lines for name in by_line.get(line, ())}
        # What no test runs may still have been run when the module was imported.
        names = names or set(baseline.seconds)
        names = {name for name in names if baseline.seconds.get(name, 9) < ASKED_SECONDS_MAX}
        known = [name for name in self._killers[mutant.module, mutant.function] if name in names]
        rest = sorted(names - set(known))
        rest.sort(key=lambda name: baseline.seconds[name] / (1 + self._found[name]))
        spent = accumulate(baseline.seconds[name] for name in [*known, *rest])
        return [
            name
            for name, seconds in zip([*known, *rest], spent, strict=True)
            if seconds < MUTANT_SECONDS_MAX
        ]


def measure(items: Mapping[str, pytest.Item]) -> Baseline:
    for path in sorted(CORE.rglob("*.py")):
        if path.name != "__init__.py":
            plant_nothing(Module(str(path.relative_to(CORE))))
    watch = coverage.Coverage(data_file=None, include=[f"{CORE}/*"], config_file=False)
    watch.start()
    seconds: dict[str, float] = {}
    failed: list[str] = []
    for name, item in items.items():
        watch.switch_context(name)
        began = time.process_time()
        if _passes(item):
            seconds[name] = time.process_time() - began
        else:
            failed.append(name)
    watch.stop()
    data = watch.get_data()
    lines = {
        file.removeprefix(f"{CORE}/"): {
            line: frozenset(context for context in contexts if context in seconds)
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    return Baseline(seconds, lines, failed)


def find_killer(module: Module, mutant: Mutant, items: Sequence[pytest.Item]) -> str | None:
    """Return the first test that fails, or does not end, with the mutant in place; `IMPORT` where
    that was enough. Raises NotPlanted.
    """
    receive, send = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(receive)
        _ask(module, mutant, items, send)
    os.close(send)
    with os.fdopen(receive, encoding="utf-8") as answers:
        told = answers.read().splitlines()
    _, status = os.waitpid(process, 0)
    match os.waitstatus_to_exitcode(status):
        case 0:
            return None
        case code if code == _NOT_IMPORTABLE:
            return IMPORT
        case code if code == _NOT_PLANTED or not told:
            raise NotPlanted(told[-1] if told else f"its process ended with {code}")
        case _:
            return told[-1]


def _ask(module: Module, mutant: Mutant, items: Sequence[pytest.Item], send: int) -> None:
    """Names each test before it is run, and ends the process: with 0 when all have passed."""
    code = _NOT_PLANTED
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS_MAX)
        plant(module, mutant)
        code = _FAILED
        for item in items:
            os.write(send, f"{item.nodeid}\n".encode())
            signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS_MAX)
            if not _passes(item):
                return
        code = _PASSED
    except NotImportable:
        code = _NOT_IMPORTABLE
    except Exception as error:  # noqa: BLE001  # whatever it is, it is told
        if code == _NOT_PLANTED:
            os.write(send, f"{error!r}\n".encode())
    finally:
        os._exit(code)


def _passes(item: pytest.Item) -> bool:
    return all(report.passed or report.skipped for report in runtestprotocol(item, log=False))


def _in_fork(work: Callable[[], Any]) -> Any:
    """Return what it gives; what it leaves behind in caches and fixtures is gone with the
    process.
    """
    receive, send = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(receive)
            with os.fdopen(send, "wb") as answer:
                pickle.dump(work(), answer)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(send)
    with os.fdopen(receive, "rb") as answer:
        found = pickle.load(answer)  # of our own making
    os.waitpid(process, 0)
    return found
