"""The share of small changes in the engine's core that its fast tests find.

`python -m tests.mutation [--module lanes.py ...] [--sample N] [--seed S] [--line TEXT]
[--since COMMIT] [--minutes M] [--tests FILE ...]`: without `--module`, every module of `core`;
without `--sample`, every mutant; with `--since`, those of the lines that have changed since then;
without `--tests`, the whole suite that needs nothing but the engine.
Survivors that are known to change nothing stand, each with its reason, in `survivors.md`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.mutation.explained import explained
from tests.mutation.mutants import CORE, Module, Mutant
from tests.mutation.runner import IMPORT, Mutation, Outcome

TESTS: Final = Path(__file__).parents[1]
SURVIVORS: Final = Path(__file__).with_name("survivors.md")
#: The tests that need nothing but the engine.
SUITE: Final = (
    "unit/core_*_test.py",
    "unit/child*_test.py",
    "unit/worker*_test.py",
    "unit/stepfunctions_*_test.py",
    "unit/dsl_semantics_test.py",
    "unit/dsl_cancelling_test.py",
    "sim/cancelling_test.py",
    "sim/corpus_test.py",
    "sim/map_run_test.py",
    "sim/random_machines_test.py",
    "sim/redrive_test.py",
    "sim/reference_test.py",
)


#: Of them, those that take seconds each.
TOO_SLOW: Final = (
    "(one_crash_at_any_effect or any_request or stopping_reaches or crashes_at_random"
    " or parent_that_is_stopped or kilobytes or goes_on_from_every_end)"
)


#: The results for a mutant: found by a test, found by the import of its module, or not found.
KINDS: Final = ("killed", "not importable", "survived", "not planted", "equivalent")


def suite() -> list[str]:
    return [str(file) for pattern in SUITE for file in sorted(TESTS.glob(pattern))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--module", dest="modules", nargs="+", default=[])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--line", help="only mutants of lines with this text")
    parser.add_argument("--since", metavar="COMMIT", help="only mutants of lines changed since")
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--tests", nargs="+", default=suite())
    options = parser.parse_args()
    names = options.modules or sorted(str(path.relative_to(CORE)) for path in CORE.rglob("*.py"))
    chosen = [(module, _chosen(module, options)) for module in map(Module, names)]
    print(f"seed {options.seed}, {sum(len(mutants) for _, mutants in chosen)} mutants", flush=True)
    known = explained(SURVIVORS)
    # pytest has the ordinary output while it is running.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    outcomes: list[Outcome] = []

    def told(outcome: Outcome) -> None:
        outcomes.append(outcome)
        kind, mutant = kind_of(outcome, known), outcome.mutant
        if kind in {"survived", "not planted"}:
            how = outcome.problem or f"{outcome.asked} tests"
            place = f"{mutant.module}:{mutant.line} {mutant.text}   [{mutant.change}]"
            out.write(f"{kind}, {how}: {place}\n")

    until = time.monotonic() + options.minutes * 60
    player = Mutation(chosen, lambda text: print(text, file=out), told, until)
    # The differences are not computed: that takes longer than finding that they exist.
    quiet = [
        "--assert=plain",
        "--tb=line",
        "-qq",
        "--no-header",
        "--no-summary",
        "-n0",
        "-p",
        "no:cacheprovider",
    ]
    pytest.main([*quiet, "-k", f"not {TOO_SLOW}", *options.tests], plugins=[player])
    return _report(outcomes, known)


def _chosen(module: Module, options: argparse.Namespace) -> list[Mutant]:
    line, sample = options.line, options.sample
    mutants = [mutant for mutant in module.mutants if line is None or line in mutant.text]
    if options.since is not None:
        changed = changed_lines(module.name, options.since)
        mutants = [mutant for mutant in mutants if mutant.line in changed]
    if sample is None or sample >= len(mutants):
        return mutants
    chance = random.Random(f"{options.seed} {module.name}")
    return [mutants[number] for number in sorted(chance.sample(range(len(mutants)), sample))]


def changed_lines(module: str, commit: str) -> set[int]:
    """Return the lines of the module that are new or not what they were then."""
    diff = ["git", "diff", "--unified=0", "--no-color", commit, "--", str(CORE / module)]
    said = subprocess.run(diff, capture_output=True, text=True, check=False, cwd=CORE)
    if said.returncode:
        sys.exit(f"--since {commit}: {said.stderr.strip()}")
    hunks = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", said.stdout, re.MULTILINE)
    spans = [(int(first), int(count or 1)) for first, count in hunks]
    return {number for first, count in spans for number in range(first, first + count)}


def _key(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.module, mutant.text, mutant.change


def kind_of(outcome: Outcome, known: set[tuple[str, str, str]]) -> str:
    """Return one of `KINDS`."""
    if outcome.problem is not None:
        return "not planted"
    if outcome.killer is None:
        return "equivalent" if _key(outcome.mutant) in known else "survived"
    return "not importable" if outcome.killer == IMPORT else "killed"


def _report(outcomes: Sequence[Outcome], known: set[tuple[str, str, str]]) -> int:
    """Report the results. A mutant that could not be planted counts as a survivor."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        for name in (outcome.mutant.module, "all"):
            counts[name][kind_of(outcome, known)] += 1
    for name, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        told = ", ".join(f"{count[kind]} {kind}" for kind in KINDS)
        found = count["killed"] + count["not importable"]
        meant = count.total() - count["equivalent"]
        print(f"{name}: {count.total()} mutants, {told}: {found / max(meant, 1):.1%}")
    return int(any(count["survived"] + count["not planted"] for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
