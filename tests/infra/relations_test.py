"""Relations between values of the templates: each must hold whatever a deployment has chosen."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from holdfast import limits, resources
from tests.infra.template import Template, as_list, construct_name

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

DAY = 86_400
SQS_RETENTION_SECONDS_MAX = 14 * DAY
#: CloudWatch measures the depth of an idle queue up to a quarter of an hour late.
LATE_METRIC_SECONDS = 900
FUNCTION = "AWS::Lambda::Function"
QUEUE = "AWS::SQS::Queue"
ALARM = "AWS::CloudWatch::Alarm"
RULE = "AWS::Events::Rule"
TABLE = "AWS::DynamoDB::Table"


@pytest.fixture(params=["default", "chosen", "shop"])
def any_template(
    request: pytest.FixtureRequest, template: Template, chosen: Template, shop: Template
) -> Template:
    return {"default": template, "chosen": chosen, "shop": shop}[request.param]


def referred(template: Template, kind: str, value: Any) -> dict[str, Any]:
    """Return the properties of the resource of this kind to which an intrinsic refers."""
    match value:
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            resource = template.document["Resources"][name]
        case {"Fn::Join": ["", [inner, *_]]} | {"Fn::Select": [_, {"Fn::Split": [_, inner]}]}:
            return referred(template, kind, inner)
        case _:
            raise AssertionError(value)
    properties: dict[str, Any] = resource["Properties"]
    if resource["Type"] in {"AWS::Lambda::Alias", "AWS::Lambda::Version"}:
        return referred(template, kind, properties["FunctionName"])
    assert resource["Type"] == kind
    return properties


def sources(template: Template) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Return each event source with its queue and its function."""
    return [
        (
            source,
            referred(template, QUEUE, source["EventSourceArn"]),
            referred(template, FUNCTION, source["FunctionName"]),
        )
        for source in template.properties("AWS::Lambda::EventSourceMapping").values()
    ]


def test_a_message_stays_hidden_for_longer_than_its_function_runs(any_template: Template) -> None:
    found = sources(any_template)
    assert len(found) in {3, 6}
    for _, queue, function in found:
        assert queue["VisibilityTimeout"] > function["Timeout"]


def test_a_function_with_a_queue_outlasts_the_longest_attempt_and_the_write_of_its_result(
    any_template: Template,
) -> None:
    for _, _, function in sources(any_template):
        assert function["Timeout"] >= limits.INLINE_TIMEOUT_SECONDS_MAX + 60


def test_messages_outlive_an_outage_of_two_weeks_and_no_dead_letter_ends_before_its_source(
    any_template: Template,
) -> None:
    for _, queue, _ in sources(any_template):
        letters = referred(any_template, QUEUE, queue["RedrivePolicy"]["deadLetterTargetArn"])
        assert queue["MessageRetentionPeriod"] == SQS_RETENTION_SECONDS_MAX
        assert letters["MessageRetentionPeriod"] >= queue["MessageRetentionPeriod"]


def test_an_event_and_a_failed_sweep_are_kept_until_an_alarm_has_seen_them(
    any_template: Template,
) -> None:
    alarms = any_template.properties(ALARM).values()
    for alarm in alarms:
        if alarm.get("MetricName") != "ApproximateNumberOfMessagesVisible":
            continue
        queue = referred(any_template, QUEUE, alarm["Dimensions"][0]["Value"])
        seen_seconds = alarm["Period"] * alarm["EvaluationPeriods"] + LATE_METRIC_SECONDS
        assert queue["MessageRetentionPeriod"] > seen_seconds


def test_redelivery_of_a_work_message_lasts_for_an_hour(any_template: Template) -> None:
    for _, queue, _ in sources(any_template):
        receives = queue["RedrivePolicy"]["maxReceiveCount"]
        assert receives * limits.VISIBILITY_SECONDS >= 3_600
        assert receives > limits.TAKEOVERS_MAX + 1


