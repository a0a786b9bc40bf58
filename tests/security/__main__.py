"""Generated bad input, in full.

`python -m tests.security [--class NAME] [--cases N] [--seed S] [--first I]`: without `--class`,
every class; without `--cases`, the number of a full run.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import resource
import time
from pathlib import Path
from typing import Final

from tests.security.cases import FULL_CASES, GENERATORS, run_generated

#: Of address space: a case that wants more gets a MemoryError, which is a finding.
MEMORY_BYTES_MAX: Final = 2 * 2**30


def main() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name != "__main__":
            importlib.import_module(f"tests.security.{module.name}")
    parser = argparse.ArgumentParser(prog="python -m tests.security")
    parser.add_argument("--class", dest="name", choices=sorted(GENERATORS))
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    total = 0
    for name in [options.name] if options.name else sorted(GENERATORS):
        began = time.monotonic()
        count = FULL_CASES[name] if options.cases is None else options.cases
        tally = run_generated(name, count, options.seed, first=options.first)
        total += tally.cases
        print(
            f"{name}: {tally.cases:,} cases, {tally.refused:,} refused, "
            f"{tally.accepted:,} accepted, worst {tally.worst_seconds * 1_000:.1f} ms "
            f"(case {tally.worst_number}), {time.monotonic() - began:.0f} s",
            flush=True,
        )
    print(f"{total:,} cases of seed {options.seed}, nothing found")


if __name__ == "__main__":
    main()
