"""`python -m holdfast.sim`: schedules by seed, a level, or a tape that was written down."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from holdfast.sim import levels, scenarios, swarm
from holdfast.sim.levels import Job, Tally
from holdfast.sim.runner import Deployed, Result, play
from holdfast.sim.shrinking import shrunk
from holdfast.sim.tape import WrittenTape

_STATEMACHINES: Final = Path("statemachines")
_TOLD_EVERY_SECONDS: Final = 10
#: Machines whose pairs of crashes level 2 tries, and triples level 3.
_PAIRED, _TRIPLED = 10, 3


def main(arguments: list[str] | None = None) -> int:
    """-> 0: all well; 1: something was violated; 2: asked for something that is not there."""
    asked = _parser().parse_args(arguments)
    directory = _STATEMACHINES if _STATEMACHINES.is_dir() else None
    if asked.tape is not None:
        return _show(_replayed(asked.tape))
    if asked.level is None and asked.schedules == 1:
        return _show(levels.scheduled(asked.seed, directory))
    jobs = _jobs(asked, directory)
    began = time.monotonic()
    total = levels.run(jobs, asked.processes, _teller(began))
    _report(total, time.monotonic() - began)
    for name, result in total.failures[: asked.failures]:
        _write(name, result, asked)
    return 1 if total.violated else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.sim",
        description="Runs the real handlers in a world where everything goes wrong.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first schedule")
    parser.add_argument("--schedules", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--level", type=int, choices=(0, 1, 2, 3), help="see docs/simulator.md")
    parser.add_argument("--tape", type=Path, help="a failure that was written down")
    parser.add_argument("--processes", type=int, default=levels.processes_default())
    parser.add_argument("--failures", type=int, default=3, help="how many are shrunk and written")
    parser.add_argument("--to", type=Path, default=Path(), help="where failures are written")
    return parser


def _jobs(asked: argparse.Namespace, directory: Path | None) -> Iterator[Job]:
    count = len(levels.programs(directory))
    match asked.level:
        case None:
            yield from levels.random_seeds(asked.seed, asked.schedules, directory)
        case 0:
            yield from levels.exhaustive(range(_PAIRED), levels.CRASHES, directory)
            yield from levels.random_seeds(asked.seed, 2_000, directory)
        case 1:
            yield from levels.exhaustive(range(count), levels.SINGLES, directory)
            yield from levels.random_seeds(asked.seed, 50_000, directory)
        case 2:
            yield from levels.exhaustive(range(_PAIRED), levels.CRASHES, directory, at_once=2)
            yield from levels.random_seeds(asked.seed, 1_000_000, directory)
        case _:
            yield from levels.exhaustive(range(_TRIPLED), levels.CRASHES, directory, at_once=3)
            yield from levels.random_seeds(asked.seed, 10_000_000, directory)


# -- saying ----------------------------------------------------------------------------------------


def _teller(began: float) -> Any:
    told_at = began

    def tell(total: Tally) -> None:
        nonlocal told_at
        now = time.monotonic()
        if now - told_at < _TOLD_EVERY_SECONDS:
            return
        told_at = now
        rate = total.schedules / (now - began)
        violated = sum(total.violated.values())
        print(f"{total.schedules} schedules, {rate:.0f} a second, {violated} violated", flush=True)

    return tell


def _report(total: Tally, seconds: float) -> None:
    years = total.virtual_ms / 1_000 / 86_400 / 365
    print(
        f"{total.schedules} schedules in {seconds:.0f} s, {total.steps} effects, "
        f"{years:.1f} virtual years, {sum(total.violated.values())} violated"
    )
    print("ends:", ", ".join(f"{name} {count}" for name, count in sorted(total.statuses.items())))
    print("marks reached:")
    for name, count in sorted(total.marks.items(), key=lambda pair: -pair[1]):
        print(f"  {count:>9}  {name}")
    for number, count in sorted(total.violated.items()):
        print(f"VIOLATED {number}: {count}")


def _show(result: Result) -> int:
    print(f"scenario: {result.scenario.name}: {result.scenario.about}")
    print(f"swarm: {json.dumps(result.swarm.document())}")
    print(f"{result.steps} effects, {result.virtual_ms / 1_000:.0f} s, ends {result.statuses}")
    print(f"choices: {len(result.choices)}   trace: {result.trace}")
    for violation in result.violations:
        print(f"VIOLATED {violation.invariant}: {violation.text}")
    return 1 if result.violations else 0


def _write(name: str, failed: Result, asked: argparse.Namespace) -> None:
    print(f"\n{name}: {failed.violations[0].invariant}: {failed.violations[0].text}")
    least = shrunk(failed)
    path = asked.to / f"failure-{name.replace(' ', '-').replace(':', '')[:60]}.json"
    path.write_text(json.dumps(_document(name, least), indent=1), encoding="utf-8")
    print(f"  {len(failed.choices)} choices, {len(least.choices)} of them matter: {path}")
    for choice in least.choices[:20]:
        print(f"    {choice}")


def _document(name: str, result: Result) -> dict[str, Any]:
    return {
        "name": name,
        "violations": [f"{one.invariant}: {one.text}" for one in result.violations],
        "scenario": result.scenario.document(),
        "swarm": result.swarm.document(),
        "choices": [list(choice) for choice in result.choices],
    }


def _replayed(path: Path) -> Result:
    document = json.loads(path.read_text(encoding="utf-8"))
    deployed = Deployed(scenarios.read(document["scenario"]))
    choices = [(point, number, answer) for point, number, answer in document["choices"]]
    return play(deployed, swarm.read(document["swarm"]), WrittenTape(choices))


if __name__ == "__main__":
    sys.exit(main())
