"""Senseless numbers of seconds, attempts and rates: refused, or an error with a name."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import pytest

from holdfast.asl.validation.validate import diagnose
from holdfast.core.diagnosis import next_due_ms
from holdfast.core.state import Attempt, Delay
from holdfast.limits import RETRY_DELAY_SECONDS_MAX, STATE_SECONDS_MAX
from tests.builders import Machine, call, machine
from tests.security.cases import Case, Outcome, each, generator, run_generated
from tests.unit import core_kit
from tests.unit.bad_input import junk
from tests.unit.core_kit import START_MS, one

NAN, INFINITE = float("nan"), float("inf")
HUGE: Final = 10**400


def retrier(**fields: Any) -> Machine:
    return one(call("it", Retry=[{"ErrorEquals": ["States.ALL"], **fields}]))


def task(**fields: Any) -> Machine:
    return one(call("it", **fields))


def wait(**fields: Any) -> Machine:
    return one({"Type": "Wait", **fields})


SCHEMA: Final = "SCHEMA_VALIDATION_FAILED"
REFUSED = [
    Case("an interval of -1", retrier(IntervalSeconds=-1), SCHEMA),
    Case("an interval of a half", retrier(IntervalSeconds=0.5), SCHEMA),
    Case("an interval of NaN", retrier(IntervalSeconds=NAN), SCHEMA),
    Case("an interval without end", retrier(IntervalSeconds=INFINITE), SCHEMA),
    Case("an interval of 1e9", retrier(IntervalSeconds=10**9), SCHEMA),
    Case("an interval of 400 digits", retrier(IntervalSeconds=HUGE), SCHEMA),
    Case("an interval that is text", retrier(IntervalSeconds="1"), SCHEMA),
    Case("an interval that is true", retrier(IntervalSeconds=True), SCHEMA),
    Case("an interval that is null", retrier(IntervalSeconds=None), SCHEMA),
    Case("an interval that is a list", retrier(IntervalSeconds=[1]), SCHEMA),
    Case("attempts of -1", retrier(MaxAttempts=-1), SCHEMA),
    Case("attempts of a half", retrier(MaxAttempts=1.5), SCHEMA),
    Case("attempts of NaN", retrier(MaxAttempts=NAN), SCHEMA),
    Case("attempts of 1e9", retrier(MaxAttempts=10**9), SCHEMA),
    Case("attempts that are text", retrier(MaxAttempts="3"), SCHEMA),
    Case("attempts that are true", retrier(MaxAttempts=True), SCHEMA),
    Case("a rate below 1", retrier(BackoffRate=0.5), SCHEMA),
    Case("a rate of 0", retrier(BackoffRate=0), SCHEMA),
    Case("a rate of -1", retrier(BackoffRate=-1), SCHEMA),
    Case("a rate of NaN", retrier(BackoffRate=NAN), SCHEMA),
    Case("a rate without end", retrier(BackoffRate=INFINITE), SCHEMA),
    Case("a rate of 400 digits", retrier(BackoffRate=HUGE), SCHEMA),
    Case("a rate that is text", retrier(BackoffRate="2"), SCHEMA),
    Case("a rate that is true", retrier(BackoffRate=True), SCHEMA),
    Case("a greatest delay of 0", retrier(MaxDelaySeconds=0), SCHEMA),
    Case("a greatest delay over a year", retrier(MaxDelaySeconds=31_622_401), SCHEMA),
    Case("a greatest delay of a half", retrier(MaxDelaySeconds=1.5), SCHEMA),
    Case("a greatest delay that is text", retrier(MaxDelaySeconds="9"), SCHEMA),
    Case("an unknown jitter", retrier(JitterStrategy="SOME"), SCHEMA),
    Case("no names of errors", retrier(ErrorEquals=[]), SCHEMA),
    Case("names of errors that are numbers", retrier(ErrorEquals=[5]), SCHEMA),
    Case("a time-out of 0", task(TimeoutSeconds=0), SCHEMA),
    Case("a time-out of -1", task(TimeoutSeconds=-1), SCHEMA),
    Case("a time-out of NaN", task(TimeoutSeconds=NAN), SCHEMA),
    Case("a time-out of 1e9", task(TimeoutSeconds=10**9), SCHEMA),
    Case("a time-out that is text", task(TimeoutSeconds="60"), SCHEMA),
    Case("a time-out that is true", task(TimeoutSeconds=True), SCHEMA),
    Case("a heartbeat of 0", task(HeartbeatSeconds=0), SCHEMA),
    Case("a heartbeat of 1e9", task(HeartbeatSeconds=10**9), SCHEMA),
    Case("a heartbeat as long as the time-out", task(HeartbeatSeconds=5, TimeoutSeconds=5), SCHEMA),
    Case("a wait of -1", wait(Seconds=-1), SCHEMA),
    Case("a wait of a half", wait(Seconds=0.5), SCHEMA),
    Case("a wait of NaN", wait(Seconds=NAN), SCHEMA),
    Case("a wait of 1e9", wait(Seconds=10**9), SCHEMA),
    Case("a wait that is text", wait(Seconds="5"), SCHEMA),
    Case("a time-out of the machine of 1e9", one(call("it"), TimeoutSeconds=10**9), SCHEMA),
    Case("a time-out of the machine as text", one(call("it"), TimeoutSeconds="9"), SCHEMA),
]


@each(*REFUSED)
def test_a_number_that_no_machine_can_keep_is_refused_with_its_place(case: Case) -> None:
    found = diagnose(case.given)

    assert found
    assert {diagnostic.code for diagnostic in found} == {case.code}
    assert all(diagnostic.location for diagnostic in found)


def is_json(definition: Machine) -> bool:
    return not any(word in json.dumps(definition) for word in ("NaN", "Infinity"))


@each(*(case for case in REFUSED if is_json(case.given)))
def test_the_same_as_text_is_refused_in_the_same_words(case: Case) -> None:
    assert diagnose(json.dumps(case.given)) == diagnose(case.given)


#: Results of expressions, when it is too late to refuse the definition.
EVALUATED = [
    -1, 0.5, "5", "", None, True, [], [5], {}, 10**9, 10**30, STATE_SECONDS_MAX + 1, -0.5, "NaN",
    "1e9", 1e300,
]  # fmt: skip


@pytest.mark.parametrize("value", EVALUATED, ids=repr)
@pytest.mark.parametrize("field", ["TimeoutSeconds", "HeartbeatSeconds", "Seconds"])
def test_a_number_that_an_expression_gives_fails_its_state_by_name(field: str, value: Any) -> None:
    whole = wait if field == "Seconds" else task
    case = core_kit.Case(whole(**{field: "{% $states.input.n %}"})).start({"n": value})
    error, cause = case.failure

    assert error == "States.QueryEvaluationError"
    assert field in str(cause)


@pytest.mark.parametrize("value", EVALUATED, ids=repr)
@pytest.mark.parametrize("field", ["TimeoutSecondsPath", "HeartbeatSecondsPath", "SecondsPath"])
def test_a_number_that_a_path_finds_fails_its_state_by_name(field: str, value: Any) -> None:
    whole = wait if field == "SecondsPath" else task
    definition = {**whole(**{field: "$.n"}), "QueryLanguage": "JSONPath"}
    case = core_kit.Case(definition).start({"n": value})

    assert case.failure[0] == "States.Runtime"


SUMS = [
    # retrier, retries, seconds until the next
    ({"IntervalSeconds": 0}, 3, 0),
    ({"IntervalSeconds": STATE_SECONDS_MAX}, 1, RETRY_DELAY_SECONDS_MAX),
    ({"IntervalSeconds": 1, "BackoffRate": 1e308}, 1, 1),
    ({"IntervalSeconds": 1, "BackoffRate": 1e308}, 2, RETRY_DELAY_SECONDS_MAX),
    ({"IntervalSeconds": 1, "BackoffRate": 1e308}, 3, RETRY_DELAY_SECONDS_MAX),
    ({"IntervalSeconds": 0, "BackoffRate": 1e308}, 3, 0),
    ({"IntervalSeconds": 60, "BackoffRate": 10, "MaxDelaySeconds": 5}, 3, 5),
    ({"IntervalSeconds": 1, "BackoffRate": 1.0}, 9, 1),
    ({"IntervalSeconds": 31_622_400, "BackoffRate": 2}, 4, RETRY_DELAY_SECONDS_MAX),
]


@pytest.mark.parametrize(("fields", "retries", "seconds"), SUMS)
def test_the_longest_delay_is_a_year_whatever_the_sum(
    fields: dict[str, Any], retries: int, seconds: int
) -> None:
    definition = retrier(**fields, MaxAttempts=99)
    assert diagnose(definition) == ()
    case = core_kit.Case(definition).start()
    for _ in range(retries):
        before_ms = case.now_ms
        case.fail("E")
        due_ms = case.waiting().due_ms
        case.now_ms = due_ms
    assert due_ms - before_ms == seconds * 1_000


def test_attempts_of_eight_digits_are_counted_and_not_made_at_once() -> None:
    case = core_kit.Case(retrier(MaxAttempts=99_999_999, IntervalSeconds=0)).start()
    case.fail("E").fail("E")

    assert case.waiting().attempt == 3


# -- generated -------------------------------------------------------------------------------------

_NUMBERS: Final[list[Any]] = [
    -1, 0, 0.5, 1, 1.0, 2, 10, 10**9, 10**30, 1e300, -0.0, NAN, INFINITE, "1", "", None, True, [],
    31_622_400, 31_622_401, STATE_SECONDS_MAX, STATE_SECONDS_MAX + 1, 1.7e308, 5e-324,
]  # fmt: skip


@generator("retry fields", full=10_000)
def fields(draw: Random) -> Outcome:
    """Check a task with numbers of any kind; an accepted one runs through some failures."""

    def number() -> Any:
        return junk(draw, 1) if draw.random() < 0.1 else draw.choice(_NUMBERS)

    def mostly(good: list[Any]) -> Any:
        return draw.choice(good) if draw.random() < 0.8 else number()

    names: dict[str, list[Any]] = {
        "IntervalSeconds": [0, 1, 60, STATE_SECONDS_MAX],
        "MaxAttempts": [0, 1, 3, STATE_SECONDS_MAX],
        "BackoffRate": [1, 1.0, 2.5, 1e308],
        "MaxDelaySeconds": [1, 31_622_400],
        "JitterStrategy": ["NONE", "FULL"],
    }
    given = {name: mostly(good) for name, good in names.items() if draw.random() < 0.5}
    more = {name: mostly([5, 60]) for name in ("TimeoutSeconds",) if draw.random() < 0.3}
    if draw.random() < 0.3:
        more["TimeoutSeconds"] = "{% $states.input.n %}"
    definition = one(call("it", Retry=[{"ErrorEquals": ["States.ALL"], **given}], **more))
    if diagnose(definition):
        return "refused"
    case = core_kit.Case(definition).start({"n": _plain(draw.choice(_NUMBERS))})
    for _ in range(4):
        if case.state.is_ended:
            assert case.status == "FAILED"
            return "refused" if case.failure[0] == "States.QueryEvaluationError" else "accepted"
        due_ms = next_due_ms(case.frame("it"))
        if due_ms is not None:
            assert 0 <= due_ms - case.now_ms <= RETRY_DELAY_SECONDS_MAX * 1_000 * 4
        waiting = case.frame("it").waiting
        assert isinstance(waiting, Attempt | Delay)
        case.now_ms = max(case.now_ms, waiting.due_ms)
        if isinstance(waiting, Delay):  # its numbers could not be worked out: that is retried, too
            case.after(0)
        else:
            case.fail("E")
    assert case.now_ms - START_MS <= 5 * RETRY_DELAY_SECONDS_MAX * 1_000
    return "accepted"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not -1e309 < value < 1e309 else value


def test_no_generated_field_breaks_anything() -> None:
    tally = run_generated("retry fields", 200, seed=1)

    assert min(tally.refused, tally.accepted) > 20


def test_machines_of_this_file_are_good_but_for_their_numbers() -> None:
    assert diagnose(retrier(MaxAttempts=1)) == diagnose(machine({"it": call("it")})) == ()
