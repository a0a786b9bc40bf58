"""`serve` as one endpoint of AWS: boto3's clients of several services speak to it over HTTP."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import socket
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import holdfast
from holdfast.errors import RequestError
from holdfast.integrations import Integrations
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of

pytestmark = pytest.mark.xdist_group("endpoint")

ROLE = "arn:aws:iam::123456789012:role/any"
Client = Callable[[str], Any]
TARGET = "AWSStepFunctions.ListActivities"


@pytest.fixture(scope="module")
def here() -> Iterator[str]:
    with serving(deployment_of([]), port=0) as served:
        yield served.url


@pytest.fixture(scope="module")
def client(here: str) -> Client:
    config = Config(
        inject_host_prefix=False,
        retries={"total_max_attempts": 1},
        s3={"addressing_style": "path"},
        signature_version=None,
    )

    def make(service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=here,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=config,
        )

    return make


def send(here: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    """A request as given -> status and body."""
    address = urlsplit(here)
    assert address.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


# -- services --------------------------------------------------------------------------------------


def test_an_object_of_any_bytes_comes_back_as_it_was(client: Client) -> None:
    s3, content = client("s3"), bytes(range(256)) * 20_000
    s3.create_bucket(Bucket="objects")
    s3.put_object(Bucket="objects", Key="a/b c?ü", Body=content, Metadata={"kind": "test"})
    found = s3.get_object(Bucket="objects", Key="a/b c?ü")
    assert found["Body"].read() == content
    assert found["Metadata"] == {"kind": "test"}
    assert s3.head_object(Bucket="objects", Key="a/b c?ü")["ContentLength"] == len(content)
    assert [item["Key"] for item in s3.list_objects_v2(Bucket="objects")["Contents"]] == ["a/b c?ü"]


def test_a_presigned_url_has_the_rights_of_its_signer(client: Client) -> None:
    s3 = client("s3")
    s3.create_bucket(Bucket="presigned")
    s3.put_object(Bucket="presigned", Key="k", Body=b"content")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "presigned", "Key": "k"})
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"content"


@pytest.mark.parametrize("transfer", ["aws-chunked", "chunked"])
def test_a_body_in_frames_is_stored_without_them(client: Client, here: str, transfer: str) -> None:
    s3 = client("s3")
    s3.create_bucket(Bucket="framed")
    scope = "Credential=any/20300101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    signed = {"Authorization": f"AWS4-HMAC-SHA256 {scope}"}
    if transfer == "aws-chunked":
        framed = b"5;chunk-signature=0\r\nHello\r\n0;chunk-signature=0\r\nx-amz-trailer:1\r\n\r\n"
        signed |= {
            "Content_Encoding": "aws-chunked",
            "x_amz_content_sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        }
    else:
        framed = b"3\r\nHel\r\n2;note\r\nlo\r\n0\r\n\r\n"
        signed |= {"Transfer_Encoding": "chunked"}
    assert send(here, "PUT", "/framed/k", framed, **signed)[0] == 200
    assert s3.get_object(Bucket="framed", Key="k")["Body"].read() == b"Hello"


def test_a_refusal_of_a_service_has_its_own_code(client: Client) -> None:
    for service, operation, request, code in (
        ("s3", "get_object", {"Bucket": "nowhere", "Key": "k"}, "NoSuchBucket"),
        ("dynamodb", "describe_table", {"TableName": "none"}, "ResourceNotFoundException"),
        ("secretsmanager", "get_secret_value", {"SecretId": "x"}, "ResourceNotFoundException"),
        ("iam", "get_role", {"RoleName": "none"}, "NoSuchEntity"),
        ("lambda", "invoke", {"FunctionName": "none"}, "ResourceNotFoundException"),
    ):
        with pytest.raises(ClientError) as refused:
            getattr(client(service), operation)(**request)
        assert code_of(refused) == code


def test_a_rule_of_the_bus_brings_events_to_a_queue_whose_url_is_this_endpoint(
    client: Client, here: str
) -> None:
    sqs, events = client("sqs"), client("events")
    url = sqs.create_queue(QueueName="from-bus")["QueueUrl"]
    assert url.startswith(f"{here}/")
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    events.put_rule(Name="all", EventPattern=json.dumps({"source": ["shop"]}))
    events.put_targets(Rule="all", Targets=[{"Id": "1", "Arn": arn["QueueArn"]}])
    events.put_events(Entries=[{"Source": "shop", "DetailType": "sold", "Detail": '{"n": 1}'}])
    [message] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert json.loads(message["Body"])["detail"] == {"n": 1}


def test_services_that_need_no_more_than_a_call(client: Client) -> None:
    assert client("sts").get_caller_identity()["Account"] == "123456789012"
    assert client("sns").create_topic(Name="t")["TopicArn"].endswith(":123456789012:t")
    client("logs").create_log_group(logGroupName="/group")
    assert client("logs").describe_log_groups(logGroupNamePrefix="/group")["logGroups"]
    client("secretsmanager").create_secret(Name="s", SecretString="hidden")
    assert client("secretsmanager").get_secret_value(SecretId="s")["SecretString"] == "hidden"


def test_a_service_that_is_not_there_says_so(client: Client) -> None:
    with pytest.raises(ClientError) as refused:
        client("chatbot").get_account_preferences()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 501


def test_a_stand_in_of_a_service_may_fail_and_the_caller_gets_an_error_all_the_same(
    here: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A form for a bucket whose fields are none: moto falls over it."""
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=a/20300101/us-east-1/s3/aws4_request"}
    assert send(here, "POST", "/bucket?x", b"nonsense", **signed) == (501, b"")
    assert "what plays s3.us-east-1.amazonaws.com here failed" in caplog.text


