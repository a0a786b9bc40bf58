"""The limits of the engine. Each name contains the unit, and each comment the source of the
number.
"""

from __future__ import annotations

from typing import Final

# -- The API (our choice) --------------------------------------------------------------------------
BODY_BYTES_MAX: Final = 5_000_000
VALUE_BYTES_MAX: Final = 64_000_000
#: KMS Encrypt accepts at most this many bytes in one call.
SECRET_BYTES_MAX: Final = 4_096
EVENT_BYTES_MAX: Final = 900_000
# A response of Lambda has at most 6 MB. If an answer would be larger, an input or output above this
# size is left out of it.
SHOWN_BYTES_MAX: Final = 1_000_000
# The size of one page of a history as it is sent. A response of Lambda has at most 6 MB.
PAGE_BYTES_MAX: Final = 4_000_000
JSON_DEPTH_MAX: Final = 64
NAME_CHARACTERS_MAX: Final = 80  # Step Functions quota: execution and state names
BUSINESS_KEY_CHARACTERS_MAX: Final = 1_024

# -- AWS quotas ------------------------------------------------------------------------------------
SQS_DELAY_SECONDS_MAX: Final = 900
SQS_BATCH_ENTRIES_MAX: Final = 10
SQS_MESSAGE_BYTES_MAX: Final = 1_048_576
#: The most bytes of a call of a group's function. Lambda accepts and returns 6 MiB in a synchronous
#: call.
GROUP_PAYLOAD_BYTES_MAX: Final = 6_000_000
BATCH_GET_MAX: Final = 100  # keys in one BatchGetItem
DYNAMODB_ITEM_BYTES_MAX: Final = 400 * 1024
ERROR_CHARACTERS_MAX: Final = 256  # Step Functions API: error
CAUSE_CHARACTERS_MAX: Final = 32_768  # Step Functions API: cause
# The length of the traceback of a failed attempt, which its event stores.
TRACEBACK_CHARACTERS_MAX: Final = 4_096
PAYLOAD_BYTES_MAX: Final = 262_144  # Step Functions: input or output of a state machine's state
HISTORY_EVENTS_MAX: Final = 25_000  # Step Functions: events of a standard execution, where on
DEFINITION_BYTES_MAX: Final = 1_048_576  # Step Functions API: definition

# -- The log (our choice; the reasons are in docs/reference/log.md) --------------------------------
WRITE_UNIT_BYTES: Final = 1_024  # DynamoDB: one write unit
# A worker closes a record at this size, so that the record stays below the 400 KB of an item.
RECORD_BYTES_MAX: Final = 350_000
VALUE_INLINE_BYTES_MAX: Final = 16_384  # a compressed value above this size is stored in S3
VALUE_INTERN_BYTES_MIN: Final = 64  # longer values are stored once and referred to
LIST_PREFIX_ITEMS_MIN: Final = 8  # a shorter list is written as a whole when it grows
MESSAGE_INPUT_BYTES_MAX: Final = 200_000  # a larger value in a message is sent through S3
START_INPUT_BYTES_MAX: Final = 8_192  # a larger input costs less as a blob than as write units
# A worker writes no snapshot before the log has this many bytes since the last one.
SNAPSHOT_BYTES_MIN: Final = 16_384
# A worker writes no snapshot either before the log since the last one is this many times as large
# as a snapshot.
SNAPSHOT_RATIO: Final = 4
PURE_STATES_PER_RECORD_MAX: Final = 1_000
# Our choice: a cancelled line may still schedule so many Tasks that do not wait, as `send`. The
# next one is cancelled, so that a stop ends a loop that never waits.
PLAIN_TASKS_WHEN_CANCELLED_MAX: Final = 1_000
# The most events of one execution, which is 200 times AWS's limit. With it an endless loop ends.
EVENTS_MAX: Final = 5_000_000
# The most branches or iterations of one Parallel or inline Map. AWS's 25,000 events allow no more,
# because an iteration has four events.
LANES_MAX: Final = 6_250
LOAD_RECORDS_WITHOUT_HINT: Final = 8
NEWER_RECORDS_MAX: Final = 40  # with more unknown records a process loads the whole log again
# The size of one log that a worker process keeps between deliveries, and of all of them together.
# The size is that of the compressed records; in memory each byte becomes about 40.
WARM_LOG_BYTES_MAX: Final = 1_000_000
WARM_LOGS_BYTES_MAX: Final = 2_000_000

