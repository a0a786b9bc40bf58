"""The levels of testing: random seeds, and every single fault, pair and triple of faults, in
several processes.

A job is a tuple of plain values, so that another process can run it. Each job returns a `Tally`.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Final, TypeAlias

from holdfast_simulator import generator, swarm
from holdfast_simulator.faults import KINDS
from holdfast_simulator.runner import Deployed, ScheduleResult, play
from holdfast_simulator.scenarios import corpus, statemachine_scenarios
from holdfast_simulator.schedule import DrawnChoice, DrawnTape, WrittenTape
from holdfast_simulator.tally import Tally

#: One of this many schedules runs a generated program.
GENERATED_ONE_IN: Final = 10
CRASHES: Final = ("killed before", "killed after")
#: The time of a freeze in ms: until the function's time-out is long over, or until another worker
#: has received the message.
FREEZES: Final[Mapping[str, int]] = {"frozen before": 7_200_000, "frozen after": 130_000}
#: In level 1 each of these faults occurs once at every effect of every program. The second path
#: through the same machine, and each later one, gets only the faults in `AGAIN`, because its
#: effects are nearly the same.
SINGLES: Final = (
    *CRASHES,
    *FREEZES,
    "throttled",
    "answer lost",
    "not done",
    "done later",
    "sent twice",
)
AGAIN: Final = (*CRASHES, "frozen before")
#: The scenarios of the corpus whose crashes are tried in every test run, and in pairs in level 2.
CORE: Final = (
    "loop with a task",
    "block in a loop",
    "backoff with a cap",
    "the same token name twice",
    "thirty days",
    "many short waits",
    "colliding keys",
    "slow child undoes",
    "child of a child",
    "events in a loop",
)
#: Small scenarios, because three crashes in one run have very many combinations.
SMALL: Final = ("chain of tasks", "retried to success", "event")
#: The number of seeds, or of tapes, in one job.
_CHUNK: Final = 100
#: Python's garbage collector searches for cycles after this many new objects. With Python's default
#: of 700 the search takes a fifth of the time; this number costs 120 MB.
_GARBAGE: Final = 1_000_000

#: One fault: the choices on its tape.
FaultChoices: TypeAlias = tuple[DrawnChoice, ...]
LevelJob = Callable[[], Tally]


@dataclass(frozen=True, slots=True)
class Level:
    """`of`: which programs have `kinds` of fault, `at_once`, at every effect; None: all programs.
    `schedules` are random. `mark_min`: how often each mark has to be reached.
    """

    of: tuple[str, ...] | None
    kinds: tuple[str, ...]
    at_once: int
    schedules: int
    mark_min: int


LEVELS: Final = (
    Level(CORE, CRASHES, 1, 2_000, 0),
    Level(None, SINGLES, 1, 50_000, 1),
    Level(CORE, CRASHES, 2, 1_000_000, 100),
    Level(SMALL, CRASHES, 3, 10_000_000, 100),
)


# -- programs --------------------------------------------------------------------------------------


@cache
def programs(directory: Path | None) -> tuple[Deployed, ...]:
    """The corpus, and the workflows of a directory of compiled machines."""
    found = corpus() + (() if directory is None else statemachine_scenarios(directory))
    return tuple(map(Deployed, found))


def deployed_for(seed: int, directory: Path | None) -> Deployed:
    """The program that the schedule with this seed runs."""
    chance = random.Random(f"program {seed}")  # noqa: S311  # repeatable, not secret
    if chance.randrange(GENERATED_ONE_IN) == 0:
        return Deployed(generator.scenario(chance, f"generated {seed}"))
    return chance.choice(programs(directory))


def scheduled(seed: int, directory: Path | None) -> ScheduleResult:
    """Run the schedule with this seed."""
    return play(deployed_for(seed, directory), swarm.drawn(seed), DrawnTape(seed))


# -- jobs ------------------------------------------------------------------------------------------


def seeds(first: int, count: int, directory: Path | None) -> Tally:
    tally = Tally()
    for seed in range(first, first + count):
        tally.add(f"seed {seed}", scheduled(seed, directory))
    return tally


def tapes(program: int, choices: Sequence[FaultChoices], directory: Path | None) -> Tally:
    """Run the quiet schedule of one program with the faults of each tape."""
    deployed, tally = programs(directory)[program], Tally()
    for written in choices:
        name = f"{deployed.scenario.name}: {', '.join(f'{p} {n} {a}' for p, n, a in written)}"
        tally.add(name, play(deployed, EXHAUSTIVE, WrittenTape(written)))
    return tally


#: Faults may come at any time of such a run. Only the tape has faults, and after the last one
#: everything must continue within the stated time.
EXHAUSTIVE: Final = swarm.Swarm(safety_ms=400 * 86_400_000, ends_with_tape=True)


def faults_in(deployed: Deployed, kinds: Iterable[str]) -> list[FaultChoices]:
    """Return each of the kinds at each effect of the quiet schedule that it fits."""
    wanted = tuple(kinds)
    quiet = play(deployed, EXHAUSTIVE, WrittenTape(()))
    fitting = {
        effect.__name__: [kind for kind in wanted if _fits(kind, frozenset(fits))]
        for effect, fits in KINDS.items()
    }
    return [
        _written(number, kind)
        for number, effect in enumerate(quiet.effects)
        for kind in fitting[effect]
    ]


def _fits(kind: str, fits: frozenset[str]) -> bool:
    """Return True when the fault fits the effect. A freeze before a read equals a freeze after the
    preceding effect.
    """
    return kind in fits and (kind not in FREEZES or fits >= FREEZES.keys())


def _written(number: int, kind: str) -> FaultChoices:
    """Return the tape's choices for this kind at this effect."""
    choice = ("effect", number, kind)
    if kind in FREEZES:
        return choice, ("freeze", 0, swarm.FREEZES_MS.index(FREEZES[kind]))
    return (choice,)


