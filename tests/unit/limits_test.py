"""Relations between limits: each holds for a reason, and a change of one number must keep it.

The simulator has the same numbers, so it cannot see that two of them contradict each other on AWS.
"""

from __future__ import annotations

import pytest

from holdfast import limits, resources

MINUTE = 60
HOUR = 3_600
DAY = 86_400
#: DynamoDB deletes an expired item "within a few days"; Holdfast counts on two.
TTL_LATE_SECONDS = 2 * DAY
LAMBDA_SECONDS_MAX = 900
LAMBDA_ANSWER_BYTES_MAX = 6_291_556


def test_no_limit_of_aws_is_another_than_aws_has() -> None:
    """The sources of the numbers are the quota pages of the services."""
    assert limits.SQS_DELAY_SECONDS_MAX == 900
    assert limits.SQS_BATCH_ENTRIES_MAX == 10
    assert limits.SQS_MESSAGE_BYTES_MAX == 1024 * 1024
    assert limits.BATCH_GET_MAX == 100
    assert limits.DYNAMODB_ITEM_BYTES_MAX == 400 * 1024
    assert limits.WRITE_UNIT_BYTES == 1024
    assert limits.SECRET_BYTES_MAX == 4_096
    assert limits.PAYLOAD_BYTES_MAX == 256 * 1024
    assert limits.DEFINITION_BYTES_MAX == 1024 * 1024
    assert limits.NAME_CHARACTERS_MAX == 80
    assert limits.ERROR_CHARACTERS_MAX == 256
    assert limits.CAUSE_CHARACTERS_MAX == 32_768
    assert limits.STATE_SECONDS_MAX == 99_999_999
    assert limits.RETRY_DELAY_SECONDS_MAX == 366 * DAY
    assert limits.EXPRESS_SECONDS_MAX == 5 * MINUTE
    assert limits.STATUS_TEXT_BYTES_MAX == 248 * 1024


def test_a_message_is_hidden_again_before_it_becomes_visible() -> None:
    """One extension may fail or be late, and the message is still hidden."""
    assert 2 * limits.VISIBILITY_EXTENSION_SECONDS <= limits.VISIBILITY_SECONDS
    for worker in (resources.WORKER, resources.WORKER_SINGLE):
        assert worker.timeout_seconds > limits.VISIBILITY_SECONDS


def test_no_extension_asks_for_more_than_the_twelve_hours_of_sqs() -> None:
    assert limits.HIDDEN_SECONDS_MAX + limits.VISIBILITY_SECONDS < 12 * HOUR
    assert limits.HIDDEN_SECONDS_MAX > LAMBDA_SECONDS_MAX


@pytest.mark.parametrize(
    ("queue", "function"),
    [
        (resources.WORK, resources.WORKER),
        (resources.STARTS, resources.WORKER),
        (resources.SINGLE, resources.WORKER_SINGLE),
    ],
)
def test_a_message_is_hidden_for_longer_than_its_function_may_run(
    queue: resources.Queue, function: resources.LambdaFunction
) -> None:
    assert queue.visibility_seconds >= function.timeout_seconds + MINUTE
    assert function.timeout_seconds <= LAMBDA_SECONDS_MAX


@pytest.mark.parametrize("queue", resources.QUEUES, ids=lambda queue: queue.name)
def test_redelivery_lasts_for_an_hour_without_dynamodb_and_messages_for_two_weeks_without_workers(
    queue: resources.Queue,
) -> None:
    assert queue.receives_max * limits.VISIBILITY_SECONDS >= HOUR
    # A task that crashes its workers fails before its message becomes a dead letter.
    assert limits.TAKEOVERS_IN_COMPANY_MAX < limits.TAKEOVERS_MAX < queue.receives_max
    assert queue.retention_seconds == 14 * DAY  # the most that SQS has
    assert 1 <= queue.batch_size <= limits.SQS_BATCH_ENTRIES_MAX
    # As many batches at once as AWS's mapping of an event source allows, 2 at least.
    assert queue.batches_unreserved >= 2


