"""Tasks that run on a pool of workers: docs/how-to/long-tasks.md."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast import (
    Batch,
    Client,
    WaitTimeout,
    Worker,
    heartbeat,
    hours,
    per_minute,
    task,
    task_context,
)
from holdfast.api.limits import Limit
from holdfast.api.task_context import _LOCAL, running_task
from holdfast.aws.protocol import service_of
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.deployment import Deployment
from holdfast.errors import HoldfastError, RequestError, ServiceFault, WorkflowError
from holdfast.limits import CLOCK_ERROR_MS, POOL_HEARTBEAT_SECONDS
from holdfast.local.clock import VirtualClock
from holdfast.local.pool_worker import PoolWorker, Pulse
from holdfast.local.stack import deployment_of, local_stack
from holdfast.remote import pools
from holdfast.remote.connecting import Api
from holdfast.remote.pools import Handed
from holdfast.runtime.commands.pools import measure_pools
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Effect,
    Measure,
    OwnResult,
    PutIfAbsent,
    Query,
    RunTask,
    Send,
    TaskFailed,
    TaskSucceeded,
    TaskThrottled,
)
from holdfast.runtime.handed_attempts import read_attempt, result_message
from holdfast.stepfunctions.activities import Poll, look
from holdfast.testing import World, in_turn, real, takes
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import Killed
from tests.unit import pool_flows
from tests.unit.client_kit import MemoryStack, _compile
from tests.unit.dsl_kit import loaded
from tests.unit.pool_flows import SEEN, archived, converted, dubbed, film, uploaded

MODULE = pool_flows.__name__
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
TASKS = ("convert", "dub", "render", "upload")
#: A missed heartbeat, with the clocks' errors, and the second before the retry.
LAPSE_MS = POOL_HEARTBEAT_SECONDS * 1_000 + 2 * CLOCK_ERROR_MS + 5_000


@dataclass(frozen=True)
class PoolAttempt:
    token: str
    beats: bool
    effect: RunTask


class Site:
    """A stack in memory, and a worker of its pool that works when a test says so."""

    def __init__(self, module: str = MODULE) -> None:
        self.stack = MemoryStack(module)
        self.world = self.stack.world
        self._one_at_a_time = threading.Lock()  # a worker has threads, and the stack has none
        self.client = Client.of(Api(self.carry, "the test"))
        self.said: list[str] = []
        SEEN.clear()

    def carry(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        with self._one_at_a_time:
            return self.stack.carry(method, target, body)

    def worker(self, pool: str = "gpu") -> PoolWorker:
        deployment = Deployment.from_modules([MODULE], _compile)
        return PoolWorker(deployment, self.client, pool, name="box-1", say=self.said.append)

    def poll(self, tasks: tuple[str, ...] = TASKS) -> PoolAttempt | None:
        handed = self.client.perform(pools.poll("gpu", "box-1", tasks))
        if handed is None:
            return None
        return PoolAttempt(handed.token, handed.beats, read_attempt(handed.attempt).effect)

    def take(self) -> PoolAttempt:
        found = self.poll()
        assert found is not None
        return found

    def beat(self, attempt: PoolAttempt, progress: Any = None) -> bool:
        return self.client.perform(pools.heartbeat("gpu", attempt.token, progress))

    def succeed(self, attempt: PoolAttempt, output: Any = "reel") -> bool:
        return self.answer(attempt, TaskSucceeded(output))

    def answer(self, attempt: PoolAttempt, result: OwnResult) -> bool:
        told = pools.answer("gpu", attempt.token, result_message(result))
        return self.client.perform(told)

    def later(self, milliseconds: int) -> None:
        until_ms = self.world.now_ms + milliseconds
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def shown(self, execution: str) -> Any:
        return self.client.describe(execution)

    def types(self, execution: str) -> list[str]:
        events = self.client.history(execution)
        return [event["type"] for event in events if event["type"].startswith("Activity")]


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    assert (check(site.world), lost(site.world)) == ([], [])


# -- the normal case -------------------------------------------------------------------------------


def test_a_task_of_an_hour_runs_on_the_worker_that_polls(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    attempt = site.take()
    assert (attempt.effect.name, attempt.effect.arguments) == (
        "render",
        {"film": "Alien", "frames": 24},
    )
    for _ in range(60):
        site.later(MINUTE_MS)
        assert site.beat(attempt)
    assert site.succeed(attempt)
    shown = site.shown("f1")
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", "reel")
    assert site.types("f1") == ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"]


def test_the_function_runs_with_the_context_of_its_attempt(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    assert site.worker().run_one()
    assert site.shown("f1")["output"] == "Alien, 24 frames"
    assert SEEN == ["film/f1 attempt 1"]
    assert not site.worker().run_one()


def test_a_worker_of_a_mistyped_pool_names_the_one_that_was_meant(site: Site) -> None:
    with pytest.raises(WorkflowError, match="no task of these modules") as refused:
        site.worker("gpuu")
    assert refused.value.code == "HF434"
    assert refused.value.help.startswith("did you mean gpu? known: ")


def test_an_exception_is_the_error_of_the_attempt_and_is_retried_by_its_rule(site: Site) -> None:
    site.client.start(film, "Alien", -1, name="f1")
    assert site.worker().run_one()
    assert site.shown("f1")["output"] == "corrupt"
    site.client.start(uploaded, "Alien", name="u1")
    assert site.worker().run_one()
    assert not site.worker().run_one()  # the retry is not due yet
    site.later(2 * MINUTE_MS)
    assert site.worker().run_one()
    assert site.shown("u1")["output"] == "corrupt Alien"


def test_a_worker_leaves_the_tasks_that_its_code_lacks_to_another_one(site: Site) -> None:
    for number in range(12):  # more than one look reads at a time
        site.client.start(film, "Alien", 24, name=f"f{number}")
    site.client.start(converted, "Alien", name="c1")
    attempt = site.poll(("convert",))
    assert attempt is not None
    assert attempt.effect.name == "convert"
    assert attempt.beats
    assert site.poll(("convert",)) is None
    assert site.succeed(attempt)
    for _ in range(12):
        assert site.worker().run_one()
    assert site.shown("f11")["output"] == "Alien, 24 frames"


def test_each_pool_has_its_own_tasks(site: Site) -> None:
    site.client.start(archived, "Alien", name="a1")
    assert site.poll() is None
    assert site.worker("tape").run_one()
    assert site.shown("a1")["output"] == "archived Alien"
    with pytest.raises(WorkflowError, match="no task of these modules"):
        site.worker("ftp")


def test_an_activity_with_the_name_of_a_pool_has_none_of_its_tasks(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    service = service_of(site.stack.site.host, ("default", "", ""))
    poll = Poll(service, "gpu", "w1", "n1")
    assert run(look(poll, site.world.now_ms), site.world.perform) is None
    assert site.succeed(site.take())


def test_the_tasks_that_a_worker_lacks_cost_no_read_of_their_logs(site: Site) -> None:
    for number in range(25):
        site.client.start(film, "Alien", 24, name=f"f{number}")
    site.later(1_000)
    site.client.start(converted, "Alien", name="c1")
    performs, queries = site.stack.site.ports.performs, list[Query]()

    def count(effect: Effect) -> Any:
        queries.extend([effect] if isinstance(effect, Query) else [])
        return performs(effect)

    site.stack.site.ports.performs = count
    attempt = site.poll(("convert",))
    # Two pages of the pool, the pauses, and the log of the task that is taken.
    assert attempt is not None
    assert len(queries) == 4
    site.stack.site.ports.performs = performs
    assert site.succeed(attempt)
    for number in range(25):
        site.client.stop(f"f{number}")


def test_a_worker_has_each_task_of_its_pool_even_if_two_modules_have_its_name(
    site: Site, tmp_path: Path
) -> None:
    source = """
