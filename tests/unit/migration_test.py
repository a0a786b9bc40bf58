"""Migration of executions: what may move, how its state is carried over, and what may not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.apply.apply import fold
from holdfast.core.migrating import carried_out
from holdfast.core.state_json import from_json, to_json
from holdfast.core.waits import new_commands, pending_commands
from holdfast.errors import RequestError, WorkflowError
from holdfast.runtime.effects import Effect, RunTask, Send, TaskFailed, TaskSucceeded, Unlist
from holdfast_simulator.invariants import check
from holdfast_simulator.world import Killed, SimulatorWorld, When, no_faults
from tests.builders import CHANCE
from tests.unit.migration_kit import WHY, TwoVersions, compiled
from tests.unit.pausing_test import settle

PAID = """
@workflow
def flow(amount: int) -> str:
    receipt = wait_for_event("paid", str, key="k1")
    ship(receipt)
    return receipt
"""
CHECKED = """
@workflow(renamed={"receipt": "proof"})
def flow(amount: int) -> str:
    proof = wait_for_event("paid", str, key="k1")
    if check(amount):
        ship(proof)
    return proof
"""


def work(effect: RunTask) -> TaskSucceeded | TaskFailed:
    if effect.name == "pay" and effect.attempt < 3:
        return TaskFailed("BankDown", "no answer")
    return TaskSucceeded({"check": True, "pay": "r-1"}.get(effect.name))


def shop_of(folder: Path, old: str, new: str, **options: Any) -> TwoVersions:
    shop = TwoVersions(compiled(folder, old), compiled(folder, new), work, **options)
    return shop


def test_a_waiting_execution_goes_on_with_the_new_version(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, PAID, CHECKED)
    run = shop.begun({"amount": 5})
    shop.deploy()
    told = shop.migrate(run)
    settle(shop)
    assert (told["moves"], told["from"], told["to"]) == (True, shop.old.hash, shop.new.hash)
    assert shop.state(run).definition == shop.new.hash

    shop.send_event(data="r-7")
    shop.world.run()
    shown = shop.describe(run)
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", "r-7")
    assert (shop.scheduled(run, "check"), shop.scheduled(run, "ship")) == (1, 1)
    assert check(shop.world) == []


def test_the_history_says_from_where_to_where_who_and_why(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, PAID, CHECKED)
    run = shop.begun({"amount": 5})
    shop.deploy()
    shop.migrate(run)
    settle(shop)
    (move,) = shop.moves(run)
    assert move["from"] == shop.old.hash and move["to"] == shop.new.hash
    assert (move["by"], move["reason"]) == ("ann", "the new check is law")
    state = shop.state(run)
    assert from_json(to_json(state)) == state
    (row,) = shop.insist(lambda: shop.front.executions("default", {"definition": shop.new.hash}))[
        "executions"
    ]
    assert row["execution"] == run


def test_a_migrated_execution_goes_back_while_its_position_allows_it(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, PAID, CHECKED)
    run = shop.begun({"amount": 5})
    shop.deploy()
    shop.migrate(run)
    settle(shop)
    shop.migrate(run, to="back")
    settle(shop)
    assert shop.state(run).definition == shop.old.hash
    shop.send_event(data="r-7")
    shop.world.run()
    assert shop.describe(run)["output"] == "r-7"
    assert shop.scheduled(run, "check") == 0
    assert check(shop.world) == []


RETRIED = """
@workflow
def flow(amount: int) -> str:
    receipt = pay(amount)
    ship(receipt)
    return receipt
