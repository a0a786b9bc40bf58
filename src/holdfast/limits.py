"""The bounds of the engine: value, unit in the name, and where it comes from."""

from __future__ import annotations

from typing import Final

# -- The front door (our choice) -------------------------------------------------------------------
BODY_BYTES_MAX: Final = 5_000_000
VALUE_BYTES_MAX: Final = 64_000_000
#: KMS Encrypt takes no more in one call.
SECRET_BYTES_MAX: Final = 4_096
EVENT_BYTES_MAX: Final = 900_000
# the bound of an input or output in a larger answer; Lambda's answer has at most 6 MB
SHOWN_BYTES_MAX: Final = 1_000_000
# the bound of one page of a history, as sent: Lambda's answer has at most 6 MB
PAGE_BYTES_MAX: Final = 4_000_000
JSON_DEPTH_MAX: Final = 64
NAME_CHARACTERS_MAX: Final = 80  # Step Functions quota: execution and state names
BUSINESS_KEY_CHARACTERS_MAX: Final = 1_024

# -- AWS quotas ------------------------------------------------------------------------------------
SQS_DELAY_SECONDS_MAX: Final = 900
SQS_BATCH_ENTRIES_MAX: Final = 10
SQS_MESSAGE_BYTES_MAX: Final = 1_048_576
#: Lambda takes and returns 6 MiB in a synchronous call.
GROUP_PAYLOAD_BYTES_MAX: Final = 6_000_000
BATCH_GET_MAX: Final = 100  # keys in one BatchGetItem
DYNAMODB_ITEM_BYTES_MAX: Final = 400 * 1024
ERROR_CHARACTERS_MAX: Final = 256  # Step Functions API: error
CAUSE_CHARACTERS_MAX: Final = 32_768  # Step Functions API: cause
# the bound of a failed attempt's traceback, which is kept in its event
TRACEBACK_CHARACTERS_MAX: Final = 4_096
PAYLOAD_BYTES_MAX: Final = 262_144  # Step Functions: input or output of a state machine's state
DEFINITION_BYTES_MAX: Final = 1_048_576  # Step Functions API: definition

# -- The log (our choice; the reasons are in docs/reference/log.md) --------------------------------
WRITE_UNIT_BYTES: Final = 1_024  # DynamoDB: one write unit
# a worker closes a record at this size, below the 400 KB of an item
RECORD_BYTES_MAX: Final = 350_000
VALUE_INLINE_BYTES_MAX: Final = 16_384  # the size of a compressed value above which it goes to S3
VALUE_INTERN_BYTES_MIN: Final = 64  # longer values are stored once and referred to
LIST_PREFIX_ITEMS_MIN: Final = 8  # a shorter list is written again when it grows
MESSAGE_INPUT_BYTES_MAX: Final = 200_000  # a larger value of a message travels through S3
START_INPUT_BYTES_MAX: Final = 8_192  # a larger input costs less as a blob than as write units
SNAPSHOT_BYTES_MIN: Final = 16_384  # no snapshot before this many bytes of log
SNAPSHOT_RATIO: Final = 4  # ... nor before this many times its own size
PURE_STATES_PER_RECORD_MAX: Final = 1_000
# the events of one execution, 200 times what AWS allows, so that an endless loop ends
EVENTS_MAX: Final = 5_000_000
# The maximum of lanes for one Parallel or inline Map. AWS's 25,000 events leave room for no more:
# an iteration has four events.
LANES_MAX: Final = 6_250
LOAD_RECORDS_WITHOUT_HINT: Final = 8
NEWER_RECORDS_MAX: Final = 40  # with so many unknown records a process loads the log anew
# Logs that a worker process keeps between deliveries. They are compressed when stored: in memory a
# byte becomes about 40.
WARM_LOG_BYTES_MAX: Final = 1_000_000
WARM_LOGS_BYTES_MAX: Final = 2_000_000

