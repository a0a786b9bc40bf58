"""One trial: build the stack, kill and freeze its processes, judge the results."""

from __future__ import annotations

import random
import time
from bisect import bisect
from pathlib import Path
from typing import Final

from tests.process import judging
from tests.process.chaos import Chaos, Wanted, draw_faults
from tests.process.judging import Outcome
from tests.process.plan import calls_of, is_first
from tests.process.scene import root_of
from tests.process.server import STATUSES_PATH
from tests.process.stack import Options, Stack, raised

#: The time to wait for the ends, to distinguish late executions from lost ones.
PATIENCE_SECONDS: Final = 240


def run_trial(options: Options, folder: Path) -> Outcome:
    with raised(options, folder) as stack:
        outcome = Outcome()
        chaos, last_at = _do_harm(stack)
        outcome.note(dict(sorted(chaos.done.items())))
        outcome.note({"seconds of faults": round(last_at - stack.clock.begun_at)})
        _wait_for_ends(stack, last_at)
        judging.judge(stack, chaos.harms, last_at, outcome)
        judging.judge_redrive(stack, outcome)
        judging.judge_processes(stack, outcome)
        if outcome.violations:
            judging.keep(stack, outcome, folder)
        return outcome


def _do_harm(stack: Stack) -> tuple[Chaos, float]:
    """Return the faults, and the time at which the last of them was over."""
    options = stack.options
    wanted = Wanted(options.kills, options.freezes, options.stalls, options.seconds)
    draw = random.Random(f"targets {options.seed}")
    begins = [call.at_seconds for call in calls_of(stack.plan) if is_first(call.key)]

    def is_behind(moment: float) -> bool:
        answered = (answer.key for answer in stack.answers())
        return sum(map(is_first, answered)) < bisect(begins, moment)

    chaos = Chaos(stack.order, stack.roles, stack.hands, stack.server, draw, stack.clock, is_behind)
    return chaos, chaos.run(draw_faults(wanted, options.seed), options.seconds)


def _wait_for_ends(stack: Stack, last_at: float) -> None:
    """Until every call is answered and every execution and child has ended; or for a long time."""
    calls = len(calls_of(stack.plan))
    while time.time() < last_at + PATIENCE_SECONDS:
        statuses = stack.asked(STATUSES_PATH)
        roots = {root_of(partition) for partition in statuses}
        are_over = len(roots) >= len(stack.plan) and "RUNNING" not in statuses.values()
        if are_over and len({answer.key for answer in stack.answers()}) == calls:
            return
        time.sleep(1)
