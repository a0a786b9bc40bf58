"""Every kind of stuck execution, made by hand: found, reported, repaired, and it ends well.

The other half: a sound world, or one that waits for people, is never reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core.decision import iso_time
from holdfast.core.diagnosis import OverdueReason, should_move_since
from holdfast.errors import RequestError
from holdfast.limits import STUCK_SECONDS
from holdfast.runtime import inbox, messages
from holdfast.runtime.commands.api import Front
from holdfast.runtime.effects import Delete, Item, Put, TaskSucceeded
from holdfast.runtime.maintenance import dead_letters, doctor
from holdfast.runtime.maintenance.diagnostics import Symptom
from holdfast.runtime.storage.spread import Spread
from holdfast_simulator.invariants import histories
from tests.builders import KEYS, AnyTypes, Shop, ask, call, chain, machine, wait_for
from tests.sim import doctor_kit as kit
from tests.sim.doctor_kit import Stuck, findings

CASES: list[tuple[OverdueReason | Symptom, Callable[[], Stuck]]] = [
    (OverdueReason.RECORD_FULL, kit.record_full),
    (OverdueReason.ATTEMPT_DUE, kit.attempt_due),
    (OverdueReason.CLAIM_LAPSED, kit.claim_lapsed),
    (OverdueReason.TIMER_OVERDUE, kit.timer_overdue),
    (OverdueReason.WAIT_TIMED_OUT, kit.wait_timed_out),
    (OverdueReason.HEARTBEAT_MISSED, kit.heartbeat_missed),
    (OverdueReason.QUESTION_OVERDUE, kit.question_overdue),
    (OverdueReason.DEADLINE_PASSED, kit.deadline_passed),
    (OverdueReason.EXECUTION_TIMED_OUT, kit.execution_timed_out),
    (Symptom.CONTROL_UNSEEN, kit.control_unseen),
    (Symptom.EVENT_UNAPPLIED, kit.event_unapplied),
    (Symptom.ANSWER_UNAPPLIED, kit.answer_unapplied),
    (Symptom.UNKNOWN_FUNCTION, kit.unknown_function),
    (Symptom.NOT_WATCHED, kit.not_watched),
    (Symptom.LIST_STALE, kit.list_stale),
    (Symptom.CHILD_UNTOLD, kit.child_untold),
    (Symptom.CHILD_UNSTOPPED, kit.child_unstopped),
    (Symptom.NOTICE_UNAPPLIED, kit.notice_unapplied),
    (Symptom.CHILD_MISSING, kit.lane_missing),
]


@pytest.mark.parametrize(("reason", "make"), CASES, ids=[case[0].name for case in CASES])
def test_a_stuck_execution_is_found_repaired_and_ends(
    reason: OverdueReason | Symptom, make: Callable[[], Stuck]
) -> None:
    stuck = make()
    found = findings(stuck.world, names=stuck.names)
    # A child that crashed before it reported to its parent had not left the list either.
    also = {Symptom.LIST_STALE.name} if reason is Symptom.CHILD_UNTOLD else set[str]()
    assert {row["reason"] for row in found} == {reason.name, *also}
    assert reason.value in [row["says"] for row in found]
    assert findings(stuck.world, names=stuck.names, is_repairing=True) == found
    kit.settle(stuck.world, 50)
    assert findings(stuck.world, names=stuck.names) == []
    stuck.world.run()
    assert stuck.ends == stuck.statuses
    assert findings(stuck.world, names=stuck.names) == []


# -- faults without a repair -----------------------------------------------------------------------


def one(shop: Shop, identifier: str, *, is_repairing: bool = False) -> Any:
    request = {"execution": identifier}
    made = shop.front.doctor(shop.tenant, request, is_repairing=is_repairing)
    return shop.world.call(made)


def test_an_unread_redrive_is_found_by_the_id_of_the_ended_execution() -> None:
    stuck = kit.redrive_unseen()
    run = stuck.histories[0].run
    asked = doctor.report_one("default", Spread(), run, None, is_repairing=True)
    (found,) = stuck.world.call(asked)["findings"]
    assert found["reason"] == "CONTROL_UNSEEN"
    stuck.world.run()
    assert stuck.ends == {"SUCCEEDED"}


def test_a_child_that_never_began_is_said_and_its_start_is_sent_again() -> None:
    stuck = kit.child_missing()
    (found,) = findings(stuck.world, names=stuck.names, is_repairing=True)
    assert found["reason"] == "CHILD_MISSING"
    assert "repair" not in found
    assert "sends its start again" in found["advice"]
    stuck.world.run()
    assert stuck.ends == stuck.statuses


def test_a_name_whose_start_was_lost_is_found_by_its_name_and_begins_when_started_again() -> None:
    shop = Shop(chain(2))
    run = shop.start({"n": 0})
    kit.vanish(shop.world)
    answer = one(shop, "order-1", is_repairing=True)
    assert answer["examined"] == 0
    (found,) = answer["findings"]
    assert (found["reason"], found["execution"]) == ("NOT_BEGUN", run)
    assert "with the same name and input" in found["advice"]
    assert shop.start({"n": 0}) == run
    shop.world.run()
    assert one(shop, "order-1") == {"examined": 1, "findings": []}
    assert shop.history(run).state.status == "SUCCEEDED"


def test_the_stop_of_a_child_counts_as_late_from_when_it_was_stored() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    kit.settle(shop.world, 600)
    stored_ms = shop.world.now_ms
    fields = {"kind": inbox.PARENT}
    item = inbox.control_item("default", run, "0" * 27, stored_ms, fields)
    shop.world.services.perform(Put("mail", item))
    assert findings(shop.world, names=("flow",)) == []
    kit.vanish(shop.world)
    (found,) = findings(shop.world, names=("flow",))
    assert (found["reason"], found["since"]) == ("CONTROL_UNSEEN", iso_time(stored_ms))


def test_a_stop_that_came_after_the_end_is_no_finding() -> None:
    stuck = kit.redrive_unseen()
    run = stuck.histories[0].run
    stored_ms = stuck.world.now_ms
    stop = inbox.control_item("default", run, f"{stored_ms:015d}ffffffffffff", stored_ms, {})
    stuck.world.services.perform(Put("mail", stop))
    kit.vanish(stuck.world)
    answer = stuck.world.call(doctor.report_one("default", Spread(), run, None, is_repairing=False))
    assert [found["reason"] for found in answer["findings"]] == ["CONTROL_UNSEEN"]
    assert answer["findings"][0]["since"] < iso_time(stored_ms)


def test_a_report_on_an_unknown_execution_says_so() -> None:
    with pytest.raises(RequestError, match="there is no execution 'order-9'"):
        one(Shop(chain(1)), "order-9")


def damage(shop: Shop, **fields: Any) -> None:
    newest = shop.world.services.items("executions")[-1]
    kept = {key: value for key, value in newest.items() if key != "ev" or "f" in fields}
    shop.world.services.perform(Put("executions", {**kept, **fields}))


@pytest.mark.parametrize(
    ("fields", "reason", "said"),
    [({}, "UNREADABLE_LOG", "HF9"), ({"f": 99}, "NEWER_FORMAT", "HF301")],
)
def test_a_log_that_cannot_be_read_is_said_with_its_code_and_left_alone(
    fields: Item, reason: str, said: str
) -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    kit.settle(shop.world)
    damage(shop, **fields)
    before = shop.world.services.items("executions")
    kit.vanish(shop.world)
    (found,) = findings(shop.world, names=("flow",), is_repairing=True)
    assert (found["execution"], found["reason"]) == (run, reason)
    assert said in found["says"]
    assert one(shop, run)["findings"] == [found]
    assert shop.world.services.items("executions") == before
    assert shop.world.services.depth("work") == 0


def test_an_unreadable_execution_stays_in_quarantine() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    run = shop.start()
    kit.settle(shop.world)
    letter = dead_letters.StoredDeadLetter(messages.recover(shop.tenant, run, ("a", "b")), "c")
    shop.world.call(dead_letters.revive(letter))
    damage(shop)
    kit.vanish(shop.world)
    (found,) = findings(shop.world, names=("flow",))
    assert (found["execution"], found["reason"]) == (run, "QUARANTINED")
    assert one(shop, run) == {"examined": 1, "findings": [found]}


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("e#", {"at": "noon"}, "UNREADABLE_LOG"),
        ("e#", {"expires": "never"}, "UNREADABLE_LOG"),
        ("e#", {"f": 99}, "NEWER_FORMAT"),
        ("x#", {"at": "noon"}, "UNREADABLE_LOG"),
        ("x#", {"f": 99}, "NEWER_FORMAT"),
    ],
)
def test_mail_that_cannot_be_read_is_said_and_hides_no_other_execution(
    kind: str, fields: Item, reason: str
) -> None:
    which = {"Condition": "{% $states.input = 1 %}", "Next": "it"}
    states = {
        "which": {"Type": "Choice", "Choices": [which], "Default": "nap"},
        "it": wait_for("paid"),
        "nap": {**kit.NAP, "End": True},
    }
    shop = Shop(machine(states))
    hurt = shop.start(1, name="hurt")
    shop.world.now_ms += 1_000
    late = shop.start(2, name="late")
    kit.settle(shop.world)
    shop.send_event()
    shop.stop(hurt)
    items = shop.world.services.items("mail")
    (stored,) = [item for item in items if str(item["sk"]).startswith(kind)]
    shop.world.services.perform(Delete("mail", str(stored["pk"]), str(stored["sk"])))
    shop.world.services.perform(Put("mail", {**stored, **fields}))
    kit.vanish(shop.world)
    found = {row["execution"]: row["reason"] for row in findings(shop.world, names=("flow",))}
    assert found == {hurt: reason, late: "TIMER_OVERDUE"}


def test_an_unreadable_dead_letter_is_reported_while_it_exists() -> None:
    shop = Shop(chain(1))
    letter = dead_letters.StoredDeadLetter({"f": 1, "k": "sing", "secret": "hunter2"}, "letter-7")
    with pytest.raises(Exception, match="of no kind"):
        shop.world.call(dead_letters.revive(letter))
    (found,) = findings(shop.world, is_repairing=True)
    assert found["reason"] == "UNREADABLE_LETTER"
    assert "letter-7" in found["says"]
    assert "hunter2" not in str(found)
    assert (
        shop.world.call(doctor.report("other", Spread(), None, is_repairing=False))["findings"]
        == []
    )
    shop.world.now_ms += 3_600_000  # the sweeper has met it no more
    assert findings(shop.world) == []


# -- nothing is wrong ------------------------------------------------------------------------------


EACH = 30


def people() -> Shop:
    """Executions that wait for a person, an event and a month: thirty of each."""
    states = {
        "which": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $states.input.n % 3 = 0 %}", "Next": "ask"},
                {"Condition": "{% $states.input.n % 3 = 1 %}", "Next": "paid"},
            ],
            "Default": "month",
        },
        "ask": ask(),
        "paid": wait_for("paid", TimeoutSeconds=60 * 86_400),
        "month": {"Type": "Wait", "Seconds": 30 * 86_400, "Next": "work"},
        "work": call("work"),
    }
    shop = Shop(machine(states), tasks=lambda _: TaskSucceeded(None))
    for n in range(EACH * 3):
        shop.world.now_ms += 997
        chance = n.to_bytes(8, "big")
        request = {"workflow": "flow", "input": {"n": n}}
        shop.world.call(shop.front.start(shop.tenant, request, chance))
    return shop


def test_of_many_executions_that_wait_for_people_and_time_nothing_is_said() -> None:
    shop = people()
    for days in (0, 1, 20):
        kit.settle(shop.world, days * 86_400)
        assert findings(shop.world, names=("flow",)) == []
        states = [history.state for history in histories(shop.world)]
        assert len(states) == EACH * 3
        assert {should_move_since(state, shop.world.now_ms) for state in states} == {None}


def test_a_fault_is_reported_from_the_exact_second_on() -> None:
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 100, "End": True}}))
    shop.start()
    kit.settle(shop.world)
    kit.purge(shop.world)
    (history,) = histories(shop.world)
    due_ms = history.state.started_ms + 101_000  # the clock error, twice
    shop.world.now_ms = due_ms - 1
    assert should_move_since(history.state, shop.world.now_ms) is None
    shop.world.now_ms = due_ms + STUCK_SECONDS * 1_000 - 1
    assert should_move_since(history.state, shop.world.now_ms) == due_ms
    assert findings(shop.world, names=("flow",)) == []
    shop.world.now_ms += 1
    assert [row["reason"] for row in findings(shop.world, names=("flow",))] == ["TIMER_OVERDUE"]


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("examined_max", [1, 2, 7, 40])
def test_page_by_page_everything_is_found_once(
    examined_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "DOCTOR_EXAMINED_MAX", examined_max)
    shop = people()
    kit.settle(shop.world)
    kit.unwatch(shop.world)
    found = findings(shop.world, names=("none", "flow"))
    assert {row["reason"] for row in found} == {"NOT_WATCHED"}
    assert len({row["execution"] for row in found}) == len(found) == EACH * 3


@pytest.mark.parametrize("examined_max", [1, 7])
@pytest.mark.parametrize("names", [(), ("other",), ("flow",), ("flow", "other")])
def test_pages_show_deployed_and_removed_workflows_once_each(
    names: tuple[str, ...], examined_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "DOCTOR_EXAMINED_MAX", examined_max)
    monkeypatch.setattr(doctor, "_ROWS_PER_LOG", 3)
    shop = Shop(machine({"nap": {**kit.NAP, "End": True}}))
    deployed = dict.fromkeys(("flow", "other"), shop.definition)
    shop.front = Front(shop.programs, deployed, AnyTypes(), KEYS)
    for n in range(EACH):
        chance = n.to_bytes(8, "big")
        request = {"workflow": "other" if n % 3 else "flow"}
        for tenant in ("default", "stranger"):
            shop.world.call(shop.front.start(tenant, request, chance))
    kit.lose_all(shop.world)
    found = findings(shop.world, names=names)
    assert {row["reason"] for row in found} == {"TIMER_OVERDUE"}
    assert len({row["execution"] for row in found}) == len(found) == EACH
    findings(shop.world, names=names, is_repairing=True)
    kit.settle(shop.world, 50)
    assert findings(shop.world, names=names) == []


@pytest.mark.parametrize(
    "after",
    ["", "x", "1", "4#", "1##", "1#flow#", "1#zzz", 7, ["1"], "w1", "w#", "w9#", "w1#a#b"],
)
def test_a_cursor_that_no_page_gave_is_refused(after: Any) -> None:
    shop = Shop(chain(1))
    with pytest.raises(RequestError) as refused:
        shop.world.call(shop.front.doctor("default", {"after": after}, is_repairing=False))
    assert refused.value.code == "HF209"


def test_a_tenant_sees_and_repairs_its_own_executions_alone() -> None:
    stuck = kit.timer_overdue()
    other = doctor.report("other", Spread(), None, is_repairing=True)
    assert stuck.world.call(other) == {"examined": 0, "findings": []}
    assert stuck.world.services.depth("work") == 0