def test_a_dead_letter_is_hidden_for_longer_than_the_sweep_that_handles_it(
    any_template: Template,
) -> None:
    sweepers = [
        function["Timeout"]
        for function in any_template.properties(FUNCTION).values()
        if function["Handler"] == "functions.sweeper.app.handler"
    ]
    for _, queue, _ in sources(any_template):
        letters = referred(any_template, QUEUE, queue["RedrivePolicy"]["deadLetterTargetArn"])
        assert max(sweepers) < letters["VisibilityTimeout"] <= limits.SWEEP_SECONDS


def test_a_function_is_never_throttled_by_its_own_event_sources(any_template: Template) -> None:
    batches: dict[str, int] = {}
    capped: dict[str, int] = {}
    for source, _, function in sources(any_template):
        name = json.dumps(function["LoggingConfig"])
        most = source["ScalingConfig"]["MaximumConcurrency"]
        assert 2 <= most <= 1_000  # Lambda refuses other values
        batches[name] = batches.get(name, 0) + most
        capped[name] = function.get("ReservedConcurrentExecutions", batches[name])
    assert all(batches[name] <= capped[name] for name in batches)


def test_a_batch_that_waits_for_more_messages_is_one_that_sqs_can_deliver(
    any_template: Template,
) -> None:
    for source, _, _ in sources(any_template):
        # More than ten messages need a window of time, which would delay every task.
        assert 1 <= source["BatchSize"] <= limits.SQS_BATCH_ENTRIES_MAX
        assert "MaximumBatchingWindowInSeconds" not in source


def test_every_time_to_live_is_the_attribute_that_the_engine_writes(any_template: Template) -> None:
    for table in any_template.properties("AWS::DynamoDB::Table").values():
        assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
        assert "StreamSpecification" not in table


def test_blobs_outlive_the_logs_that_refer_to_them(any_template: Template) -> None:
    needed = limits.RECORD_RETENTION_SECONDS + limits.RECORD_AGING_SECONDS + 2 * DAY
    buckets = any_template.of_type("AWS::S3::Bucket")
    for name, bucket in buckets.items():
        if not name.endswith(("StorageBlobs", "StorageArchive")):
            continue
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]:
            assert rule["Status"] == "Enabled", name
            assert rule.get("ExpirationInDays", 10_000) * DAY > needed, name
            if "Prefix" in rule:
                assert rule["Prefix"] == resources.CACHE_BLOBS_PREFIX
                continue
            assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
            assert rule.keys() <= {"ExpirationInDays", "AbortIncompleteMultipartUpload", "Status"}


def test_a_sweep_ends_before_the_next_and_its_alarm_waits_for_more_than_one(
    any_template: Template,
) -> None:
    for name, rule in any_template.properties("AWS::Events::Rule").items():
        if rule.get("ScheduleExpression") is None:
            continue
        assert rule["ScheduleExpression"] == "rate(1 minute)", name
        assert rule["State"] == "ENABLED"
        for target in rule["Targets"]:
            function = referred(any_template, FUNCTION, target["Arn"])
            assert function["Timeout"] < limits.SWEEP_SECONDS
    lags = [
        alarm
        for alarm in any_template.properties(ALARM).values()
        if alarm.get("MetricName") == "SweepLagSeconds"
    ]
    assert lags
    for lag in lags:
        assert lag["Threshold"] >= 3 * limits.SWEEP_SECONDS
        assert lag["Period"] == limits.SWEEP_SECONDS
        assert lag["EvaluationPeriods"] > 1  # one missing sweep is no alarm
        assert lag["TreatMissingData"] == "breaching"
        assert lag["ComparisonOperator"] == "GreaterThanThreshold"


