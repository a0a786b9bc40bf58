"""The parts of a Task's Resource: `arn:aws:states:::sqs:sendMessage.waitForTaskToken`.

The optimised integrations and the patterns of each are those of AWS's page "Integrating optimized
services". Any `aws-sdk` action is accepted as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from holdfast.asl.program import TaskKind
from holdfast.lazy_dataclass import dataclass

_TOKEN_SUFFIX: Final = ".waitForTaskToken"  # noqa: S105  # no secret
_SYNC_SUFFIXES: Final = (".sync:2", ".sync")

_OURS: Final[Mapping[str, TaskKind]] = {
    "holdfast:event.waitForTaskToken": "event",
    "holdfast:ask.waitForTaskToken": "ask",
    "holdfast:token.waitForTaskToken": "token",
}
#: The prefix of the target of a Task that calls a workflow: `workflow:ship_order`.
CHILD_WORKFLOW: Final = "workflow:"
#: The prefix of the Resource and of the target of a Task that a worker of a pool runs.
POOL: Final = "holdfast:pool:"
#: The Resource of a Task whose argument `pool` names its pool. It is the prefix without a name,
#: which releases that do not know the argument refuse: they would offer the task to a wrong pool.
CHOSEN_POOL: Final = POOL
#: Stands for the name of a pool in the routes that containers call, because a container belongs to
#: no pool.
CONTAINERS: Final = "containers"
#: The prefix of the target of a Task that runs in a container: `container:ecs:runTask`. The rest is
#: the call that starts the container.
CONTAINER: Final = "container:"
CONTAINER_CALLS: Final = frozenset({"ecs:runTask", "batch:submitJob"})
#: The target of a Task that sends an event. The prefix `_START` is that of a Task which starts a
#: workflow without waiting for it: `start:dispatch`.
SEND: Final = "send"
#: The target of a Task that sends an event at a later time. `_START_LATER` is the prefix for a
#: workflow that begins at a later time: `start_later:dispatch`.
SEND_LATER: Final = "send_later"
_START_LATER: Final = "start_later:"
#: The target of a Task with which the execution continues as new.
AGAIN: Final = "again"
#: The target of a Task that stops another execution.
STOP: Final = "stop"
#: The target of a Task that replies to a request.
REPLY: Final = "reply"
#: The target of a Task that sends a request and waits for its reply.
REQUEST: Final = "request"
_START: Final = "start:"
#: The beginning of the Resource of a task that is called again and again until it returns a value.
POLL: Final = "holdfast:poll:"
#: The name that the executions of bulk operations (`runtime/bulk.py`) have in place of a workflow's
#: name, and the targets of their two Tasks. No workflow can have this name, because the name of a
#: function contains no dot.
BULK_WORKFLOW: Final = "holdfast.bulk"
BULK_SELECT: Final = "bulk:select"
BULK_ACT: Final = "bulk:act"
#: The name that the executions of later events (`runtime/commands/later.py`) have in place of a
#: workflow's name.
LATER_WORKFLOW: Final = "holdfast.later"

_POOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FUNCTION: Final = re.compile(
    r"arn:aws[\w-]*:lambda:[\w-]*:[\w-]*:function:[\w.-]+(:(\$LATEST|[\w-]+))?\Z"
)
_ACTIVITY: Final = re.compile(r"arn:aws[\w-]*:states:[\w-]+:[\w-]+:activity:[^\s:]+\Z")
_SERVICE: Final = re.compile(r"arn:aws[\w-]*:states:[\w-]*:[\w-]*:(?P<action>.+)\Z")
_SDK_ACTION: Final = re.compile(r"aws-sdk:[a-z0-9]+:[a-z][A-Za-z0-9]*\Z")

# The patterns of an action that AWS supports, by letter. "r": request and response. "s": run a job.
# "2": run a job, with its output parsed. "t": wait for the token.
_Patterns: TypeAlias = Mapping[str, str]
_OPTIMISED: Final[Mapping[str, _Patterns]] = {
    "apigateway": {"invoke": "rt"},
    "athena": {
        "startQueryExecution": "rs",
        "stopQueryExecution": "r",
        "getQueryExecution": "r",
        "getQueryResults": "r",
    },
    "batch": {"submitJob": "rs"},
    "bedrock": {"invokeModel": "r", "createModelCustomizationJob": "rs"},
    "codebuild": {
        "startBuild": "rs",
        "stopBuild": "r",
        "batchDeleteBuilds": "r",
        "batchGetReports": "r",
        "startBuildBatch": "rs",
        "stopBuildBatch": "r",
        "retryBuildBatch": "rs",
        "deleteBuildBatch": "r",
    },
    "databrew": {"startJobRun": "rs"},
    "dynamodb": {"getItem": "r", "putItem": "r", "deleteItem": "r", "updateItem": "r"},
    "ecs": {"runTask": "rst"},
    "eks": {
        "createCluster": "rs",
        "deleteCluster": "rs",
        "createFargateProfile": "rs",
        "deleteFargateProfile": "rs",
        "createNodegroup": "rs",
        "deleteNodegroup": "rs",
        "runJob": "rs",
        "call": "r",
    },
    "elasticmapreduce": {
        "createCluster": "rs",
        "terminateCluster": "rs",
        "addStep": "rs",
        "cancelStep": "r",
        "setClusterTerminationProtection": "r",
        "modifyInstanceFleetByName": "r",
        "modifyInstanceGroupByName": "r",
    },
    "emr-containers": {
        "createVirtualCluster": "r",
        "deleteVirtualCluster": "rs",
        "startJobRun": "rs",
    },
    "emr-serverless": {
        "createApplication": "rs",
        "startApplication": "rs",
        "stopApplication": "rs",
        "deleteApplication": "rs",
        "startJobRun": "rs",
        "cancelJobRun": "rs",
    },
    "events": {"putEvents": "rt"},
    "glue": {"startJobRun": "rs"},
    "http": {"invoke": "r"},
    "lambda": {"invoke": "rt"},
    "mediaconvert": {"createJob": "rs"},
    "sagemaker": {
        "createEndpoint": "r",
        "createEndpointConfig": "r",
        "createHyperParameterTuningJob": "rs",
        "createLabelingJob": "rs",
        "createModel": "r",
        "createProcessingJob": "rs",
        "createTrainingJob": "rs",
        "createTransformJob": "rs",
        "updateEndpoint": "r",
    },
    "sns": {"publish": "rt"},
    "sqs": {"sendMessage": "rt"},
    "states": {"startExecution": "rs2t"},
}


@dataclass(frozen=True, slots=True)
class Resource:
    """The parts of a Task's Resource. `target` is as in `program.TaskState`; `pattern` is "",
    ".sync", ".sync:2" or ".waitForTaskToken".
    """

    kind: TaskKind
    target: str
    pattern: str


def is_request(kind: TaskKind, target: str) -> bool:
    """Return True for a request to another workflow. The target alone does not tell, because a
    task may be named "request", too.
    """
    return kind == "callback" and target == REQUEST


def is_plain(kind: TaskKind, target: str) -> bool:
    """Return True for the Task of a statement that Python carries out without waiting: a command,
    as `send` and `reply`, a line of a log, or a function of Python's library.

    The name of an author's own function contains no dot. The steps of bulk operations are no
    statements of a workflow.
    """
    match kind:
        case "command":
            return target not in {BULK_SELECT, BULK_ACT}
        case "pure":
            return "." in target
        case _:
            return False


def read_resource(text: str) -> Resource | None:
    """Return the work that a Task's Resource requests; None for an unknown resource.

    "arn:aws:states:::sqs:sendMessage.waitForTaskToken" gives Resource("callback",
    "sqs:sendMessage", ".waitForTaskToken").
    """
    if text.startswith("holdfast:"):
        return _ours(text)
    if _FUNCTION.match(text):
        return Resource("lambda", text, "")
    if _ACTIVITY.match(text):
        return Resource("activity", text, "")
    service = _SERVICE.match(text)
    return _service(service["action"]) if service is not None else None


def is_arn_of_a_task(text: str) -> bool:
    """Return True when the text has the form of a task's ARN. For other text AWS reports "not a
    valid resource ARN".
    """
    return bool(_FUNCTION.match(text) or _ACTIVITY.match(text) or _SERVICE.match(text))


def _ours(text: str) -> Resource | None:
    if text in _OURS:
        return Resource(_OURS[text], "", "")
    kind, _, target = text.removeprefix("holdfast:").partition(":")
    match kind:
        case "task" | "poll" if target:
            return Resource("task", target, "")
        case "pure" if target:
            return Resource("pure", target, "")
        case "container" if target.removesuffix(_TOKEN_SUFFIX) in CONTAINER_CALLS:
            call, pattern = _split(target)
            return Resource("callback", f"{CONTAINER}{call}", pattern) if pattern else None
        case "pool":
            return Resource("activity", text, "")
        case "workflow" if target:
            return Resource("sync", f"{CHILD_WORKFLOW}{target}", ".sync")
        case "request.waitForTaskToken" if not target:
            return Resource("callback", REQUEST, _TOKEN_SUFFIX)
        case "send" | "send_later" | "again" | "reply" | "stop" if not target:
            return Resource("command", kind, "")
        case "bulk" if f"bulk:{target}" in {BULK_SELECT, BULK_ACT}:
            return Resource("command", f"bulk:{target}", "")
        case "start" if target:
            return Resource("command", f"{_START}{target}", "")
        case "start_later" if target:
            return Resource("command", f"{_START_LATER}{target}", "")
        case _:
            return None


def is_pool_name(name: object) -> bool:
    """Return True for the name of a pool of workers."""
    return isinstance(name, str) and name != CONTAINERS and bool(_POOL_NAME.fullmatch(name))


def runs_in_container(resource: str) -> bool:
    """Return True for the Resource of a Task that runs in a container."""
    return resource.startswith(f"holdfast:{CONTAINER}")


def is_polled(resource: str) -> bool:
    """Return True for the Resource of a task that `wait_for_condition` calls until it returns a
    value.
    """
    return resource.startswith(POLL)


def started_by(target: str) -> str | None:
    """Return the workflow that a command starts, now or later; None when it starts none."""
    kind, separator, workflow = target.partition(":")
    return workflow if f"{kind}{separator}" in {_START, _START_LATER} else None


def is_later(target: str) -> bool:
    """Return True for a command that has its effect at a later time."""
    return target == SEND_LATER or target.startswith(_START_LATER)


def _service(text: str) -> Resource | None:
    action, pattern = _split(text)
    letters = _letters(action)
    match pattern:
        case "" if "r" in letters:
            return Resource("service", action, pattern)
        case ".waitForTaskToken" if "t" in letters:
            return Resource("callback", action, pattern)
        case ".sync" if "s" in letters:
            return Resource("sync", action, pattern)
        case ".sync:2" if "2" in letters:
            return Resource("sync", action, pattern)
        case _:
            return None


def _split(text: str) -> tuple[str, str]:
    for suffix in (_TOKEN_SUFFIX, *_SYNC_SUFFIXES):
        if text.endswith(suffix):
            return text.removesuffix(suffix), suffix
    return text, ""


def _letters(action: str) -> str:
    if _SDK_ACTION.match(action):
        return "rt"
    service, _, name = action.partition(":")
    return _OPTIMISED.get(service, {}).get(name, "")
