"""`python -m holdfast_simulator` runs schedules by seed, a level, or a tape that was saved
earlier.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from holdfast.errors import HoldfastError
from holdfast_simulator import levels, reports
from holdfast_simulator.levels import LEVELS, LevelJob
from holdfast_simulator.tally import Tally

_STATEMACHINES: Final = Path("statemachines")


def main(arguments: list[str] | None = None) -> int:
    """Return 0 if no invariant was violated; 1 if one was, or if a mark is missing; 2 if the
    arguments name something that does not exist.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    _require_sense(parser, asked)
    try:
        return _do(asked)
    except reports.UnusableError as error:
        parser.error(str(error))


def _do(asked: argparse.Namespace) -> int:
    directory = _STATEMACHINES if _STATEMACHINES.is_dir() else None
    if asked.tape is not None:
        return reports.show(reports.replayed(asked.tape))
    if asked.merge:
        return reports.summed(asked.merge, asked.report)
    if asked.level is None and asked.schedules is None and not asked.hashes:
        return reports.show(levels.scheduled(asked.seed, directory))
    began = time.monotonic()
    teller = reports.silent if asked.hashes else reports.teller(began)
    total = levels.run(_jobs(asked, directory), asked.processes, teller)
    if asked.hashes:
        print(f"{total.traces:032x}  {total.schedules} schedules from seed {asked.seed} on")
        return 1 if total.violated else 0
    return _told(asked, total, time.monotonic() - began)


def _told(asked: argparse.Namespace, total: Tally, seconds: float) -> int:
    options = {name: getattr(asked, name) for name in ("level", "seed", "schedules", "part")}
    reports.tell(total, seconds)
    if asked.report is not None:
        reports.write(asked.report, [options], total, seconds)
    for name, result in total.failures[: asked.failures]:
        reports.write_failure(name, result, asked.to)
    is_whole = asked.level is not None and asked.part is None and asked.schedules is None
    missing = total.rare(LEVELS[asked.level].mark_min) if is_whole else []
    reports.tell_rare(missing)
    return 1 if total.violated or missing else 0


def _jobs(asked: argparse.Namespace, directory: Path | None) -> Iterator[LevelJob]:
    """Yield the jobs of the requested part."""
    if asked.level is None:
        jobs = levels.random_seeds(asked.seed, asked.schedules or 1, directory)
    else:
        level = LEVELS[asked.level]
        schedules = level.schedules if asked.schedules is None else asked.schedules
        jobs = levels.jobs_of(level, asked.seed, schedules, directory)
    number, parts = asked.part or (1, 1)
    return islice(jobs, number - 1, None, parts)


# -- arguments -------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m holdfast_simulator",
        description="Runs the real handlers in a world where everything goes wrong.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--seed", type=_natural, default=0, help="the first schedule")
    add("--schedules", type=_natural, help="how many random ones, from --seed on")
    add("--level", type=int, choices=range(len(LEVELS)), help="see docs/explanation/simulator.md")
    add("--part", type=_part, metavar="K/N", help="the Kth of N parts; the reports can be summed")
    add("--report", type=Path, help="where what it came to is written, as JSON")
    add("--merge", type=Path, nargs="+", metavar="REPORT", help="sums reports of parts")
    add("--hashes", action="store_true", help="prints one hash of all traces, and nothing else")
    add("--tape", type=Path, help="a failure that was written down")
    add("--processes", type=_positive, default=levels.processes_default())
    add("--failures", type=_natural, default=3, help="how many are shrunk and written")
    add("--to", type=Path, default=Path(), help="the directory that failures are written to")
    return parser


def _require_sense(parser: argparse.ArgumentParser, asked: argparse.Namespace) -> None:
    ways = {"--tape": asked.tape, "--merge": asked.merge, "--level": asked.level}
    chosen = [name for name, value in ways.items() if value is not None]
    if len(chosen) > 1:
        parser.error(f"{' and '.join(chosen)} exclude each other; ask for one of them")
    if not asked.to.is_dir():
        parser.error(f"--to {asked.to}: there is no such directory; make it, or name another one")
    if asked.report is not None and not asked.report.parent.is_dir():
        parser.error(f"--report {asked.report}: its directory does not exist; make it first")
    if asked.part is not None and asked.level is None and asked.schedules is None:
        parser.error("--part is for many schedules; say --level or --schedules too")


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _positive(text: str) -> int:
    number = _natural(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


def _part(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    found = (_positive(number), _positive(parts))
    if found[0] > found[1]:
        raise argparse.ArgumentTypeError(f"{text!r}: there is no part {found[0]} of {found[1]}")
    return found


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HoldfastError as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit(130)