def test_an_alarm_never_evaluates_less_than_its_metric_is_written(any_template: Template) -> None:
    for name, alarm in any_template.properties(ALARM).items():
        if "Alarms" not in name:
            continue  # of the user's own
        periods = [alarm["Period"]] if "Period" in alarm else []
        periods += [one["Period"] for one in alarm.get("Metrics", []) if "Period" in one]
        # The functions write a metric once a minute at most.
        assert all(period % 60 == 0 for period in periods), name
        spans = [period * alarm["EvaluationPeriods"] for period in periods]
        assert all(span <= DAY for span in spans), name  # CloudWatch refuses more
        assert alarm["ComparisonOperator"].startswith("GreaterThan"), name
        assert alarm["AlarmDescription"].startswith("Holdfast"), name
        assert "Runbook: docs/how-to/operate.md, What to watch, " in alarm["AlarmDescription"]


def test_a_group_of_logs_is_kept_for_at_least_a_month_and_not_for_ever(
    any_template: Template,
) -> None:
    for name, group in any_template.properties("AWS::Logs::LogGroup").items():
        assert 30 <= group["RetentionInDays"] <= 400, name


def test_an_api_answers_before_api_gateway_gives_up(any_template: Template) -> None:
    for function in any_template.properties(FUNCTION).values():
        if function["Handler"] == "functions.api.app.handler":
            assert function["Timeout"] < 30
    integrations = any_template.properties("AWS::ApiGatewayV2::Integration").values()
    assert integrations
    for integration in integrations:
        assert integration["PayloadFormatVersion"] == "2.0"  # the form that the routes read
        assert "TimeoutInMillis" not in integration