from holdfast import Worker, task

@task(runs_on=Worker("{pool}"))
def scan(film: str) -> str:
    return film
"""
    with (
        loaded(tmp_path, source.format(pool="gpu")) as one,
        loaded(tmp_path, source.format(pool="tape")) as other,
    ):
        deployment = Deployment.from_modules([one.__name__, other.__name__], _compile)
        assert PoolWorker(deployment, site.client, "tape").tasks == ("scan",)
        assert PoolWorker(deployment, site.client, "gpu").tasks == ("scan",)


# -- pauses ----------------------------------------------------------------------------------------


def test_no_worker_gets_a_task_of_a_paused_execution(site: Site) -> None:
    for name in ("f1", "f2"):
        site.client.start(film, "Alien", 24, name=name)
    site.client.pause("f1", "the film is cut again")
    assert site.succeed(site.take(), "second")
    assert site.shown("f2")["output"] == "second"
    assert site.poll() is None
    site.client.resume("f1", "it is cut")
    assert site.succeed(site.take(), "first")
    assert site.shown("f1")["output"] == "first"


@pytest.mark.parametrize("scope", [{"task": "render"}, {"workflow": "film"}, {"all": True}])
def test_no_worker_gets_a_task_that_a_pause_covers(site: Site, scope: dict[str, Any]) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    site.client.change_pause("the disks are full", paused=True, **scope)
    assert site.poll() is None
    site.client.start(converted, "Aliens", name="c1")
    others = site.poll()
    assert (others is None) == ("all" in scope)
    site.client.change_pause("there is room again", paused=False, **scope)
    site.later(MINUTE_MS)
    for _ in range(2 if others is None else 1):
        assert site.succeed(site.take())
    assert others is None or site.succeed(others)
    assert {site.shown(name)["status"] for name in ("f1", "c1")} == {"SUCCEEDED"}


# -- what goes wrong -------------------------------------------------------------------------------


def test_a_worker_whose_heartbeat_lapses_loses_the_attempt_to_the_next(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    lost_attempt = site.take()
    assert site.poll() is None
    site.later(LAPSE_MS)
    # The heartbeat and the answer of the lost worker come too late, and change nothing.
    assert not site.beat(lost_attempt)
    assert not site.succeed(lost_attempt, "of the dead")
    assert not site.answer(lost_attempt, TaskFailed("Corrupt", "of the dead"))
    second = site.take()
    assert (second.effect.attempt, second.effect.entry) == (2, lost_attempt.effect.entry)
    assert site.succeed(second)
    assert site.shown("f1")["output"] == "reel"
    assert site.types("f1").count("ActivityTimedOut") == 1


def test_the_fourth_lost_worker_ends_the_task(site: Site) -> None:
    site.client.start(converted, "Alien", name="c1")
    for number in range(1, 5):
        assert site.take().effect.attempt == number
        site.later(LAPSE_MS)
    assert site.shown("c1")["output"] == "too late"


def test_the_same_result_twice_counts_once(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    attempt = site.take()
    site.stack.works = False
    assert site.succeed(attempt)
    assert site.succeed(attempt)
    # Another result of the same attempt loses against the stored one.
    assert not site.succeed(attempt, "another")
    site.stack.works = True
    site.later(1_000)
    assert site.shown("f1")["output"] == "reel"
    assert not site.succeed(attempt)
    assert site.types("f1").count("ActivitySucceeded") == 1


def test_a_result_that_cannot_be_stored_fails_the_attempt(site: Site, monkeypatch: Any) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    worker = site.worker()
    worker.pause = lambda _: None
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    result = TaskSucceeded(deep)
    monkeypatch.setattr(Deployment, "run_task", lambda *_: result)
    assert worker.run_one()
    shown = site.shown("f1")
    assert (shown["status"], shown["error"]) == ("FAILED", "InvalidResult")


def test_a_task_that_asks_for_a_pause_fails_with_that_name(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    assert site.answer(site.take(), TaskThrottled(1_000, "too many"))
    shown = site.shown("f1")
    assert (shown["status"], shown["error"], shown["cause"]) == ("FAILED", "Throttled", "too many")


def test_the_time_out_counts_from_the_poll_and_not_from_the_wait_for_a_worker(site: Site) -> None:
    site.client.start(converted, "Alien", name="c1")
    site.later(30 * HOUR_MS)
    attempt = site.take()
    for _ in range(30):
        assert site.beat(attempt)
        site.later(MINUTE_MS)
    site.later(MINUTE_MS)
    assert not site.beat(attempt)
    assert site.shown("c1")["output"] == "too late"


def test_a_stop_reaches_the_task_at_its_next_heartbeat(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    attempt = site.take()
    assert site.beat(attempt)
    site.client.stop("f1")
    assert not site.beat(attempt)
    assert site.shown("f1")["status"] == "ABORTED"
    assert not site.succeed(attempt)


def test_a_long_task_sees_that_it_is_cancelled(site: Site, monkeypatch: Any) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    worker = site.worker()
    seen: list[bool] = []

    def until_cancelled() -> None:
        seen.append(task_context().cancelled)
        site.client.stop("f1")
        while not task_context().cancelled:
            pass
        seen.append(task_context().cancelled)

    monkeypatch.setattr(pool_flows, "MEANWHILE", [until_cancelled])
    monkeypatch.setattr("holdfast.local.pool_worker.POOL_HEARTBEAT_SECONDS", 0.01)
    # As the ASL of a task without a heartbeat of its own, but quicker.
    monkeypatch.setattr("holdfast.local.pool_worker._BEATS", 6_000)
    assert worker.run_one()
    assert seen == [False, True]
    assert "no longer waited" in site.said[-1]


def test_an_answer_is_sent_until_the_api_takes_it(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    worker = site.worker()
    faults = iter([ServiceFault("HF275", "cannot be reached"), RequestError("HF272", "a gateway")])
    paused: list[float] = []

    def unsure(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        answer = site.carry(method, target, body)
        if target.endswith("/answer") and (fault := next(faults, None)) is not None:
            raise fault
        return answer

    worker.client = Client.of(Api(unsure, "the test"))
    worker.pause = paused.append
    assert worker.run_one()
    assert paused == [0.5, 1.0]
    assert site.shown("f1")["output"] == "Alien, 24 frames"


def test_a_worker_gives_up_an_attempt_whose_token_the_api_does_not_read(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    worker, paused = site.worker(), list[float]()
    worker.pause = paused.append

    def forged(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        if target.endswith(("/answer", "/heartbeat")):
            body = json.dumps({**json.loads(body), "token": "ZGVmYXVsdA"}).encode()
        return site.carry(method, target, body)

    worker.client = Client.of(Api(forged, "the test"))
    assert worker.run_one()
    assert paused == [0.5]
    assert "no longer waited" in site.said[-1]
    site.client.stop("f1")


def test_a_lost_heartbeat_of_a_task_is_sent_again(site: Site) -> None:
    worker, pulse, told = site.worker(), Pulse(), list[str]()
    rounds = iter([False, False, True, True])
    answered = cast(threading.Event, SimpleNamespace(wait=lambda _: next(rounds)))

    def lose_the_first(_method: str, target: str, _body: bytes) -> tuple[int, bytes]:
        told.append(target)
        if len(told) == 1:
            raise ServiceFault("HF275", "cannot be reached")
        return 200, b"{}"

    worker.client = Client.of(Api(lose_the_first, "the test"))
    pulse.beat()
    worker._beat(Handed("t", {}, beats=True), 20.0, pulse, answered)
    assert told == ["/pools/gpu/heartbeat"] * 2
    assert not pulse.has_beaten.is_set()


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("kind", [PutIfAbsent, Send])
def test_a_poll_that_crashes_loses_no_task(site: Site, place: str, kind: type[Effect]) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    performs, killed = site.stack.site.ports.performs, False

    def crash_once(effect: Effect) -> Any:
        nonlocal killed
        if killed or not isinstance(effect, kind):
            return performs(effect)
        killed = True
        if place == "after":
            performs(effect)
        raise Killed

    site.stack.site.ports.performs = crash_once
    with pytest.raises(Killed):
        site.poll()
    assert killed
    tries = 0
    while (attempt := site.poll()) is None:
        tries += 1
        assert tries < 5, "the task is lost"
        site.later(MINUTE_MS // 2)
    assert site.succeed(attempt)
    assert site.shown("f1")["output"] == "reel"


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"worker": "w", "tasks": "render"}, "HF432"),
        ({"worker": "", "tasks": []}, "HF432"),
        ({"worker": "w" * 81, "tasks": []}, "HF432"),
        ({"worker": "w", "tasks": ["t"] * 501}, "HF432"),
        ({"worker": "w", "tasks": [], "more": 1}, "HF219"),
    ],
)
def test_a_malformed_poll_is_refused(site: Site, body: Any, code: str) -> None:
    status, answer = site.stack.site.request("POST", "/pools/gpu/poll", body)
    assert (status, answer["error"]["code"]) == (400, code)


def test_a_forged_token_is_refused(site: Site) -> None:
    for action in ("heartbeat", "answer"):
        more = {"result": {"f": 1, "output": 1}} if action == "answer" else {}
        body = {"token": "x", **more}
        status, answer = site.stack.site.request("POST", f"/pools/gpu/{action}", body)
        assert (status, answer["error"]["code"]) == (400, "HF432")


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "x" * 81])
def test_the_name_of_a_pool_is_short_and_plain(name: str) -> None:
    with pytest.raises(WorkflowError) as refused:
        Worker(name)
    assert refused.value.code == "HF430"


def test_a_task_of_a_pool_has_no_limits_and_no_batch() -> None:
    for more in ({"limits": [Limit("mail", rate=per_minute(5))]}, {"batch": Batch(max=5)}):
        with pytest.raises(HoldfastError) as refused:
            task(runs_on=Worker("gpu"), **more)(lambda items: items)
        assert refused.value.code == "HF431"


def test_step_functions_has_no_pools() -> None:
    with pytest.raises(CompileErrors, match="no pools of workers"):
        to_step_functions(compile_workflow(film), Source.of(pool_flows))


# -- the testing kit -------------------------------------------------------------------------------


def test_the_kit_runs_the_task_in_line_and_compares(site: Site) -> None:
    assert World({"render": real}).run(film, "Alien", 24).output == "Alien, 24 frames"
    assert World({"render": pool_flows.Corrupt("x")}).run(film, "Alien", 24).output == "corrupt"
    assert World({"upload": real}).run(uploaded, "Alien").output == "corrupt Alien"


# -- what people see -------------------------------------------------------------------------------


def announce(site: Site, slots: int = 2, tasks: tuple[str, ...] = TASKS) -> None:
    told = pools.announce("gpu", "box-1", tasks, slots=slots, busy=1, since_ms=0)
    site.client.perform(told)


def test_show_tells_where_a_task_runs_since_when_and_its_last_heartbeat(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    (waits,) = site.shown("f1")["waits"]
    known = ("kind", "pool", "task", "attempt", "state")
    assert [waits[name] for name in known] == ["pool", "gpu", "render", 1, "render"]
    assert "worker" not in waits
    assert "token" not in waits
    attempt = site.take()
    begun = site.shown("f1")["waits"][0]
    assert begun["worker"] == "box-1"
    assert begun["begun"] == begun["heartbeat"]
    site.later(MINUTE_MS // 2)
    site.beat(attempt)
    beaten = site.shown("f1")["waits"][0]
    assert beaten["begun"] == begun["begun"]
    assert beaten["heartbeat"] > begun["heartbeat"]
    assert site.succeed(attempt)


def test_show_has_the_progress_and_a_heartbeat_without_one_keeps_it(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    attempt = site.take()
    assert site.beat(attempt, {"frames": 12})
    site.later(1_000)
    assert site.beat(attempt)
    assert site.shown("f1")["waits"][0]["progress"] == {"frames": 12}
    assert site.succeed(attempt)


def test_the_next_attempt_continues_at_the_progress_of_the_failed_one(site: Site) -> None:
    site.client.start(dubbed, "Alien", 5, name="d1")
    assert site.worker().run_one()
    site.later(2_000)
    assert site.worker().run_one()
    assert site.shown("d1")["output"] == "Alien, from scene 2"


def test_an_attempt_after_a_lost_worker_has_the_progress_that_was_stored(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    assert site.take().effect.progress is None
    site.later(LAPSE_MS)
    lost_attempt = site.take()
    assert site.beat(lost_attempt, "frame 7")
    site.later(LAPSE_MS)
    attempt = site.take()
    assert (attempt.effect.attempt, attempt.effect.progress) == (3, "frame 7")
    assert site.succeed(attempt)


def test_progress_that_is_too_large_is_refused(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    attempt = site.take()
    with pytest.raises(RequestError, match="8192 is the most"):
        site.beat(attempt, "x" * 8_192)
    with running_task(_LOCAL, Pulse()), pytest.raises(ValueError, match="8192 is the most"):
        heartbeat("x" * 8_192)
    assert site.succeed(attempt)


def test_a_heartbeat_that_was_lost_does_not_lose_its_progress() -> None:
    pulse = Pulse()
    pulse.beat(1)
    taken = pulse.take_progress()
    pulse.keep_progress(taken)
    assert list(pulse.unsent) == [1]
    pulse.take_progress()
    pulse.beat(2)
    pulse.keep_progress(taken)
    assert list(pulse.unsent) == [2]


def test_pools_lists_the_workers_and_the_tasks_that_wait(site: Site) -> None:
    announce(site)
    site.client.start(film, "Alien", 24, name="f1")
    gpu, tape = site.client.pools()
    assert (gpu["pool"], gpu["waiting"], tape["pool"], tape["waiting"]) == ("gpu", 1, "tape", 0)
    (worker,) = gpu["workers"]
    shown = [worker[name] for name in ("worker", "slots", "busy", "tasks")]
    assert shown == ["box-1", 2, 1, list(TASKS)]
    assert tape["workers"] == []
    site.later(4 * MINUTE_MS)
    assert site.client.pools()[0]["workers"] == []
    announce(site)
    announce(site, slots=0)
    assert site.client.pools()[0]["workers"] == []
    assert site.succeed(site.take())


def test_each_pool_is_measured_for_the_dashboard(site: Site) -> None:
    def measured() -> dict[tuple[str, str], float]:
        found = list[Measure]()
        site.world.services.when_measured = found.append
        site.world.call(measure_pools(site.stack.front.known, "default"))
        return {(one.labels.target, one.name): one.value for one in found}

    idle = {"PoolWaiting": 0, "PoolWorkers": 0, "PoolOldestSeconds": 0}
    assert measured() == {(pool, name): 0 for pool in ("gpu", "tape") for name in idle}
    announce(site)
    site.client.start(film, "Alien", 24, name="f1")
    site.later(MINUTE_MS)
    site.client.start(film, "Brazil", 24, name="f2")
    busy = {"PoolWaiting": 2, "PoolWorkers": 1, "PoolOldestSeconds": 60}
    assert {name: measured()["gpu", name] for name in busy} == busy
    assert site.succeed(site.take())
    assert site.succeed(site.take())


def test_doctor_is_red_while_tasks_wait_and_no_worker_has_them(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    assert site.client.doctor() == []  # a worker may be starting
    site.later(3 * MINUTE_MS)
    (found,) = site.client.doctor()
    assert (found["reason"], found["name"], found["state"]) == ("POOL_UNSERVED", "f1", "render")
    assert found["says"].endswith("render, pool gpu")
    announce(site, tasks=("convert",))
    assert len(site.client.doctor()) == 1  # a worker is there, and has not this task
    announce(site)
    assert site.client.doctor() == []
    site.later(4 * MINUTE_MS)
    site.client.stop("f1")
    assert site.client.doctor() == []  # nothing waits, though the row of the offer is left


def test_doctor_is_green_while_a_pause_holds_the_tasks(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    site.client.start(converted, "Alien", name="c1")
    site.client.change_pause("the machines are moved", paused=True, task="render")
    site.client.pause("c1", "the machines are moved")
    site.later(3 * MINUTE_MS)
    assert "POOL_UNSERVED" not in [found["reason"] for found in site.client.doctor()]
    site.client.change_pause("they are moved", paused=False, task="render")
    assert "POOL_UNSERVED" in [found["reason"] for found in site.client.doctor()]
    for name in ("f1", "c1"):
        site.client.stop(name)


def test_a_worker_announces_itself_and_leaves_at_its_drain(site: Site) -> None:
    site.client.start(film, "Alien", 24, name="f1")
    worker = site.worker()
    here: list[Any] = []

    def drain(text: str) -> None:
        if "answered" in text:
            here.append(site.client.pools()[0]["workers"])
            worker.draining.set()

    worker.say = drain
    worker.run()
    assert [one["worker"] for one in here[0]] == ["box-1"]
    assert site.client.pools()[0]["workers"] == []
    assert site.shown("f1")["output"] == "Alien, 24 frames"


# -- the page --------------------------------------------------------------------------------------


def test_the_workflow_of_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "long-tasks.md"
    program, hosts, containers = re.findall(
        r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    with loaded(tmp_path, program) as module:
        reel = module.Film(key="Alien", frames=2)
        run = World({"render": real, "check_sound": real}).run(module.publish, reel)
        assert run.output == "Alien.mp4"
        late = World({"render": WaitTimeout("late")}).run(module.publish, reel)
        assert late.output == "too slow"
    with loaded(tmp_path, hosts) as module:
        files = [module.LocalFile(host=f"films-{name}", path="a.raw") for name in "ab"]
        # The first machine does not end the work in time, so another one begins again.
        shrunk = in_turn(takes(hours(4), "late"), "a.small")
        world = World({"download": in_turn(*files), "shrink": shrunk, "upload": 3})
        run = world.run(module.trailer, "https://films/a")
        assert run.output == 3
        pools_of_calls = [call.pool for call in run.calls]
        assert pools_of_calls == ["films", "films-a", "films", "films-b", "films-b"]
    with loaded(tmp_path, containers) as module:
        assert (module.mix("a"), module.grade("a")) == ("mixed a", "graded a")


# -- without a pool --------------------------------------------------------------------------------

HALF_AN_HOUR = """
from holdfast import minutes, task, workflow