# -- The worker ------------------------------------------------------------------------------------
CLOCK_ERROR_MS: Final = 500  # how far a host's clock may be wrong
VISIBILITY_SECONDS: Final = 120
VISIBILITY_EXTENSION_SECONDS: Final = 60
LIMIT_MARGIN_MS: Final = 3_000  # an invocation stops writing this long before its end
HIDDEN_SECONDS_MAX: Final = 11 * 3_600  # SQS hides a message for at most 12 hours from its receipt
# A worker makes at most this many queries for older records, each of 100 records.
READ_BACK_QUERIES_MAX: Final = 20
CLAIM_SECONDS_DEFAULT: Final = 60  # the length of a lease for an attempt without a time-out
#: The longest time without a heartbeat of a pool's worker, for a task that declares no heartbeat.
POOL_HEARTBEAT_SECONDS: Final = 60
#: The same for a container of ECS. Within this time ECS must fetch the image and start the
#: container.
CONTAINER_HEARTBEAT_SECONDS: Final = 300
#: How long `holdfast pools` lists a pool after an execution has last chosen it at run time.
CHOSEN_POOL_DAYS: Final = 7
CLAIM_GRACE_MS: Final = 5_000
# An attempt of a retry takes a lease when it has run for this long after its due time. It must be
# less than OVERDUE_SECONDS. Otherwise the sweeper would report the attempt as overdue.
CLAIM_LATE_MS: Final = 30_000
INLINE_TIMEOUT_SECONDS_MAX: Final = 14 * 60  # a Lambda function ends after 15 minutes
#: The longest time-out of a task under `holdfast serve`, where no Lambda function ends the task.
LOCAL_TIMEOUT_SECONDS_MAX: Final = 24 * 3_600
# A worker gives an execution a watchdog row and an entry in the list of executions when it is older
# than this. By the row the sweeper finds it after a crash. Shorter executions save these two
# writes.
FIRST_HOLD_MS: Final = 5_000
FAST_PATH_TIMEOUT_SECONDS_MAX: Final = 60
# After this many commits in a row that failed because another worker had written first, the worker
# gives up. After each of them it loads the log again.
RACES_MAX: Final = 9
# An event starts at most so many executions of a keyed workflow that end without using any event.
# It stays with the last of them.
KEYED_EXECUTIONS_MAX: Final = 5
TAKEOVERS_MAX: Final = 3  # after this many take-overs, the next crash fails the attempt
# After this many take-overs of an attempt, the next worker gets the message of the attempt alone in
# its batch. Then a further crash affects no other message.
TAKEOVERS_IN_COMPANY_MAX: Final = 1
# The most attempts of one execution that run at the same time in one invocation.
ATTEMPTS_IN_FLIGHT_MAX: Final = 40
MAX_CONCURRENCY_DEFAULT: Final = 40
# The most running children of one distributed Map. A definition may allow fewer.
CHILDREN_AT_ONCE_MAX: Final = 100
# The length of an execution's id. The id is part of sort keys, which have at most 1,024 bytes.
RUN_CHARACTERS_MAX: Final = 900
# The depth to which child executions may be nested. An id contains the ids of the parents, and a
# key has at most 1,024 bytes.
CHILD_DEPTH_MAX: Final = 50
# The size of one object that an ItemReader reads, compressed or not. AWS allows 10 GB.
READER_BYTES_MAX: Final = 64 * 1024 * 1024
# The size of one field of a CSV file. AWS limits the whole item instead.
READER_ITEM_BYTES_MAX: Final = 8 * 1024 * 1024
# The most items of one distributed Map. They are stored in the log of its parent.
READER_ITEMS_MAX: Final = 10_000
RESULT_FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # the size of one file of results; AWS: 5 GB