def test_whatever_a_function_writes_to_its_dead_letters_it_may_send(any_template: Template) -> None:
    roles = any_template.of_type("AWS::IAM::Role")
    for function in any_template.properties(FUNCTION).values():
        if "DeadLetterConfig" not in function:
            continue
        letters = function["DeadLetterConfig"]["TargetArn"]
        role = roles[construct_name(function["Role"]["Fn::GetAtt"][0])]["Properties"]
        assert any(
            "sqs:SendMessage" in as_list(statement["Action"])
            and letters in as_list(statement["Resource"])
            for policy in role["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
        )


def test_no_right_is_given_on_everything_but_to_the_network(any_template: Template) -> None:
    for name, role in any_template.properties("AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                actions = as_list(statement["Action"])
                assert not any("*" in action for action in actions), name
                if "*" in as_list(statement["Resource"]):
                    assert all(action.startswith("ec2:") for action in actions), name


def test_a_message_becomes_a_dead_letter_long_before_it_expires(any_template: Template) -> None:
    """In a standard queue a dead letter keeps the time at which it was sent. So the deliveries and
    the delay must leave most of the retention to the sweeper.
    """
    for _, queue, _ in sources(any_template):
        tried = queue["RedrivePolicy"]["maxReceiveCount"] * queue["VisibilityTimeout"]
        assert tried + limits.SQS_DELAY_SECONDS_MAX < queue["MessageRetentionPeriod"] / 2


def test_an_alarm_on_age_allows_a_delay_and_one_delivery_and_leaves_time_to_act(
    any_template: Template,
) -> None:
    ages = alarms_on(any_template, "ApproximateAgeOfOldestMessage")
    assert len(ages) == len(sources(any_template))
    for _, alarm, queue in ages:
        usual = queue["VisibilityTimeout"] + limits.SQS_DELAY_SECONDS_MAX
        assert usual <= alarm["Threshold"] < queue["MessageRetentionPeriod"] / 10


def test_a_dead_letter_that_a_sweep_works_off_raises_no_alarm(any_template: Template) -> None:
    drained = [
        queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        for _, queue, _ in sources(any_template)
    ]
    depths = alarms_on(any_template, "ApproximateNumberOfMessagesVisible")
    assert {*drained} < {name for name, _, _ in depths}
    for name, alarm, letters in depths:
        seconds = alarm["Period"] * alarm["EvaluationPeriods"]
        if name in drained:
            # The sweep may miss one round, and a letter whose sweep crashed is hidden until then.
            longest = 2 * limits.SWEEP_SECONDS + letters["VisibilityTimeout"]
            assert longest < seconds <= 900, name
        else:
            assert seconds == limits.SWEEP_SECONDS
        assert alarm["Threshold"] == 0


def alarms_on(template: Template, metric: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the logical id of the queue, the alarm and the queue of each alarm on this metric."""
    return [
        (
            alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0],
            alarm,
            referred(template, QUEUE, alarm["Dimensions"][0]["Value"]),
        )
        for alarm in template.properties(ALARM).values()
        if alarm.get("MetricName") == metric
    ]


def test_what_a_rule_could_not_deliver_is_kept_for_longer_than_it_tries(
    any_template: Template,
) -> None:
    for name, rule in any_template.properties(RULE).items():
        for target in rule["Targets"]:
            retries = target["RetryPolicy"]
            # EventBridge's bounds.
            assert 60 <= retries["MaximumEventAgeInSeconds"] <= DAY, name
            assert 0 <= retries["MaximumRetryAttempts"] <= 185, name
            if "ScheduleExpression" in rule:
                # A late sweep must not run beside the next one.
                assert retries["MaximumEventAgeInSeconds"] <= limits.SWEEP_SECONDS
                assert retries["MaximumRetryAttempts"] == 0
            else:
                assert retries["MaximumEventAgeInSeconds"] == DAY
            if "DeadLetterConfig" in target:
                letters = referred(any_template, QUEUE, target["DeadLetterConfig"]["Arn"])
                kept = letters["MessageRetentionPeriod"]
                assert kept > 5 * retries["MaximumEventAgeInSeconds"], name


def test_a_failed_sweep_is_not_tried_again_beside_the_next(any_template: Template) -> None:
    """Lambda tries an asynchronous call again by itself, whatever the rule says."""
    tried_once = {
        json.dumps(one["FunctionName"]): one["MaximumEventAgeInSeconds"]
        for one in any_template.properties("AWS::Lambda::EventInvokeConfig").values()
        if one["MaximumRetryAttempts"] == 0
    }
    swept = {
        json.dumps({"Ref": target["Arn"]["Fn::GetAtt"][0]})
        for rule in any_template.properties(RULE).values()
        for target in rule["Targets"]
        if "ScheduleExpression" in rule
    }
    assert tried_once == dict.fromkeys(swept, limits.SWEEP_SECONDS)


def test_what_invokes_a_function_has_a_permission_for_that_very_function(
    any_template: Template,
) -> None:
    """A permission of the function does not hold for its alias, and the reverse."""
    permitted = {
        (one["Principal"], json.dumps(one["FunctionName"]))
        for one in any_template.properties("AWS::Lambda::Permission").values()
        if one["Action"] == "lambda:InvokeFunction"
        # Any account could otherwise use it.
        and any_template.document["Resources"].keys() & names_in(one["SourceArn"])
    }
    by_rules = {
        ("events.amazonaws.com", json.dumps(target["Arn"]))
        for rule in any_template.properties(RULE).values()
        for target in rule["Targets"]
        if "Function" in json.dumps(target["Arn"])
    }
    by_apis = {
        ("apigateway.amazonaws.com", json.dumps(one["IntegrationUri"]))
        for one in any_template.properties("AWS::ApiGatewayV2::Integration").values()
    }
    assert permitted == by_rules | by_apis


def names_in(value: Any) -> set[str]:
    """Return the logical ids to which a value refers."""
    return set(re.findall(r'"(?:Ref|Fn::GetAtt)": \[?"(\w+)"', json.dumps(value)))


def test_every_alarm_reads_a_metric_by_the_dimension_under_which_it_is_written(
    any_template: Template,
) -> None:
    stacks = {
        function["Environment"]["Variables"][resources.ENV_STACK]
        for function in any_template.properties(FUNCTION).values()
    }
    metrics = [
        metric
        for alarm in any_template.properties(ALARM).values()
        for metric in (
            alarm,
            *(one.get("MetricStat", {}).get("Metric", {}) for one in alarm.get("Metrics", ())),
        )
        if "MetricName" in metric
    ]
    for metric in metrics:
        dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        match metric["Namespace"]:
            case resources.METRICS_NAMESPACE:
                assert dimensions.pop(resources.METRICS_DIMENSION) in stacks
                if metric["MetricName"] in resources.METRICS_BY_WORKFLOW:
                    dimensions.pop(resources.METRICS_WORKFLOW_DIMENSION, None)
            case "AWS/SQS":
                queue = dimensions.pop("QueueName")
                assert queue["Fn::GetAtt"][1] == "QueueName"
                referred(any_template, QUEUE, queue)
            case "AWS/Lambda":
                referred(any_template, FUNCTION, dimensions.pop("FunctionName"))
            case "AWS/DynamoDB":
                referred(any_template, TABLE, dimensions.pop("TableName"))
                assert dimensions.pop("GlobalSecondaryIndexName", "list") == "list"
            case other:
                raise AssertionError(other)
        assert not dimensions, metric


def test_the_expiry_of_an_item_is_no_part_of_a_key_or_of_the_list(any_template: Template) -> None:
    for table in any_template.properties(TABLE).values():
        expiry = table["TimeToLiveSpecification"]["AttributeName"]
        indexes = table.get("GlobalSecondaryIndexes", [])
        keys = [one["AttributeName"] for one in table["KeySchema"]]
        assert expiry not in [one["AttributeName"] for one in table["AttributeDefinitions"]]
        for index in indexes:
            assert expiry not in index["Projection"]["NonKeyAttributes"]
            # A record without the list's attributes is not in the list.
            assert not {one["AttributeName"] for one in index["KeySchema"]} & {*keys}


def test_the_functions_leave_an_account_its_hundred_unreserved_places(
    any_template: Template,
) -> None:
    """Lambda refuses reservations that leave fewer (Lambda quotas; an account has 1,000)."""
    reserved = [
        function.get("ReservedConcurrentExecutions", 0)
        for function in any_template.properties(FUNCTION).values()
    ]
    assert sum(reserved) <= 900


def test_a_grant_on_the_api_names_routes_that_it_has(any_template: Template) -> None:
    for kind in ("AWS::IAM::Policy", "AWS::IAM::Role"):
        for arn in granted_routes(any_template.properties(kind)):
            method, _, path = arn.partition("$default/")[2].partition("/")
            pattern = re.compile(re.escape(f"{method} /{path}").replace(r"\*", ".+"))
            routes = (re.sub(r"\{name\}", "gpu", route) for route in resources.ROUTES)
            assert any(pattern.fullmatch(route) for route in routes), arn


def granted_routes(found: dict[str, dict[str, Any]]) -> list[str]:
    documents = [
        document
        for one in found.values()
        for document in [
            one.get("PolicyDocument"),
            *(p["PolicyDocument"] for p in one.get("Policies", ())),
        ]
        if document is not None
    ]
    return [
        arn["Fn::Join"][1][-1]
        for document in documents
        for statement in document["Statement"]
        if statement["Action"] == "execute-api:Invoke"
        for arn in as_list(statement["Resource"])
    ]


def test_a_rule_on_questions_reads_the_events_of_its_own_holdfast(shop: Template) -> None:
    patterns = [
        rule["EventPattern"]
        for rule in shop.properties(RULE).values()
        if rule.get("EventPattern", {}).get("source") == [resources.QUESTION_SOURCE]
    ]
    assert len(patterns) == 2
    publishers = {
        function["Environment"]["Variables"][resources.ENV_STACK]
        for function in shop.properties(FUNCTION).values()
        if function["Environment"]["Variables"].get(resources.ENV_QUESTION_EVENTS) == "on"
    }
    assert [pattern["detail"]["stack"] for pattern in patterns] == [[*publishers]] * 2