# -- The worker ------------------------------------------------------------------------------------
CLOCK_ERROR_MS: Final = 500  # epsilon: how far a host's clock may be from the truth
VISIBILITY_SECONDS: Final = 120
VISIBILITY_EXTENSION_SECONDS: Final = 60
LIMIT_MARGIN_MS: Final = 3_000  # an invocation stops writing this long before its end
HIDDEN_SECONDS_MAX: Final = 11 * 3_600  # SQS hides a message for at most 12 hours from its receipt
READ_BACK_QUERIES_MAX: Final = 20  # queries of 100 records each
CLAIM_SECONDS_DEFAULT: Final = 60  # the length of a lease for an attempt without a time-out
#: The longest silence of a worker of a pool, for a task without a heartbeat of its own.
POOL_HEARTBEAT_SECONDS: Final = 60
#: The same for a container of ECS, which is fetched and started within this time.
CONTAINER_HEARTBEAT_SECONDS: Final = 300
CLAIM_GRACE_MS: Final = 5_000
# a retry that runs this long after its due time takes a lease; before OVERDUE_SECONDS
CLAIM_LATE_MS: Final = 30_000
INLINE_TIMEOUT_SECONDS_MAX: Final = 14 * 60  # a Lambda function ends after 15 minutes
#: The same under `serve`, where no function ends.
LOCAL_TIMEOUT_SECONDS_MAX: Final = 24 * 3_600
# an execution older than this is opened: it gets a watchdog row and a list entry
FIRST_HOLD_MS: Final = 5_000
FAST_PATH_TIMEOUT_SECONDS_MAX: Final = 60
RACES_MAX: Final = 9  # the number of consecutive lost races, each followed by a load of the log
TAKEOVERS_MAX: Final = 3  # after this many take-overs, the next lost worker fails the attempt
# the next take-over runs alone in its batch, so that a crash affects no other message
TAKEOVERS_IN_COMPANY_MAX: Final = 1
# attempts of one execution that run at the same time in one invocation
ATTEMPTS_IN_FLIGHT_MAX: Final = 40
MAX_CONCURRENCY_DEFAULT: Final = 40
# running children of one distributed Map; a definition may ask for fewer
CHILDREN_AT_ONCE_MAX: Final = 100
# the length of an execution's id, which is part of sort keys of 1,024 bytes
RUN_CHARACTERS_MAX: Final = 900
# the nesting of child executions: an id contains its parents' ids, and a key has 1,024 bytes
CHILD_DEPTH_MAX: Final = 50
# the size of one object that an ItemReader reads, compressed or not; AWS: 10 GB
READER_BYTES_MAX: Final = 64 * 1024 * 1024
# the size of one field of a CSV file; AWS bounds the whole item instead
READER_ITEM_BYTES_MAX: Final = 8 * 1024 * 1024
READER_ITEMS_MAX: Final = 10_000  # items of one distributed Map, which its parent's log holds
RESULT_FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # the size of one file of results; AWS: 5 GB

# The validity of a state machine's callback token, from the execution's start: AWS lets an
# execution run for a year.
CALLBACK_SECONDS_MAX: Final = 366 * 86_400
RETRY_DELAY_SECONDS_MAX: Final = 31_622_400  # ASL: MaxDelaySeconds, one year
STATE_SECONDS_MAX: Final = 99_999_999  # Step Functions: Seconds, TimeoutSeconds, HeartbeatSeconds
EXPRESS_SECONDS_MAX: Final = 300  # Step Functions quota: an express execution
# the number of consecutive lost races of one heartbeat's write before it is refused
HEARTBEAT_RACES_MAX: Final = 9
POLL_SECONDS_MAX: Final = 60  # our choice: the longest time between two polls of a job
STATUS_TEXT_BYTES_MAX: Final = 253_952  # AWS: a status event holds no more of input and output
QUESTION_DETAILS_BYTES_MAX: Final = 100_000  # our choice: an event on the bus holds no more details

