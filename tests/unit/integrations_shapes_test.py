"""Calls of aws-sdk integrations over botocore's shapes, compared with tests/integrations_model.

The HTTP layer is a stub: it keeps the request that the product would send, and answers with bytes
as the service would send them.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from botocore.serialize import create_serializer
from botocore.session import Session

from holdfast.integrations import Integrations, ServiceClients
from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from holdfast.service_names import botocore_name, class_name
from tests.integrations_model import rules, wire
from tests.integrations_model.prefixes import PREFIXES
from tests.integrations_model.samples import Sampler
from tests.unit.integrations_kit import effect

#: Its models stay as they are in the files; a client changes those of its session.
_REFERENCE = Session()
TOKEN = uuid.UUID("11111111-2222-4333-8444-555555555555")
SEED = 20_261_124
#: botocore's name of a service: its name in a Resource.
SERVICES = {
    "apigateway": "apigateway",
    "athena": "athena",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "bedrock-agent": "bedrockagent",
    "bedrock-runtime": "bedrockruntime",
    "braket": "braket",
    "cloudformation": "cloudformation",
    "cloudfront": "cloudfront",
    "cognito-idp": "cognitoidentityprovider",
    "dynamodb": "dynamodb",
    "ec2": "ec2",
    "ecs": "ecs",
    "elbv2": "elasticloadbalancingv2",
    "events": "eventbridge",
    "firehose": "firehose",
    "glacier": "glacier",
    "glue": "glue",
    "grafana": "grafana",
    "iam": "iam",
    "iot-data": "iotdataplane",
    "kinesis": "kinesis",
    "kms": "kms",
    "lambda": "lambda",
    "lex-runtime": "lexruntime",
    "logs": "cloudwatchlogs",
    "networkmanager": "networkmanager",
    "personalize-events": "personalizeevents",
    "polly": "polly",
    "rds": "rds",
    "redshift-data": "redshiftdata",
    "route53": "route53",
    "s3": "s3",
    "schemas": "schemas",
    "secretsmanager": "secretsmanager",
    "sesv2": "sesv2",
    "sns": "sns",
    "sqs": "sqs",
    "ssm": "ssm",
    "sts": "sts",
}
#: Actions whose requests or responses botocore changes by itself, or that carry streams and bytes.
NOTABLE = {
    "autoscaling": ("CreateLaunchConfiguration",),
    "cloudformation": ("GetTemplate",),
    "ec2": ("RunInstances", "GetConsoleOutput"),
    "iam": ("GetRolePolicy", "GetPolicyVersion", "ListGroupPolicies"),
    "kinesis": ("PutRecord", "GetRecords"),
    "kms": ("Encrypt", "Decrypt"),
    "lambda": ("Invoke", "GetFunction"),
    "s3": ("PutObject", "GetObject", "HeadObject", "CopyObject", "UploadPart", "DeleteObjects"),
}
CALLS_EACH = 16
#: Services of the default run: one of each protocol, and one with the trait "jsonvalue".
QUICK = ("s3", "dynamodb", "ec2", "sns", "lambda", "schemas", "kms")
QUICK_CALLS = 6
#: Actions with a response that no model describes.
_UNMODELLED = frozenset({"GetBucketLocation"})

#: The fields that an optimised integration adds to a result.
_METADATA = ("SdkHttpMetadata", "SdkResponseMetadata")
#: Headers that both SDKs add to what the model of an action says.
_SDK_HEADERS = frozenset(
    {
        "accept",
        "content-type",
        "expect",
        "user-agent",
        "x-amz-api-version",
        "x-amz-checksum-crc32",
        "x-amz-checksum-mode",
        "x-amz-glacier-version",
        "x-amz-sdk-checksum-algorithm",
        "x-amzn-query-mode",
    }
)


class Stub:
    """Answers every call of a session, and keeps the last request."""

    def __init__(self) -> None:
        self.answer = wire.Reply(b"")
        self.sent: dict[str, Any] = {}
        self.session = Session()
        self.session.set_credentials("key", "secret")
        self.session.register("before-call", self._keep)
        self.session.register("before-send", self._send)
        clients = ServiceClients(self.session, "eu-west-1")
        self._integrations = Integrations(clients, _no_call)

    def perform(self, service: str, operation: str, arguments: Any, *, is_sdk: bool = True) -> Any:
        action = operation[:1].lower() + operation[1:]
        target = f"aws-sdk:{service}:{action}" if is_sdk else f"{service}:{action}"
        return self._integrations.perform(effect(target, arguments))

    def _keep(self, params: dict[str, Any], **_rest: Any) -> None:
        self.sent = params

    def _send(self, request: Any, **_rest: Any) -> Any:
        return self.answer.as_response(request.url)


def _no_call(operation: str, request: dict[str, Any], asking: Any) -> dict[str, Any]:
    raise AssertionError(operation)


@pytest.fixture(scope="module")
def stub() -> Stub:
    return Stub()


@pytest.fixture(autouse=True)
def _fixed_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.handlers.uuid.uuid4", lambda: TOKEN)


@pytest.mark.parametrize("service", QUICK)
def test_requests_and_results_are_those_of_the_model(stub: Stub, service: str) -> None:
    for operation in _operations(service, QUICK_CALLS):
        _compare(stub, service, operation)


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_the_requests_and_results_of_the_model(stub: Stub, service: str) -> None:
    operations = _operations(service, CALLS_EACH)
    assert operations
    for operation in operations:
        _compare(stub, service, operation)


def _operations(service: str, count: int) -> list[str]:
    model = _REFERENCE.get_service_model(service)
    usable: list[str] = []
    for name in model.operation_names:
        operation = model.operation_model(name)
        is_stream = operation.has_event_stream_input or operation.has_event_stream_output
        if name not in _UNMODELLED and not is_stream:
            usable.append(name)
    # Evenly spread, so that all parts of an API occur.
    spread = usable[:: max(1, len(usable) // count)][:count]
    return list(dict.fromkeys((*NOTABLE.get(service, ()), *spread)))


#: Actions of optimised integrations whose fields are those of the service.
OPTIMISED = {
    "athena": "startQueryExecution stopQueryExecution getQueryExecution getQueryResults",
    "batch": "submitJob",
    "codebuild": "startBuild stopBuild batchDeleteBuilds batchGetReports startBuildBatch",
    "databrew": "startJobRun",
    "dynamodb": "getItem putItem deleteItem updateItem",
    "ecs": "runTask",
    "eks": (
        "createCluster deleteCluster createFargateProfile deleteFargateProfile createNodegroup "
        "deleteNodegroup"
    ),
    "emr-containers": "createVirtualCluster deleteVirtualCluster startJobRun",
    "emr-serverless": (
        "createApplication startApplication stopApplication deleteApplication startJobRun "
        "cancelJobRun"
    ),
    "glue": "startJobRun",
    "mediaconvert": "createJob",
    "sagemaker": "createEndpoint createModel createTrainingJob createTransformJob updateEndpoint",
    "sns": "publish",
    "sqs": "sendMessage",
}
QUICK_OPTIMISED = ("athena", "dynamodb", "ecs", "sns")


@pytest.mark.parametrize("service", QUICK_OPTIMISED)
def test_optimised_requests_and_results_are_those_of_the_model(stub: Stub, service: str) -> None:
    for action in OPTIMISED[service].split():
        _compare(stub, service, action[:1].upper() + action[1:], rules.OPTIMISED)


@pytest.mark.slow
@pytest.mark.parametrize("service", OPTIMISED)
def test_every_optimised_action_has_the_requests_and_results_of_the_model(
    stub: Stub, service: str
) -> None:
    for action in OPTIMISED[service].split():
        for number in range(4):
            name = action[:1].upper() + action[1:]
            _compare(stub, service, name, rules.OPTIMISED, number)


def _compare(
    stub: Stub, service: str, name: str, kind: rules.Kind = rules.SDK, number: int = 0
) -> None:
    model = _REFERENCE.get_service_model(service)
    operation = model.operation_model(name)
    protocol = str(model.resolved_protocol)
    seed = f"{SEED} {service} {name} {number}"
    sampler = Sampler(seed, service, kind)
    shape, output = operation.input_shape, operation.output_shape
    arguments = {} if shape is None else sampler.arguments(shape)
    said = {} if output is None else sampler.response(output)
    stub.answer = wire.reply(protocol, operation, said)
    is_sdk = kind is rules.SDK
    result = stub.perform(SERVICES[service] if is_sdk else service, name, arguments, is_sdk=is_sdk)
    context = f"{seed}: {arguments} {stub.answer}"
    assert isinstance(result, TaskSucceeded), f"{result} {context}"
    metadata = {} if is_sdk else {name: result.output.pop(name) for name in _METADATA}
    assert is_sdk or metadata["SdkResponseMetadata"] == {"RequestId": "REQUEST"}, context
    expected = {} if output is None else rules.expected_result(output, said, kind)
    assert result.output == expected, context
    request = rules.expected_call(operation, arguments, str(TOKEN), kind)
    serializer = create_serializer(protocol, include_validation=False)
    bare = serializer.serialize_to_request(request, operation)
    assert _read(stub.sent["body"]) == _read(bare["body"]), context
    assert stub.sent["query_string"] == bare["query_string"], context
    path = bare["url_path"]
    if service == "s3" and "Bucket" in request:
        path = path.removeprefix(f"/{request['Bucket']}")
    assert stub.sent["url_path"].rstrip("/") == path.rstrip("/"), context
    sent = {key.lower(): value for key, value in stub.sent["headers"].items()}
    for key, value in bare["headers"].items():
        assert sent.pop(key.lower()) == value, context
    assert sent.keys() <= _SDK_HEADERS, context


def _read(body: Any) -> Any:
    return body.read() if hasattr(body, "read") else body


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("service", QUICK)
def test_an_error_has_the_name_and_the_words_of_the_java_sdk(stub: Stub, service: str) -> None:
    _compare_errors(stub, service, 2)


@pytest.mark.slow
@pytest.mark.parametrize("service", [one for one in SERVICES if SERVICES[one] in PREFIXES])
def test_every_error_has_the_name_and_the_words_of_the_java_sdk(stub: Stub, service: str) -> None:
    _compare_errors(stub, service, 100)


def _compare_errors(stub: Stub, service: str, count: int) -> None:
    model = _REFERENCE.get_service_model(service)
    prefix = PREFIXES[SERVICES[service]]
    operation = model.operation_model(_operations(service, 1)[0])
    arguments = Sampler(f"{SEED}", service).arguments(operation.input_shape)
    for shape in [*model.error_shapes[:count], None]:
        code = "NoModelHasIt"
        if shape is not None:
            code = shape.metadata.get("error", {}).get("code", shape.name)
        stub.answer = wire.error_reply(str(model.resolved_protocol), code, "No.")
        result = stub.perform(SERVICES[service], operation.name, arguments)
        name = f"{prefix}Exception" if shape is None else rules.exception_name(shape.name)
        cause = rules.expected_cause(prefix, "No.", 400)
        assert result == TaskFailed(f"{prefix}.{name}", cause), f"{service} {code}"


@pytest.mark.slow
def test_services_have_the_names_of_the_developer_guide() -> None:
    available = tuple(_REFERENCE.get_available_services())
    loader = _REFERENCE.get_component("data_loader")
    for resource, prefix in PREFIXES.items():
        service = botocore_name(resource, available)
        assert service in available, resource
        metadata = loader.load_service_model(service, "service-2")["metadata"]
        assert class_name(metadata["serviceId"]) == prefix


@pytest.mark.parametrize(
    ("operation", "error"), [("HeadObject", "NoSuchKey"), ("HeadBucket", "NoSuchBucket")]
)
def test_an_error_without_a_body_has_a_name_and_no_message(
    stub: Stub, operation: str, error: str
) -> None:
    stub.answer = wire.Reply(b"", {}, 404)
    arguments = {"Bucket": "b"} if operation == "HeadBucket" else {"Bucket": "b", "Key": "k"}
    result = stub.perform("s3", operation, arguments)
    cause = rules.expected_cause("S3", "null", 404)
    assert result == TaskFailed(f"S3.{error}Exception", cause)


def test_the_metadata_of_a_result_has_headers_as_the_service_spells_them(stub: Stub) -> None:
    headers = {"Server": "Server", "Connection": "keep-alive", "x-amz-crc32": "2"}
    stub.answer = wire.Reply(b"{}", headers)
    arguments = {"TableName": "t", "Key": {"id": {"S": "1"}}}
    result = stub.perform("dynamodb", "GetItem", arguments, is_sdk=False)
    shown = result.output["SdkHttpMetadata"]
    assert list(shown["HttpHeaders"]) == [
        "Connection",
        "Server",
        "x-amz-crc32",
        "x-amz-id-2",
        "x-amz-request-id",
        "x-amzn-RequestId",
    ]
    assert shown["AllHttpHeaders"]["Connection"] == ["keep-alive"]
