"""Whatever the API is sent, it answers: no traceback, no delay, and nothing half made.

One seed again: `python -m tests.unit.stepfunctions_fuzz_test KIND SEED`, KIND as in `KINDS`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from holdfast.runtime.driver import run
from holdfast.runtime.effects import Effect, RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.api import OPERATIONS
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.world import SimulatorWorld, When
from tests.stopwatch import stopwatch
from tests.unit import bad_input
from tests.unit.states_kit import PASS, PLACE, ROLE
from tests.unit.states_world import Office

#: Of processor time, for one call or for all that follows from a start until it waits.
CALL_SECONDS_MAX: Final = 1.0
#: A machine may go round for ever, and is left alone then.
EFFECTS_MAX: Final = 120
RECORDINGS: Final = Path(__file__).parents[2].parent / "shared" / "conformance" / "cases.jsonl"
MACHINE: Final = f"arn:aws:states:{PLACE.region}:{PLACE.account}:stateMachine:m"
REQUESTS_A_SEED: Final = 12
STATUSES: Final = {"RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}


class Enough(BaseException):
    """Raised when the machine was seen to continue."""


class Patience:
    """Ends a world in which one execution never comes to rest."""

    def __init__(self) -> None:
        self.left = EFFECTS_MAX

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        self.left -= when == "before"
        if self.left < 0:
            raise Enough


def called(office: Office, operation: str, request: Any, draw: Random) -> Any:
    """Return the answer, or the fault; any other exception is a finding."""
    call = office.api.call(operation, request, draw.randbytes(16))
    try:
        with stopwatch() as watch:
            answer = run(call, office.perform)
    except StatesFault as fault:
        assert fault.code != "InternalFailure"
        json.dumps({"message": fault.message, **fault.extra}, ensure_ascii=False).encode()
        answer = fault
    else:
        json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()
    assert watch.seconds < CALL_SECONDS_MAX, f"{operation} took {watch.seconds:.1f} s"
    return answer


# -- definitions -----------------------------------------------------------------------------------


@cache
def real_definitions() -> list[Any]:
    """Return definitions that were recorded, where the recordings are; otherwise some of
    our own.
    """
    own = [bad_input.definition(Random(seed)) for seed in range(200)]
    if not RECORDINGS.exists():
        return own
    found = own
    for line in RECORDINGS.read_text().splitlines():
        text = json.loads(line).get("definition")
        if isinstance(text, dict):
            found.append(text)
        elif isinstance(text, str) and text.startswith("{"):
            found.append(json.loads(text))
    return found


def a_definition(draw: Random) -> str:
    match draw.randrange(8):
        case 0:
            return bad_input.text_of(draw, bad_input.junk(draw, 4))
        case 1 | 2 | 3:
            return bad_input.text_of(draw, bad_input.definition(draw))
        case _:
            real = draw.choice(real_definitions())
            return bad_input.text_of(draw, bad_input.mutated(draw, real))


def task_of(draw: Random) -> Callable[[RunTask], TaskSucceeded | TaskFailed]:
    def answered(_: RunTask) -> TaskSucceeded | TaskFailed:
        if draw.random() < 0.7:
            return TaskSucceeded({"a": [1, {"b": 2}], "Payload": 1})
        return TaskFailed("Oops", "it is so")

    return answered


def check_definition(seed: int) -> str:
    """Return how far the machine got: refused, or the status of its execution."""
    draw = Random(seed)
    text = a_definition(draw)
    patience = Patience()
    office = Office(task_of(draw), patience)
    kind = draw.choice(["STANDARD", "STANDARD", "EXPRESS"])
    arn = MACHINE
    request = {"name": "m", "definition": text, "roleArn": ROLE, "type": kind}
    answer = called(office, "CreateStateMachine", request, draw)
    found = called(office, "DescribeStateMachine", {"stateMachineArn": arn}, draw)
    listed = called(office, "ListStateMachines", {}, draw)["stateMachines"]
    called(office, "ValidateStateMachineDefinition", {"definition": text}, draw)
    if isinstance(answer, StatesFault):
        assert answer.code in {"InvalidDefinition", "ValidationException", "SerializationException"}
        assert isinstance(found, StatesFault)
        assert (found.code, listed) == ("StateMachineDoesNotExist", [])
        return answer.code
    assert (found["definition"], found["status"], len(listed)) == (text, "ACTIVE", 1)
    data = json.dumps(draw.choice([{"a": [{"b": 1}, 2], "b": "x"}, {}, 7, "text", None]))
    given = {"stateMachineArn": arn, "input": data}
    patience.left = EFFECTS_MAX
    if kind == "EXPRESS" and draw.random() < 0.5:
        try:
            return str(called(office, "StartSyncExecution", given, draw)["status"])
        except Enough:
            return "goes on"
    return settled(office, patience, called(office, "StartExecution", given, draw), draw)


def settled(office: Office, patience: Patience, started: Any, draw: Random) -> str:
    """Return the status that the execution comes to within a day."""
    try:
        with stopwatch() as watch:
            office.wait(86_400)
    except Enough:
        return "goes on"
    patience.left = EFFECTS_MAX
    assert watch.seconds < CALL_SECONDS_MAX, f"it took {watch.seconds:.1f} s"
    assert office.world.faults == []
    execution = {"executionArn": started["executionArn"]}
    if ":express:" in started["executionArn"]:
        return "express"
    described = called(office, "DescribeExecution", execution, draw)
    events = called(office, "GetExecutionHistory", execution, draw)["events"]
    assert described["status"] in STATUSES
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert (described["status"] == "RUNNING") == ("stopDate" not in described)
    return str(described["status"])


# -- requests --------------------------------------------------------------------------------------


def shop(draw: Random) -> Office:
    """Return a stack in which some of the things exist that requests name."""
    office = Office()
    for request in (
        {"name": "real", "definition": PASS, "roleArn": ROLE, "publish": True},
        {"name": "quick", "definition": PASS, "roleArn": ROLE, "type": "EXPRESS"},
    ):
        office.call("CreateStateMachine", **request)
    real = bad_input.ARNS[0]
    routes = [{"stateMachineVersionArn": f"{real}:1", "weight": 100}]
    office.call("CreateStateMachineAlias", name="PROD", routingConfiguration=routes)
    office.call("CreateActivity", name="desk")
    office.call("StartExecution", stateMachineArn=real, name="done")
    office.wait()
    return office


def check_requests(seed: int) -> str:
    """Send a dozen requests to one stack, which then still works. Return the result of the last
    one.
    """
    draw = Random(seed)
    office = shop(draw)
    office.call_ms_max = 5_000
    answer: Any = None
    for _ in range(REQUESTS_A_SEED):
        operation = draw.choice(sorted(OPERATIONS))
        answer = called(office, operation, bad_input.request(draw, operation), draw)
    office.wait(60)
    assert office.world.faults == []
    office.call("ListStateMachines")
    return answer.code if isinstance(answer, StatesFault) else "answered"


WRONG: Final[list[Any]] = [
    None, True, 0, -1, 1.5, 10**40, 1e308, "", "x", "\ud800", "a" * 300_000, [], [None], [[]], {},
    {"a": None}, bad_input.deep(500), [{"key": 1}],
]  # fmt: skip


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_member_of_any_other_kind_is_refused_or_dropped(operation: str) -> None:
    office, draw = shop(Random(0)), Random(0)
    office.call_ms_max = 5_000
    fitting = bad_input.request(draw, operation)
    for member in bad_input.members(operation):
        for wrong in WRONG:
            called(office, operation, {**fitting, member: wrong}, draw)
    for wrong in WRONG:
        called(office, operation, wrong, draw)


KINDS: Final = {"definition": check_definition, "requests": check_requests}


def checked(kind: str, seeds: range) -> Counter[str]:
    """Return how often each end occurred; a failure names the seed that repeats it."""
    ends = Counter[str]()
    for seed in seeds:
        try:
            ends[KINDS[kind](seed)] += 1
        except Exception as error:
            raise AssertionError(f"{kind} {seed}: {type(error).__name__}: {error}") from error
    return ends


def test_a_definition_of_any_kind_is_refused_or_runs() -> None:
    ends = checked("definition", range(400))
    # It would prove little if all were refused, or all were accepted. The counts change with each
    # workflow of the repository, because the drawn definitions begin with those.
    assert ends["InvalidDefinition"] > 100
    assert ends["SUCCEEDED"] > 10
    assert ends["FAILED"] > 5


def test_a_request_of_any_kind_is_answered() -> None:
    checked("requests", range(40))


@pytest.mark.slow
def test_many_definitions_and_requests() -> None:
    checked("definition", range(1_000, 11_000))
    checked("requests", range(1_000, 1_900))


if __name__ == "__main__":
    # One seed, or all from one to another.
    first = int(sys.argv[2])
    last = int(sys.argv[3]) if len(sys.argv) > 3 else first + 1
    print(checked(sys.argv[1], range(first, last)))
