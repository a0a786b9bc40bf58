"""The judgement of a trial, on a sound log and on logs that were damaged by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from holdfast.runtime.effects import Item, Message, Send
from tests.builders import Machine, Shop, chain, machine
from tests.process import evidence
from tests.process.chaos import Wanted, draw_faults
from tests.process.plan import Planned, make_plan
from tests.process.redrive import digests

PLANNED = Planned("order-1", "flow", (), "SUCCEEDED", {"n": 3})


@dataclass
class Left:
    """The results of a trial: both tables, the accepted calls, the plan."""

    executions: list[Item]
    mail: list[Item]
    writers: dict[str, list[str]]
    arrived: dict[str, float]
    planned: Planned = PLANNED

    def found(self) -> evidence.Evidence:
        return evidence.evidence_of(self.executions, self.mail)

    def texts(self) -> list[str]:
        plan, written = [self.planned], (self.writers, self.arrived)
        return [text for _, text in evidence.violations(self.found(), plan, *written)]


def left_by(definition: Machine) -> Left:
    shop = Shop(definition)
    shop.start({"n": 0})
    shop.world.run()
    executions: list[Item] = [dict(item) for item in shop.world.services.items("executions")]
    mail: list[Item] = [dict(item) for item in shop.world.services.items("mail")]
    writers = {evidence.place(item): [str(item["w"])] for item in executions}
    # Every fact in a record was true just before it.
    arrived = {evidence.place(item): int(item["at"]) / 1_000 for item in executions}
    return Left(executions, mail, writers, arrived)


@pytest.fixture
def left() -> Left:
    """Return an execution of three tasks without faults, one record for each task."""
    return left_by(chain(3))


def _a_record_is_missing(left: Left) -> None:
    del left.executions[1]


def _a_record_is_there_twice(left: Left) -> None:
    last = left.executions[-1]
    left.executions.append({**last, "sk": int(last["sk"]) + 1})


def _another_writer_was_let_in(left: Left) -> None:
    left.writers[evidence.place(left.executions[1])].append("another.1")


def _a_record_is_not_by_who_was_let_in(left: Left) -> None:
    left.executions[1] = {**left.executions[1], "w": "another.1"}


def _a_record_was_written_before_it_says(left: Left) -> None:
    left.arrived[evidence.place(left.executions[1])] -= 0.001


def _the_log_is_gone(left: Left) -> None:
    left.executions.clear()


def _the_end_is_gone(left: Left) -> None:
    del left.executions[-1]


def _it_should_have_come_to_something_else(left: Left) -> None:
    left.planned = replace(PLANNED, output={"n": 4})


def _it_should_have_been_stopped(left: Left) -> None:
    left.planned = replace(PLANNED, status="ABORTED")


def _its_message_was_set_aside(left: Left) -> None:
    left.mail.append({"pk": "~hurt", "sk": "default#x"})


def test_an_undisturbed_execution_is_sound(left: Left) -> None:
    assert left.texts() == []


@pytest.mark.parametrize(
    "damage, expected",
    [
        (_a_record_is_missing, "not dense"),
        (_a_record_is_there_twice, "cannot be read"),
        (_another_writer_was_let_in, "accepted were"),
        (_a_record_is_not_by_who_was_let_in, "accepted were"),
        (_a_record_was_written_before_it_says, "and was written at"),
        (_the_log_is_gone, "there is no log of it"),
        (_the_end_is_gone, "has not ended"),
        (_it_should_have_come_to_something_else, "came to"),
        (_it_should_have_been_stopped, "not ABORTED"),
        (_its_message_was_set_aside, "quarantined"),
    ],
)
def test_damage_is_found(left: Left, damage: Callable[[Left], None], expected: str) -> None:
    damage(left)
    assert expected in " ".join(left.texts())


def test_a_timer_that_fired_early_is_found_whatever_its_record_says() -> None:
    left = left_by(machine({"nap": {"Type": "Wait", "Seconds": 30, "End": True}}))
    assert not any("a timer fired early" in text for text in left.texts())
    left.arrived[evidence.place(left.executions[-1])] -= 5
    assert any("a timer fired early" in text for text in left.texts())


def test_a_task_that_no_log_asked_for_is_found(left: Left) -> None:
    found = left.found()
    (run,) = found.logs
    asked = [f"{run} {entry} 1" for entry in range(3)]
    assert list(evidence.unasked_tasks(found, asked)) == []
    assert list(evidence.unasked_tasks(found, [*asked, f"{run} 1 2"])) == [f"{run} 1 2"]


def test_a_first_task_may_have_run_before_a_start_was_stopped_in_place_of_another_try() -> None:
    shop = Shop(chain(3))
    run = shop.start({"n": 0})
    (start,) = shop.world.services.receive("starts")
    shop.stop(run)
    shop.world.now_ms += 1_000
    shop.world.services.perform(Send((Message({**start.body, "held": True}),)))
    shop.world.run()
    found = evidence.evidence_of([dict(one) for one in shop.world.services.items("executions")], [])

    assert list(evidence.unasked_tasks(found, [f"{run} 0 1"])) == []
    assert list(evidence.unasked_tasks(found, [f"{run} 1 1"])) == [f"{run} 1 1"]
    late = replace(found.logs[run], records=(replace(found.logs[run].records[0], at_ms=0),))
    (text,) = evidence.unasked_tasks(replace(found, logs={run: late}), [f"{run} 0 1"])
    assert text == f"{run} 0 1"


def test_an_entry_of_the_list_that_outlives_the_execution_is_found(left: Left) -> None:
    assert list(evidence.stale_entries(left.found())) == []
    listed = {"lp": "default##open#0", "ls": "-"}
    left.executions[0] = {**left.executions[0], **listed}
    assert list(evidence.stale_entries(left.found())) == list(left.found().logs)


def test_leaving_the_list_changes_no_record_and_anything_else_does(left: Left) -> None:
    before = digests(left.executions)
    last = left.executions[-1]
    left.executions[-1] = {name: value for name, value in last.items() if name != "lp"}
    assert digests(left.executions) == before
    left.executions[-1] = {**last, "at": 0}
    assert digests(left.executions) != before


def test_a_seed_gives_the_same_executions_and_faults_again() -> None:
    wanted = Wanted(kills=20, freezes=5, stalls=2, seconds=60)
    assert make_plan(30, 60, 7) == make_plan(30, 60, 7) != make_plan(30, 60, 8)
    assert draw_faults(wanted, 7) == draw_faults(wanted, 7) != draw_faults(wanted, 8)


def test_no_fault_outlasts_the_time_of_faults() -> None:
    faults = draw_faults(Wanted(kills=50, freezes=50, stalls=50, seconds=30), 7)
    assert max(fault.at_seconds + fault.seconds for fault in faults) <= 30