# The validity of a state machine's callback token from the start of the execution. AWS lets an
# execution run for a year.
CALLBACK_SECONDS_MAX: Final = 366 * 86_400
RETRY_DELAY_SECONDS_MAX: Final = 31_622_400  # ASL: MaxDelaySeconds, one year
STATE_SECONDS_MAX: Final = 99_999_999  # Step Functions: Seconds, TimeoutSeconds, HeartbeatSeconds
EXPRESS_SECONDS_MAX: Final = 300  # Step Functions quota: an express execution
PROGRESS_BYTES_MAX: Final = 8_192  # of a heartbeat; DynamoDB bills each KB of it
# A heartbeat is refused after this many conflicts with other writes in a row.
HEARTBEAT_RACES_MAX: Final = 9
POLL_SECONDS_MAX: Final = 60  # our choice: the longest time between two polls of a job
STATUS_TEXT_BYTES_MAX: Final = 253_952  # AWS: a status event holds no more of input and output
LOG_DATA_BYTES_MAX: Final = 253_952  # AWS: an execution's log holds no more of one escaped input
LOG_BATCH_BYTES_MAX: Final = 1_048_576  # CloudWatch Logs: one PutLogEvents
LOG_BATCH_EVENTS_MAX: Final = 10_000  # CloudWatch Logs: one PutLogEvents
LOG_EVENT_EXTRA_BYTES: Final = 26  # CloudWatch Logs: added to the size of each event
# Our choice: a delivery that has this many events to log, or an event of this age, writes its log
# before its end.
LOG_EVENTS_HELD_MAX: Final = 1_000
LOG_HELD_MS_MAX: Final = 5_000
QUESTION_DETAILS_BYTES_MAX: Final = 100_000  # our choice: an event on the bus holds no more details

# -- The sweeper -----------------------------------------------------------------------------------
# The lifetime of the row of a question that has no deadline.
QUESTION_RETENTION_SECONDS: Final = 5 * 365 * 86_400
# The most reminders of one question. The number is our choice.
QUESTION_REMINDERS_MAX: Final = 10
# During a pause with frozen timers a reminder that is due is checked again after this time.
REMINDER_FROZEN_SECONDS: Final = 3_600
# The lifetime of the row of a start. The sweeper reads the row within an hour.
START_RETENTION_SECONDS: Final = 14 * 86_400
# The most entries of one partition that a filtered query of the list reads. A page first tries with
# fewer.
LIST_READ_MAX: Final = 2_000
LIST_READ_FEW: Final = 200
# The most shards that the sweeper reads at once.
SWEEP_THREADS_MAX: Final = 32
SWEEP_SECONDS: Final = 60
SWEEP_AHEAD_SECONDS: Final = 60
# The most rows of a page. The sweeper itself processes one page of each shard. With more shards its
# own page is smaller.
SWEEP_ROWS_MAX: Final = 1_000
# The sweeper sends this many further pages of a shard to workers. The remaining pages follow a
# minute later.
SWEEP_PAGES_MAX: Final = 60
# The workers receive the further pages of a shard within this time.
SWEEP_HANDED_SECONDS: Final = 50
# The sweeper counts the open executions and the tasks that wait in pools once in this time, for the
# dashboard.
OPEN_COUNT_MINUTES: Final = 5
# The most parts of one count. A part reads up to 2,000 entries of each of 12 partitions.
OPEN_COUNT_PARTS_MAX: Final = 10
# The sweeper stores how far it has read after this many rows of starts.
STARTS_SWEEP_PAGE: Final = 100
# The most rows of starts that one sweep reads in a shard.
STARTS_SWEEP_ROWS_MAX: Final = 8_000
# After this time the remaining rows of starts in a shard wait for the next sweep.
STARTS_SWEEP_MS: Final = 15_000
# The same for a worker that processes one shard for the sweeper.
STARTS_WORKER_MS: Final = 45_000
# The sweeper turns the row of a long timer into a delayed message this long before its end.
# Together with the 60 s that a sweep looks ahead and the clock error, this is less than the 900 s
# by which SQS can delay a message.
TIMER_ROW_LEAD_SECONDS: Final = 780
WATCH_GRID_SECONDS: Final = 120
WATCH_LOOK_SECONDS_MIN: Final = 3_600
WATCH_LOOK_SECONDS_MAX: Final = 7 * 86_400
WATCH_PARKED_FACTOR: Final = 4
OVERDUE_SECONDS: Final = 60
WATCH_WITHOUT_LOG_SECONDS_MAX: Final = 86_400
DEAD_LETTER_BATCHES_MAX: Final = 10  # batches of ten dead letters that one sweep takes from a queue
DEAD_LETTER_ROUNDS_MAX: Final = 2  # the third dead letter of an execution puts it into quarantine
# `doctor` reports work that is late by more than this. By then a visibility time-out and a sweep
# have passed.
STUCK_SECONDS: Final = 300
# One page of `doctor` ends after this many reads. The examination of an execution counts as one,
# and so does a partition of the list. Without this bound a page could take longer than its function
# may run.
DOCTOR_EXAMINED_MAX: Final = 200