def test_a_task_that_crashes_its_worker_is_alone_in_its_batch() -> None:
    assert resources.SINGLE.batch_size == 1
    assert resources.WORK.batch_size == resources.STARTS.batch_size == 10


def test_a_new_account_has_room_for_all_batches_and_the_functions_without_a_queue() -> None:
    """A new account runs ten functions at once."""
    assert sum(queue.batches_unreserved for queue in resources.QUEUES) + 3 == 10


def test_reserved_concurrency_leaves_an_account_most_of_its_thousand() -> None:
    """AWS keeps 100 unreserved; the stack takes less than a sixth of the ordinary 1,000."""
    reserved = [function.reserved_concurrency for function in resources.FUNCTIONS]
    assert min(reserved) >= 2  # a second sweep may begin while the first one ends
    assert sum(reserved) < 1_000 / 6


def test_a_lease_of_the_default_length_ends_before_its_message_is_seen_again() -> None:
    lease_seconds = limits.CLAIM_SECONDS_DEFAULT + limits.CLAIM_GRACE_MS / 1_000
    assert lease_seconds < limits.VISIBILITY_SECONDS
    assert limits.CLAIM_GRACE_MS > 2 * limits.CLOCK_ERROR_MS


def test_an_attempt_of_a_retry_has_a_lease_before_the_sweeper_takes_it_for_overdue() -> None:
    assert limits.CLAIM_LATE_MS < limits.OVERDUE_SECONDS * 1_000


def test_an_invocation_stops_to_write_before_its_message_is_seen_by_another_worker() -> None:
    assert 2 * limits.CLOCK_ERROR_MS < limits.LIMIT_MARGIN_MS
    left_seconds = limits.VISIBILITY_SECONDS - limits.VISIBILITY_EXTENSION_SECONDS
    assert left_seconds * 1_000 > limits.LIMIT_MARGIN_MS


def test_the_longest_attempt_ends_within_its_function() -> None:
    margin_ms = limits.LIMIT_MARGIN_MS + limits.CLAIM_GRACE_MS
    for worker in (resources.WORKER, resources.WORKER_SINGLE):
        assert limits.INLINE_TIMEOUT_SECONDS_MAX + margin_ms / 1_000 < worker.timeout_seconds
    assert limits.FAST_PATH_TIMEOUT_SECONDS_MAX < limits.INLINE_TIMEOUT_SECONDS_MAX


def test_a_sweep_ends_before_the_next_one_begins() -> None:
    assert limits.SWEEP_SECONDS == MINUTE  # the smallest rate of EventBridge
    assert resources.SWEEPER.timeout_seconds < limits.SWEEP_SECONDS
    assert resources.SWEEPER.timeout_seconds * 1_000 > 3 * limits.STARTS_SWEEP_MS
    assert limits.OPEN_COUNT_MINUTES * MINUTE >= limits.SWEEP_SECONDS


def test_the_sweeper_meets_every_timer_between_its_row_and_its_time() -> None:
    """A row that is due is seen by a sweep that looks ahead; its message may then be delayed."""
    ahead_seconds = limits.SWEEP_AHEAD_SECONDS + limits.CLOCK_ERROR_MS / 1_000
    assert limits.SWEEP_AHEAD_SECONDS >= limits.SWEEP_SECONDS
    assert limits.TIMER_ROW_LEAD_SECONDS + ahead_seconds < limits.SQS_DELAY_SECONDS_MAX
    assert limits.TIMER_ROW_LEAD_SECONDS > 10 * limits.SWEEP_SECONDS


def test_late_work_is_reported_after_a_redelivery_and_a_sweep_have_had_their_time() -> None:
    assert limits.STUCK_SECONDS > limits.VISIBILITY_SECONDS + 2 * limits.SWEEP_SECONDS
    assert limits.OVERDUE_SECONDS >= limits.SWEEP_SECONDS
    assert limits.FIRST_HOLD_MS < limits.SWEEP_SECONDS * 1_000


