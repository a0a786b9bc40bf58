"""Errors of services in the form in which a state machine gets them: a name and a cause.

aws-sdk, as in version 2 of the Java SDK:
    DynamoDb.ConditionalCheckFailedException, or DynamoDb.DynamoDbException
    message (Service: DynamoDb, Status Code: 400, Request ID: x) (SDK Attempt Count: 1)
optimised, as in version 1:
    DynamoDB.ConditionalCheckFailedException, or DynamoDB.AmazonDynamoDBException
    message (Service: AmazonDynamoDBv2; Status Code: 400; Error Code: x; Request ID: y; Proxy: null)

The second name is for a code that the service's model does not have. Source: recordings of AWS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from holdfast.integrations.problems import Refusal
from holdfast.runtime.effects import TaskFailed
from holdfast.service_names import class_name, exception_name

#: The number of attempts, which the Java SDK appends to messages from version 2.30 on. Step
#: Functions tries once.
_ATTEMPTS: Final = "(SDK Attempt Count: 1)"
#: The error names for responses without a body, by action and HTTP status. They are those of the
#: Java SDK for S3's responses to HEAD requests.
_BODILESS: Final = {
    ("HeadObject", 404): "NoSuchKey",
    ("HeadBucket", 404): "NoSuchBucket",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names that an optimised integration uses for the service: in an error's name and in its
    cause.
    """

    prefix: str
    service: str

    @property
    def unknown(self) -> str:
        """Return the error's name for a code that AWS's model of the service does not have."""
        return f"{self.prefix}.{self.service.removesuffix('v2')}Exception"


#: The names of services in errors, by the first word of a Resource. The sources are AWS docs, the
#: names of clients in the Java SDK, and recordings.
DIALECTS: Final = {
    "athena": Dialect("Athena", "AmazonAthena"),
    "batch": Dialect("Batch", "AWSBatch"),
    "codebuild": Dialect("CodeBuild", "AWSCodeBuild"),
    "databrew": Dialect("DataBrew", "AWSGlueDataBrew"),
    "dynamodb": Dialect("DynamoDB", "AmazonDynamoDBv2"),
    "ecs": Dialect("ECS", "AmazonECS"),
    "eks": Dialect("EKS", "AmazonEKS"),
    "elasticmapreduce": Dialect("ElasticMapReduce", "AmazonElasticMapReduce"),
    "emr-containers": Dialect("EMRContainers", "AmazonEMRContainers"),
    "emr-serverless": Dialect("EMRServerless", "AWSEMRServerless"),
    "events": Dialect("EventBridge", "AmazonEventBridge"),
    "glue": Dialect("Glue", "AWSGlue"),
    "lambda": Dialect("Lambda", "AWSLambda"),
    "mediaconvert": Dialect("MediaConvert", "AWSMediaConvert"),
    "sagemaker": Dialect("SageMaker", "AmazonSageMaker"),
    "sns": Dialect("SNS", "AmazonSNS"),
    "sqs": Dialect("SQS", "AmazonSQS"),
    "states": Dialect("StepFunctions", "AWSStepFunctions"),
}


def refusal_of(error: Any) -> Refusal:
    """Return the refusal in botocore's ClientError."""
    said = error.response.get("Error", {})
    metadata = error.response.get("ResponseMetadata", {})
    headers = metadata.get("HTTPHeaders", {})
    status = metadata.get("HTTPStatusCode", 400)
    code = str(said.get("Code", "Unknown"))
    message = said.get("Message") or said.get("message") or "null"
    if code == str(status):
        # The response has no body. botocore then uses the status as the code, and the reason phrase
        # of the status as the message.
        code = _BODILESS.get((error.operation_name, status), code)
        message = "null"
    return Refusal(
        code=code,
        message=message,
        status=status,
        request_id=metadata.get("RequestId", "null"),
        extended_request_id=metadata.get("HostId") or headers.get("x-amz-id-2"),
        shape_code=said.get("QueryErrorCode"),
    )


def optimised_failure(service: str, refusal: Refusal, model: Any) -> TaskFailed:
    dialect = DIALECTS.get(service) or Dialect(class_name(model.service_id), service)
    shape = _find_shape(model, refusal.shape_code or refusal.code)
    name = dialect.unknown if shape is None else f"{dialect.prefix}.{_suffixed(shape)}"
    return TaskFailed(
        name,
        f"{refusal.message} (Service: {dialect.service}; Status Code: {refusal.status}; "
        f"Error Code: {refusal.code}; Request ID: {refusal.request_id}; Proxy: null)",
    )


def sdk_failure(refusal: Refusal, model: Any) -> TaskFailed:
    service = class_name(model.service_id)
    shape = _find_shape(model, refusal.shape_code or refusal.code)
    name = f"{service}Exception" if shape is None else exception_name(shape)
    details = f"Service: {service}, Status Code: {refusal.status}, Request ID: {refusal.request_id}"
    # Only S3 has two ids for a request. Java writes the second one even when it is null.
    if refusal.extended_request_id or service == "S3":
        details += f", Extended Request ID: {refusal.extended_request_id or 'null'}"
    cause = f"{refusal.message} ({details}) {_ATTEMPTS}"
    return TaskFailed(f"{service}.{name}", cause)


def unreachable(prefix: str, error: Exception, *, is_sdk: bool) -> TaskFailed:
    """Return the error of the Java SDK for a call without a response: no route, no credentials, a
    broken connection.
    """
    cause = f"Unable to execute HTTP request: {error}"
    return TaskFailed(f"{prefix}.SdkClientException", f"{cause} {_ATTEMPTS}" if is_sdk else cause)


def unsent(service: Any, problem: str) -> TaskFailed:
    """Return the error of the Java SDK for a request that it cannot send. It has made no attempt,
    so the cause counts none.
    """
    return TaskFailed(f"{class_name(service.service_id)}.SdkClientException", problem)


def _suffixed(shape: str) -> str:
    return shape if shape.endswith("Exception") else f"{shape.removesuffix('Fault')}Exception"


def _find_shape(model: Any, code: str) -> str | None:
    """Return the error shape for the code in a response. It has the code as its name or as its
    error code.
    """
    bare = code.rpartition("#")[2]
    for shape in model.error_shapes:
        if bare in (shape.name, shape.metadata.get("error", {}).get("code")):
            return str(shape.name)
    return None