# -- Schedules (docs/how-to/schedule.md) -----------------------------------------------------------
# The longest name of a schedule. Its executions have this name with the nominal time after it.
SCHEDULE_NAME_CHARACTERS_MAX: Final = 60
SCHEDULE_BURST_MAX: Final = (
    # The most starts of one schedule in a minute. It counts when the schedule makes up for past
    # times.
    20
)
SCHEDULE_OPEN_MAX: Final = 100  # executions that a schedule follows to their end
# A schedule waits this long after a nominal time for a worker whose code has its workflow.
SCHEDULE_UNKNOWN_MS: Final = 3_600_000

# -- Retention -------------------------------------------------------------------------------------
RECORD_RETENTION_SECONDS: Final = 90 * 86_400
# How long the row in the index of waits stays after the end of its execution. A suspended worker
# must not write the row again after that, and no worker can be suspended for so long.
WAIT_ROW_KEPT_SECONDS: Final = 3 * 3_600
# Search rows live as long as the log of an execution can be needed. They must not expire before it.
SEARCH_RETENTION_SECONDS: Final = 2 * RECORD_RETENTION_SECONDS
# When the oldest record that a load needs is older than this, a worker writes a snapshot. Otherwise
# TTL would delete that record.
RECORD_AGING_SECONDS: Final = 45 * 86_400
# An ended execution gets no new snapshot. So its last record has a snapshot itself, unless the
# oldest record that it needs is older by at most this. Otherwise TTL could delete that record long
# before the last one.
END_SPAN_SECONDS_MAX: Final = 86_400
# How long an ended execution stays in the list. It is shorter than the retention of records, so
# every listed execution can be read.
ENDED_RETENTION_SECONDS: Final = RECORD_RETENTION_SECONDS - END_SPAN_SECONDS_MAX
# A name must expire before the log that it names, although TTL may be late by 2 days. Otherwise a
# start would find the name without its log and run the execution a second time. An open execution
# extends its name by this time again and again, and an ended one does not.
NAME_RETENTION_SECONDS: Final = 75 * 86_400
# The sweeper stops sending a start that has no log after this time. After that, another execution
# may get its name.
START_RESENT_SECONDS_MAX: Final = 70 * 86_400
# A recovering delivery extends the lifetime of the execution's name when the execution is older
# than this.
NAME_EXTENSION_SECONDS: Final = 30 * 86_400
# How long S3 keeps a blob. Every snapshot stores its blobs again, so a blob that is needed is
# younger than this.
BLOB_RETENTION_DAYS: Final = 180
# A stack with an archive stores an execution there this long after its end.
ARCHIVE_AFTER_SECONDS: Final = 3_600
ARCHIVE_PAGE_ROWS: Final = 25  # executions that one message requests a worker to archive
# The archiver tries an execution whose log it could not read again after this time.
ARCHIVE_REFUSED_SECONDS: Final = 86_400
# An execution that has used so many events gets pointers to new ones. Fewer cost less to read.
EVENT_POINTERS_FROM: Final = 100
# A registration that expires earlier is put again by the next wait. It is longer than the longest
# time between two checks of the sweeper, at which a long wait registers again.
REGISTRATION_SECONDS_MIN: Final = 8 * 86_400
# The sweeper itself looks for the unread events of an execution with at most this many waits for
# events. It leaves one with more waits to a worker, because a sweep has a minute for all rows.
EVENT_WAITS_CHECKED_MAX: Final = 4
EVENT_RETENTION_SECONDS: Final = 14 * 86_400
CONTROL_RETENTION_SECONDS: Final = 90 * 86_400
# The longest cache of a task. The blob of a large result lives for BLOB_RETENTION_DAYS.
CACHE_SECONDS_MAX: Final = 90 * 86_400
TOKEN_SECONDS_MAX: Final = 366 * 86_400