"""
TASK_RENAMED = """
@task(retry=Retry(max_attempts=9, interval=minutes(10), jitter=False), renamed="pay")
def pay_out(amount: int) -> str: ...
""" + RETRIED.replace("pay(", "pay_out(")


def test_a_waiting_retry_runs_once_under_the_new_name_of_its_task(tmp_path: Path) -> None:
    ran: list[tuple[str, int]] = []
    wakes: list[Effect] = []

    def hook(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "after" and isinstance(effect, Send):
            wakes.extend([effect] * any(one.body["k"] == "wake.timer" for one in effect.messages))

    def counted(effect: RunTask) -> TaskSucceeded | TaskFailed:
        ran.append((effect.name, effect.attempt))
        if effect.name.startswith("pay") and effect.attempt < 3:
            return TaskFailed("BankDown", "no answer")
        return TaskSucceeded("r-1")

    old, new = compiled(tmp_path, RETRIED), compiled(tmp_path, TASK_RENAMED)
    shop = TwoVersions(old, new, counted, hook)
    run = shop.begun({"amount": 5})
    shop.deploy()
    before = len(wakes)
    shop.migrate(run)
    settle(shop)
    assert len(wakes) == before  # the timer of the retry is the one that was started before
    shop.world.run()
    assert shop.describe(run)["output"] == "r-1"
    assert ran == [("pay", 1), ("pay_out", 2), ("pay_out", 3), ("ship", 1)]
    assert check(shop.world) == []


TWO_WAITS = PAID.replace("    return", '    wait_for_event("signed", str, key="k1")\n    return')
TWO_WAITS_CHECKED = TWO_WAITS.replace("    ship", "    check(amount)\n    ship")


def test_an_execution_that_moved_on_since_the_proof_stays_whole_on_its_version(
    tmp_path: Path,
) -> None:
    shop = shop_of(tmp_path, TWO_WAITS, TWO_WAITS_CHECKED)
    run = shop.begun({"amount": 5})
    shop.deploy()
    shop.send_event(data="r-7")  # its wake is in front of that of the migration
    assert shop.migrate(run)["moves"]
    settle(shop)
    assert shop.state(run).definition == shop.old.hash
    shop.send_event("signed", "yes", "e2")
    shop.world.run()
    assert shop.describe(run)["output"] == "r-7"
    assert shop.scheduled(run, "ship") == 1
    assert check(shop.world) == []


UNDONE = """
@workflow
def flow(amount: int) -> str:
    with compensating() as undo:
        undo(pay, 5)
        return wait_for_event("paid", str, key="k1")