ticks = []

@task(timeout=minutes(30))
def slow(name: str) -> str:
    for tick in ticks:
        tick()
    return name.upper()

@workflow
def flow(name: str) -> str:
    return slow(name)
"""


def test_a_plain_task_of_half_an_hour_runs_under_serve_alone(tmp_path: Path) -> None:
    with loaded(tmp_path, HALF_AN_HOUR) as module:
        with pytest.raises(CompileErrors, match=r"(?s)HF060.*Worker\(.*Fargate\(.*BatchJob\("):
            compile_workflow(module.flow)
        begun_ms = 1_790_000_000_000
        clock = VirtualClock(begun_ms)
        deployment = deployment_of([module.__name__])
        with local_stack(deployment, clock) as stack:
            module.ticks.append(lambda: clock.advance(29 * MINUTE_MS))
            start = {"workflow": "flow", "input": {"name": "a"}, "name": "a"}
            stack.request("POST", "/executions", json.dumps(start).encode())
            stack.pump.run_until_idle()
            shown = json.loads(stack.request("GET", "/executions/a").body)
            events = json.loads(stack.request("GET", "/executions/a/history").body)["events"]
    # The lease is as long as the task: nothing takes the attempt over meanwhile.
    (scheduled,) = [event for event in events if event["type"] == "TaskScheduled"]
    assert scheduled["holdfast"]["claim"][3] >= begun_ms + 30 * MINUTE_MS
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", "A")
