"""`python -m tests.process --kills 1000 --freezes 200 --stalls 50 --executions 2000 --seed 1`

Real worker processes over botocore against a moto server behind one lock, killed, frozen and kept
waiting, with claims, visibility and sweeps of ten seconds. Exit status 1: something was violated;
what there is to know of it is in the folder that is named.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.process import pace

pace.shorten()

from tests.process.chaos import LAST_SECONDS  # noqa: E402
from tests.process.stack import Options  # noqa: E402
from tests.process.trial import run_trial  # noqa: E402

#: Something has to have begun when the last faults do.
SECONDS_MIN = LAST_SECONDS + 2


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    # When it is asked to end, it runs its `finally`: nothing else ends its processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for field in dataclasses.fields(options):
        print(f"{field.name} = {getattr(options, field.name)}")
    print("limits:", ", ".join(f"{name} = {value}" for name, value in pace.LIMITS.items()))
    print(f"receives before a dead letter = {pace.RECEIVES_MAX}")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-process-"))
    print(f"evidence, while it lasts: {folder}", flush=True)
    begun = time.monotonic()
    outcome = run_trial(options, folder)
    print(f"seconds in all: {time.monotonic() - begun:.0f}")
    print(f"violations: {len(outcome.violations)}")
    for what, text in outcome.violations[:100]:
        print(f"  {what}: {text}")
    if outcome.violations:
        return 1
    shutil.rmtree(folder)
    return 0


def _options(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m tests.process")
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--freezes", type=int, default=200)
    parser.add_argument("--stalls", type=int, default=50)
    parser.add_argument("--executions", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="of faults; by default one kill a second")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--singles", type=int, default=2)
    parser.add_argument("--callers", type=int, default=2)
    parser.add_argument("--redrives", type=int, default=200, help="old messages brought back")
    found = vars(parser.parse_args(arguments))
    found["seconds"] = found["seconds"] or float(max(found["kills"], SECONDS_MIN))
    if found["seconds"] < SECONDS_MIN:
        parser.error(f"--seconds: the last faults alone take long; at least {SECONDS_MIN:.0f}")
    return Options(**found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