def test_a_watchdog_row_is_looked_at_between_an_hour_and_a_week() -> None:
    assert limits.WATCH_GRID_SECONDS % limits.SWEEP_SECONDS == 0
    assert limits.WATCH_LOOK_SECONDS_MIN % limits.WATCH_GRID_SECONDS == 0
    assert limits.WATCH_LOOK_SECONDS_MIN == HOUR
    assert limits.WATCH_LOOK_SECONDS_MAX == 7 * DAY
    assert limits.WATCH_LOOK_SECONDS_MAX * 2 < limits.NAME_EXTENSION_SECONDS


def test_whatever_a_log_refers_to_outlives_it() -> None:
    """A snapshot stores its blobs again, when the oldest record that it replaces is as old as
    `RECORD_AGING_SECONDS` at most. The last record may need them for its whole life.
    """
    log_seconds = limits.RECORD_RETENTION_SECONDS + TTL_LATE_SECONDS
    needed_seconds = log_seconds + limits.RECORD_AGING_SECONDS + limits.END_SPAN_SECONDS_MAX
    assert needed_seconds < limits.BLOB_RETENTION_DAYS * DAY
    assert limits.SEARCH_RETENTION_SECONDS == 2 * limits.RECORD_RETENTION_SECONDS > needed_seconds
    assert limits.RECORD_AGING_SECONDS * 2 <= limits.RECORD_RETENTION_SECONDS


def test_a_name_ends_before_the_log_that_it_names() -> None:
    name_seconds = limits.NAME_RETENTION_SECONDS + TTL_LATE_SECONDS
    assert name_seconds + limits.END_SPAN_SECONDS_MAX < limits.RECORD_RETENTION_SECONDS
    # An open execution extends its name twice before it would end.
    assert 2 * limits.NAME_EXTENSION_SECONDS < limits.NAME_RETENTION_SECONDS
    # A start is not sent any longer when its name may belong to another execution.
    assert limits.START_RESENT_SECONDS_MAX + TTL_LATE_SECONDS < limits.NAME_RETENTION_SECONDS


def test_every_listed_execution_can_be_read() -> None:
    ended = limits.ENDED_RETENTION_SECONDS
    assert ended + limits.END_SPAN_SECONDS_MAX == limits.RECORD_RETENTION_SECONDS == 90 * DAY


def test_a_row_of_waits_outlives_every_worker_that_may_write_it() -> None:
    assert 2 * resources.WORKER.timeout_seconds < limits.WAIT_ROW_KEPT_SECONDS
    assert limits.VISIBILITY_SECONDS * resources.WORK.receives_max < limits.WAIT_ROW_KEPT_SECONDS


def test_an_execution_is_archived_long_before_its_log_ends() -> None:
    again_seconds = limits.ARCHIVE_AFTER_SECONDS + limits.ARCHIVE_REFUSED_SECONDS
    assert 30 * again_seconds < limits.ENDED_RETENTION_SECONDS


def test_an_event_is_kept_as_long_as_its_message_may_be_delivered() -> None:
    assert max(q.retention_seconds for q in resources.QUEUES) <= limits.EVENT_RETENTION_SECONDS
    assert resources.STARTS.retention_seconds <= limits.START_RETENTION_SECONDS
    assert resources.EVENT_RETRY_AGE_SECONDS_MAX == DAY  # EventBridge has no longer one
    assert resources.EVENT_RETRY_ATTEMPTS_MAX == 185  # and no more attempts


def test_a_token_is_valid_as_long_as_an_execution_of_aws_may_run() -> None:
    assert limits.CALLBACK_SECONDS_MAX == limits.TOKEN_SECONDS_MAX == 366 * DAY
    assert limits.QUESTION_RETENTION_SECONDS > 2 * limits.TOKEN_SECONDS_MAX


