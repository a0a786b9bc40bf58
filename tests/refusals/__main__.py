"""`python -m tests.refusals --programs N --seed S`: N candidates of each kind."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.refusals.runs import KINDS, run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=sorted(KINDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in [options.kind] if options.kind else sorted(KINDS):
            counts, broken = run(kind, options.seed, options.programs, Path(folder))
            print(f"{kind}: {dict(counts)}", flush=True)
            for one in broken:
                print(f"\n{one}", flush=True)


if __name__ == "__main__":
    main()
