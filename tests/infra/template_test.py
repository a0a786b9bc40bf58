"""The template of the stack, without AWS: kept data, bounds, retries, alarms and rights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import limits, resources
from tests.infra.template import TOPIC_ARN, Template, construct_name, target_of

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

DEAD_LETTERS = {
    "MessagingWorkDead",
    "MessagingSingleDead",
    "MessagingStartsDead",
    "MessagingEventsDead",
    "MessagingSweeperDead",
}


def test_tables_are_on_demand_recoverable_and_expire_their_items(template: Template) -> None:
    tables = template.properties("AWS::DynamoDB::Table")
    assert tables.keys() == {"StorageExecutions", "StorageMail"}
    for table in tables.values():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
        assert table["DeletionProtectionEnabled"] is True


def test_tables_have_the_keys_that_the_engine_writes(template: Template) -> None:
    tables = template.properties("AWS::DynamoDB::Table")
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    executions, mail = tables["StorageExecutions"], tables["StorageMail"]
    assert executions["KeySchema"] == mail["KeySchema"] == keys
    assert attribute_types(executions) == {"pk": "S", "sk": "N", "lp": "S", "ls": "S"}
    assert attribute_types(mail) == {"pk": "S", "sk": "S"}
    assert "GlobalSecondaryIndexes" not in mail
    [index] = executions["GlobalSecondaryIndexes"]
    assert resources.EXECUTIONS.index is not None
    assert index["IndexName"] == "list"
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["lp", "ls"]
    projected = ["nm", "wf", "st", "df", "en", "er", "mn", "mv", "ma", "rd"]
    projected += ["pa", "pr", "wt", "ws"]
    assert list(resources.EXECUTIONS.index.projected) == projected
    assert index["Projection"] == {
        "ProjectionType": "INCLUDE",
        "NonKeyAttributes": list(resources.EXECUTIONS.index.projected),
    }


def test_history_values_and_secret_outlive_the_stack(template: Template) -> None:
    kept = {
        **template.of_type("AWS::DynamoDB::Table"),
        **template.of_type("AWS::S3::Bucket"),
        **template.of_type("AWS::SecretsManager::Secret"),
    }
    assert len(kept) == 4
    for name, resource in kept.items():
        assert resource["DeletionPolicy"] == "Retain", name
        assert resource["UpdateReplacePolicy"] == "Retain", name


def test_the_bucket_is_private_encrypted_and_refuses_plain_http(template: Template) -> None:
    [bucket] = template.properties("AWS::S3::Bucket").values()
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    [policy] = template.properties("AWS::S3::BucketPolicy").values()
    assert refuses_plain_http(policy["PolicyDocument"], "s3:*")


def test_with_an_archive_only_cached_results_expire_and_its_bucket_outlives_the_stack(
    template: Template, chosen: Template
) -> None:
    def lifetimes(found: Template) -> list[list[tuple[str | None, int | None]]]:
        return [
            [
                (rule.get("Prefix"), rule.get("ExpirationInDays"))
                for rule in rules["LifecycleConfiguration"]["Rules"]
            ]
            for rules in found.properties("AWS::S3::Bucket").values()
        ]

    unlimited = (None, None)
    assert lifetimes(template) == [[(None, 180)]]
    assert sorted(lifetimes(chosen), key=len) == [[unlimited], [unlimited, (".cache/", 180)]]
    kept = chosen.of_type("AWS::S3::Bucket").values()
    assert {resource["DeletionPolicy"] for resource in kept} == {"Retain"}


def test_every_queue_is_encrypted_and_refuses_plain_http(template: Template) -> None:
    queues = template.properties("AWS::SQS::Queue")
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    policies = template.properties("AWS::SQS::QueuePolicy").values()
    guarded = {
        target_of(policy["Queues"][0])
        for policy in policies
        if refuses_plain_http(policy["PolicyDocument"], "sqs:*")
    }
    assert guarded == queues.keys()


@pytest.mark.parametrize(
    ("name", "shape", "function"),
    [
        ("Work", resources.WORK, resources.WORKER),
        ("Single", resources.SINGLE, resources.WORKER_SINGLE),
        ("Starts", resources.STARTS, resources.WORKER),
    ],
)
def test_a_work_queue_redelivers_a_stated_number_of_times_and_then_gives_up(
    template: Template, name: str, shape: resources.Queue, function: resources.LambdaFunction
) -> None:
    queue = template.properties("AWS::SQS::Queue")[f"Messaging{name}"]
    redrive = queue["RedrivePolicy"]
    assert target_of(redrive["deadLetterTargetArn"]) == f"Messaging{name}Dead"
    assert redrive["maxReceiveCount"] == shape.receives_max
    assert queue["VisibilityTimeout"] == shape.visibility_seconds
    assert queue["VisibilityTimeout"] > function.timeout_seconds
    assert queue["MessageRetentionPeriod"] == shape.retention_seconds


@pytest.mark.parametrize(
    ("source_id", "shape", "batches"),
    [
        # Together what the function may have at once: starts get a third of it.
        ("WorkerFunctionSource", resources.WORK, 34),
        ("WorkerFunctionStarts", resources.STARTS, 16),
        ("WorkerSingleFunctionSource", resources.SINGLE, 5),
    ],
)
def test_a_worker_takes_batches_reports_failures_and_is_never_throttled_by_its_own_cap(
    template: Template, source_id: str, shape: resources.Queue, batches: int
) -> None:
    source = template.properties("AWS::Lambda::EventSourceMapping")[source_id]
    assert source["BatchSize"] == shape.batch_size
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["ScalingConfig"] == {"MaximumConcurrency": batches}
    assert target_of(source["EventSourceArn"]) == f"Messaging{shape.name.capitalize()}"
    assert (
        target_of(source["FunctionName"]) == f"{source_id.partition('Function')[0]}FunctionLambda"
    )


def test_functions_are_the_five_of_resources_with_their_bounds(template: Template) -> None:
    functions = template.properties("AWS::Lambda::Function")
    found = {
        (
            function["Description"].removeprefix("Holdfast "),
            function["Handler"],
            function["Timeout"],
            function["MemorySize"],
            function["ReservedConcurrentExecutions"],
        )
        for function in functions.values()
    }
    assert found == {
        (
            shape.name,
            f"functions.{shape.module}.app.handler",
            shape.timeout_seconds,
            shape.memory_mb,
            shape.reserved_concurrency,
        )
        for shape in resources.FUNCTIONS
    }


def test_functions_run_python_3_13_on_arm64_and_log_to_a_bounded_group(template: Template) -> None:
    groups = template.properties("AWS::Logs::LogGroup")
    for name, function in template.properties("AWS::Lambda::Function").items():
        assert function["Runtime"] == "python3.13"
        assert function["Architectures"] == ["arm64"]
        assert (
            groups[target_of(function["LoggingConfig"]["LogGroup"])]
            == groups[name.removesuffix("Lambda") + "Log"]
        )
    assert all(group["RetentionInDays"] == 30 for group in groups.values())


def test_lambda_does_not_stop_the_loops_that_executions_are(template: Template) -> None:
    for name, function in template.properties("AWS::Lambda::Function").items():
        assert function.get("RecursiveLoop") == "Allow", name


@pytest.mark.parametrize("variable", [resources.ENV_SECRET_ID, resources.ENV_ACCOUNT])
def test_only_functions_that_sign_tokens_have_the_secret_and_the_account(
    template: Template, variable: str
) -> None:
    told = {
        name
        for name, function in template.properties("AWS::Lambda::Function").items()
        if variable in function["Environment"]["Variables"]
    }
    assert told == {"ApiFunctionLambda", "WorkerFunctionLambda", "WorkerSingleFunctionLambda"}


def test_the_secret_is_made_by_aws_and_long(template: Template) -> None:
    [secret] = template.properties("AWS::SecretsManager::Secret").values()
    assert secret["GenerateSecretString"]["PasswordLength"] == 64


def test_every_function_has_the_names_of_modules_tables_bucket_and_queues(
    template: Template,
) -> None:
    names = {
        resources.ENV_EXECUTIONS_TABLE: "StorageExecutions",
        resources.ENV_MAIL_TABLE: "StorageMail",
        resources.ENV_BLOBS_BUCKET: "StorageBlobs",
        resources.ENV_WORK_QUEUE_URL: "MessagingWork",
        resources.ENV_SINGLE_QUEUE_URL: "MessagingSingle",
        resources.ENV_STARTS_QUEUE_URL: "MessagingStarts",
    }
    for function in template.properties("AWS::Lambda::Function").values():
        variables = function["Environment"]["Variables"]
        assert {key: target_of(variables[key]) for key in names} == names
        assert variables[resources.ENV_MODULES].startswith("statemachines.")


def test_only_the_sweeper_has_the_names_of_the_dead_letter_queues(template: Template) -> None:
    names = {
        resources.ENV_WORK_DLQ_URL: "MessagingWorkDead",
        resources.ENV_SINGLE_DLQ_URL: "MessagingSingleDead",
        resources.ENV_STARTS_DLQ_URL: "MessagingStartsDead",
    }
    for name, function in template.properties("AWS::Lambda::Function").items():
        variables = function["Environment"]["Variables"]
        told = {key: target_of(variables[key]) for key in names if key in variables}
        assert told == (names if name == "SweeperFunctionLambda" else {})


def test_the_sweeper_has_the_rate_of_starts_and_stores_it_for_the_others(
    template: Template,
) -> None:
    name = resources.ENV_STARTS_PER_SECOND
    functions = template.properties("AWS::Lambda::Function")
    found = {one: shape["Environment"]["Variables"].get(name) for one, shape in functions.items()}
    assert {one: rate for one, rate in found.items() if rate} == {"SweeperFunctionLambda": "1000"}


def test_an_event_is_retried_for_a_day_and_then_kept(template: Template) -> None:
    rule = template.properties("AWS::Events::Rule")["EventsRule"]
    assert rule["EventPattern"] == {"detail-type": [resources.EVENT_DETAIL_TYPE]}
    assert target_of(rule["EventBusName"]) == "MessagingBus"
    [target] = rule["Targets"]
    assert target_of(target["Arn"]) == "EventsFunctionLambda"
    assert target_of(target["DeadLetterConfig"]["Arn"]) == "MessagingEventsDead"
    assert target["RetryPolicy"] == {
        "MaximumRetryAttempts": resources.EVENT_RETRY_ATTEMPTS_MAX,
        "MaximumEventAgeInSeconds": resources.EVENT_RETRY_AGE_SECONDS_MAX,
    }


def test_the_sweeper_runs_every_minute_and_a_late_sweep_is_dropped(template: Template) -> None:
    rule = template.properties("AWS::Events::Rule")["SweepRule"]
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert limits.SWEEP_SECONDS == 60
    [target] = rule["Targets"]
    assert target_of(target["Arn"]) == "SweeperFunctionLambda"
    assert target_of(target["DeadLetterConfig"]["Arn"]) == "MessagingSweeperDead"
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 0
    [invoke] = template.properties("AWS::Lambda::EventInvokeConfig").values()
    assert target_of(invoke["FunctionName"]) == "SweeperFunctionLambda"
    assert invoke["MaximumRetryAttempts"] == 0


def test_an_asynchronous_call_that_fails_for_good_is_kept(template: Template) -> None:
    # EventBridge's dead letters cover delivery only: a handler that raises is Lambda's to report.
    kept = {
        name: target_of(function["DeadLetterConfig"]["TargetArn"])
        for name, function in template.properties("AWS::Lambda::Function").items()
        if "DeadLetterConfig" in function
    }
    assert kept == {
        "EventsFunctionLambda": "MessagingEventsDead",
        "SweeperFunctionLambda": "MessagingSweeperDead",
    }


def test_every_route_asks_for_an_iam_signature(template: Template) -> None:
    routes = template.properties("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes} == set(resources.ROUTES)
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}


def test_every_route_asks_for_a_token_when_an_issuer_is_given(chosen: Template) -> None:
    found = chosen.properties("AWS::ApiGatewayV2::Route").values()
    routes = [route for route in found if route["AuthorizationType"] != "NONE"]
    assert {route["RouteKey"] for route in routes} == set(resources.ROUTES)
    assert {route["AuthorizationType"] for route in routes} == {"JWT"}
    [name] = chosen.of_type("AWS::ApiGatewayV2::Authorizer")
    assert {target_of(route["AuthorizerId"]) for route in routes} == {name}
    [authorizer] = chosen.properties("AWS::ApiGatewayV2::Authorizer").values()
    assert authorizer["JwtConfiguration"] == {
        "Audience": ["holdfast"],
        "Issuer": "https://issuer.example",
    }


def test_only_the_forms_of_signed_links_need_no_authoriser_and_they_are_throttled(
    chosen: Template,
) -> None:
    routes = chosen.of_type("AWS::ApiGatewayV2::Route").items()
    of_all = {name: one["Properties"]["RouteKey"] for name, one in routes}
    open_to_all = {
        name: one["Properties"]["RouteKey"]
        for name, one in routes
        if one["Properties"]["AuthorizationType"] == "NONE"
    }
    assert sorted(open_to_all.values()) == ["GET /forms/{token}", "POST /forms/{token}"]
    assert {*of_all.values()} == {*resources.ROUTES, *resources.FORM_ROUTES}
    [stage] = chosen.of_type("AWS::ApiGatewayV2::Stage").values()
    settings = stage["Properties"]["RouteSettings"]
    assert settings.keys() == {*resources.FORM_ROUTES}
    for bound in settings.values():
        assert 0 < bound["ThrottlingRateLimit"] <= bound["ThrottlingBurstLimit"] < 100
    # API Gateway refuses settings of routes that are not there yet.
    assert open_to_all.keys() <= {construct_name(one) for one in stage["DependsOn"]}


def test_the_functions_that_make_links_know_the_address_of_the_forms(
    template: Template, chosen: Template
) -> None:
    [url] = {
        json.dumps(function["Environment"]["Variables"][resources.ENV_FORMS_URL])
        for name, function in chosen.properties("AWS::Lambda::Function").items()
        if name.removesuffix("FunctionLambda") in {"Worker", "WorkerSingle", "Api"}
    }
    assert "ApiHttpApi" in url
    for function in template.properties("AWS::Lambda::Function").values():
        assert resources.ENV_FORMS_URL not in function["Environment"]["Variables"]


def test_the_api_is_throttled_and_logs_neither_paths_nor_bodies(template: Template) -> None:
    [stage] = template.properties("AWS::ApiGatewayV2::Stage").values()
    assert stage["StageName"] == "$default"
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0
    assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] > 0
    fields = json.loads(stage["AccessLogSettings"]["Format"]).values()
    assert "$context.routeKey" in fields
    assert not {"$context.path", "$context.http.path"} & set(fields)
    assert not json.dumps(stage["AccessLogSettings"]["DestinationArn"]).endswith(':*"')


def test_alarms_watch_each_dead_letter_queue_the_oldest_messages_and_the_sweep(
    template: Template,
) -> None:
    alarms = template.properties("AWS::CloudWatch::Alarm")
    watched = {
        construct_name(alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0])
        for alarm in alarms.values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
    }
    assert watched == DEAD_LETTERS
    ages = {
        construct_name(alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]): alarm["Threshold"]
        for alarm in alarms.values()
        if alarm.get("MetricName") == "ApproximateAgeOfOldestMessage"
    }
    assert ages.keys() == {"MessagingWork", "MessagingSingle", "MessagingStarts"}
    assert min(ages.values()) > limits.SQS_DELAY_SECONDS_MAX + resources.WORKER.timeout_seconds
    assert len(alarms) == len(DEAD_LETTERS) + len(ages) + 6


def test_a_silent_sweeper_raises_the_alarm(template: Template) -> None:
    lag = template.properties("AWS::CloudWatch::Alarm")["AlarmsSweepLag"]
    assert lag["MetricName"] == "SweepLagSeconds"
    assert lag["TreatMissingData"] == "breaching"


def test_a_quarantined_execution_raises_an_alarm(template: Template) -> None:
    quarantined = template.properties("AWS::CloudWatch::Alarm")["AlarmsQuarantined"]
    assert quarantined["MetricName"] == "ExecutionsQuarantined"
    assert (quarantined["Threshold"], quarantined["EvaluationPeriods"]) == (0, 1)


def test_alarms_read_the_metrics_of_this_stack_as_the_functions_write_them(
    template: Template,
) -> None:
    functions = template.properties("AWS::Lambda::Function").values()
    assert {
        function["Environment"]["Variables"][resources.ENV_STACK] for function in functions
    } == {"Default"}
    own = [
        (alarm["Namespace"], alarm["Dimensions"])
        for alarm in template.properties("AWS::CloudWatch::Alarm").values()
        if not alarm.get("Namespace", "AWS/").startswith("AWS/")
    ]
    assert own == [("Holdfast", [{"Name": "Stack", "Value": "Default"}])] * 5


def test_alarms_notify_the_topic_that_was_chosen(template: Template, chosen: Template) -> None:
    for name, alarm in chosen.properties("AWS::CloudWatch::Alarm").items():
        assert alarm["AlarmActions"] == [TOPIC_ARN]
        # The alarm of a single event is quiet a minute later, although nothing has been repaired by
        # then.
        events = {"AlarmsQuarantined", "AlarmsFailedExecutions", "AlarmsOldestWait"}
        is_state = name not in events
        assert alarm.get("OKActions", []) == ([TOPIC_ARN] if is_state else [])
    for alarm in template.properties("AWS::CloudWatch::Alarm").values():
        assert "AlarmActions" not in alarm


def test_the_dashboard_asks_the_questions_of_an_on_call(template: Template) -> None:
    [dashboard] = template.properties("AWS::CloudWatch::Dashboard").values()
    body = json.loads(flattened(dashboard["DashboardBody"]))
    texts = [one["properties"]["markdown"] for one in body["widgets"] if one["type"] == "text"]
    assert texts[1:] == [
        "## Is work flowing?",
        "## What waits, for what, and how long?",
        "## What fails, and with which error?",
        "## Which limit binds?",
        "## What does it cost today?",
        "## What did people and crashes change?",
    ]
    shown = json.dumps(body)
    for metric in (
        "ExecutionsStarted",
        "ExecutionsEnded",
        "ExecutionsFailed",
        "DurableSteps",
        "SweepLagSeconds",
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesVisible",
    ):
        assert f'"{metric}"' in shown


def test_a_sweep_that_failed_once_raises_no_alarm_for_long(template: Template) -> None:
    dead = template.properties("AWS::SQS::Queue")["MessagingSweeperDead"]
    assert dead["MessageRetentionPeriod"] == 1_800


def test_a_small_account_can_switch_reserved_concurrency_off(chosen: Template) -> None:
    for function in chosen.properties("AWS::Lambda::Function").values():
        assert "ReservedConcurrentExecutions" not in function
        assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["x86_64"])


def test_the_functions_have_the_sizes_that_the_deployment_chooses(chosen: Template) -> None:
    functions = chosen.properties("AWS::Lambda::Function")
    assert functions["WorkerFunctionLambda"]["MemorySize"] == 1_024
    assert functions["WorkerSingleFunctionLambda"]["MemorySize"] == (
        resources.WORKER_SINGLE.memory_mb
    )
    assert functions["ApiFunctionLambda"]["Timeout"] == 10
    sources = chosen.properties("AWS::Lambda::EventSourceMapping")
    batches = {
        (source["BatchSize"], source["ScalingConfig"]["MaximumConcurrency"])
        for source in sources.values()
    }
    assert batches == {
        (4, resources.WORK.batches_unreserved),
        (4, resources.STARTS.batches_unreserved),
        (1, resources.SINGLE.batches_unreserved),
    }
    groups = chosen.properties("AWS::Logs::LogGroup").values()
    assert {group["RetentionInDays"] for group in groups} == {400}


def test_the_outputs_are_those_of_the_command_line_and_the_operator(
    template: Template, chosen: Template
) -> None:
    stored = {"ExecutionsTable", "MailTable", "BlobsBucket", "SigningSecret", "EventsDeadLetters"}
    outputs = {"ApiUrl", "BusName", "TasksRole", "PythonTaskRoles"} | stored
    assert template.document["Outputs"].keys() == outputs
    of_choices = {"SecretsKeyArn", "StorageKeyArn", "ArchiveBucket"}
    assert chosen.document["Outputs"].keys() == outputs | of_choices


def test_everything_that_can_be_tagged_is(template: Template) -> None:
    for kind in ("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Lambda::Function"):
        for properties in template.properties(kind).values():
            assert {"Key": "application", "Value": "holdfast"} in properties["Tags"]


@pytest.mark.slow
def test_cfn_lint_finds_nothing(template: Template, chosen: Template) -> None:
    # W3005 is a dependency that CDK states twice.
    program = str(Path(sys.executable).with_name("cfn-lint"))
    done = subprocess.run(
        [program, "--ignore-checks", "W3005", "--template", template.path, chosen.path],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "")


def attribute_types(table: dict[str, Any]) -> dict[str, str]:
    return {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in table["AttributeDefinitions"]
    }


def refuses_plain_http(document: dict[str, Any], actions: str) -> bool:
    return any(
        statement["Effect"] == "Deny"
        and statement["Action"] == actions
        and statement["Principal"] == {"AWS": "*"}
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in document["Statement"]
    )


def flattened(value: Any) -> str:
    """A joined string with every intrinsic in it replaced by a word."""
    if isinstance(value, str):
        return value
    return "".join(part if isinstance(part, str) else "x" for part in value["Fn::Join"][1])