def test_a_target_without_a_signature_is_no_object(here: str) -> None:
    status, answer = send(here, "POST", "/", b"{}", X_Amz_Target="ListActivities")
    assert (status, json.loads(answer)["__type"]) == (400, "UnknownOperationException")


# -- functions -------------------------------------------------------------------------------------


def packed(**files: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, source in files.items():
            archive.writestr(f"{name}.py", source)
    return content.getvalue()


@pytest.fixture
def function(client: Client) -> Iterator[Callable[..., Any]]:
    """Yield create(source, …) -> call(event, …) -> Invoke's response, its payload read."""
    functions, made = client("lambda"), list[str]()

    def create(source: str, *, handler: str = "handler.handler", **settings: Any) -> Any:
        name = f"function-{len(made)}"
        files = settings.pop("files", {})
        functions.create_function(
            FunctionName=name,
            Runtime=settings.pop("Runtime", "python3.12"),
            Handler=handler,
            Role=ROLE,
            Code={"ZipFile": packed(handler=source, **files)},
            **settings,
        )
        made.append(name)

        def call(event: Any, **options: Any) -> Any:
            payload = event if isinstance(event, bytes) else json.dumps(event).encode()
            answer = functions.invoke(FunctionName=name, Payload=payload, **options)
            return {**answer, "Payload": answer["Payload"].read().decode()}

        return call

    yield create
    for name in made:
        functions.delete_function(FunctionName=name)


def test_a_function_answers_as_the_python_runtime_does(function: Any) -> None:
    source = "def handler(event, context):\n    return {'b': [1, 2], 'a': event, 'ü': None}\n"
    answer = function(source)({"x": 1.5})
    assert answer["Payload"] == '{"b": [1, 2], "a": {"x": 1.5}, "ü": null}'
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert "FunctionError" not in answer


@pytest.mark.parametrize(("kind", "status"), [("Event", 202), ("DryRun", 204)])
def test_a_call_that_awaits_no_result_names_no_executed_version(
    function: Any, kind: str, status: int
) -> None:
    call = function("def handler(event, context):\n    return event\n")
    answer = call({"x": 1}, InvocationType=kind)
    assert (answer["StatusCode"], answer["Payload"]) == (status, "")
    assert "ExecutedVersion" not in answer


def test_an_exception_of_a_function_reads_as_on_aws(function: Any) -> None:
    source = "import deep\ndef handler(event, context):\n    deep.dig(event)\n"
    deep = "def dig(event):\n    raise KeyError('gold')\n"
    answer = function(source, files={"deep": deep})({})
    request_id = answer["ResponseMetadata"]["RequestId"]
    assert answer["FunctionError"] == "Unhandled"
    assert answer["Payload"] == json.dumps(
        {
            "errorMessage": "'gold'",
            "errorType": "KeyError",
            "requestId": request_id,
            "stackTrace": [
                '  File "/var/task/handler.py", line 3, in handler\n    deep.dig(event)\n',
                "  File \"/var/task/deep.py\", line 2, in dig\n    raise KeyError('gold')\n",
            ],
        }
    )


@pytest.mark.parametrize(
    ("source", "settings", "kind", "words"),
    [
        (
            "import nothing_here\n",
            {},
            "Runtime.ImportModuleError",
            "No module named 'nothing_here'",
        ),
        ("def handler(:\n", {}, "Runtime.UserCodeSyntaxError", "Syntax error in module 'handler'"),
        ("x = 1\n", {}, "Runtime.HandlerNotFound", "'handler' missing on module 'handler'"),
        ("x = 1\n", {"handler": "other.x"}, "Runtime.ImportModuleError", "'other'"),
        (
            "def handler(event, context):\n    return object()\n",
            {},
            "Runtime.MarshalError",
            "Object of type object is not JSON serializable",
        ),
        ("x = 1\n", {"Runtime": "nodejs20.x"}, "Runtime.InvalidRuntime", "nodejs20.x"),
        (
            "import time\ndef handler(event, context):\n    time.sleep(30)\n",
            {"Timeout": 1},
            "Sandbox.Timedout",
            "Task timed out after 1.00 seconds",
        ),
    ],
)
def test_the_messages_of_the_runtime_about_a_function(
    function: Any, source: str, settings: dict[str, Any], kind: str, words: str
) -> None:
    answer = function(source, **settings)({})
    error = json.loads(answer["Payload"])
    assert (answer["FunctionError"], error["errorType"]) == ("Unhandled", kind)
    assert words in error["errorMessage"]


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (
            b"abc",
            (
                "Unrecognized token 'abc': was expecting (JSON String, Number, Array, Object or "
                "token 'null', 'true' or 'false')"
            ),
        ),
        (b'{"a":', "Unexpected end-of-input within/between Object entries"),
    ],
)
def test_a_payload_that_is_not_json_reaches_no_function(
    function: Any, payload: bytes, problem: str
) -> None:
    call = function("def handler(event, context):\n    return event\n")
    with pytest.raises(ClientError) as caught:
        call(payload)
    found = caught.value.response
    assert found["Error"]["Code"] == "InvalidRequestContentException"
    assert found["ResponseMetadata"]["HTTPStatusCode"] == 400
    said, _, place = found["Error"]["Message"].partition("\n at ")
    prefix = "Could not parse request body into json: Could not parse payload into json: "
    assert said == prefix + problem
    assert place.startswith("[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` ")
    assert place.endswith(f"disabled); line: 1, column: {len(payload) + 1}]")


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b'{"a": NaN}', "Non-standard token 'NaN': enable JsonParser.Feature."),
        (b"[" * 100_000, "Document nesting depth exceeds the maximum allowed"),
    ],
    ids=["a number", "a depth"],
)
def test_a_payload_that_only_python_reads_or_that_nests_too_deep_reaches_no_function(
    function: Any, payload: bytes, problem: str
) -> None:
    call = function("def handler(event, context):\n    return event\n")
    with pytest.raises(ClientError, match=re.escape(problem)) as caught:
        call(payload)
    assert caught.value.response["Error"]["Code"] == "InvalidRequestContentException"