def test_an_answer_of_the_api_fits_into_an_answer_of_lambda() -> None:
    # An input and an output that are shown, and what stands around them.
    assert 2 * limits.SHOWN_BYTES_MAX + 100_000 < LAMBDA_ANSWER_BYTES_MAX
    assert limits.PAGE_BYTES_MAX + limits.SHOWN_BYTES_MAX < LAMBDA_ANSWER_BYTES_MAX
    assert limits.GROUP_PAYLOAD_BYTES_MAX < LAMBDA_ANSWER_BYTES_MAX
    assert limits.BODY_BYTES_MAX < LAMBDA_ANSWER_BYTES_MAX * 0.8


def test_whatever_goes_into_a_message_fits_into_it() -> None:
    assert limits.EVENT_BYTES_MAX + 100_000 < limits.SQS_MESSAGE_BYTES_MAX
    assert 4 * limits.MESSAGE_INPUT_BYTES_MAX < limits.SQS_MESSAGE_BYTES_MAX
    assert limits.START_INPUT_BYTES_MAX < limits.MESSAGE_INPUT_BYTES_MAX


def test_whatever_goes_into_an_item_fits_into_it() -> None:
    assert limits.RECORD_BYTES_MAX + 3 * limits.VALUE_INLINE_BYTES_MAX < (
        limits.DYNAMODB_ITEM_BYTES_MAX
    )
    assert limits.VALUE_INTERN_BYTES_MIN < limits.VALUE_INLINE_BYTES_MAX
    # A sort key has at most 1,024 bytes, and the names of rows stand before an id.
    assert limits.RUN_CHARACTERS_MAX + 100 < 1_024


def test_a_warm_log_is_a_part_of_what_a_worker_keeps() -> None:
    assert limits.WARM_LOG_BYTES_MAX < limits.WARM_LOGS_BYTES_MAX
    # In memory a byte becomes about 40.
    memory_bytes = min(one.memory_mb for one in (resources.WORKER, resources.WORKER_SINGLE)) << 20
    assert memory_bytes / 4 > 40 * limits.WARM_LOGS_BYTES_MAX


def test_a_batch_of_attempts_has_a_connection_for_each() -> None:
    from holdfast.aws.clients import CONNECTIONS_MAX

    assert limits.ATTEMPTS_IN_FLIGHT_MAX <= CONNECTIONS_MAX
    assert limits.MAX_CONCURRENCY_DEFAULT == limits.ATTEMPTS_IN_FLIGHT_MAX


def test_a_permit_outlives_the_way_of_its_wake() -> None:
    assert limits.GATE_AHEAD_MS < limits.GATE_TOKEN_MS < limits.GATE_HANDOVER_MS
    assert limits.GATE_HANDOVER_MS < limits.GATE_TICK_MS_MAX
    assert limits.GATE_TICK_MS_MAX < limits.GATE_RETENTION_SECONDS * 1_000
    assert limits.GATE_SLOW_FLOOR < limits.GATE_SLOW_FACTOR < limits.GATE_SLOW_MARGIN < 1
    # One partition takes 1,000 writes a second, and a start costs some.
    assert limits.GATE_STARTS_PER_SECOND_MAX * 5 <= 1_000


def test_a_function_keeps_the_time_outs_of_the_services_that_call_it() -> None:
    assert resources.API.timeout_seconds < 30  # API Gateway waits for 30 s
    assert resources.EVENTS.timeout_seconds <= MINUTE


def test_the_deadlines_of_calls_leave_room_for_their_attempts() -> None:
    from holdfast.aws import clients

    once = clients.CONNECT_TIMEOUT_SECONDS + clients.READ_TIMEOUT_SECONDS
    assert clients.ATTEMPTS_MAX * once < resources.API.timeout_seconds
    assert clients.READ_TIMEOUT_SECONDS < clients.BLOB_READ_TIMEOUT_SECONDS
    # A call of a function waits for longer than any function of Lambda runs.
    assert clients.FUNCTION_READ_TIMEOUT_SECONDS > LAMBDA_SECONDS_MAX
