"""The output, the input and the files of `python -m holdfast_simulator`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from holdfast_simulator import scenarios, swarm, tally
from holdfast_simulator.levels import LEVELS
from holdfast_simulator.runner import Deployed, ScheduleResult, play
from holdfast_simulator.schedule import WrittenTape
from holdfast_simulator.shrinking import shrunk
from holdfast_simulator.tally import Tally

_TOLD_EVERY_SECONDS: Final = 10
_CHOICES_SHOWN_MAX: Final = 20


class UnusableError(Exception):
    """A file has other content than its name says. The message names the file and the reason."""


# -- on the terminal -------------------------------------------------------------------------------


def silent(total: Tally) -> None:
    del total


def teller(began: float) -> Callable[[Tally], None]:
    """Return a function that prints each failure at once, and the progress from time to time."""
    told_at, failures_told = began, 0

    def tell_progress(total: Tally) -> None:
        nonlocal told_at, failures_told
        for name, failed in total.failures[failures_told:]:
            print(_headline(name, failed), flush=True)
        failures_told = len(total.failures)
        now = time.monotonic()
        if now - told_at < _TOLD_EVERY_SECONDS:
            return
        told_at = now
        rate = total.schedules / (now - began)
        violated = sum(total.violated.values())
        print(f"{total.schedules} schedules, {rate:.0f} a second, {violated} violated", flush=True)

    return tell_progress


def tell(total: Tally, seconds: float) -> None:
    print(
        f"{total.schedules} schedules in {seconds:.0f} s, {total.steps} effects, "
        f"{total.virtual_years:.1f} virtual years, {sum(total.violated.values())} violated"
    )
    print("ends:", ", ".join(f"{name} {count}" for name, count in sorted(total.statuses.items())))
    print("marks reached:")
    for name, count in sorted(total.marks.items(), key=lambda pair: -pair[1]):
        print(f"  {count:>9}  {name}")
    for number, count in sorted(total.violated.items()):
        print(f"VIOLATED {number}: {count}")


def tell_rare(missing: Sequence[tuple[str, int]]) -> None:
    for mark, count in missing:
        print(f"TOO RARE: {mark}: {count} times")


def show(result: ScheduleResult) -> int:
    """Return 1 when it was violated."""
    print(f"scenario: {result.scenario.name}: {result.scenario.about}")
    print(f"swarm: {json.dumps(result.swarm.document())}")
    print(f"{result.steps} effects, {result.virtual_ms / 1_000:.0f} s, ends {result.statuses}")
    print(f"choices: {len(result.choices)}   trace: {result.trace}")
    for violation in result.violations:
        print(f"VIOLATED {violation.invariant}: {violation.text}")
    return 1 if result.violations else 0


# -- reports ---------------------------------------------------------------------------------------


def write(path: Path, runs: list[Any], total: Tally, seconds: float) -> None:
    """`runs`: the options of each run that went into it."""
    _write(path, runs, total, seconds, _commit())


def _write(path: Path, runs: list[Any], total: Tally, seconds: float, commit: str) -> None:
    document = {
        "commit": commit,
        "python": sys.version.partition(" ")[0],
        "runs": runs,
        "seconds": round(seconds, 1),
        "virtual_years": round(total.virtual_years, 1),
        **total.document(),
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def summed(paths: Sequence[Path], to: Path | None) -> int:
    """Return 1 when something was violated, a part is not there, or the level of the reports has a
    mark that is too rare.
    """
    total, seconds, runs = Tally(), 0.0, []
    commits = set[str]()
    for path in paths:
        document = _document(path)
        try:
            total.merge(tally.read(document))
            seconds += float(document["seconds"])
            runs += document["runs"]
            commits.add(str(document["commit"]))
            asked = {one["level"] for one in runs}
            wrong = list(_wrong_parts(runs))
        except (KeyError, TypeError, ValueError) as error:
            raise UnusableError(f"{path} is no report of this simulator: {error!r}") from error
    tell(total, seconds)
    if to is not None:
        _write(to, runs, total, seconds, ", ".join(sorted(commits)))
    for text in wrong:
        print(text)
    least = min((LEVELS[one].mark_min for one in asked if one is not None), default=0)
    missing = total.rare(least)
    tell_rare(missing)
    return 1 if total.violated or missing or wrong else 0


def _wrong_parts(runs: list[Any]) -> Iterator[str]:
    """Yield the parts of each run that were not given once, as sentences."""
    given = Counter[tuple[Any, ...]]()
    for one in runs:
        number, parts = one["part"] or (1, 1)
        given[(one["level"], one["seed"], one["schedules"], parts, number)] += 1
    for run in sorted({key[:4] for key in given}, key=str):
        level, seed, _, parts = run
        for number in range(1, parts + 1):
            if (count := given[(*run, number)]) != 1:
                what = "random schedules" if level is None else f"level {level}"
                times = f"{count} times" if count else "missing"
                yield f"PART {number} of {parts}, {what} from seed {seed}: {times}"


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnusableError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnusableError(f"{path} is no JSON: {error}") from error


def _commit() -> str:
    """Return the commit of the tree that ran, with a plus when the tree differs from it."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.strip()


# -- failures --------------------------------------------------------------------------------------


def _headline(name: str, failed: ScheduleResult) -> str:
    return f"{name}: {failed.violations[0].invariant}: {failed.violations[0].text}"


def write_failure(name: str, failed: ScheduleResult, directory: Path) -> None:
    """Shrinks it, and writes the tape that shows it."""
    print(f"\n{_headline(name, failed)}")
    least = shrunk(failed)
    path = directory / f"failure-{re.sub('[^a-z0-9]+', '-', name.lower())[:60]}.json"
    path.write_text(json.dumps(_failure(name, least), indent=1) + "\n", encoding="utf-8")
    print(f"  {len(failed.choices)} choices, {len(least.choices)} of them matter: {path}")
    for choice in least.choices[:_CHOICES_SHOWN_MAX]:
        print(f"    {choice}")


def _failure(name: str, result: ScheduleResult) -> dict[str, Any]:
    return {
        "name": name,
        "violations": [f"{one.invariant}: {one.text}" for one in result.violations],
        "trace": result.trace,
        "scenario": result.scenario.document(),
        "swarm": result.swarm.document(),
        "choices": result.choices,
    }


def replayed(path: Path) -> ScheduleResult:
    """The schedule of a failure that was written down."""
    document = _document(path)
    try:
        deployed = Deployed(scenarios.read(document["scenario"]))
        settings = swarm.read(document["swarm"])
        choices = [
            (str(point), int(number), answer) for point, number, answer in document["choices"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnusableError(f"{path} is no failure of this simulator: {error!r}") from error
    return play(deployed, settings, WrittenTape(choices))