# -- The sweeper -----------------------------------------------------------------------------------
QUESTION_RETENTION_SECONDS: Final = 5 * 365 * 86_400  # of the row of a question without a deadline
QUESTION_REMINDERS_MAX: Final = 10  # our choice: of one question
# During a pause with frozen timers a due reminder waits for so long, then again.
REMINDER_FROZEN_SECONDS: Final = 3_600
QUESTION_SHARDS: Final = 4  # partitions of the inbox of people: 4,000 new questions a second
SEARCH_SHARDS: Final = 4  # partitions of each search attribute: 4,000 new executions a second
DUE_SHARDS: Final = 16
START_SHARDS: Final = 8  # partitions of the rows of started executions of one state machine
STARTS_DUE_SHARDS: Final = 16  # partitions of the rows by which the sweeper finds lost starts
# the lifetime of a row of a start: the sweeper reads it within an hour
START_RETENTION_SECONDS: Final = 14 * 86_400
LIST_READ_MAX: Final = 2_000  # entries of one partition that a filtered query of the list reads
SWEEP_SECONDS: Final = 60
SWEEP_AHEAD_SECONDS: Final = 60
SWEEP_ROWS_MAX: Final = 1_000  # rows of a page: one that the sweeper itself works off in each shard
SWEEP_PAGES_MAX: Final = 60  # further pages of a shard, for workers; a minute later come the rest
OPEN_COUNT_MINUTES: Final = 5  # the sweeper counts open executions for the dashboard so often
OPEN_COUNT_PARTS_MAX: Final = 10  # of one count; each reads up to 2,000 entries of 12 partitions
STARTS_SWEEP_PAGE: Final = 100  # rows of starts after which the sweeper stores its place
STARTS_SWEEP_ROWS_MAX: Final = 4_000  # rows of starts, per shard and sweep
STARTS_SWEEP_MS: Final = 15_000  # after so long a shard's other rows of starts wait for a minute
# A long wait becomes a delayed message this long before its end: with the sweep's 60 s ahead and
# the clock error it stays within the 900 s that a message can be delayed.
TIMER_ROW_LEAD_SECONDS: Final = 780
WATCH_GRID_SECONDS: Final = 120
WATCH_LOOK_SECONDS_MIN: Final = 3_600
WATCH_LOOK_SECONDS_MAX: Final = 7 * 86_400
WATCH_PARKED_FACTOR: Final = 4
OVERDUE_SECONDS: Final = 60
WATCH_WITHOUT_LOG_SECONDS_MAX: Final = 86_400
DEAD_LETTER_BATCHES_MAX: Final = 10  # batches of ten dead letters that one sweep takes from a queue
DEAD_LETTER_ROUNDS_MAX: Final = 2  # the third dead letter of an execution puts it into quarantine
# `doctor` reports work that is later than this: a visibility time-out and a sweep have passed
STUCK_SECONDS: Final = 300
# One page of `doctor` ends after so many reads: an execution counts as one, and so does a partition
# of the list. A page without a bound could outlast the function that computes it.
DOCTOR_EXAMINED_MAX: Final = 200

# -- Schedules (docs/how-to/schedule.md) -----------------------------------------------------------
SCHEDULE_NAME_CHARACTERS_MAX: Final = 60  # the names of its executions append the nominal time
SCHEDULE_BURST_MAX: Final = (
    20  # starts of one schedule in a minute, when it makes up for past times
)
SCHEDULE_OPEN_MAX: Final = 100  # executions that a schedule follows to their end
SCHEDULE_UNKNOWN_MS: Final = 3_600_000  # so long a nominal time waits for code with its workflow

