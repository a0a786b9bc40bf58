"""Rules of the stack as a whole: the findings of third-party checks, and rules without
exceptions.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast import limits, resources
from tests.infra.template import Template, target_of

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

RULES: dict[str, tuple[int, int]] = {
    "EventsRule": (resources.EVENT_RETRY_ATTEMPTS_MAX, resources.EVENT_RETRY_AGE_SECONDS_MAX),
    "SweepRule": (0, limits.SWEEP_SECONDS),
}


def test_cdk_nag_finds_nothing_that_was_not_acknowledged_with_a_reason(assembly: Path) -> None:
    """The synthesis runs the checks; the assembly keeps the acknowledged findings."""
    report = json.loads((assembly / "validation-report.json").read_text())
    assert report["pluginReports"] == []
    kept = (assembly / "Default.metadata.json").read_text()
    for finding in ("S1", "SMG4", "IAM5[", "L1"):
        assert f"AwsSolutions-{finding}" in kept


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_how_often_and_how_long_it_tries_and_where_the_rest_goes(
    template: Template, rule: str
) -> None:
    [target] = template.properties("AWS::Events::Rule")[rule]["Targets"]
    attempts, seconds = RULES[rule]
    assert target["RetryPolicy"] == {
        "MaximumRetryAttempts": attempts,
        "MaximumEventAgeInSeconds": seconds,
    }
    dead_letters = target_of(target["DeadLetterConfig"]["Arn"])
    assert dead_letters == {"EventsRule": "MessagingEventsDead"}.get(rule, "MessagingSweeperDead")


def test_every_rule_is_one_of_these(template: Template) -> None:
    assert template.properties("AWS::Events::Rule").keys() == RULES.keys()


def test_every_queue_of_dead_letters_has_an_alarm_and_so_has_the_quarantine(
    template: Template,
) -> None:
    queues = template.properties("AWS::SQS::Queue")
    dead = {name for name, queue in queues.items() if "RedrivePolicy" not in queue}
    watched = {
        target_of_dimension(alarm)
        for alarm in template.properties("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
    }
    assert watched == dead
    metrics = [
        one.get("MetricName") for one in template.properties("AWS::CloudWatch::Alarm").values()
    ]
    assert resources.METRIC_EXECUTIONS_QUARANTINED in metrics


def target_of_dimension(alarm: dict[str, Any]) -> str:
    [dimension] = alarm["Dimensions"]
    logical_id = dimension["Value"]["Fn::GetAtt"][0]
    return target_of({"Ref": logical_id})


def test_the_concurrency_of_a_function_is_bounded_twice(template: Template) -> None:
    """By its own reservation, and for a worker by the limit of its queue."""
    functions = template.properties("AWS::Lambda::Function")
    assert all(function["ReservedConcurrentExecutions"] > 0 for function in functions.values())
    sources = template.properties("AWS::Lambda::EventSourceMapping").values()
    at_once: Counter[str] = Counter()
    for source in sources:
        batches = source["ScalingConfig"]["MaximumConcurrency"]
        at_once[target_of(source["FunctionName"])] += batches
    assert at_once == {
        "WorkerFunctionLambda": resources.WORKER.reserved_concurrency,
        "WorkerSingleFunctionLambda": resources.WORKER_SINGLE.reserved_concurrency,
    }


def test_without_reservations_the_queues_leave_room_in_an_account_of_ten(chosen: Template) -> None:
    """The events function, the sweeper and the API have no queue that waits for them."""
    sources = chosen.properties("AWS::Lambda::EventSourceMapping")
    assert {
        name: source["ScalingConfig"]["MaximumConcurrency"] for name, source in sources.items()
    } == {
        "WorkerFunctionSource": 2,
        "WorkerFunctionStarts": 3,  # as chosen; the work has the rest of five
        "WorkerSingleFunctionSource": 2,
    }
