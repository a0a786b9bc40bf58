"""Bugs of parts that other programs lack: distributed Maps, jobs, activities, workers of two
deployments, the bus, logs that outlive TTL.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any

from holdfast.asl.program import TaskKind
from holdfast.core import attempt_facts, map_bounds, map_results, map_run, waits
from holdfast.core.apply import tasks as apply_tasks
from holdfast.core.bounds import Bounds
from holdfast.core.events import Event
from holdfast.core.state import Attempt, Awaiting, WaitingFor
from holdfast.runtime import children, follow_ups
from holdfast.runtime import heartbeats as stored_heartbeats
from holdfast.runtime.maintenance import sweeper
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker import recovery
from holdfast.runtime.worker.attempts import Attempts
from holdfast.runtime.worker.delivery import Delivery
from holdfast.stepfunctions import activities, tasks
from holdfast_simulator import heartbeats
from tests.builders import machine
from tests.sim.planted.kit import CORPUS, AttemptOutcome, Patch, Planted, Scenario

DISTRIBUTED = CORPUS["distributed"]
FAILING = CORPUS["distributed fails"]
JOBS = CORPUS["jobs"]
ACTIVITY = CORPUS["activity"]
SLOW_ACTIVITY = Scenario(
    "a slow activity",
    "the worker that has taken its task runs it for an hour",
    {
        "main": machine(
            {
                "weigh": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:local:0:activity:scales",
                    "TimeoutSeconds": 7_200,
                    "End": True,
                }
            }
        )
    },
    tasks={"scales": (AttemptOutcome(output=1, seconds=3_600),)},
)
LONG = CORPUS["ninety-three days"]
RETRIED = CORPUS["retry count"]


def _without_time_out(scenario: Scenario, state: str) -> Scenario:
    """Wait for ever."""
    machine: Any = scenario.machines["main"]
    fields = {"TimeoutSeconds", "HeartbeatSeconds"}
    kept = {name: value for name, value in machine["States"][state].items() if name not in fields}
    states = {**machine["States"], state: kept}
    return Scenario(
        scenario.name,
        scenario.about,
        {"main": {**machine, "States": states}},
        scenario.input,
        tasks={},
    )


def _no_facts(*_arguments: Any) -> Generator[Any, Any, list[Any]]:
    """Does nothing, and finds nothing."""
    yield from ()
    return []


def _nothing(*_arguments: Any) -> Iterator[Any]:
    yield from ()


def count_no_notices(patch: Patch) -> None:
    patch.setattr(children, "notices", _no_facts)


def turn_results_round(patch: Patch) -> None:
    true_one = map_results.transformed

    def turned(ended: Iterable[Any], transformation: Any) -> list[Any]:
        return true_one(reversed(list(ended)), transformation)

    patch.setattr(map_run, "transformed", turned)


def tolerate_one_more(patch: Patch) -> None:
    true_one = Bounds.failures_max
    patch.setattr(Bounds, "failures_max", lambda *given: true_one(*given) + 1)


def allow_any_number_at_once(patch: Patch) -> None:
    true_one = map_bounds.bounds_of
    patch.setattr(map_run, "bounds_of", lambda *given: replace(true_one(*given), concurrency=0))


def never_ask_for_jobs(patch: Patch) -> None:
    patch.setattr(Attempts, "poll", _nothing)


def ask_for_jobs_every_two_hours(patch: Patch) -> None:
    for module in (attempt_facts, apply_tasks):
        patch.setattr(module, "poll_seconds", lambda _polls: 7_200)


def leave_questions_to_the_sweeper(patch: Patch) -> None:
    true_one = Attempts.poll

    def poll(self: Attempts, program: Any, now_ms: int) -> Iterator[Any]:
        if self.delivery.is_recovering:
            yield from true_one(self, program, now_ms)

    patch.setattr(Attempts, "poll", poll)


def offer_no_activity(patch: Patch) -> None:
    def offer(*_arguments: Any) -> Generator[Any, Any, list[Any]]:
        yield from ()
        return []

    patch.setattr(follow_ups, "_offer_activity", offer)


def refuse_heartbeats(patch: Patch) -> None:
    def send_task_heartbeat(*_arguments: Any) -> Generator[Any, Any, Any]:
        yield from ()
        raise tasks._timed_out()

    patch.setattr(heartbeats, "send_task_heartbeat", send_task_heartbeat)


def keep_no_heartbeat(patch: Patch) -> None:
    def store(*_arguments: Any) -> Generator[Any, Any, bool]:
        yield from ()
        return True

    patch.setattr(stored_heartbeats, "store", store)


def tell_nobody_who_has_taken_it(patch: Patch) -> None:
    def tell(_tenant: str, _run: str, _key: str, row: Any) -> Iterator[Any]:
        yield activities._drop(row)

    patch.setattr(activities, "_tell", tell)


def count_from_the_schedule(patch: Patch) -> None:
    true_one = apply_tasks._awaiting

    def awaiting(event: Event, kind: TaskKind, target: str) -> Awaiting:
        found = true_one(event, kind, target)
        if found.timeout_seconds is None:
            return found
        return replace(found, due_ms=found.since_ms + found.timeout_seconds * 1_000)

    patch.setattr(apply_tasks, "_awaiting", awaiting)


def forget_the_parked(patch: Patch) -> None:
    def may_have_news(waiting: WaitingFor) -> bool:
        return not isinstance(waiting, Attempt) and waits.may_have_news(waiting)

    patch.setattr(sweeper, "may_have_news", may_have_news)


def tell_the_bus_once(patch: Patch) -> None:
    def look_back(delivery: Delivery, log: Log, _source: str | None) -> Iterator[Any]:
        delivery.notice_twin(log)
        yield from ()

    patch.setattr(recovery, "look_back", look_back)


def never_renew(patch: Patch) -> None:
    patch.setattr(Log, "is_aging", lambda _log, _now_ms: False)


PLANTED = (
    Planted(
        "the ends of the items of a distributed Map are not counted",
        count_no_notices,
        frozenset({"I17"}),
        DISTRIBUTED,
        rates={},
    ),
    Planted(
        "the results of a distributed Map are in another order than its items",
        turn_results_round,
        frozenset({"I13"}),
        DISTRIBUTED,
        rates={},
    ),
    Planted(
        "one item more may fail than a distributed Map tolerates",
        tolerate_one_more,
        frozenset({"I13"}),
        FAILING,
        rates={},
    ),
    Planted(
        "a distributed Map has as many children at once as it has items",
        allow_any_number_at_once,
        frozenset({"I11"}),
        DISTRIBUTED,
        rates={},
    ),
    Planted(
        "the engine does not ask whether a job has ended",
        never_ask_for_jobs,
        frozenset({"I17"}),
        JOBS,
        rates={},
    ),
    Planted(
        "a job is asked for every two hours",
        ask_for_jobs_every_two_hours,
        frozenset({"I17", "I18"}),
        JOBS,
        rates={},
    ),
    Planted(
        "a worker woken to ask for a job leaves it to the sweeper",
        leave_questions_to_the_sweeper,
        frozenset({"I18"}),
        JOBS,
        rates={},
    ),
    Planted(
        "the task of an activity is offered to no worker",
        offer_no_activity,
        frozenset({"I16"}),
        _without_time_out(ACTIVITY, "weigh"),
        rates={},
    ),
    Planted(
        "the time of an activity's task counts from its schedule",
        count_from_the_schedule,
        frozenset({"I6"}),
        ACTIVITY,
        rates={"killed before": 0.05},
    ),
    Planted(
        "the heartbeats of an activity are refused",
        refuse_heartbeats,
        frozenset({"I7"}),
        ACTIVITY,
        rates={},
    ),
    Planted(
        "no heartbeat of an activity is kept",
        keep_no_heartbeat,
        frozenset({"I7"}),
        ACTIVITY,
        rates={},
    ),
    Planted(
        "the execution is not told that a worker has taken the task of an activity",
        tell_nobody_who_has_taken_it,
        frozenset({"I17"}),
        SLOW_ACTIVITY,
        rates={},
    ),
    Planted(
        "a task that a worker did not know is never tried by another",
        forget_the_parked,
        frozenset({"I17"}),
        RETRIED,
        rates={"old": 0.5},
    ),
    Planted(
        "a worker that finds its own record tells the bus nothing",
        tell_the_bus_once,
        frozenset({"I4"}),
        DISTRIBUTED,
        rates={"killed after": 0.1},
    ),
    Planted(
        "a log is never renewed",
        never_renew,
        frozenset({"I16"}),
        LONG,
        rates={},
    ),
)
