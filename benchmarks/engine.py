"""The CPU cost of the engine, as ratios in one run: `uv run python benchmarks/engine.py`.

Each figure is the median of rounds that alternate between the engine on the memory store and the
floor below it: encoding and storing one record of the same size, with no engine above. The ratio is
what stays comparable between machines; milliseconds are shown beside it.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.builders import Shop, call, chain, machine

ROUNDS = 7
EXECUTIONS = 100
CHAIN = 10
ITERATIONS = 1_000
RECORD = {"events": ["TaskStarted", "TaskSucceeded", "TaskStateExited"] * 4, "n": list(range(40))}


def chains() -> int:
    """Return durable steps: ten tasks in a row, a hundred times."""
    shop = Shop(chain(CHAIN))
    for number in range(EXECUTIONS):
        shop.start({"n": 0}, name=f"order-{number}")
    shop.world.run()
    return EXECUTIONS * CHAIN


def loop_of_tasks() -> int:
    """Return durable steps: a task and a choice, a thousand times in one execution."""
    work = call(
        "add", "again?", Arguments={"n": "{% $n %}"}, Assign={"n": "{% $states.result.n %}"}
    )
    again = {"Condition": f"{{% $n < {ITERATIONS} %}}", "Next": "work"}
    states = {
        "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "work"},
        "work": work,
        "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
        "done": {"Type": "Succeed"},
    }
    shop = Shop(machine(states))
    shop.start()
    shop.world.run()
    return ITERATIONS


def pure_loop() -> int:
    """Return transitions: a choice and a pass, a thousand times, three records in all."""
    again = {"Condition": f"{{% $n < {ITERATIONS} %}}", "Next": "count"}
    states = {
        "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "again?"},
        "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
        "count": {"Type": "Pass", "Assign": {"n": "{% $n + 1 %}"}, "Next": "again?"},
        "done": {"Type": "Succeed"},
    }
    shop = Shop(machine(states))
    shop.start()
    shop.world.run()
    return 2 * ITERATIONS


def floor() -> int:
    """Return records: encoded, compressed and put into a dictionary."""
    store = {}
    for number in range(ITERATIONS):
        store[number] = zlib.compress(json.dumps(RECORD).encode(), 6)
    return len(store)


def milliseconds(work: Callable[[], int]) -> float:
    begin = time.process_time()
    done = work()
    return (time.process_time() - begin) * 1_000 / done


def main() -> None:
    works = (floor, chains, loop_of_tasks, pure_loop)
    rounds = [[milliseconds(work) for work in works] for _ in range(ROUNDS)]
    base = statistics.median(row[0] for row in rounds)
    for column, work in enumerate(works):
        median = statistics.median(row[column] for row in rounds)
        print(f"{work.__name__:14} {median:8.4f} ms   {median / base:6.1f} x the floor")


if __name__ == "__main__":
    main()