def test_functions_of_one_name_of_module_see_their_own_code_and_variables(function: Any) -> None:
    source = (
        "import os\nfrom helper import word\n"
        "def handler(event, context):\n    return [word, os.environ['WHO'], os.getenv('HOME')]\n"
    )
    calls = [
        function(
            source,
            files={"helper": f"word = 'helper of {who}'\n"},
            Environment={"Variables": {"WHO": who}},
        )
        for who in ("first", "second")
    ]
    assert [json.loads(call({})["Payload"]) for call in calls] == [
        ["helper of first", "first", None],
        ["helper of second", "second", None],
    ]


def test_a_thread_of_a_function_has_the_functions_variables_and_the_cloud_keeps_its_own(
    function: Any, client: Client
) -> None:
    source = (
        "import boto3, os\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "from threading import Thread\ndef look():\n"
        "    return [os.getenv('WHO'), os.getenv('HOME'), boto3.client('sqs').meta.region_name]\n"
        "def handler(event, context):\n    with ThreadPoolExecutor() as pool:\n"
        "        found = pool.submit(look).result()\n"
        "    states = boto3.client('stepfunctions')\n"
        "    machine = states.create_state_machine(name='sync', definition=event['asl'],\n"
        "        roleArn=event['role'], type='EXPRESS')['stateMachineArn']\n"
        "    states.start_sync_execution(stateMachineArn=machine)\n    return found\n"
    )
    seen: list[str | None] = []
    task = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets", "End": True}
    task["Parameters"] = {}
    asl = json.dumps({"StartAt": "A", "States": {"A": task}})
    perform = Integrations.perform

    def looking(integrations: Any, effect: Any) -> Any:
        seen.append(os.getenv("WHO"))
        return perform(integrations, effect)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Integrations, "perform", looking)
        call = function(source, Timeout=9, Environment={"Variables": {"WHO": "me"}})
        answer = call({"asl": asl, "role": ROLE})
    client("stepfunctions").delete_state_machine(
        stateMachineArn="arn:aws:states:us-east-1:123456789012:stateMachine:sync"
    )
    assert json.loads(answer["Payload"]) == ["me", None, "us-east-1"]
    assert seen == [None]