"""


def is_listed_after(shop: TwoVersions, run: str, other: Callable[[], Any], way: str) -> bool:
    """A worker has removed the old list entry when `other` makes its request void. It then loses
    the race for its record, or crashes.
    """

    def overtake(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Unlist) and when == "after":
            world.hook = no_faults
            other()
            if way == "crash":
                raise Killed
            while world._deliver_visible():
                pass

    shop.world.hook = overtake
    settle(shop, 300)
    assert shop.world.hook is no_faults
    assert not shop.state(run).is_ended
    listed = shop.insist(lambda: shop.front.executions("default", {"status": "RUNNING"}))
    return [row["execution"] for row in listed["executions"]] == [run]


@pytest.mark.parametrize("way", ["lost race", "crash"])
def test_a_migration_that_becomes_void_leaves_the_execution_in_the_list(
    tmp_path: Path, way: str
) -> None:
    shop = shop_of(tmp_path, TWO_WAITS, TWO_WAITS_CHECKED)
    run = shop.begun({"amount": 5}, seconds=600)
    shop.deploy()
    shop.migrate(run)
    assert is_listed_after(shop, run, lambda: shop.send_event(data="r-7"), way)
    assert shop.state(run).definition == shop.old.hash
    assert check(shop.world) == []


@pytest.mark.parametrize("way", ["lost race", "crash"])
def test_a_pause_that_becomes_void_leaves_the_execution_in_the_list(
    tmp_path: Path, way: str
) -> None:
    shop = shop_of(tmp_path, UNDONE, UNDONE)
    run = shop.begun({"amount": 5}, seconds=600)
    shop.insist(lambda: shop.front.pause("default", run, WHY, CHANCE))

    def stop() -> None:
        shop.insist(lambda: shop.front.stop("default", run, {}, b"87654321"))

    assert is_listed_after(shop, run, stop, way)
    assert shop.state(run).paused is None
    assert check(shop.world) == []


def test_a_task_in_hand_gives_its_result_to_the_new_version(tmp_path: Path) -> None:
    """Another worker commits the migration while the task runs: the first one loses the race."""
    old = PAID.replace("ship(receipt)", "pay(5)")
    new = CHECKED.replace("if check(amount):\n        ship(proof)", "pay(5)\n    check(amount)")
    ran: list[str] = []

    def hook(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, RunTask):
            ran.append(effect.name)
            if effect.name == "pay":
                assert shop.migrate(run)["moves"]
                assert world._deliver_visible()
                assert shop.state(run).definition == shop.new.hash

    def once(_effect: RunTask) -> TaskSucceeded:
        return TaskSucceeded("r-1")

    shop = TwoVersions(compiled(tmp_path, old), compiled(tmp_path, new), once, hook)
    run = shop.begun({"amount": 5})
    shop.deploy()
    shop.send_event(data="r-7")
    shop.world.run()
    assert ran == ["pay", "check"]
    assert shop.describe(run)["output"] == "r-7"
    assert check(shop.world) == []


def test_a_retry_that_begins_in_the_record_of_the_migration_gets_its_timer(tmp_path: Path) -> None:
    """The commands of the events before the migration are new, those of earlier records are not."""
    shop = shop_of(tmp_path, RETRIED, TASK_RENAMED)
    run = shop.begun({"amount": 5})
    shop.deploy()
    shop.migrate(run)
    settle(shop)
    events = shop.events(run)
    (end,) = (place for place, event in enumerate(events) if event.type == "Migrated")
    failed = next(place for place, event in enumerate(events) if event.type == "TaskFailed")
    moved = fold(events[: end + 1])
    before, asked = fold(events[:failed]), pending_commands(moved) if moved else []
    assert len(asked) == 1
    assert new_commands(asked, carried_out(before, events[failed : end + 1])) == asked
    assert new_commands(asked, carried_out(fold(events[:end]), events[end : end + 1])) == []


BULK = {"operation": "migrate", **WHY}


def bulk_of(shop: TwoVersions, **request: Any) -> Any:
    """Run a bulk migration; return the outcome of each execution."""
    told = shop.insist(lambda: shop.front.bulk("default", {**BULK, **request}, CHANCE))
    settle(shop, 60)
    events = shop.insist(lambda: shop.front.history("default", told["execution"]))["events"]
    return [
        json.loads(details["output"])["outcomes"]
        for details in (event.get("taskSucceededEventDetails", {}) for event in events)
        if details.get("resource") == "bulk:act"
    ]


def test_a_bulk_migrates_to_the_version_that_was_newest_at_its_start(tmp_path: Path) -> None:
    """The worker is of the release before: to it the old version is the newest one."""
    shop = shop_of(tmp_path, PAID, CHECKED)
    run = shop.begun({"amount": 5})
    setting = shop.world.setting
    shop.deploy()
    shop.world.setting = setting
    assert bulk_of(shop, filters={"workflow": "flow"}) == [{run: "done"}]
    assert shop.state(run).definition == shop.new.hash

    (again,) = bulk_of(shop, filters={"workflow": "flow"}, name="again")
    assert again == {run: f"HF544: execution {run} has that version already"}


def test_a_bulk_migration_to_the_newest_version_needs_a_workflow(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, PAID, CHECKED)
    with pytest.raises(RequestError, match="needs one workflow") as refused:
        bulk_of(shop, filters={"status": "RUNNING"})
    assert refused.value.code == "HF501"


def test_a_fork_at_a_step_before_the_migration_has_the_version_of_that_time(
    tmp_path: Path,
) -> None:
    shop = shop_of(tmp_path, PAID, CHECKED)
    run = shop.begun({"amount": 5})
    shop.deploy()
    shop.migrate(run)
    settle(shop)
    request = {"step": "wait for paid", **WHY}
    fork = shop.insist(lambda: shop.front.fork("default", run, request, b"87654321"))["execution"]
    settle(shop)
    assert shop.state(fork).definition == shop.old.hash
    for event_id in ("e1", "e2"):  # each execution uses an event of its own
        shop.send_event(data="r-7", event_id=event_id)
    shop.world.run()
    assert (shop.describe(fork)["output"], shop.describe(run)["output"]) == ("r-7", "r-7")
    assert (shop.scheduled(fork, "check"), shop.scheduled(run, "check")) == (0, 1)


@pytest.mark.parametrize("hint", ['renamed={"x": "gone"}', 'assumed_done=["gone"]'])
def test_a_hint_that_names_nothing_of_the_workflow_is_refused(tmp_path: Path, hint: str) -> None:
    with pytest.raises(WorkflowError, match="names what it lacks: gone") as caught:
        compiled(tmp_path, PAID.replace("@workflow", f"@workflow({hint})"))
    assert caught.value.code == "HF140"


BLOCKED = {
    "a step that is gone": (
        PAID.replace('wait_for_event("paid", str, key="k1")', "str(amount)"),
        "the new version has no step",
    ),
    "another kind of step": (
        PAID.replace(
            'wait_for_event("paid", str, key="k1")', 'ask("paid?", str, assignee=role("desk"))'
        ).replace("@workflow", '@workflow(renamed={"wait for paid": "ask for str"})'),
        "`wait for paid` is a wait for an event and becomes a question",
    ),
    "another key of the event": (
        PAID.replace('key="k1"', 'key="k2"'),
        "has begun with other arguments",
    ),
    "a value that was not computed": (
        PAID.replace("receipt = wait", "limit = check(amount)\n    receipt = wait")
        .replace("ship(receipt)", "ship(receipt if limit else '')")
        .replace("@workflow", '@workflow(assumed_done=["check"])'),
        "reads `limit`, which this execution has not computed",
    ),
    "a step that would be missed": (
        PAID.replace("receipt = wait", "check(amount)\n    receipt = wait"),
        "`check` may stand before `wait for paid` in the new version",
    ),
    "a time limit whose clock does not run": (
        PAID.replace(
            'receipt = wait_for_event("paid", str, key="k1")',
            'with timeout(hours(2)):\n        receipt = wait_for_event("paid", str, key="k1")',
        ),
        "1 time limits surround `wait for paid`, and the clocks of 0 run",
    ),
    "a block of branches around it": (
        PAID.replace(
            'receipt = wait_for_event("paid", str, key="k1")',
            'receipt, _ = parallel(lambda: wait_for_event("paid", str, key="k1"), '
            "lambda: check(amount))",
        ),
        "stands in another block of branches",
    ),
}


@pytest.mark.parametrize("case", BLOCKED)
def test_it_may_not_move_to(tmp_path: Path, case: str) -> None:
    source, reason = BLOCKED[case]
    shop = shop_of(tmp_path, PAID, source)
    run = shop.begun({"amount": 5})
    shop.deploy()
    told = shop.dry_run(run)
    assert not told["moves"]
    assert any(reason in one["why"] for one in told["obstacles"]), told["obstacles"]
    assert all(one["old"]["line"] for one in told["obstacles"])
    with pytest.raises(RequestError) as caught:
        shop.migrate(run)
    assert (caught.value.code, caught.value.status) == ("HF541", 409)

    # The rejected migration has taken nothing away: the event still arrives at once, and once.
    shop.send_event(data="r-7")
    settle(shop, 30)
    assert shop.describe(run)["output"] == "r-7"
    assert shop.scheduled(run, "ship") == 1
    assert check(shop.world) == []


AFTER_PAY = """
@workflow
def flow(amount: int) -> str:
    receipt = pay(amount)
    answer = wait_for_event("signed", str, key="k1")
    ship(receipt)
    return answer