# -- Retention -------------------------------------------------------------------------------------
RECORD_RETENTION_SECONDS: Final = 90 * 86_400
WAIT_ROW_KEPT_SECONDS: Final = 3 * 3_600  # after the end: longer than a worker may be frozen
SEARCH_RETENTION_SECONDS: Final = 2 * RECORD_RETENTION_SECONDS  # an end keeps its log as long
# A worker writes a snapshot to a log whose oldest needed record is older than this, before TTL
# deletes the record.
RECORD_AGING_SECONDS: Final = 45 * 86_400
# No snapshot renews an ended execution. The oldest record that its last record needs is at most
# this much older than the last one, unless the last record holds a snapshot.
END_SPAN_SECONDS_MAX: Final = 86_400
# An ended execution stays in the list for this time, and every listed execution can be read.
ENDED_RETENTION_SECONDS: Final = RECORD_RETENTION_SECONDS - END_SPAN_SECONDS_MAX
# A name must expire before the log that it names, although TTL is late by up to 2 days. A start
# that finds the name must find the log too, or it would run the execution a second time. While the
# execution is open its name is extended by this time; after its end, never.
NAME_RETENTION_SECONDS: Final = 75 * 86_400
# After this time the sweeper stops sending a start without a log again: another execution may then
# get its name.
START_RESENT_SECONDS_MAX: Final = 70 * 86_400
# Each recovering delivery extends the name of an execution that is older than this.
NAME_EXTENSION_SECONDS: Final = 30 * 86_400
# every snapshot stores its blobs again, so a blob is younger than its log
BLOB_RETENTION_DAYS: Final = 180
# A stack with an archive stores an ended execution there after this time.
ARCHIVE_AFTER_SECONDS: Final = 3_600
ARCHIVE_PAGE_ROWS: Final = 25  # executions that one message tells a worker to archive
# After this time the archiver reads an execution again whose log cannot be read.
ARCHIVE_REFUSED_SECONDS: Final = 86_400
EVENT_RETENTION_SECONDS: Final = 14 * 86_400
CONTROL_RETENTION_SECONDS: Final = 90 * 86_400
TOKEN_SECONDS_MAX: Final = 366 * 86_400

# -- Limits of what tasks call (docs/explanation/flow-control.md) ----------------------------------
# starts of one gate: a partition takes 1,000 writes a second
GATE_STARTS_PER_SECOND_MAX: Final = 200
GATE_HOLDERS_MAX: Final = 40  # permits of one gate, all stored in one item
GATE_RETENTION_SECONDS: Final = 3_600  # TTL deletes the item of a gate that is idle for this time
GATE_AHEAD_MS: Final = 2_000  # how far ahead a dispenser gives out the tokens of a rate
GATE_TOKEN_MS: Final = 3_000  # a token stays valid for this long after its time
# how long a granted permit waits for the worker that receives its wake
GATE_HANDOVER_MS: Final = 20_000
# the longest time between two ticks of a queue for permits, in case a release is lost
GATE_TICK_MS_MAX: Final = 60_000
GATE_KEPT_MS: Final = 30_000  # how long an attempt keeps a permit while it waits at another gate
# the part of a concurrency limit's places that remains after a refused call
GATE_SLOW_FACTOR: Final = 0.85
# the part of a rate's speed that remains, besides one start less for each refused call
GATE_SLOW_MARGIN: Final = 0.97
# the least part of the first refusal's speed to which later refusals slow a limit
GATE_SLOW_FLOOR: Final = 1 / 16
SERVICE_PAUSE_MS: Final = 1_000  # how long a limit closes after an AWS service has throttled a call
GATE_SLOW_MS: Final = 2_000  # a limit is slowed at most once in this time
# a slowed limit keeps this part of its speed, in thousandths
GATE_FACTOR_MIN: Final = 50
GATE_PROBE_MS: Final = 30_000  # how long after its plateau a slowed limit doubles its speed
GATE_TRIPPED_FACTOR: Final = 0.1  # the speed of the probes after a circuit breaker has tripped
GATE_GRANTS_MAX: Final = 400  # grants of one tick
# the lifetime of a limit's change after a later change has replaced it
LIMIT_CHANGE_RETENTION_SECONDS: Final = 400 * 86_400
# starts of attempts and executions that a pause of a task, a workflow or the stack has held
RESUME_PER_SECOND: Final = 50
# how long a host uses the settings of a limit before it reads them again
LIMIT_SETTINGS_MS: Final = 5_000

# -- Answers of services ---------------------------------------------------------------------------
#: Codes by which a service of AWS refuses a call because there were too many.
AWS_THROTTLING_CODES: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        # SQS's error when the key of an encrypted queue is used too often.
        "KMS.ThrottlingException",
        "KmsThrottled",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)

#: A request is an event of the name of its kind with this at its end. Its data is the id of the
#: request, and what the caller asks. It is here because workflows, the compiler and the runtime
#: share it.
REQUEST_SUFFIX: Final = "?"