def test_a_function_calls_services_and_gives_its_identity(function: Any, client: Client) -> None:
    client("s3").create_bucket(Bucket="seen-by-function")
    source = (
        "import boto3\ndef handler(event, context):\n"
        "    names = [b['Name'] for b in boto3.client('s3').list_buckets()['Buckets']]\n"
        "    machines = boto3.client('stepfunctions').list_state_machines()['stateMachines']\n"
        "    left = context.get_remaining_time_in_millis()\n"
        "    return ['seen-by-function' in names, machines, 0 < left <= 9000,\n"
        "            context.function_name, context.invoked_function_arn]\n"
    )
    answer = function(source, Timeout=9)({})
    arn = "arn:aws:lambda:us-east-1:123456789012:function:function-0"
    assert json.loads(answer["Payload"]) == [True, [], True, "function-0", arn]


def test_an_update_and_a_version_run_their_own_code(function: Any, client: Client) -> None:
    call = function("def handler(event, context):\n    return 1\n")
    functions = client("lambda")
    functions.publish_version(FunctionName="function-0")
    functions.create_alias(FunctionName="function-0", Name="live", FunctionVersion="1")
    newer = packed(handler="def handler(event, context):\n    return 2\n")
    functions.update_function_code(FunctionName="function-0", ZipFile=newer)
    assert call({})["Payload"] == "2"
    old = call({}, Qualifier="live")
    assert (old["Payload"], old["ExecutedVersion"]) == ("1", "1")


def test_a_log_can_be_read(function: Any) -> None:
    call = function("def handler(event, context):\n    print('hello', 'log')\n")
    assert "LogResult" not in call({})
    import base64

    log = base64.b64decode(call({}, LogType="Tail")["LogResult"]).decode()
    assert "hello log\n" in log
    assert log.startswith("START RequestId: ")


def test_an_invocation_may_ask_for_no_answer(function: Any) -> None:
    call = function("def handler(event, context):\n    return 1\n")
    answers = [call({}, InvocationType=kind) for kind in ("Event", "DryRun")]
    assert [(a["StatusCode"], a["Payload"]) for a in answers] == [(202, ""), (204, "")]


