"""Tasks that call services, on the laptop cloud: the results and errors of a state machine.

The expected names and words are those of AWS's recorded answers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.integrations import Integrations, ServiceClients
from holdfast.local import corrections, intercept, wall
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.faults import StatesFault

REGION = "us-east-1"
NOW_MS = 1_767_225_600_000
MACHINE = f"arn:aws:states:{REGION}:123456789012:stateMachine:orders"
EXECUTION = f"arn:aws:states:{REGION}:123456789012:execution:orders:one"
METADATA = {"SdkHttpMetadata", "SdkResponseMetadata"}


def _states(operation: str, request: dict[str, Any], effect: RunTask) -> dict[str, Any]:
    """Knows one machine, and says which input it was given."""
    assert operation == "StartExecution"
    if request["stateMachineArn"] != MACHINE:
        raise StatesFault(
            "StateMachineDoesNotExist",
            f"State Machine Does Not Exist: '{request['stateMachineArn']}'",
        )
    assert request.get("input", "{}") in ('{"a":1}', "{}")
    return {"executionArn": EXECUTION, "startDate": 1_700_000_000.123}


@pytest.fixture(scope="module")
def clients() -> Iterator[ServiceClients]:
    corrections.install()
    intercept.begin(lambda: NOW_MS)
    session = wall.quiet_session()
    session.set_credentials("local", "local")
    yield ServiceClients(session, REGION, clock=lambda: NOW_MS / 1_000)
    intercept.end()


@pytest.fixture(scope="module")
def call(clients: ServiceClients) -> Callable[..., Any]:
    integrations = Integrations(clients, _states)

    def perform(name: str, arguments: Any, *, kind: Any = "service", role: Any = None) -> Any:
        effect = RunTask(
            name=name,
            kind=kind,
            arguments=arguments,
            tenant="default",
            run="r",
            run_name=None,
            workflow="w",
            entry=1,
            attempt=1,
            deadline_ms=0,
            credentials=role,
            arns=(MACHINE, EXECUTION),
        )
        return integrations.perform(effect)

    return perform


@pytest.fixture(scope="module")
def table(clients: ServiceClients) -> str:
    clients.get("dynamodb").create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return "orders"


@pytest.fixture(scope="module")
def bucket(clients: ServiceClients) -> str:
    clients.get("s3").create_bucket(Bucket="files-of-orders")
    return "files-of-orders"


@pytest.fixture
def queue(clients: ServiceClients) -> str:
    return str(clients.get("sqs").create_queue(QueueName="letters")["QueueUrl"])


def _bare(result: Any) -> Any:
    """The output without metadata, which has to be there."""
    assert isinstance(result, TaskSucceeded), result
    assert result.output.keys() >= METADATA
    return {key: value for key, value in result.output.items() if key not in METADATA}


def _received(clients: ServiceClients, queue: str) -> list[str]:
    messages = clients.get("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
    return [message["Body"] for message in messages.get("Messages", ())]


ITEM = {"id": {"S": "id1"}, "data": {"S": "Hello"}}


def test_an_optimised_call_adds_metadata_to_the_response(
    call: Callable[..., Any], table: str
) -> None:
    put = call("dynamodb:putItem", {"TableName": table, "Item": ITEM})
    assert _bare(put) == {}
    assert put.output["SdkHttpMetadata"]["HttpStatusCode"] == 200
    headers = put.output["SdkHttpMetadata"]["HttpHeaders"]
    assert put.output["SdkResponseMetadata"]["RequestId"] == headers["x-amzn-RequestId"]
    got = call("dynamodb:getItem", {"TableName": table, "Key": {"id": {"S": "id1"}}})
    assert _bare(got) == {"Item": ITEM}


def test_an_sdk_call_has_the_response_alone(call: Callable[..., Any], table: str) -> None:
    call("aws-sdk:dynamodb:putItem", {"TableName": table, "Item": ITEM})
    found = call(
        "aws-sdk:dynamodb:query",
        {
            "TableName": table,
            "KeyConditionExpression": "id = :id",
            "ExpressionAttributeValues": {":id": {"S": "id1"}},
        },
    )
    assert found == TaskSucceeded({"Count": 1, "Items": [ITEM], "ScannedCount": 1})


@pytest.mark.parametrize(
    ("target", "error", "service"),
    [
        (
            "dynamodb:putItem",
            "DynamoDB.AmazonDynamoDBException",
            (
                "(Service: AmazonDynamoDBv2; Status Code: 400; Error Code: ValidationException; "
                "Request ID: null; Proxy: null)"
            ),
        ),
        (
            "aws-sdk:dynamodb:putItem",
            "DynamoDb.DynamoDbException",
            "(Service: DynamoDb, Status Code: 400, Request ID: null) (SDK Attempt Count: 1)",
        ),
    ],
)
def test_a_missing_member_is_refused_in_the_services_words(
    call: Callable[..., Any], table: str, target: str, error: str, service: str
) -> None:
    assert call(target, {"TableName": table, "Item": None}) == TaskFailed(
        error,
        "1 validation error detected: Value null at 'item' failed to satisfy constraint: "
        f"Member must not be null {service}",
    )


@pytest.mark.parametrize(
    ("target", "arguments", "error", "words"),
    [
        (
            "events:putEvents",
            {"Entries": []},
            "EventBridge.AmazonEventBridgeException",
            (
                "Value '[]' at 'entries' failed to satisfy constraint: Member must have length "
                "greater than or equal to 1"
            ),
        ),
        (
            "events:putEvents",
            {"Entries": None},
            "EventBridge.AmazonEventBridgeException",
            "Value null at 'entries' failed to satisfy constraint: Member must not be null",
        ),
        (
            "aws-sdk:secretsmanager:getSecretValue",
            {"SecretId": ""},
            "SecretsManager.SecretsManagerException",
            (
                "Value '' at 'secretId' failed to satisfy constraint: Member must have length "
                "greater than or equal to 1"
            ),
        ),
        (
            "aws-sdk:cloudwatchlogs:createLogGroup",
            {"LogGroupName": ""},
            "CloudWatchLogs.InvalidParameterException",
            (
                "Value '' at 'logGroupName' failed to satisfy constraint: Member must have length "
                "greater than or equal to 1"
            ),
        ),
    ],
)
def test_an_empty_member_is_refused_in_the_services_words(
    call: Callable[..., Any], target: str, arguments: Any, error: str, words: str
) -> None:
    failed = call(target, arguments)
    assert failed.error == error
    assert failed.cause.startswith(f"1 validation error detected: {words} (Service: ")


def test_a_key_of_another_type_does_not_match_the_schema(
    call: Callable[..., Any], table: str
) -> None:
    failed = call("dynamodb:getItem", {"TableName": table, "Key": {"id": {"N": "1"}}})
    assert failed.error == "DynamoDB.AmazonDynamoDBException"
    assert failed.cause.startswith("The provided key element does not match the schema (Service: ")


@pytest.mark.parametrize("body", [None, ""])
def test_an_empty_message_is_refused_as_sqs_does(
    call: Callable[..., Any], queue: str, body: Any
) -> None:
    assert call("sqs:sendMessage", {"QueueUrl": queue, "MessageBody": body}) == TaskFailed(
        "SQS.AmazonSQSException",
        "The request must contain the parameter MessageBody. (Service: AmazonSQS; "
        "Status Code: 400; Error Code: MissingParameter; Request ID: null; Proxy: null)",
    )


def test_a_queue_that_is_not_there(call: Callable[..., Any], queue: str) -> None:
    failed = call("sqs:sendMessage", {"QueueUrl": queue + "x", "MessageBody": "m"})
    assert failed.error == "SQS.QueueDoesNotExistException"


def test_a_code_of_the_model_names_the_error(call: Callable[..., Any]) -> None:
    failed = call("dynamodb:putItem", {"TableName": "nowhere", "Item": ITEM})
    assert failed.error == "DynamoDB.ResourceNotFoundException"
    assert re.fullmatch(
        r"Requested resource not found \(Service: AmazonDynamoDBv2; Status Code: 400; "
        r"Error Code: ResourceNotFoundException; Request ID: \w+; Proxy: null\)",
        failed.cause,
    )


def test_a_table_name_is_checked_as_dynamodb_does(call: Callable[..., Any]) -> None:
    failed = call("dynamodb:putItem", {"TableName": "/orders", "Item": ITEM})
    assert failed.cause.startswith(
        "1 validation error detected: Value '/orders' at 'tableName' failed to satisfy "
        "constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+ (Service"
    )


def test_the_sdk_names_errors_with_a_suffix(call: Callable[..., Any], bucket: str) -> None:
    failed = call("aws-sdk:s3:getObject", {"Bucket": bucket, "Key": "none.json"})
    assert failed.error == "S3.NoSuchKeyException"
    assert re.fullmatch(
        r"The specified key does not exist. \(Service: S3, Status Code: 404, Request ID: \w+, "
        r"Extended Request ID: .+\) \(SDK Attempt Count: 1\)",
        failed.cause,
    )


@pytest.mark.parametrize(
    ("body", "written"),
    [({"Dict": "Value"}, '{"Dict":"Value"}'), (["List"], '["List"]'), (0, "0"), ("text", '"text"')],
)
def test_a_body_may_be_any_json_and_comes_back_as_text(
    call: Callable[..., Any], bucket: str, body: Any, written: str
) -> None:
    put = call("aws-sdk:s3:putObject", {"Bucket": bucket, "Key": "k", "Body": body})
    digest = hashlib.md5(written.encode()).hexdigest()
    checksum = base64.b64encode(zlib.crc32(written.encode()).to_bytes(4, "big")).decode()
    assert put == TaskSucceeded(
        {
            "ChecksumCRC32": checksum,
            "ChecksumType": "FULL_OBJECT",
            "ETag": f'"{digest}"',
            "ServerSideEncryption": "AES256",
        }
    )
    got = call("aws-sdk:s3:getObject", {"Bucket": bucket, "Key": "k"})
    assert got.output["Body"] == written
    assert got.output["ContentType"] == "text/plain; charset=UTF-8"
    assert got.output["ChecksumCRC32"] == checksum
    assert got.output["ChecksumType"] == "FULL_OBJECT"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", got.output["LastModified"])


def test_an_object_without_a_checksum_is_read_without_one(
    call: Callable[..., Any], clients: ServiceClients, bucket: str
) -> None:
    """What S3 answers without a checksum (a part of an object, an object of long ago)."""
    clients.get("s3").put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    got = call("aws-sdk:s3:getObject", {"Bucket": bucket, "Key": "k", "Range": "bytes=2-4"})
    assert got.output["Body"] == "234"
    assert "ChecksumCRC32" not in got.output


def test_an_sdk_response_without_fields_is_empty(call: Callable[..., Any]) -> None:
    assert call("aws-sdk:secretsmanager:listSecrets", {}) == TaskSucceeded({"SecretList": []})


@pytest.mark.parametrize(
    ("body", "written"), [("plain", "plain"), ({"a": [1, True]}, '{"a":[1,true]}'), (1, "1")]
)
def test_a_message_body_may_be_any_json(
    call: Callable[..., Any], clients: ServiceClients, queue: str, body: Any, written: str
) -> None:
    sent = call("sqs:sendMessage", {"QueueUrl": queue, "MessageBody": body}, kind="callback")
    assert _bare(sent).keys() == {"MD5OfMessageBody", "MessageId"}
    assert _received(clients, queue) == [written]


def test_a_notification_may_be_any_json(call: Callable[..., Any], clients: ServiceClients) -> None:
    topic = clients.get("sns").create_topic(Name="news")["TopicArn"]
    published = call("sns:publish", {"TopicArn": topic, "Message": {"a": 1}})
    assert _bare(published).keys() == {"MessageId"}


def test_events_name_the_execution_that_sent_them(
    call: Callable[..., Any], clients: ServiceClients, queue: str
) -> None:
    events = clients.get("events")
    events.put_rule(Name="all", EventPattern=json.dumps({"source": ["some.source"]}))
    arn = f"arn:aws:sqs:{REGION}:123456789012:letters"
    events.put_targets(Rule="all", Targets=[{"Id": "1", "Arn": arn}])
    entry = {"DetailType": "t", "Source": "some.source", "Detail": {"n": 1}, "Resources": ["x"]}
    sent = _bare(call("events:putEvents", {"Entries": [entry]}))
    assert sent["FailedEntryCount"] == 0
    (received,) = map(json.loads, _received(clients, queue))
    assert received["detail"] == {"n": 1}
    assert received["resources"] == ["x", MACHINE, EXECUTION]


def test_one_refused_event_fails_the_task(call: Callable[..., Any]) -> None:
    fields = {"DetailType": "t", "Source": "s", "Detail": {}}
    entries = [
        fields | {"EventBusName": "none"},
        {"DetailType": "t", "Detail": {}},
        fields | {"Detail": '"text"'},
    ]
    failed = call("events:putEvents", {"Entries": entries})
    assert failed.error == "EventBridge.FailedEntry"
    cause = json.loads(failed.cause)
    assert cause["FailedEntryCount"] == 2
    assert cause["Entries"][0].keys() == {"EventId"}
    assert cause["Entries"][1:] == [
        {
            "ErrorCode": "InvalidArgument",
            "ErrorMessage": "Parameter Source is not valid. Reason: Source is a required argument.",
        },
        {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."},
    ]


def _topic(clients: ServiceClients, name: str) -> str:
    fifo = {"FifoTopic": "true"} if "." in name else {}
    return str(clients.get("sns").create_topic(Name=name, Attributes=fifo)["TopicArn"])


@pytest.mark.parametrize(
    ("topic", "fields", "words"),
    [
        ("t.fifo", {}, "The MessageGroupId parameter is required for FIFO topics"),
        (
            "t.fifo",
            {"MessageGroupId": "g"},
            (
                "The topic should either have ContentBasedDeduplication enabled or "
                "MessageDeduplicationId provided explicitly"
            ),
        ),
        ("t", {"Message": ""}, "Empty message"),
        ("t", {"TopicArn": None}, "TopicArn or TargetArn Reason: no value for required parameter"),
        ("t", {"Subject": "s" * 101}, "Subject"),
        (
            "t",
            {"MessageStructure": "json", "Message": {"sms": "m"}},
            "Message Structure - No default entry in JSON message body",
        ),
        (
            "t",
            {"MessageStructure": "json", "Message": "m"},
            "Message Structure - JSON message body failed to parse",
        ),
        (
            "t",
            {"MessageStructure": "json", "Message": "5"},
            "Message Structure - No default entry in JSON message body",
        ),
        (
            "t.fifo",
            {"MessageStructure": "json", "Message": {"default": "m"}},
            "The MessageGroupId parameter is required for FIFO topics",
        ),
    ],
)
def test_a_topic_refuses_in_its_own_words(
    call: Callable[..., Any], clients: ServiceClients, topic: str, fields: Any, words: str
) -> None:
    arn = _topic(clients, topic)
    failed = call("sns:publish", {"TopicArn": arn, "Message": "m", **fields})
    assert failed.error == "SNS.InvalidParameterException"
    assert failed.cause.startswith(
        f"Invalid parameter: {words} (Service: AmazonSNS; Status Code: 400; "
        "Error Code: InvalidParameter; "
    )
    failed = call("sns:publish", {"TopicArn": arn + "x", "Message": "m"})
    assert failed.error == "SNS.NotFoundException"


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (
            {"DataType": "String", "StringValue": ""},
            (
                "The message attribute 'a' must contain non-empty message attribute value "
                "for message attribute type 'String'."
            ),
        ),
        (
            {"DataType": "Number", "StringValue": "x"},
            "Could not cast message attribute 'a' value to number.",
        ),
        (
            {"DataType": "Text", "StringValue": "x"},
            (
                "The message attribute 'a' has an invalid message attribute type, the set of "
                "supported type prefixes is Binary, Number, and String."
            ),
        ),
    ],
)
def test_a_topic_refuses_attributes_with_a_code_of_their_own(
    call: Callable[..., Any], clients: ServiceClients, attribute: Any, words: str
) -> None:
    fields = {
        "TopicArn": _topic(clients, "t"),
        "Message": "m",
        "MessageAttributes": {"a": attribute},
    }
    failed = call("sns:publish", fields)
    assert failed.error == "SNS.InvalidParameterValueException"
    assert failed.cause.startswith(
        f"{words} (Service: AmazonSNS; Status Code: 400; Error Code: ParameterValueInvalid; "
    )


def test_messages_of_fifo_topics_and_queues_are_numbered(
    call: Callable[..., Any], clients: ServiceClients
) -> None:
    topic, fields = _topic(clients, "t.fifo"), {"Message": "m", "MessageGroupId": "g"}
    numbers = [
        call("sns:publish", fields | {target: topic, "MessageDeduplicationId": target}).output[
            "SequenceNumber"
        ]
        for target in ("TopicArn", "TargetArn")
    ]
    assert [len(number) for number in numbers] == [20, 20]
    assert numbers == sorted(numbers)
    settings = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    made = clients.get("sqs").create_queue(QueueName="q.fifo", Attributes=settings)
    fields = {"QueueUrl": made["QueueUrl"], "MessageBody": "m", "MessageGroupId": "g"}
    assert len(call("sqs:sendMessage", fields).output["SequenceNumber"]) == 20


def test_a_queue_refuses_an_empty_attribute(call: Callable[..., Any], queue: str) -> None:
    attributes = {"a": {"DataType": "String", "StringValue": ""}}
    fields = {"QueueUrl": queue, "MessageBody": "m", "MessageAttributes": attributes}
    failed = call("sqs:sendMessage", fields)
    assert failed.error == "SQS.AmazonSQSException"
    assert failed.cause.startswith(
        "Message (user) attribute 'a' must contain a non-empty value of type 'String'. (Service: "
        "AmazonSQS; Status Code: 400; Error Code: InvalidParameterValue; "
    )


def test_secrets_are_refused_with_status_400(call: Callable[..., Any]) -> None:
    failed = call("aws-sdk:secretsmanager:getSecretValue", {"SecretId": "none"})
    assert failed.error == "SecretsManager.ResourceNotFoundException"
    assert failed.cause.startswith(
        "Secrets Manager can't find the specified secret. "
        "(Service: SecretsManager, Status Code: 400, "
    )
    for action, fields in (
        ("createSecret", {"Name": "a b", "SecretString": "s"}),
        ("getSecretValue", {"SecretId": "a b"}),
    ):
        failed = call(f"aws-sdk:secretsmanager:{action}", fields)
        assert failed.error == "SecretsManager.SecretsManagerException"
        assert failed.cause.startswith(
            "Invalid name. Must be a valid name containing alphanumeric characters, or any of "
            "the following: -/_+=.@! (Service: SecretsManager, Status Code: 400, "
        )


@pytest.mark.parametrize(
    ("target", "arguments", "error", "parameter"),
    [
        ("s3:getObject", {"Bucket": "b"}, "S3", "Key"),
        ("s3:getObject", {}, "S3", "Bucket"),
        ("lambda:getFunction", {}, "Lambda", "FunctionName"),
        ("scheduler:getSchedule", {}, "Scheduler", "Name"),
    ],
)
def test_a_request_without_a_part_of_its_path_is_not_sent(
    call: Callable[..., Any], target: str, arguments: Any, error: str, parameter: str
) -> None:
    assert call(f"aws-sdk:{target}", arguments) == TaskFailed(
        f"{error}.SdkClientException",
        f"Unable to marshall request to JSON: Parameter '{parameter}' must not be null",
    )


def test_step_functions_itself_is_answered_in_process(call: Callable[..., Any]) -> None:
    nested = {"StateMachineArn": MACHINE, "Input": {"a": 1}, "Name": "one"}
    assert _bare(call("states:startExecution", nested, kind="sync")) == {
        "ExecutionArn": EXECUTION,
        "StartDate": 1_700_000_000_123,
    }
    assert call("aws-sdk:sfn:startExecution", nested | {"Input": None}) == TaskSucceeded(
        {"ExecutionArn": EXECUTION, "StartDate": "2023-11-14T22:13:20.123Z"}
    )


def test_a_fault_of_step_functions_is_an_error_like_any_other(call: Callable[..., Any]) -> None:
    arn = MACHINE + "-gone"
    failed = call("states:startExecution", {"StateMachineArn": arn})
    assert failed.error == "StepFunctions.StateMachineDoesNotExistException"
    assert failed.cause.startswith(
        f"State Machine Does Not Exist: '{arn}' (Service: AWSStepFunctions; Status Code: 400; "
        "Error Code: StateMachineDoesNotExist; Request ID: "
    )
    failed = call("aws-sdk:sfn:startExecution", {"StateMachineArn": arn})
    assert failed.error == "Sfn.StateMachineDoesNotExistException"


def test_a_function_that_is_not_there(call: Callable[..., Any]) -> None:
    failed = call("lambda:invoke", {"FunctionName": "gone", "Payload": None})
    assert failed.error == "Lambda.ResourceNotFoundException"
    assert failed.cause.startswith(
        f"Function not found: arn:aws:lambda:{REGION}:123456789012:function:gone:$LATEST "
        "(Service: AWSLambda; Status Code: 404; Error Code: ResourceNotFoundException; Request ID: "
    )
    arn = f"arn:aws:lambda:{REGION}:123456789012:function:gone"
    assert call(arn, {}, kind="lambda").error == "Lambda.ResourceNotFoundException"


def test_a_field_that_the_action_does_not_have_cannot_start_the_task(
    call: Callable[..., Any],
) -> None:
    assert call("sqs:sendMessage", {"QueueUrl": "u", "Body": "x"}) == TaskFailed(
        "States.Runtime",
        'The Parameters \'{"QueueUrl":"u","Body":"x"}\' could not be used to start the Task: '
        '[The field "Body" is not supported by Step Functions]',
    )


def test_another_role_is_assumed_once(call: Callable[..., Any], clients: ServiceClients) -> None:
    role = "arn:aws:iam::123456789012:role/other"
    assert (
        call("aws-sdk:sts:getCallerIdentity", {}, role=role)
        .output["Arn"]
        .startswith("arn:aws:sts::123456789012:assumed-role/other/")
    )
    assert clients.get("sts", role) is clients.get("sts", role)


def test_calls_are_made_as_the_tasks_role_and_so_is_another_role_assumed(
    clients: ServiceClients,
) -> None:
    """Goal: the process's own credentials are used only to assume that one role."""
    tasks, other = (f"arn:aws:iam::123456789012:role/{name}" for name in ("tasks", "other"))
    session = wall.quiet_session()
    session.set_credentials("local", "local")
    asked: list[tuple[str, str]] = []

    def note(model: Any, params: dict[str, Any], request_signer: Any, **_: Any) -> None:
        key = request_signer._credentials.access_key
        asked.append((model.name, "own" if key == "local" else "a role's"))

    session.register("before-call", note)
    made = ServiceClients(session, REGION, tasks_role_arn=tasks, clock=lambda: NOW_MS / 1_000)
    who = [made.get("sts", role).get_caller_identity()["Arn"] for role in (None, other, tasks)]

    assert [arn.split("/")[1] for arn in who] == ["tasks", "other", "tasks"]
    assert asked == [
        ("AssumeRole", "own"),
        ("GetCallerIdentity", "a role's"),
        ("AssumeRole", "a role's"),
        ("GetCallerIdentity", "a role's"),
        ("GetCallerIdentity", "a role's"),
    ]
    assert made.credentials().access_key != "local"


def test_the_tasks_role_is_assumed_again_once_its_credentials_have_expired(
    clients: ServiceClients,
) -> None:
    now = [0.0]
    session = wall.quiet_session()
    session.set_credentials("local", "local")
    role = "arn:aws:iam::123456789012:role/tasks"
    made = ServiceClients(session, REGION, tasks_role_arn=role, clock=lambda: now[0])
    first = made.get("sqs")
    assert made.get("sqs") is first
    now[0] = float("inf")
    assert made.get("sqs") is not first


@pytest.mark.parametrize("name", ["aws-sdk:nobody:getThing", "aws-sdk:s3:getNothing", "x:y"])
def test_a_call_that_no_service_has_is_a_failure(call: Callable[..., Any], name: str) -> None:
    assert call(name, {}).error == "States.Runtime"


def test_an_endpoint_is_not_reached_from_the_laptop_cloud(call: Callable[..., Any]) -> None:
    failed = call("http:invoke", {"ApiEndpoint": "https://example.com/", "Method": "GET"})
    assert isinstance(failed, TaskFailed)
