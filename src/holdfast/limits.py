"""The bounds of the engine: value, unit in the name, and where it comes from."""

from __future__ import annotations

from typing import Final

# -- The front door (our choice) -------------------------------------------------------------------
BODY_BYTES_MAX: Final = 5_000_000
VALUE_BYTES_MAX: Final = 64_000_000
#: KMS Encrypt takes no more in one call.
SECRET_BYTES_MAX: Final = 4_096
EVENT_BYTES_MAX: Final = 900_000
SHOWN_BYTES_MAX: Final = 1_000_000  # an input or output beside others; Lambda answers with 6 MB
PAGE_BYTES_MAX: Final = 4_000_000  # of a history, as it is sent: Lambda answers with 6 MB
JSON_DEPTH_MAX: Final = 64
NAME_CHARACTERS_MAX: Final = 80  # Step Functions quota: execution and state names
BUSINESS_KEY_CHARACTERS_MAX: Final = 1_024

# -- AWS quotas ------------------------------------------------------------------------------------
SQS_DELAY_SECONDS_MAX: Final = 900
SQS_BATCH_ENTRIES_MAX: Final = 10
SQS_MESSAGE_BYTES_MAX: Final = 1_048_576
BATCH_GET_MAX: Final = 100  # keys in one BatchGetItem
DYNAMODB_ITEM_BYTES_MAX: Final = 400 * 1024
ERROR_CHARACTERS_MAX: Final = 256  # Step Functions API: error
CAUSE_CHARACTERS_MAX: Final = 32_768  # Step Functions API: cause
TRACEBACK_CHARACTERS_MAX: Final = 4_096  # a failed attempt's, in its event
PAYLOAD_BYTES_MAX: Final = 262_144  # Step Functions: input or output of a state machine's state
DEFINITION_BYTES_MAX: Final = 1_048_576  # Step Functions API: definition

# -- The log (our choice; the reasons are in docs/reference/log.md) --------------------------------
WRITE_UNIT_BYTES: Final = 1_024  # DynamoDB: one write unit
RECORD_BYTES_MAX: Final = 350_000  # a record is closed here, below the 400 KB item
VALUE_INLINE_BYTES_MAX: Final = 16_384  # compressed; larger values go to S3
VALUE_INTERN_BYTES_MIN: Final = 64  # longer values are stored once and referred to
MESSAGE_INPUT_BYTES_MAX: Final = 200_000  # a larger value of a message travels through S3
START_INPUT_BYTES_MAX: Final = 8_192  # a larger input costs less as a blob than as write units
SNAPSHOT_BYTES_MIN: Final = 16_384  # no snapshot before this many bytes of log
SNAPSHOT_RATIO: Final = 4  # ... nor before this many times its own size
PURE_STATES_PER_RECORD_MAX: Final = 1_000
EVENTS_MAX: Final = 5_000_000  # of one execution, 200 times what AWS allows: a loop without an end
# The maximum for one Parallel or inline Map. AWS's 25,000 events leave room for no more: an
# iteration has four.
LANES_MAX: Final = 6_250
LOAD_RECORDS_WITHOUT_HINT: Final = 8

# -- The worker ------------------------------------------------------------------------------------
CLOCK_ERROR_MS: Final = 500  # epsilon: how far a host's clock may be from the truth
VISIBILITY_SECONDS: Final = 120
VISIBILITY_EXTENSION_SECONDS: Final = 60
LIMIT_MARGIN_MS: Final = 3_000  # an invocation stops writing this long before its end
HIDDEN_SECONDS_MAX: Final = 11 * 3_600  # SQS hides for 12 hours from the receipt at most
READ_BACK_QUERIES_MAX: Final = 20  # of 100 records
CLAIM_SECONDS_DEFAULT: Final = 60  # for an attempt without a timeout
CLAIM_GRACE_MS: Final = 5_000
CLAIM_LATE_MS: Final = 30_000  # so long after it was due a retry is claimed; before OVERDUE_SECONDS
INLINE_TIMEOUT_SECONDS_MAX: Final = 14 * 60
FIRST_HOLD_MS: Final = 5_000  # a run older than this is opened: watched and listed
FAST_PATH_TIMEOUT_SECONDS_MAX: Final = 60
RACES_MAX: Final = 9  # reloads after lost races in a row
TAKEOVERS_MAX: Final = 3  # the next one is a failed attempt
TAKEOVERS_IN_COMPANY_MAX: Final = 1  # the next one is alone in its batch, lest others die with it
ATTEMPTS_IN_FLIGHT_MAX: Final = 40  # per run and invocation
MAX_CONCURRENCY_DEFAULT: Final = 40
CHILDREN_AT_ONCE_MAX: Final = 100  # of one distributed Map; a definition may ask for fewer
RUN_CHARACTERS_MAX: Final = 900  # of an execution's id: part of sort keys of 1,024 bytes
CHILD_DEPTH_MAX: Final = 50  # executions in one another: their ids are parts of keys of 1,024 bytes
READER_BYTES_MAX: Final = 64 * 1024 * 1024  # of one object, compressed or not; AWS: 10 GB
READER_ITEM_BYTES_MAX: Final = 8 * 1024 * 1024  # one field of a CSV; AWS bounds the item
READER_ITEMS_MAX: Final = 10_000  # of one distributed Map: its parent's log holds them
RESULT_FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # of one file of results; AWS: 5 GB