"""


def test_a_step_that_has_run_does_not_run_again(tmp_path: Path) -> None:
    moved = AFTER_PAY.replace("    receipt = pay(amount)\n", "").replace(
        "    ship", "    receipt = pay(amount)\n    ship"
    )
    shop = shop_of(tmp_path, AFTER_PAY, moved)
    run = shop.begun({"amount": 5}, seconds=3_000)
    shop.deploy()
    assert any("`pay` may have run, and would run again" in why for why in shop.reasons(run))


def test_lanes_that_have_ended_keep_the_meaning_of_their_results(tmp_path: Path) -> None:
    signed = """
@workflow
def flow(amount: int) -> str:
    found = parallel(
        lambda: pay(amount), lambda: wait_for_event("signed", str, key="k1"), tolerate=1
    )
    return str(len(found))
"""
    partial = signed.replace("tolerate=1", "tolerate=1, return_exceptions=True")
    shop = shop_of(tmp_path, signed, partial)
    run = shop.begun({"amount": 5}, seconds=3_000)
    shop.deploy()
    assert any("errors are results in one of the versions" in why for why in shop.reasons(run))


def test_undo_steps_that_are_registered_have_to_exist(tmp_path: Path) -> None:
    undone = """
@workflow
def flow(amount: int) -> str:
    with compensating() as undo:
        undo(refund, "r-1")
        answer = wait_for_event("signed", str, key="k1")
        ship(answer)
    return answer