# -- levels ----------------------------------------------------------------------------------------


def jobs_of(level: Level, first: int, schedules: int, directory: Path | None) -> Iterator[LevelJob]:
    """All jobs of a level, with so many random schedules from the first seed on."""
    yield from exhaustive(
        _indexes(level.of, directory), level.kinds, directory, at_once=level.at_once
    )
    yield from random_seeds(first, schedules, directory)


def _indexes(names: tuple[str, ...] | None, directory: Path | None) -> list[int]:
    known = [one.scenario.name for one in programs(directory)]
    return list(range(len(known))) if names is None else [known.index(name) for name in names]


def exhaustive(
    indexes: Iterable[int], kinds: Iterable[str], directory: Path | None, *, at_once: int = 1
) -> Iterator[LevelJob]:
    """Yield a job for every choice of `at_once` faults in one run."""
    kinds = tuple(kinds)
    seen: set[str] = set()
    for program in indexes:
        machine = programs(directory)[program].started.hash
        fitting = kinds if machine not in seen else [kind for kind in kinds if kind in AGAIN]
        seen.add(machine)
        single = faults_in(programs(directory)[program], fitting)
        sets = combinations(single, at_once)
        while part := [tuple(chain(*faults)) for faults in islice(sets, _CHUNK)]:
            yield _Call(tapes, (program, part, directory))


def random_seeds(first: int, count: int, directory: Path | None) -> Iterator[LevelJob]:
    for start in range(first, first + count, _CHUNK):
        yield _Call(seeds, (start, min(_CHUNK, first + count - start), directory))


@dataclass(frozen=True, slots=True)
class _Call:
    """A function with its arguments, which can be sent to another process."""

    function: Callable[..., Tally]
    arguments: tuple[object, ...]

    def __call__(self) -> Tally:
        return self.function(*self.arguments)


def run(jobs: Iterable[LevelJob], processes: int, told: Callable[[Tally], None]) -> Tally:
    """Run the jobs, several at a time. `told` gets the sum so far at intervals.

    The sum does not depend on the order in which the jobs finish.
    """
    total = Tally()
    if processes == 1:
        for job in jobs:
            total.merge(job())
            told(total)
        return total
    with ProcessPoolExecutor(processes, initializer=_rarely_collect_garbage) as pool:
        waiting = iter(jobs)
        running = [pool.submit(job) for job in islice(waiting, 4 * processes)]
        while running:
            total.merge(running.pop(0).result())
            running += [pool.submit(job) for job in islice(waiting, 1)]
            told(total)
    return total


def _rarely_collect_garbage() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE, 10, 10)


def processes_default() -> int:
    return os.cpu_count() or 1
