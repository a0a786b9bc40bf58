"""`python -m tests.differential --programs N --seed S`: compares N generated programs.

Prints counts and, for each difference, the smallest program that shows it. Two processes.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.jsonata_js import recording
from tests.differential.choices import Choices, shrunk
from tests.differential.runs import compare, failure, source_of

_CHUNK = 50


def run_chunk(
    first: int, seeds: int, runs: int, *, shrinks: bool, records: bool, is_changed: bool
) -> tuple[Counter[str], list[str], list[str]]:
    """Return counts, differences as text, expressions that were evaluated."""
    warnings.simplefilter("ignore", SyntaxWarning)
    counts: Counter[str] = Counter()
    found: list[str] = []
    with TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        recorder = stack.enter_context(recording()) if records else None
        for seed in range(first, first + seeds):
            choices = Choices(seed)
            counts["programs"] += 1
            try:
                compare(choices, folder, runs, counts, is_changed=is_changed)
            except Exception as error:  # noqa: BLE001 - a crash is a finding, too
                counts["differences"] += 1
                shown = f"{type(error).__name__}: {error}"
                examine = partial(failure, folder=folder, runs=runs, is_changed=is_changed)
                smallest = _smallest(choices.made, examine, shown) if shrinks else choices.made
                source = source_of(Choices(given=smallest), Counter(), is_changed=is_changed)
                shown = examine(smallest) or shown
                found.append(f"seed {seed}:\n{source}\n{shown}\n")
        return counts, found, [] if recorder is None else list(recorder.lines)


def _smallest(
    made: Sequence[int], examine: Callable[[Sequence[int]], str | None], shown: str
) -> Sequence[int]:
    """Return the smallest choices that fail in the same way."""
    kind = shown.split(":", 1)[0]

    def fails(given: Sequence[int]) -> bool:
        found = examine(given)
        return found is not None and found.split(":", 1)[0] == kind

    return shrunk(made, fails) if fails(made) else made


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3, help="worlds per program")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--changed", action="store_true", help="make small changes first")
    parser.add_argument("--expressions", help="file for what was evaluated, one JSON line each")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    counts: Counter[str] = Counter()
    triples: set[str] = set()
    first = given.seed * 10_000_000
    starts = range(first, first + given.programs, _CHUNK)
    with ProcessPoolExecutor(given.processes) as pool:
        futures = [
            pool.submit(
                run_chunk,
                start,
                min(_CHUNK, first + given.programs - start),
                given.runs,
                shrinks=not given.no_shrink,
                records=given.expressions is not None,
                is_changed=given.changed,
            )
            for start in starts
        ]
        for future in futures:
            more, differences, logged = future.result()
            counts += more
            triples |= set(logged)
            for difference in differences:
                sys.stdout.write(f"{difference}\n{'-' * 100}\n")
                sys.stdout.flush()
    if given.expressions:
        Path(given.expressions).write_text("".join(f"{row}\n" for row in sorted(triples)))
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"{count:>9}  {name}\n")
    accepted = 100 * counts["accepted"] / max(counts["accepted"] + counts["refused"], 1)
    sys.stdout.write(
        f"seed {given.seed}: {counts['programs']} programs, {accepted:.1f} % accepted, "
        f"{counts['runs']} runs, {counts['differences']} differences, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    return 1 if counts["differences"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