"""
    other = undone.replace('undo(refund, "r-1")', 'undo(ship, "r-1")')
    shop = shop_of(tmp_path, undone, other)
    run = shop.begun({"amount": 5})
    shop.deploy()
    assert any("undo step `refund` is registered" in why for why in shop.reasons(run))


def test_a_registered_event_has_to_exist_in_the_new_version_too(tmp_path: Path) -> None:
    old = """
from holdfast import send

@workflow
def flow(amount: int) -> str:
    with compensating() as undo:
        undo(send, "freed", "r-1", key="k2")
        answer = wait_for_event("signed", str, key="k1")
        ship(answer)
    return answer
"""
    new = old.replace("ship(answer)", "check(amount)\n        ship(answer)")
    shop = shop_of(tmp_path, old, new)
    run = shop.begun({"amount": 5})
    shop.deploy()
    assert shop.migrate(run)["moves"]
    other = old.replace('"freed"', '"given"')
    shop = shop_of(tmp_path, old, other)
    run = shop.begun({"amount": 5})
    shop.deploy()
    assert any("undo step `send freed` is registered" in why for why in shop.reasons(run))


def test_equal_questions_are_told_apart_by_contents_and_not_by_number(tmp_path: Path) -> None:
    old = """
@workflow
def flow(amount: int) -> str:
    return ask("ship it?", str, assignee=role("desk"))
"""
    new = """
@workflow
def flow(amount: int) -> str:
    if amount > 100:
        ask("is it insured?", str, assignee=role("desk"))
    return ask("ship it?", str, assignee=role("desk"))
"""
    same = new.replace("is it insured?", "ship it?")
    shop = shop_of(tmp_path, old, new)
    run = shop.begun({"amount": 5})
    shop.deploy()
    (reason,) = shop.reasons(run)
    assert reason.startswith("`ask for str` may stand before `ask for str (2)` in the new version")
    shop = shop_of(tmp_path, old, same)
    run = shop.begun({"amount": 5})
    shop.deploy()
    assert "may be any of `ask for str`, `ask for str (2)`" in shop.reasons(run)[0]


def test_requests_that_name_no_definition_are_refused(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, PAID, CHECKED)
    run = shop.begun({"amount": 5})
    shop.deploy()
    for to, code in (("back", "HF542"), (7, "HF540"), ("abc", "HF540"), ("f" * 64, "HF542")):
        with pytest.raises(RequestError) as caught:
            shop.migrate(run, to=to)
        assert caught.value.code == code
    assert shop.migrate(run, to=shop.old.hash, dry_run=True)["moves"] is False


GRADED = """
class Risk(BaseModel):
    score: int

