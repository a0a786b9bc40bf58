"""Stories, event by event: tests/golden/histories/<name>.txt says all that the core makes of them.

`python -m tests.unit.core_histories_test` writes the texts anew; read the difference before it goes
in. A line that begins with a number is an event, `=` is what the fact has changed in the state.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.core.facts import (
    ChildEnded,
    ChildrenStopped,
    FailedWith,
    Opened,
    RedriveRequested,
    Started,
    Succeeded,
    TakenOver,
    TaskUnknown,
    TimedOut,
)
from holdfast.core.state import ChildExecutions, Parent
from tests.builders import Machine, ask, call, machine, wait_for
from tests.unit.core_kit import RUN, START_MS, one, part
from tests.unit.core_tasks_test import (
    ACTIVITY,
    BUILD,
    CALLBACK,
    FUNCTION,
    NEST,
    SEND,
    TOKEN,
    origin_of,
    task,
)
from tests.unit.histories_kit import Told
from tests.unit.states_kit import PLACE, ROLE

FOLDER: Final = Path(__file__).parents[1] / "golden" / "histories"
AGAIN: Final = [{"ErrorEquals": ["Broken"], "IntervalSeconds": 2, "MaxAttempts": 1}]
CAUGHT: Final = [{"ErrorEquals": ["States.ALL"], "Next": "caught", "Assign": {"seen": True}}]
NOBODY: Final = {"Type": "Pass", "End": True}
CHILD: Final = "holdfast:workflow:child"


def then(state: Machine, follow: str = "then") -> Machine:
    return {key: value for key, value in state.items() if key != "End"} | {"Next": follow}


def values() -> Told:
    states = {
        "set": {"Type": "Pass", "Assign": {"n": 2}, "Output": [1, "é"], "Next": "choose"},
        "choose": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $n = 1 %}", "Next": "end"}],
            "Default": "sleep",
            "Assign": {"m": "{% $n + 1 %}"},
        },
        "sleep": {"Type": "Wait", "Seconds": "{% $m %}", "Next": "nap"},
        "nap": {"Type": "Wait", "Timestamp": "2027-01-15T08:00:03Z", "Next": "end"},
        "end": {"Type": "Succeed", "Output": "{% [$n, $m] %}"},
    }
    case = Told(machine(states, TimeoutSeconds=60))
    case.start({"a": 1}).after(2).offer(Opened(1)).after(1)
    return case


def failures() -> Told:
    states = {
        "it": call("it", "sum", Retry=AGAIN, Catch=CAUGHT, TimeoutSeconds=9),
        "sum": call("sum", Arguments={"n": "{% $states.input.no.such %}"}, Catch=CAUGHT),
        "caught": {"Type": "Choice", "Choices": [{"Condition": "{% false %}", "Next": "sum"}]},
    }
    case = Told(machine(states))
    case.start({"a": 1}, None).fail("Broken", "why").after(2).fail("Broken", "again")
    return case


def expressions() -> Told:
    states = {
        "it": call("it", "sum", Catch=CAUGHT),
        "sum": {"Type": "Pass", "End": True},
        "caught": {"Type": "Pass", "Output": "{% $states.input.Cause %}", "Next": "fail"},
        "fail": {"Type": "Fail", "Error": "Mine", "Cause": "{% $states.input & '!' %}"},
    }
    states["it"]["Assign"] = {"x": "{% $states.result.no.such %}"}
    case = Told(machine(states))
    case.start().succeed({"a": 1})
    return case


def a_function() -> Told:
    state = task(FUNCTION, Arguments={"n": 1}, Retry=AGAIN, TimeoutSeconds=5)
    case = Told.of_machine(one(state), {"a": 1})
    waiting = case.waiting()
    case.fail("Broken", "why").after(2).offer(TakenOver(waiting.entry, 2))
    case.offer(TakenOver(waiting.entry, 2)).offer(TaskUnknown(waiting.entry, 2))
    case.offer(TakenOver(waiting.entry, 2)).offer(TimedOut(waiting.entry, 2))
    return case


def a_service() -> Told:
    state = task(SEND, Arguments={"QueueUrl": "q"}, Credentials={"RoleArn": ROLE})
    case = Told.of_machine(one(state))
    case.succeed({"MessageId": "1"})
    return case


def a_callback() -> Told:
    state = task(CALLBACK, Arguments=TOKEN, TimeoutSeconds=90, HeartbeatSeconds=10, Retry=AGAIN)
    case = Told.of_machine(one(state))
    case.return_from_call({"MessageId": "1"}).beat(4).beat(0).fail("Broken", "why").after(2)
    case.return_from_call({"MessageId": "2"}).beat(9)
    case.after(10)
    return case


def a_job() -> Told:
    case = Told.of_machine(one(task(BUILD, Arguments={}, Credentials={"RoleArn": ROLE})))
    case.return_from_call({"Build": {"Id": "b"}}).poll().poll()
    case.succeed({"Build": {"Status": "done"}})
    return case


def a_nested_machine() -> Told:
    case = Told.of_machine(one(task(NEST, Arguments={"StateMachineArn": "m"}, TimeoutSeconds=5)))
    case.return_from_call({"ExecutionArn": "e"}).after(5)
    case.offer(ChildrenStopped(((case.state.next_entry - 1, 1),)))
    return case


def an_activity() -> Told:
    case = Told.of_machine(one(task(ACTIVITY, HeartbeatSeconds=7, TimeoutSeconds=60)), {"a": 1})
    case.take("me").beat(3).succeed(3)
    return case


def people() -> Told:
    states = {
        "paid": wait_for("paid", "signed", TimeoutSeconds=30),
        "signed": wait_for("paid", "asked", Output="{% $states.result %}"),
        "asked": ask("child", HeartbeatSeconds=5),
        "child": task(CHILD, Arguments={"n": 1}, Next="pure"),
        "pure": task("holdfast:pure:price", Next="token"),
        "token": task("holdfast:token.waitForTaskToken", End=True),
    }
    case = Told(machine(states))
    case.start()
    case.receive("e1", {"n": 1}).receive("e1", "used").receive("e2", 2).beat(1)
    case.succeed("yes")
    case.return_from_call({"execution": "c"}).succeed("done").succeed(4).succeed(5)
    return case


def branches() -> Told:
    lanes = [
        {"StartAt": "a", "States": {"a": call("a")}},
        {"StartAt": "b", "States": {"b": {"Type": "Wait", "Seconds": 50, "End": True}}},
        {"StartAt": "c", "States": {"c": call("c", Retry=AGAIN)}},
    ]
    all_of_them = {"Type": "Parallel", "Branches": lanes, "Retry": AGAIN, "Catch": CAUGHT}
    states = {"all": {**all_of_them, "End": True}, "caught": NOBODY}
    case = Told(machine(states))
    case.start({"n": 1}).succeed("A", at="a").fail("Broken", "x", at="c").after(2)
    case.fail("Broken", "y", at="c").after(2).succeed(1, at="a").fail("Worse", at="c")
    return case


def joined() -> Told:
    names = ("a", "b", "c")
    lanes = [{"StartAt": name, "States": {name: call(name)}} for name in names]
    states = {
        "all": {
            "Type": "Parallel",
            "Branches": lanes,
            "Arguments": {"x": 1},
            "Assign": {"all": "{% $states.result %}"},
            "Holdfast": {"After": [[], [], [0, 1]], "Needed": 2, "Tolerated": 1},
            "End": True,
        }
    }
    case = Told(machine(states))
    case.start().succeed("A", at="a").succeed("B", at="b")
    return case


def items() -> Told:
    processor = {"StartAt": "pack", "States": {"pack": call("pack")}}
    state = {
        "Type": "Map",
        "Items": "{% $states.input %}",
        "ItemSelector": {
            "item": "{% $states.context.Map.Item.Value %}",
            "at": "{% $states.context.Map.Item.Index %}",
        },
        "ItemProcessor": processor,
        "MaxConcurrency": 2,
        "Catch": CAUGHT,
        "Holdfast": {"Tolerated": 1},
        "End": True,
    }
    case = Told(machine({"each": state, "caught": NOBODY}))
    case.start(["x", "y", "z", "w"])
    first, second = (frame.id for frame in case.state.frames.values() if frame.owner is not None)
    entries = {frame.id: frame.waiting for frame in case.state.frames.values()}
    for frame_id, error in ((first, "One"), (second, None)):
        _end(case, entries[frame_id], error)
    running = [frame for frame in case.state.frames.values() if frame.owner is not None]
    _end(case, running[0].waiting, "Two")
    return case


def _end(case: Told, waiting: Any, error: str | None) -> None:
    ended = Succeeded(waiting.entry, waiting.attempt, "done")
    failed = FailedWith(waiting.entry, waiting.attempt, error, "why")
    case.offer(ended if error is None else failed)


def an_item_that_cannot_be_selected() -> Told:
    processor = {"StartAt": "pack", "States": {"pack": call("pack")}}
    selector = {"half": "{% 1 / $states.context.Map.Item.Value %}"}
    state = {"Type": "Map", "ItemProcessor": processor, "ItemSelector": selector}
    case = Told(one(state))
    case.start([1, "two", 3])
    return case


def no_items() -> Told:
    processor = {"StartAt": "pack", "States": {"pack": call("pack")}}
    case = Told(one({"Type": "Map", "ItemProcessor": processor}))
    case.start([])
    return case


def a_map_run(**fields: Any) -> Machine:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
        "StartAt": "inner",
        "States": {"inner": {"Type": "Pass", "End": True}},
    }
    return one({"Type": "Map", "ItemProcessor": processor, **fields})


def children() -> Told:
    definition = a_map_run(
        ItemReader={
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Arguments": {"Bucket": "b", "Key": "k"},
        },
        ItemBatcher={"MaxItemsPerBatch": 2, "BatchInput": {"all": 1}},
        ResultWriter={
            "Resource": "arn:aws:states:::s3:putObject",
            "Arguments": {"Bucket": "b"},
            "WriterConfig": {"Transformation": "NONE", "OutputType": "JSONL"},
        },
        MaxConcurrency=2,
        ToleratedFailureCount=5,
        ToleratedFailurePercentage=50,
    )
    case = Told.of_machine(definition)
    case.succeed({"items": list(range(6)), "sources": [["s3://b/k", 6]]})
    _child(case, 0, {"status": "SUCCEEDED", "output": 1})
    _child(case, 1, {"status": "FAILED", "error": "E", "cause": "C"})
    _child(case, 2, {"status": "SUCCEEDED"})
    case.succeed({"MapRunArn": "m"})
    return case


def children_that_fail() -> Told:
    definition = a_map_run(
        ResultWriter={"Resource": "arn:aws:states:::s3:putObject", "Arguments": {"Bucket": "b"}},
        MaxConcurrency=2,
        Label="L",
    )
    case = Told(definition)
    case.start({"b": 2, "a": 1, "c": 3})
    _child(case, 1, {"status": "TIMED_OUT"})
    case.succeed({"ignored": True})
    return case


def children_in_full() -> Told:
    definition = a_map_run(
        ResultWriter={"WriterConfig": {"Transformation": "NONE", "OutputType": "JSON"}},
        ToleratedFailurePercentage="{% 100 %}",
    )
    case = Told.of_machine(definition, [1, [2], "é"])
    _child(case, 0, {"status": "SUCCEEDED", "output": ["é"]})
    _child(case, 2, {"status": "FAILED", "error": "E", "cause": "C"})
    _child(case, 1, {"status": "ABORTED"})
    return case


def _child(case: Told, lane: int, result: Any, at: str = "it") -> None:
    waiting = case.frame(at).waiting
    assert isinstance(waiting, ChildExecutions)
    told: Any = {"started_ms": START_MS, "stopped_ms": START_MS + 7, **result}
    case.offer(ChildEnded(waiting.entry, lane, told))


def children_of_a_branch() -> Told:
    (each,) = a_map_run()["States"].values()
    lanes = [
        {"StartAt": "each", "States": {"each": each}},
        {"StartAt": "b", "States": {"b": NOBODY}},
    ]
    case = Told.of_machine(one({"Type": "Parallel", "Branches": lanes}), [1])
    _child(case, 0, {"status": "FAILED"}, "each")
    return case


def undone() -> Told:
    parts = [part(name) for name in ("a", "b")]
    lanes = [
        {"StartAt": name, "States": states}
        for name, (states, _) in zip(("a", "b"), parts, strict=True)
    ]
    lanes.append({"StartAt": "c", "States": {"c": call("c")}})
    states = {"all": {"Type": "Parallel", "Branches": lanes, "Catch": CAUGHT, "Next": "caught"}}
    case = Told(machine({**states, "caught": NOBODY}, Holdfast={"Undo": [u for _, u in parts]}))
    case.start().fail("Broken", "why", at="a")
    case.stop(by_parent=True).stop("2").succeed(at="undo b")
    return case


def undone_from_the_inside() -> Told:
    (inner, undo), (outer, undo_outer) = part("book"), part("pay")
    undo_outer["States"] = ["book", "undo book", "book undone"]
    del outer["pay"]
    extension = {"Undo": [undo, undo_outer]}
    case = Told(machine({**inner, **outer}, Holdfast=extension))
    case.start()
    case.stop().succeed(at="undo book").succeed(at="undo pay")
    return case


def a_block() -> Told:
    (states, undo), shield = part("book"), "keep"
    after = {"Type": "Pass", "Output": "{% $late %}", "End": True}
    body = {"book": {**states["book"], "Next": shield}, shield: call(shield, "out"), "out": NOBODY}
    block = {
        "Begin": "book",
        "Seconds": "{% 4 + 1 %}",
        "States": ["book", shield, "undo book", "book undone"],
        "Next": "after",
        "Assign": {"late": "{% $states.errorOutput.Error %}"},
    }
    body["book"].pop("End", None)
    extension = {"Undo": [undo], "Shielded": [[shield]], "Deadlines": [block]}
    case = Told(machine({**states, **body, "after": after}, Holdfast=extension))
    case.start().after(5)
    case.succeed(at="undo book")
    return case


def redriven() -> Told:
    lanes = [{"StartAt": name, "States": {name: call(name)}} for name in ("a", "b")]
    states = {"first": call("first", "all"), "all": {"Type": "Parallel", "Branches": lanes}}
    states["all"]["End"] = True
    case = Told.of_machine(machine(states, TimeoutSeconds=100))
    case.succeed(1).succeed(2, at="a").fail("Broken", at="b").offer(RedriveRequested("5"))
    case.after(3).succeed(2, at="b").offer(RedriveRequested("6"))
    return case


def begun_by_another() -> Told:
    origin = origin_of()
    origin["alias_arn"], origin["version_arn"] = PLACE.machine("m:live"), PLACE.machine("m:3")
    parent: Parent = {"run": "01parent", "entry": 3, "attempt": 1, "as_json": True}
    context = {"Type": "Pass", "Output": "{% $states.context %}"}
    case = Told(one(context))
    case.offer(Started(RUN, "e", "m", {"a": 1}, START_MS, origin, parent))
    return case


def stopped_and_redriven() -> Told:
    case = Told(machine({"it": call("it")}))
    case.start()
    case.stop("3").offer(RedriveRequested("3"), RedriveRequested("4"))
    case.stop("4").stop("5")
    return case


def out_of_time() -> Told:
    case = Told.of_machine(machine({"it": call("it")}, TimeoutSeconds=9), {"a": 1}, "EXPRESS")
    case.after(9)
    return case


STORIES: Final[tuple[Callable[[], Told], ...]] = (
    values,
    failures,
    expressions,
    a_function,
    a_service,
    a_callback,
    a_job,
    a_nested_machine,
    an_activity,
    people,
    branches,
    joined,
    items,
    an_item_that_cannot_be_selected,
    no_items,
    children,
    children_that_fail,
    children_in_full,
    children_of_a_branch,
    undone,
    undone_from_the_inside,
    a_block,
    redriven,
    begun_by_another,
    stopped_and_redriven,
    out_of_time,
)


def golden_of(story: Callable[[], Told]) -> Path:
    return FOLDER / f"{story.__name__}.txt"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_history_equals_the_stored_one(story: Callable[[], Told]) -> None:
    told = story().lines
    assert told == golden_of(story).read_text(encoding="utf-8").splitlines()


def test_every_story_has_a_text_and_every_text_a_story() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {golden_of(one).name for one in STORIES}


if __name__ == "__main__":
    for written in STORIES:
        text = "\n".join(written().lines)
        golden_of(written).write_text(f"{text}\n", encoding="utf-8")
