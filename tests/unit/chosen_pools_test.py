"""A pool that the workflow computes: docs/how-to/long-tasks.md#several-steps-on-one-host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import Worker
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.deployment import Deployment
from holdfast.errors import WorkflowError
from holdfast.local.pool_worker import PoolWorker
from holdfast.runtime.effects import Delete, Query
from holdfast.runtime.storage import keys, tables
from holdfast.testing import World, compiled
from holdfast.testing.compare import Difference
from holdfast_simulator.invariants import check, lost
from tests.unit import host_flows
from tests.unit.client_kit import _compile
from tests.unit.host_flows import DISKS, HOST, fetch, on_one_host, record, shrink
from tests.unit.pools_test import MINUTE_MS, Site

MODULE = host_flows.__name__


@pytest.fixture
def site() -> Iterator[Site]:
    DISKS.clear()
    site = Site(MODULE)
    yield site
    assert (check(site.world), lost(site.world)) == ([], [])


def work(site: Site, host: str, *, own: bool) -> bool:
    """Run one attempt on the host: from its own pool, or from the pool of all hosts."""
    deployment = Deployment.from_modules([MODULE], _compile)
    HOST[:] = [host]
    pool = host if own else "hosts"
    worker = PoolWorker(deployment, site.client, pool, name="box", tasks_of="hosts")
    return worker.run_one()


def test_the_second_step_runs_on_the_host_that_ran_the_first(site: Site) -> None:
    site.client.start(on_one_host, "film.mov", name="o1")
    assert work(site, "host-7", own=False)
    # No other host has the file, and none gets the task.
    assert not work(site, "host-8", own=True)
    assert not work(site, "host-8", own=False)
    (wait,) = site.shown("o1")["waits"]
    assert (wait["kind"], wait["pool"], wait["task"]) == ("pool", "host-7", "shrink")
    assert work(site, "host-7", own=True)
    assert site.shown("o1")["output"] == "film.mov on host-7, attempt 1"


def test_a_recovery_offers_the_task_to_the_pool_that_the_event_names(site: Site) -> None:
    site.client.start(on_one_host, "film.mov", name="o1")
    assert work(site, "host-7", own=False)
    scheduled = [one for one in site.client.history("o1") if one["type"] == "ActivityScheduled"]
    offered = [one["activityScheduledEventDetails"]["resource"] for one in scheduled]
    assert offered == ["holdfast:pool:hosts", "holdfast:pool:host-7"]
    # A worker that crashed before it offered the task would leave these rows out.
    partition = keys.pool_tasks("default", "host-7")
    for row in site.world.perform(Query(tables.MAIL, partition)):
        site.world.perform(Delete(tables.MAIL, partition, str(row["sk"])))
    site.world.perform(Delete(tables.MAIL, keys.chosen_pools("default"), "host-7"))
    assert not work(site, "host-7", own=True)
    site.later(8 * 24 * 60 * MINUTE_MS)
    assert [one["pool"] for one in site.client.pools()] == ["host-7", "hosts"]
    assert work(site, "host-7", own=True)


def test_a_retry_stays_in_the_chosen_pool(site: Site) -> None:
    site.client.start(on_one_host, "flaky.mov", name="o1")
    assert work(site, "host-7", own=False)
    assert work(site, "host-7", own=True)
    site.later(MINUTE_MS)
    assert not work(site, "host-8", own=False)
    assert work(site, "host-7", own=True)
    assert site.shown("o1")["output"] == "flaky.mov on host-7, attempt 2"


@pytest.mark.parametrize("host", ["", "host 7", "containers", "h" * 81, "a/b", "host-7\n"])
def test_a_text_that_is_no_name_fails_the_step_and_is_not_retried(site: Site, host: str) -> None:
    site.client.start(on_one_host, "film.mov", name="o1")
    assert work(site, host, own=False)
    assert site.shown("o1")["output"] == "no name"
    failed = [one for one in site.client.history("o1") if one["type"] == "EvaluationFailed"]
    details = failed[0]["evaluationFailedEventDetails"]
    assert details["location"] == "Arguments/pool"
    assert details["cause"].endswith(f"ValueError: {host!r:.100} is not the name of a pool")


def test_pools_and_doctor_show_a_chosen_pool_that_no_worker_serves(site: Site) -> None:
    site.client.start(on_one_host, "film.mov", name="o1")
    assert [one["pool"] for one in site.client.pools()] == ["hosts"]
    assert work(site, "host-7", own=False)
    (own,) = [one for one in site.client.pools() if one["pool"] == "host-7"]
    assert (own["waiting"], own["workers"]) == (1, [])
    site.later(3 * MINUTE_MS)
    (finding,) = site.client.doctor()
    assert finding["says"].endswith("shrink, pool host-7")
    assert work(site, "host-7", own=True)


def test_a_worker_of_a_chosen_pool_has_the_tasks_of_the_declared_one(site: Site) -> None:
    deployment = Deployment.from_modules([MODULE], _compile)
    worker = PoolWorker(deployment, site.client, "host-7", tasks_of="hosts")
    assert worker.tasks == ("fetch", "shrink")
    with pytest.raises(WorkflowError, match="runs on the pool host-7") as refused:
        PoolWorker(deployment, site.client, "host-7")
    assert "--tasks-of POOL" in refused.value.help


def test_both_runs_of_a_world_show_the_chosen_pool() -> None:
    world = World({fetch: ("host-7", "film.raw"), shrink: "small"})
    run = world.run(on_one_host, "film.mov")
    assert run.output == "small"
    assert [call.pool for call in run.calls] == ["hosts", "host-7"]
    assert str(run.calls[-1]).endswith("on the pool host-7")


@pytest.mark.parametrize("host", ["", "host 7", "containers", "host-7\n"])
def test_both_runs_of_a_world_fail_the_step_for_a_text_that_is_no_name(host: str) -> None:
    run = World({fetch: (host, "film.raw")}).run(on_one_host, "film.mov")
    assert [call.name for call in run.calls] == ["fetch"]
    assert run.output == "no name"


def test_a_constant_pool_of_a_call_is_named_by_the_definition() -> None:
    call: Any = shrink.options(runs_on=Worker("big"))
    assert (call.runs_on, shrink.runs_on) == (Worker("big"), Worker("hosts"))
    with pytest.raises(WorkflowError, match="which runs on no pool"):
        record.options(runs_on=Worker("big"))


def test_the_target_step_functions_refuses_a_chosen_pool() -> None:
    machine = compile_workflow(on_one_host)
    with pytest.raises(CompileErrors, match="Step Functions has no pools of workers"):
        to_step_functions(machine, Source.of(host_flows))


def test_a_world_compares_the_pools_of_both_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_pool_of", lambda _target: "hosts")
    with pytest.raises(Difference, match="on the pool hosts"):
        World({fetch: ("host-7", "film.raw"), shrink: "small"}).run(on_one_host, "film.mov")