# A state machine's callback token, from the execution's start: AWS lets an execution run a year.
CALLBACK_SECONDS_MAX: Final = 366 * 86_400
RETRY_DELAY_SECONDS_MAX: Final = 31_622_400  # ASL: MaxDelaySeconds, one year
STATE_SECONDS_MAX: Final = 99_999_999  # Step Functions: Seconds, TimeoutSeconds, HeartbeatSeconds
EXPRESS_SECONDS_MAX: Final = 300  # Step Functions quota: an express execution
HEARTBEAT_RACES_MAX: Final = 9  # writes of one heartbeat that others were before, in a row
POLL_SECONDS_MAX: Final = 60  # our choice: between two questions after the end of a job
STATUS_TEXT_BYTES_MAX: Final = 253_952  # AWS: a status event holds no more of input and output
QUESTION_DETAILS_BYTES_MAX: Final = 100_000  # our choice: an event on the bus holds no more details

# -- The sweeper -----------------------------------------------------------------------------------
QUESTION_SHARDS: Final = 4  # partitions of the inbox of people: 4,000 new questions a second
DUE_SHARDS: Final = 16
START_SHARDS: Final = 8  # of the rows of started executions of one state machine
STARTS_DUE_SHARDS: Final = 8  # of the rows by which the sweeper finds lost starts
START_RETENTION_SECONDS: Final = 14 * 86_400  # of such a row: the sweeper reads it within an hour
LIST_READ_MAX: Final = 2_000  # entries of one partition that a filtered query of the list reads
SWEEP_SECONDS: Final = 60
SWEEP_AHEAD_SECONDS: Final = 60
SWEEP_ROWS_MAX: Final = 1_000  # per shard and sweep; the rest is due again in a minute
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
DEAD_LETTER_BATCHES_MAX: Final = 10  # of ten, per queue and sweep
DEAD_LETTER_ROUNDS_MAX: Final = 2  # the third time round is quarantine
STUCK_SECONDS: Final = 300  # by more something is late: visibility and a sweep have passed
DOCTOR_EXAMINED_MAX: Final = 200  # executions, and list partitions, of one page of a report

# -- Schedules (docs/how-to/schedule.md) -----------------------------------------------------------
SCHEDULE_NAME_CHARACTERS_MAX: Final = 60  # its executions' names add the nominal time
SCHEDULE_BURST_MAX: Final = (
    20  # starts of one schedule in a minute, when it makes up for past times
)
SCHEDULE_OPEN_MAX: Final = 100  # executions that a schedule follows to their end
SCHEDULE_UNKNOWN_MS: Final = 3_600_000  # so long a nominal time waits for code with its workflow

# -- Retention -------------------------------------------------------------------------------------
RECORD_RETENTION_SECONDS: Final = 90 * 86_400
# A log whose oldest needed record is older than this is written a snapshot, while there is time.
RECORD_AGING_SECONDS: Final = 45 * 86_400
# An ended execution is not renewed: the oldest record that its last one needs is not older than
# that by more than this, or the last one holds a snapshot.
END_SPAN_SECONDS_MAX: Final = 86_400
# So long after its end an execution is listed, and all that is listed can be read.
ENDED_RETENTION_SECONDS: Final = RECORD_RETENTION_SECONDS - END_SPAN_SECONDS_MAX
# A name must expire before the log that it names, although TTL is late by up to 2 days. A start
# that finds the name must find the log too, or it would run the execution a second time. While the
# execution is open its name is extended by this time; after its end, never.
NAME_RETENTION_SECONDS: Final = 75 * 86_400
# A start without a log is not sent again after so long: then another execution may get its name.
START_RESENT_SECONDS_MAX: Final = 70 * 86_400
# Older executions keep their name alive with each recovering delivery.
NAME_EXTENSION_SECONDS: Final = 30 * 86_400
BLOB_RETENTION_DAYS: Final = 180  # every snapshot stores its blobs again, so younger than a log
EVENT_RETENTION_SECONDS: Final = 14 * 86_400
CONTROL_RETENTION_SECONDS: Final = 90 * 86_400
TOKEN_SECONDS_MAX: Final = 366 * 86_400

# -- Limits of what tasks call (docs/explanation/flow-control.md) ----------------------------------
GATE_STARTS_PER_SECOND_MAX: Final = 200  # of one gate: a partition takes 1,000 writes a second
GATE_HOLDERS_MAX: Final = 40  # permits of one gate: they are in one item
GATE_RETENTION_SECONDS: Final = 3_600  # an idle gate's item goes after so long
GATE_AHEAD_MS: Final = 2_000  # A dispenser gives out the tokens of a rate this far ahead
GATE_TOKEN_MS: Final = 3_000  # so long after its time a token may be used
GATE_HANDOVER_MS: Final = 20_000  # so long a permit waits for the worker that its wake finds
GATE_TICK_MS_MAX: Final = 60_000  # between two ticks of a queue before permits: a lost release
GATE_KEPT_MS: Final = 30_000  # so long an attempt keeps a permit while it waits at another gate
GATE_SLOW_FACTOR: Final = 0.85  # of the places of a concurrency, after a call was refused
GATE_SLOW_MARGIN: Final = 0.97  # of the speed of a rate, besides one start for each refused call
GATE_SLOW_FLOOR: Final = 1 / 16  # of the speed at the first refusal, for those that follow it
SERVICE_PAUSE_MS: Final = 1_000  # a limit closes for so long after an AWS service throttled a call
GATE_SLOW_MS: Final = 2_000  # the limit is slowed at most once in so long
GATE_PROBE_MS: Final = 30_000  # a slowed limit doubles its speed so long after its plateau
GATE_TRIPPED_FACTOR: Final = 0.1  # the speed of the probes after a circuit breaker has tripped
GATE_GRANTS_MAX: Final = 400  # of one tick
LIMIT_CHANGE_RETENTION_SECONDS: Final = 400 * 86_400  # a replaced change of a limit
RESUME_PER_SECOND: Final = 50  # of what a pause of a task, a workflow or the stack has held
LIMIT_SETTINGS_MS: Final = 5_000  # so long a host uses the settings of a limit that it has read

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
