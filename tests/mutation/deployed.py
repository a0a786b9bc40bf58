"""The share of small changes in the code at AWS's edge that fast tests find.

`python -m tests.mutation.deployed [--part aws infra ...] [--module store.py ...] [--sample N]
[--seed S] [--line TEXT] [--minutes M] [--tests PATTERN ...] [--baseline FILE]`: without
`--sample`, every mutant. The parts are the adapters of AWS, the functions, the template,
`resources.py` and `limits.py`: the simulator replaces them, so their mistakes would reach users.
`--baseline` stores what the tests run, for the next call with the same code.
Survivors that are known to change nothing stand, each with its reason, in `survivors_edge.md`.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.mutation.copied import Copy, Found
from tests.mutation.edge import PARTS, EdgeModule, edge_modules
from tests.mutation.explained import Explained, explained

SURVIVORS: Final = Path(__file__).with_name("survivors_edge.md")
#: The fast tests, without those of the compiler and of JSONata, which run nothing of the edge.
SUITE: Final = (
    "tests/contract/*_test.py",
    "tests/moto/[!dr]*_test.py",
    "tests/process/*_test.py",
    "tests/security/[!d]*_test.py",
    "tests/infra/[abcgkmrst]*_test.py",
    "tests/sim/archive_test.py",
    "tests/sim/retention_test.py",
    "tests/sim/poison_test.py",
    "tests/unit/[abhlqrw]*_test.py",
    "tests/unit/c[alo]*_test.py",
    "tests/unit/[efkmps][eiorsuwx]*_test.py",
    "tests/unit/*_doc_test.py",
    "tests/unit/counts_test.py",
    "tests/unit/entry_test.py",
    "tests/unit/*_tasks_test.py",
    "tests/unit/t[hor]*_test.py",
    "tests/unit/telemetry_test.py",
    "tests/unit/visibility_test.py",
    "tests/unit/stepfunctions_[!f]*_test.py",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.deployed")
    parser.add_argument("--part", dest="parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--module", dest="modules", nargs="+", default=[])
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--line", default="", help="only mutants of lines with this text")
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--tests", nargs="+", default=SUITE, help="patterns of files of tests")
    parser.add_argument("--baseline", type=Path, help="read the run of healthy code, or store it")
    options = parser.parse_args()
    chosen = _chosen(options)
    print(f"seed {options.seed}, {len(chosen)} mutants", flush=True)
    until = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        copy = Copy(Path(folder) / "tree", options.tests)
        began = time.monotonic()
        copy.prepare(options.baseline)
        print(
            f"{len(copy.baseline.seconds)} tests on healthy code: {time.monotonic() - began:.0f} s"
        )
        if copy.baseline.failed:
            print(f"left out, since they fail without a mutant: {copy.baseline.failed}", flush=True)
        return _report(_played(copy, chosen, until))


def _chosen(options: argparse.Namespace) -> list[tuple[EdgeModule, int]]:
    everything = [
        (module, number)
        for module in edge_modules()
        if module.part in options.parts
        and (not options.modules or any(module.name.endswith(one) for one in options.modules))
        for number, mutant in enumerate(module.mutants)
        if options.line in mutant.text
    ]
    if options.sample is None or options.sample >= len(everything):
        return everything
    # In an order by chance, so that a run that was cut short is a sample, too.
    return random.Random(options.seed).sample(everything, options.sample)


def _played(copy: Copy, chosen: Sequence[tuple[EdgeModule, int]], until: float) -> list[Found]:
    known = explained(SURVIVORS)
    found = []
    for module, number in chosen:
        if time.monotonic() > until:
            print("the time is over")
            break
        began = time.monotonic()
        one = copy.play(module, number)
        found.append(one)
        kind, mutant = kind_of(one, known), one.mutant
        place = f"{mutant.module}:{mutant.line} {mutant.text}   [{mutant.change}]"
        how = f"{one.asked} tests, {time.monotonic() - began:.0f} s"
        by = f" by {one.killer}" if one.killer else ""
        print(f"{kind}{by}, {how}: {place}", flush=True)
    return found


def kind_of(found: Found, known: Explained) -> str:
    """Return "killed", "survived", or "explained" for a survivor with a row in `SURVIVORS`."""
    mutant = found.mutant
    if found.killer is not None:
        return "killed"
    is_known = (mutant.module, mutant.text, mutant.change) in known
    return "explained" if is_known else "survived"


def _report(found: Sequence[Found]) -> int:
    known = explained(SURVIVORS)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        for name in (one.module.part, "all"):
            counts[name][kind_of(one, known)] += 1
    for name in [*PARTS, "all"]:
        count = counts[name]
        told = ", ".join(f"{count[kind]} {kind}" for kind in ("killed", "survived", "explained"))
        share = count["killed"] / max(count.total(), 1)
        print(f"{name}: {count.total()} mutants, {told}: {share:.1%} found")
    return int(counts["all"]["survived"] > 0)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
