"""The AWS resources of one Holdfast stack, as data.

`infra/` converts this to CloudFormation, and `local/` to calls of the local cloud. So a local stack
and one in an account have the same resources. Names are logical. The stack adds a prefix or
generates the physical names, and passes them to the functions in the environment variables named
here.
"""

from __future__ import annotations

from typing import Final

from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TableIndex:
    name: str
    partition_key: str
    sort_key: str
    projected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A DynamoDB table. `sort_key_type` is "N" or "S". The partition key is always a string."""

    name: str
    sort_key_type: str
    index: TableIndex | None = None
    partition_key: str = "pk"
    sort_key: str = "sk"
    ttl_attribute: str = "ttl"


@dataclass(frozen=True, slots=True)
class Queue:
    """A standard queue. After `receives_max` deliveries a message becomes a dead letter.

    `batches_unreserved`: how many batches are processed at once if the function reserves no
    concurrency.
    """

    name: str
    visibility_seconds: int
    receives_max: int
    batch_size: int
    batches_unreserved: int
    retention_seconds: int = 14 * 86_400


@dataclass(frozen=True, slots=True)
class LambdaFunction:
    """One Lambda function. `module` is the package under functions/ with its `handler`.

    `reserved_concurrency` 0: none is reserved, and only the account's limit applies.
    """

    name: str
    module: str
    timeout_seconds: int
    memory_mb: int
    reserved_concurrency: int


EXECUTIONS_NAME: Final = "executions"
MAIL_NAME: Final = "mail"

# These attributes of a record put its execution into the list (`runtime/listing.py`).
LIST_PARTITION: Final = "lp"
LIST_SORT: Final = "ls"
LIST_NAME: Final = "nm"
LIST_WORKFLOW: Final = "wf"
LIST_STATUS: Final = "st"  # every record has this attribute
LIST_DEFINITION: Final = "df"
LIST_STOPPED: Final = "en"
LIST_ERROR: Final = "er"
LIST_MACHINE_NAME: Final = "mn"
LIST_VERSION: Final = "mv"
LIST_ALIAS: Final = "ma"
LIST_REDRIVES: Final = "rd"
LIST_PAUSED: Final = "pa"
LIST_PAUSED_REASON: Final = "pr"
LIST_WAITS: Final = "wt"  # `runtime/wait_text.py`
LIST_WAITING_SINCE: Final = "ws"

EXECUTIONS: Final = Table(
    name=EXECUTIONS_NAME,
    sort_key_type="N",
    index=TableIndex(
        name="list",
        partition_key=LIST_PARTITION,
        sort_key=LIST_SORT,
        projected=(
            *(LIST_NAME, LIST_WORKFLOW, LIST_STATUS, LIST_DEFINITION, LIST_STOPPED, LIST_ERROR),
            *(LIST_MACHINE_NAME, LIST_VERSION, LIST_ALIAS, LIST_REDRIVES),
            *(LIST_PAUSED, LIST_PAUSED_REASON, LIST_WAITS, LIST_WAITING_SINCE),
        ),
    ),
)
MAIL: Final = Table(name=MAIL_NAME, sort_key_type="S")
TABLES: Final = (EXECUTIONS, MAIL)

WORKER: Final = LambdaFunction(
    "worker", "worker", timeout_seconds=900, memory_mb=512, reserved_concurrency=50
)
WORKER_SINGLE: Final = LambdaFunction(
    "worker-single", "worker", timeout_seconds=900, memory_mb=1_769, reserved_concurrency=5
)
EVENTS: Final = LambdaFunction(
    "events", "events", timeout_seconds=30, memory_mb=256, reserved_concurrency=20
)
SWEEPER: Final = LambdaFunction(
    "sweeper", "sweeper", timeout_seconds=55, memory_mb=256, reserved_concurrency=2
)
API: Final = LambdaFunction(
    "api", "api", timeout_seconds=29, memory_mb=512, reserved_concurrency=50
)
FUNCTIONS: Final = (WORKER, WORKER_SINGLE, EVENTS, SWEEPER, API)

# The queue of running executions. Its visibility time-out counts only when a process crashes before
# its first instruction: a running worker shortens it to limits.VISIBILITY_SECONDS, and extends it
# while it works. A message is delivered thirty times, every two minutes, and in two further rounds
# before it goes into quarantine. So DynamoDB may be unavailable for an hour. A task that crashes
# its worker fails earlier, with its fourth worker. `batches_unreserved`: a new account runs ten
# functions at once, and three of Holdfast's functions have no queue.
WORK: Final = Queue(
    "work", WORKER.timeout_seconds + 60, receives_max=30, batch_size=10, batches_unreserved=3
)
# The queue of the starts of new executions. The worker function processes them with a third of its
# concurrency, so ten thousand starts do not delay the event of a waiting order.
STARTS: Final = Queue(
    "starts", WORKER.timeout_seconds + 60, receives_max=30, batch_size=10, batches_unreserved=2
)
SINGLE: Final = Queue(
    "single",
    WORKER_SINGLE.timeout_seconds + 60,
    receives_max=30,
    batch_size=1,
    batches_unreserved=2,
)
QUEUES: Final = (WORK, SINGLE, STARTS)

BUS: Final = "holdfast"
# The detail-type of events on the event bus for waiting executions. Such an event has the detail
# {"name": str, "key": str, "data": object, "id"?: str}.
EVENT_DETAIL_TYPE: Final = "holdfast.event"
EVENT_RETRY_ATTEMPTS_MAX: Final = 185
EVENT_RETRY_AGE_SECONDS_MAX: Final = 86_400

# The environment variables of the functions.
ENV_EXECUTIONS_TABLE: Final = "HOLDFAST_EXECUTIONS_TABLE"
ENV_MAIL_TABLE: Final = "HOLDFAST_MAIL_TABLE"
ENV_BLOBS_BUCKET: Final = "HOLDFAST_BLOBS_BUCKET"
ENV_WORK_QUEUE_URL: Final = "HOLDFAST_WORK_QUEUE_URL"
ENV_SINGLE_QUEUE_URL: Final = "HOLDFAST_SINGLE_QUEUE_URL"
ENV_STARTS_QUEUE_URL: Final = "HOLDFAST_STARTS_QUEUE_URL"
ENV_WORK_DLQ_URL: Final = "HOLDFAST_WORK_DLQ_URL"
ENV_SINGLE_DLQ_URL: Final = "HOLDFAST_SINGLE_DLQ_URL"
ENV_STARTS_DLQ_URL: Final = "HOLDFAST_STARTS_DLQ_URL"
# The blobs of cached results. No tenant's name has a full stop, so no other blob has this prefix.
CACHE_BLOBS_PREFIX: Final = ".cache/"
# The bucket of the archive, in a stack that has one. All functions except that of events have the
# variable.
ENV_ARCHIVE_BUCKET: Final = "HOLDFAST_ARCHIVE_BUCKET"
# The Python modules with the user's @workflow and @task functions, separated by commas.
ENV_MODULES: Final = "HOLDFAST_MODULES"
# The name of the stack. It is a dimension of every metric, so that the metrics of two stacks are
# kept apart.
ENV_STACK: Final = "HOLDFAST_STACK"
# The number of the account, which is part of the ARNs of state machines and executions. The API and
# the workers have the variable.
ENV_ACCOUNT: Final = "HOLDFAST_ACCOUNT"
# The ARN of the role with which state machines call services. The API and the workers have the
# variable.
ENV_TASKS_ROLE: Final = "HOLDFAST_TASKS_ROLE"
# With "off", AWS's limit of 256 KiB does not apply to the data of state machines.
ENV_PAYLOAD_LIMIT: Final = "HOLDFAST_PAYLOAD_LIMIT"
ENV_HISTORY_LIMIT: Final = "HOLDFAST_HISTORY_LIMIT"
# The functions of task groups, as `payments=arn:…,mail=arn:…`. The API and the workers have the
# variable.
ENV_GROUP_FUNCTIONS: Final = "HOLDFAST_GROUP_FUNCTIONS"
# The ARN of the secret in Secrets Manager that signs tokens and run ids. The API and the workers
# have the variable.
ENV_SECRET_ID: Final = "HOLDFAST_SECRET_ID"  # noqa: S105
# The ARN of the KMS key that encrypts secrets, if the compiled workflows have any. The API, the
# workers and the function of events have the variable. Without it they refuse a secret.
ENV_SECRETS_KEY: Final = "HOLDFAST_SECRETS_KEY"
# The starts a second for which the stack has partitions. The sweeper has the variable.
ENV_STARTS_PER_SECOND: Final = "HOLDFAST_STARTS_PER_SECOND"
# With "on", begins and ends of executions of state machines are published on the event bus.
ENV_STATUS_EVENTS: Final = "HOLDFAST_STATUS_EVENTS"
# With "on", the default event bus gets an event when a question to a person opens.
ENV_QUESTION_EVENTS: Final = "HOLDFAST_QUESTION_EVENTS"
# The URL of the API, if the API has the routes of forms. The API and the workers have the variable.
ENV_FORMS_URL: Final = "HOLDFAST_FORMS_URL"

# The metrics that the functions write in CloudWatch's embedded metric format. CloudWatch bills each
# combination of a name and its dimensions as one custom metric. So every metric has the stack as
# its only dimension, and only those in METRICS_BY_WORKFLOW are also stored by workflow. The other
# labels are fields of the log line, in which CloudWatch Logs Insights can search.
METRICS_NAMESPACE: Final = "Holdfast"
METRICS_DIMENSION: Final = "Stack"
METRICS_WORKFLOW_DIMENSION: Final = "Workflow"
# All state machines of the API share this value of the dimension. Callers choose the names of
# machines, and CloudWatch would bill each name.
METRICS_STATE_MACHINES: Final = "(state machines)"
METRIC_EXECUTIONS_STARTED: Final = "ExecutionsStarted"
# Counts every end of an execution, with success or without.
METRIC_EXECUTIONS_ENDED: Final = "ExecutionsEnded"
METRIC_EXECUTIONS_FAILED: Final = "ExecutionsFailed"
METRIC_EXECUTIONS_QUARANTINED: Final = "ExecutionsQuarantined"
# Counts the overdue executions to which the sweeper has sent a message.
METRIC_EXECUTIONS_STUCK: Final = "ExecutionsStuck"
METRIC_DURABLE_STEPS: Final = "DurableSteps"
METRIC_TASK_RETRIES: Final = "TaskRetries"
METRIC_SWEEP_REFUSED: Final = "SweepRefused"
METRIC_SWEEP_LAG: Final = "SweepLagSeconds"
# How long an attempt or an execution waited at a limit. It is measured when the limit lets it
# begin.
METRIC_LIMIT_WAIT: Final = "LimitWaitSeconds"
# The time between the moment at which an execution or an attempt was due and its begin by a worker.
METRIC_SCHEDULER_LAG: Final = "SchedulerLagSeconds"
METRIC_TIMER_LAG: Final = "TimerLagSeconds"
# The longest wait of all waiting executions that the sweeper has checked in this minute.
METRIC_OLDEST_WAIT: Final = "OldestWaitSeconds"
# The number of open executions of a workflow with one kind of wait, as the sweeper counts them.
METRIC_OPEN: Final = "OpenExecutions"
# For each pool: the number of tasks that wait, the number of workers that are present, and the time
# for which the oldest task has waited.
METRIC_POOL_WAITING: Final = "PoolWaiting"
METRIC_POOL_WORKERS: Final = "PoolWorkers"
METRIC_POOL_OLDEST: Final = "PoolOldestSeconds"
# The metrics in `METRICS_IN_LOGS_ONLY` are only fields of log lines, and CloudWatch stores no
# metric for them.
METRIC_LEASES_EXPIRED: Final = "LeasesExpired"
METRIC_APPEND_CONFLICTS: Final = "AppendConflicts"
METRIC_OPERATOR_ACTIONS: Final = "OperatorActions"
METRIC_LOG_EVENTS_LOST: Final = "LogEventsLost"
METRICS_IN_LOGS_ONLY: Final = frozenset(
    {
        *(METRIC_LEASES_EXPIRED, METRIC_APPEND_CONFLICTS, METRIC_OPERATOR_ACTIONS, METRIC_OPEN),
        *(METRIC_POOL_WAITING, METRIC_POOL_WORKERS, METRIC_POOL_OLDEST),
        METRIC_LOG_EVENTS_LOST,
    }
)
METRICS_BY_WORKFLOW: Final = frozenset({METRIC_EXECUTIONS_ENDED, METRIC_EXECUTIONS_FAILED})

# The path of the pages behind signed links to questions. The token in the path authorises the
# request, so the routes need no authoriser. A stack has them when its setting `forms` is on.
FORMS_PATH: Final = "/forms/"
FORM_ROUTES: Final = (f"GET {FORMS_PATH}{{token}}", f"POST {FORMS_PATH}{{token}}")

# The source and the type of the event that the default event bus gets when a question to a person
# opens. `runtime/question_events.py` creates its detail.
QUESTION_SOURCE: Final = "holdfast.questions"
QUESTION_DETAIL_TYPE: Final = "Holdfast Question Opened"
#: The type of the event at the time of a reminder, if the question is still open.
QUESTION_REMINDER_TYPE: Final = "Holdfast Question Reminder"

# All routes of the HTTP API, in the form of API Gateway's route keys.
ROUTES: Final = (
    "POST /",
    "POST /executions",
    "GET /executions",
    "GET /counts",
    "GET /executions/{id}",
    "GET /executions/{id}/history",
    "POST /executions/{id}/stop",
    "POST /executions/{id}/retry",
    "POST /executions/{id}/pause",
    "POST /executions/{id}/resume",
    "POST /executions/{id}/priority",
    "POST /executions/{id}/skip",
    "POST /executions/{id}/fork",
    "POST /executions/{id}/migration",
    "GET /positions",
    "GET /definitions/{hash}",
    "POST /bulk",
    "GET /pauses",
    "POST /pauses",
    "GET /limits",
    "GET /limits/{name}",
    "POST /limits/{name}",
    "GET /schedules",
    "POST /schedules",
    "GET /schedules/{name}",
    "POST /schedules/{name}/pause",
    "POST /schedules/{name}/resume",
    "POST /schedules/{name}/backfill",
    "DELETE /schedules/{name}",
    "POST /events",
    "GET /events",
    "POST /events/drop",
    "POST /requests",
    "GET /requests/{id}",
    "POST /answers",
    "GET /questions",
    "GET /questions/{id}",
    "POST /questions/{id}/answer",
    "POST /questions/{id}/claim",
    "POST /questions/{id}/release",
    "POST /questions/{id}/delegate",
    "GET /pools",
    "POST /pools/{name}/announce",
    "POST /pools/{name}/poll",
    "POST /pools/{name}/fetch",
    "POST /pools/{name}/heartbeat",
    "POST /pools/{name}/answer",
    "GET /doctor",
    "POST /doctor",
    "GET /workflows",
    "POST /workflows",
    "GET /workflows/{name}",
    "DELETE /workflows/{name}",
    "GET /format",
    "POST /format",
)
