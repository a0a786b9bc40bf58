"""What the functions measure: lags, retries by task and error, repairs; and the lines of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import resources
from holdfast.aws.telemetry import Metrics
from holdfast.runtime.effects import Labels, Measure, TaskFailed
from holdfast_simulator.world import START_MS
from tests import measured
from tests.builders import call, machine
from tests.measured import HOUR_MS, Measured, lines_of
from tests.unit.host_kit import Context, Site, site

OPERATE = Path(__file__).parents[2] / "docs" / "how-to" / "operate.md"


def metrics_of(line: dict[str, Any]) -> dict[str, list[list[str]]]:
    """Return the dimensions of each metric that CloudWatch stores of the line."""
    found: dict[str, list[list[str]]] = {}
    for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
        assert directive["Namespace"] == resources.METRICS_NAMESPACE
        for metric in directive["Metrics"]:
            found.setdefault(metric["Name"], []).extend(directive["Dimensions"])
    return found


def test_a_failed_order_is_one_end_and_one_failure_by_workflow_task_and_error() -> None:
    shop = measured.a_failed_order()

    assert shop.rows(resources.METRIC_EXECUTIONS_FAILED) == [(1, "flow", "charge", "Declined")]
    assert shop.rows(resources.METRIC_TASK_RETRIES) == [(2, "flow", "charge", "Declined")]
    assert shop.rows(resources.METRIC_EXECUTIONS_ENDED) == [(1, "flow")]
    assert shop.rows(resources.METRIC_EXECUTIONS_STARTED) == [(1, "flow")]
    assert "4111" not in json.dumps(shop.lines)


def test_an_error_that_is_no_name_is_not_logged() -> None:
    shop = Measured(machine({"pay": call("charge")}), lambda _: TaskFailed("card 4111", "no"))
    shop.run()

    assert shop.rows(resources.METRIC_EXECUTIONS_FAILED) == [(1, "flow", "charge", "(not a name)")]
    assert "4111" not in json.dumps(shop.lines)


def test_only_ends_and_failures_are_stored_by_workflow() -> None:
    stack, workflow = ["Stack"], ["Stack", "Workflow"]
    (failed,) = (line for line in measured.a_failed_order().lines if "ExecutionsFailed" in line)
    assert metrics_of(failed)["ExecutionsFailed"] == [stack, workflow]
    for line in measured.everything():
        for name, dimensions in metrics_of(line).items():
            is_by_workflow = name in resources.METRICS_BY_WORKFLOW
            assert dimensions == ([stack, workflow] if is_by_workflow else [stack])
            assert set(line) >= {"Workflow", name} if is_by_workflow else name in line


def test_state_machines_share_one_value_of_the_dimension() -> None:
    """Their names are the callers' to choose, and CloudWatch bills each value."""
    labels = Labels(state_machine="parcels")
    (line,) = lines_of([Measure(resources.METRIC_EXECUTIONS_ENDED, 1, labels=labels)])

    assert (line["Workflow"], line["StateMachine"]) == ("(state machines)", "parcels")


def test_a_value_that_is_only_logged_is_no_metric_of_cloudwatch() -> None:
    found = {name for line in measured.everything() for name in line}
    stored = {name for line in measured.everything() for name in metrics_of(line)}

    assert found >= resources.METRICS_IN_LOGS_ONLY
    assert not stored & resources.METRICS_IN_LOGS_ONLY


def test_the_page_says_of_the_same_values_that_they_are_only_logged() -> None:
    rows = [
        line for line in OPERATE.read_text("utf-8").splitlines() if "`: only in the log" in line
    ]
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row.partition(": only")[0])}
    assert told == resources.METRICS_IN_LOGS_ONLY


def test_a_timer_that_fires_late_is_measured_from_its_due_time() -> None:
    shop = Measured(machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}}))
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.world.now_ms += 90_000
    shop.world.run()

    [(lag, *_)] = shop.rows(resources.METRIC_TIMER_LAG)
    assert 29 < lag < 33


def test_a_start_that_waits_in_its_queue_is_measured_from_its_request() -> None:
    shop = Measured(machine({"it": call("charge")}))
    shop.start()
    shop.world.now_ms += 40_000
    shop.world.run()

    [(lag, *_)] = shop.rows(resources.METRIC_SCHEDULER_LAG)
    assert 40 <= lag < 42


def test_a_lost_worker_and_a_lost_race_are_in_the_log() -> None:
    assert measured.a_lost_worker().rows(resources.METRIC_LEASES_EXPIRED) == [(1, "flow")]
    [(conflicts, workflow)] = measured.a_lost_race().rows(resources.METRIC_APPEND_CONFLICTS)
    assert (conflicts >= 1, workflow) == (True, "flow")


def test_an_operator_action_is_counted_by_its_command() -> None:
    rows = measured.a_repaired_order().rows(resources.METRIC_OPERATOR_ACTIONS)
    assert rows == [(1, "flow", "pause"), (1, "flow", "resume")]


def test_the_sweeper_measures_what_waits_and_what_is_stuck() -> None:
    shop = measured.a_stuck_order()

    [(seconds, *waited)] = shop.rows(resources.METRIC_OLDEST_WAIT)
    assert (waited, seconds >= 2 * HOUR_MS / 1_000) == (["flow", "timer", "nap"], True)
    assert shop.rows(resources.METRIC_EXECUTIONS_STUCK) == [(1, "flow")]


def test_an_invocation_writes_one_line_for_an_execution_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, lines = site(machine({"it": call("add")})), list[str]()
    metrics = found.host.metrics
    flush = Metrics.flush
    monkeypatch.setattr(Metrics, "flush", lambda self, now_ms: flush(self, now_ms, lines.append))
    found.shop.world.services.when_measured = metrics
    found.shop.start({"n": 0})
    found.work()

    (line,) = map(json.loads, lines)
    assert {name for name in line if name[0] != "_"} == {
        *("Stack", "Workflow", "ExecutionsStarted", "ExecutionsEnded", "DurableSteps"),
        "SchedulerLagSeconds",
    }
    assert len(lines[0]) < 600  # docs/how-to/operate.md has the price of a line


def test_open_executions_are_counted_by_workflow_and_kind_of_wait_every_five_minutes() -> None:
    shop = measured.open_orders()
    assert shop.rows(resources.METRIC_OPEN) == [(2, "flow", "event")]
    found, counted = Site(shop), list[int]()
    for minute in range(12):
        shop.measured.clear()
        shop.world.now_ms = START_MS + minute * 60_000
        found.host.sweeper(Context())
        if any(measure.name == resources.METRIC_OPEN for measure in shop.measured):
            counted.append(minute)
    assert counted == [0, 5, 10]