@task
def rate(amount: int) -> Risk: ...

@workflow
def flow(amount: int) -> str:
    risk = rate(amount)
    receipt = wait_for_event("paid", str, key="k1")
    check(risk.score)
    return receipt
"""
FORMS = {
    "a new field that is read": (
        GRADED.replace("    score: int", "    score: int\n    grade: int = 0").replace(
            "risk.score", "risk.grade"
        ),
        "`check` reads another form: `risk` has no field `grade`",
    ),
    "a field of another type": (
        GRADED.replace("score: int", "score: str").replace("(risk.score)", "(len(risk.score))"),
        "`score` of `risk` was int and is str",
    ),
    "a model in place of a number": (
        GRADED.replace("-> Risk", "-> int").replace("risk.score", "risk"),
        "`risk` was Risk and is int",
    ),
    "a wider type": (GRADED.replace("score: int", "score: int | None"), "is allowed"),
    "a field less": (
        GRADED.replace("    score: int", "    score: int\n    note: str"),
        "has no field `note`",
    ),
}


@pytest.mark.parametrize("case", FORMS)
def test_values_that_are_carried_over_need_the_form_that_is_read(tmp_path: Path, case: str) -> None:
    source, reason = FORMS[case]
    source = source.replace("check(risk.score)", "check(risk.score or 0)")
    shop = TwoVersions(compiled(tmp_path, GRADED), compiled(tmp_path, source), rated)
    run = shop.begun({"amount": 5})
    shop.deploy()
    reasons = shop.reasons(run)
    assert reasons == [] if reason == "is allowed" else any(reason in why for why in reasons)


def test_a_variable_whose_name_another_one_gets_is_not_carried_over(tmp_path: Path) -> None:
    old = """
@workflow
def flow(amount: int) -> int:
    low = amount + 1
    high = amount + 10
    wait_for_event("paid", str, key="k1")
    return low + high
"""
    new = """
@workflow(renamed={"low": "high", "high": "low"})
def flow(amount: int) -> int:
    high = amount + 1
    low = amount + 10
    wait_for_event("paid", str, key="k1")
    return low * 1000 + high
"""
    shop = shop_of(tmp_path, old, new)
    run = shop.begun({"amount": 5})
    shop.deploy()
    shop.migrate(run)
    settle(shop)
    shop.send_event(data="r-7")
    shop.world.run()
    assert shop.describe(run)["output"] == 15_006

    only_one = new.replace('{"low": "high", "high": "low"}', '{"low": "high"}')
    shop = shop_of(tmp_path, old, only_one)
    run = shop.begun({"amount": 5})
    shop.deploy()
    assert any(
        "reads `low`, which this execution has not computed" in why for why in shop.reasons(run)
    )


def test_an_execution_that_polls_moves_to_a_version_that_polls(tmp_path: Path) -> None:
    old = """
@workflow
def flow(amount: int) -> str:
    return wait_for_condition(find, every=minutes(5))(amount)
"""
    new = old.replace("minutes(5)", "minutes(20)").replace("return", "found =")
    new += "    ship(found)\n    return found\n"
    plain = old.replace("wait_for_condition(find, every=minutes(5))", "find").replace(
        "-> str", "-> str | None"
    )
    for version, moves in ((new, True), (plain, False)):
        shop = shop_of(tmp_path, old, version)
        run = shop.begun({"amount": 5})
        shop.deploy()
        why = "is a task that is called until it returns a value and becomes a task"
        assert [why in one for one in shop.reasons(run)] == ([] if moves else [True])


def rated(effect: RunTask) -> TaskSucceeded:
    return TaskSucceeded({"score": 7} if effect.name == "rate" else True)