# -- Limits of what tasks call (docs/explanation/flow-control.md) ----------------------------------
# The most starts of one gate. Its item is in one partition of DynamoDB, which takes 1,000 writes a
# second.
GATE_STARTS_PER_SECOND_MAX: Final = 200
GATE_HOLDERS_MAX: Final = 40  # permits of one gate, all stored in one item
GATE_RETENTION_SECONDS: Final = 3_600  # TTL deletes the item of a gate that is idle for this time
GATE_AHEAD_MS: Final = 2_000  # a dispenser gives out the tokens of a rate this far ahead
GATE_TOKEN_MS: Final = 3_000  # a token stays valid for this long after its time
# A granted permit waits this long for the worker that receives the attempt's wake.
GATE_HANDOVER_MS: Final = 20_000
# The longest time between two ticks of the queue of a concurrency limit. It repairs the queue when
# a wake is lost.
GATE_TICK_MS_MAX: Final = 60_000
# After a refused call, a concurrency limit keeps this part of its places.
GATE_SLOW_FACTOR: Final = 0.85
# After a refused call, a rate keeps this part of its speed, less one start.
GATE_SLOW_MARGIN: Final = 0.97
# Further refusals do not slow a limit below this part of the speed that it had after the first one.
GATE_SLOW_FLOOR: Final = 1 / 16
SERVICE_PAUSE_MS: Final = 1_000  # how long a limit closes after an AWS service has throttled a call
GATE_SLOW_MS: Final = 2_000  # a limit is slowed at most once in this time
# A slowed limit keeps at least this part of its speed, in thousandths.
GATE_FACTOR_MIN: Final = 50
GATE_PROBE_MS: Final = 30_000  # this long after its slow phase a slowed limit has doubled its speed
GATE_TRIPPED_FACTOR: Final = 0.1  # the speed of the tries after a circuit breaker has opened
# A tick lets at most this many attempts begin.
GATE_GRANTS_MAX: Final = 400
# The lifetime of an earlier change of a limit, which a later change has replaced.
LIMIT_CHANGE_RETENTION_SECONDS: Final = 400 * 86_400
# After the pause of a task, a workflow or the stack, at most this many attempts and executions
# begin per second.
RESUME_PER_SECOND: Final = 50
# A host uses the settings of a limit for this long before it reads them again.
LIMIT_SETTINGS_MS: Final = 5_000

# -- Answers of services ---------------------------------------------------------------------------
#: The codes with which an AWS service refuses a call because there were too many.
AWS_THROTTLING_CODES: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        # The error of SQS when the key of an encrypted queue is used too often.
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

#: A request is stored as an event whose name has this suffix after the kind of the request. The
#: data of the event has the id of the request and the content that the caller gave. The constant is
#: here because workflows, the compiler and the runtime use it.
REQUEST_SUFFIX: Final = "?"
#: The name of the event that tells of an execution which has failed, timed out or was stopped. It
#: is sent only if a deployed workflow waits for it.
FAILED_EVENT: Final = "holdfast.execution.failed"