# -- Step Functions --------------------------------------------------------------------------------


def test_a_state_machine_runs_over_boto3(here: str) -> None:
    states = holdfast.client(here)
    definition = {"StartAt": "a", "States": {"a": {"Type": "Pass", "Result": 7, "End": True}}}
    arn = states.create_state_machine(
        name="seven", definition=json.dumps(definition), roleArn=ROLE, type="EXPRESS"
    )["stateMachineArn"]
    assert arn == "arn:aws:states:us-east-1:123456789012:stateMachine:seven"
    assert states.describe_state_machine(stateMachineArn=arn)["name"] == "seven"
    states.delete_state_machine(stateMachineArn=arn)


def test_a_fault_of_the_api_is_awss_exception(here: str) -> None:
    states = holdfast.client(here)
    missing = "arn:aws:states:us-east-1:123456789012:stateMachine:none"
    with pytest.raises(states.exceptions.StateMachineDoesNotExist):
        states.describe_state_machine(stateMachineArn=missing)


@pytest.mark.parametrize(
    ("target", "body", "status", "kind"),
    [
        (TARGET, b"{}", 200, None),
        (TARGET, b"", 200, None),
        (TARGET, b"{", 400, "SerializationException"),
        (TARGET, b"\xff", 400, "SerializationException"),
        (TARGET, b"[" * 100_000, 400, "SerializationException"),
        ("AWSStepFunctions.Dance", b"{}", 400, "UnknownOperationException"),
    ],
)
def test_the_protocol_needs_no_client_library(
    here: str, target: str, body: bytes, status: int, kind: str | None
) -> None:
    found, answer = send(here, "POST", "/", body, X_Amz_Target=target)
    assert (found, json.loads(answer).get("__type")) == (status, kind)


def test_the_prefix_of_a_synchronous_start_is_no_other_machine(here: str) -> None:
    port = urlsplit(here).port
    for host, status in (
        (f"sync-127.0.0.1:{port}", 200),
        (f"bucket.localhost:{port}", 200),
        (f"sync-127.0.0.1.example:{port}", 403),
        (f"evil.example:{port}", 403),
    ):
        assert send(here, "POST", "/", b"{}", Host=host, X_Amz_Target=TARGET)[0] == status
    origin = {"Origin": "https://shop.example", "X_Amz_Target": TARGET}
    assert send(here, "POST", "/", b"{}", **origin)[0] == 403


def test_frames_that_do_not_add_up_are_refused(here: str) -> None:
    signed = {"X_Amz_Target": TARGET, "Transfer_Encoding": "chunked"}
    assert send(here, "POST", "/", b"nonsense\r\n", **signed)[0] == 400


# -- holdfast.client -------------------------------------------------------------------------------


def test_a_client_of_a_deployed_api_signs_for_its_gateway() -> None:
    url = "https://abc123.execute-api.eu-west-1.amazonaws.com"
    client = holdfast.client(url, aws_access_key_id="a", aws_secret_access_key="b")
    signed: list[str] = []

    def keep(request: Any, **_: Any) -> Any:
        signed.append(str(request.headers["Authorization"]))
        raise InterruptedError

    client.meta.events.register("before-send.sfn", keep)
    with pytest.raises(InterruptedError):
        client.list_activities()
    assert "/eu-west-1/execute-api/aws4_request" in signed[0]


def test_a_client_without_an_endpoint_needs_a_running_serve(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match="HF273"):
        holdfast.client()


def test_a_subscriber_on_the_web_gets_nothing_and_the_publisher_does_not_wait(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        topic = client("sns").create_topic(Name="news")["TopicArn"]
        client("sns").subscribe(TopicArn=topic, Protocol="http", Endpoint=f"http://{address}/")
        assert client("sns").publish(TopicArn=topic, Message="a secret")["MessageId"]
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert f"a request to {address} was stopped" in caplog.text
    assert "a secret" not in caplog.text
