"""The dashboard and the alarms show what the functions write, and nothing else; both ways."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import resources
from holdfast.infra.log_queries import _FLOW
from tests.infra.template import Template
from tests.measured import everything

pytestmark = pytest.mark.xdist_group("templates")
ROOT = Path(__file__).parents[2]
OPERATE = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")

#: A metric of ours with the names of its dimensions.
Name = tuple[str, tuple[str, ...]]
_SEARCH = re.compile(r"SEARCH\('\{Holdfast,([\w,]+)\} MetricName=\"(\w+)\" Stack=\"(\w+)\"'")
_SELECT = re.compile(r"SELECT SUM\((\w+)\) FROM SCHEMA\(\"Holdfast\", ([\w, ]+)\) WHERE Stack = '")
#: Words of a query that are neither of the language nor names that the query makes.
_WORD = re.compile(r"\b[A-Z]\w+")


def widgets(template: Template) -> list[dict[str, Any]]:
    [board] = template.properties("AWS::CloudWatch::Dashboard").values()
    parts = board["DashboardBody"]["Fn::Join"][1]
    body = "".join(part if isinstance(part, str) else "X" for part in parts)
    return list(json.loads(body)["widgets"])


def shown_by_expression(text: str) -> set[Name]:
    searched = {(name, tuple(by.split(","))) for by, name, _ in _SEARCH.findall(text)}
    return searched | {(name, tuple(by.split(", "))) for name, by in _SELECT.findall(text)}


def shown_on_dashboard(template: Template) -> set[Name]:
    found: set[Name] = set()
    for widget in widgets(template):
        for metric in widget["properties"].get("metrics", []):
            if metric[0] == resources.METRICS_NAMESPACE:
                dimensions = [part for part in metric[2:] if isinstance(part, str)][::2]
                found.add((metric[1], tuple(dimensions)))
            elif isinstance(metric[0], dict):
                found |= shown_by_expression(metric[0]["expression"])
    return found


def watched(template: Template) -> set[Name]:
    found: set[Name] = set()
    for alarm in template.properties("AWS::CloudWatch::Alarm").values():
        if alarm.get("Namespace") == resources.METRICS_NAMESPACE:
            found.add((alarm["MetricName"], tuple(one["Name"] for one in alarm["Dimensions"])))
        for metric in alarm.get("Metrics", []):
            found |= shown_by_expression(metric.get("Expression", ""))
    return found


def written() -> set[Name]:
    return {
        (metric["Name"], tuple(dimensions))
        for line in everything()
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", [])
        for metric in directive["Metrics"]
        for dimensions in directive["Dimensions"]
    }


def queries(template: Template) -> list[str]:
    return [one["properties"]["query"] for one in widgets(template) if one["type"] == "log"]


def test_the_functions_write_every_metric_that_is_shown_and_every_one_written_is_shown(
    chosen: Template,
) -> None:
    """The stack "Chosen" has every alarm."""
    assert shown_on_dashboard(chosen) == written()
    assert watched(chosen) <= written()


def test_the_functions_write_every_field_that_a_query_reads(template: Template) -> None:
    """And each value that is only logged is read by a query."""
    fields = {name for line in everything() for name in line} | {"StateMachine"}
    read: set[str] = set()
    for query in queries(template):
        assert _FLOW in query or "Target as Pool" in query
        own = set(re.findall(r"\bas (\w+)", query))
        read |= set(_WORD.findall(query)) - own - {"SOURCE", "X"}
    assert read <= fields
    assert read >= resources.METRICS_IN_LOGS_ONLY
    assert fields - read - {"_aws", "Stack"} == {
        # They have graphs.
        *("ExecutionsStarted", "ExecutionsEnded", "ExecutionsQuarantined", "DurableSteps"),
        *("SweepRefused", "SweepLagSeconds"),
    }


def test_every_widget_reads_the_metrics_and_the_logs_of_its_own_stack(shop: Template) -> None:
    for board in shop.properties("AWS::CloudWatch::Dashboard").values():
        text = json.dumps(board["DashboardBody"])
        name = board["DashboardName"]
        others = {"Shop-Flows", "Shop-Other"} - {name}
        assert name in text
        assert not any(other in text for other in others)


def test_every_alarm_names_its_line_of_the_runbook(chosen: Template) -> None:
    for alarm in chosen.properties("AWS::CloudWatch::Alarm").values():
        *_, line = alarm["AlarmDescription"].split(", ")
        assert "What to watch" in alarm["AlarmDescription"]
        assert f"| **{line}**" in OPERATE


def test_the_bounds_of_alarms_are_the_users(template: Template, chosen: Template) -> None:
    bounded = {"FailedExecutions", "RetryStorm", "OldestWait", "DailyCost"}

    def bounds(of: Template) -> dict[str, float]:
        alarms = of.properties("AWS::CloudWatch::Alarm")
        named = {name.removeprefix("Alarms"): alarm for name, alarm in alarms.items()}
        return {name: named[name]["Threshold"] for name in bounded & named.keys()}

    assert bounds(template) == {"FailedExecutions": 0, "RetryStorm": 500}
    assert bounds(chosen) == {
        "FailedExecutions": 3,
        "RetryStorm": 500,
        "OldestWait": 7 * 86_400,
        "DailyCost": 2.5,
    }


def test_the_alarm_of_the_cost_reads_no_more_metrics_than_cloudwatch_allows(
    chosen: Template,
) -> None:
    cost = chosen.properties("AWS::CloudWatch::Alarm")["AlarmsDailyCost"]
    expression, *metrics = cost["Metrics"]
    assert len(metrics) == 10
    assert {metric["MetricStat"]["Period"] for metric in metrics} == {86_400}
    # Metric math reads no exponents such as 6e-07.
    assert not re.search(r"\de", expression["Expression"])


def test_the_dashboard_links_to_the_logs_and_queues_of_the_stack(template: Template) -> None:
    links = widgets(template)[0]["properties"]["markdown"]
    for function in resources.FUNCTIONS:
        assert f"[{function.name}](https://X.console.aws.amazon.com/cloudwatch/" in links
    for queue in ("Work", "Single", "Starts", "Work dead letters", "Sweeper dead letters"):
        assert f"[{queue}](https://X.console.aws.amazon.com/sqs/" in links
