"""The report of the doctor on executions that wait for others, and on logs that it cannot read."""

from __future__ import annotations

import pytest

from holdfast.errors import ServiceFault
from holdfast.runtime import messages
from holdfast.runtime.effects import (
    Effect,
    Put,
    PutIfAbsent,
    Query,
    RunTask,
    TaskResult,
    TaskSucceeded,
)
from holdfast.runtime.maintenance import dead_letters
from holdfast.runtime.storage import keys
from holdfast_simulator.world import Hook, Killed, SimulatorWorld, When
from tests.builders import Shop, chain, machine, wait_for
from tests.sim import doctor_kit as kit
from tests.sim.doctor_kit import findings
from tests.sim.map_run_test import a_map
from tests.unit.child_kit import TENANT, Family, call_of

NAMES = ("inner", "outer")


def waiting_for_a_child() -> tuple[Family, str]:
    """Return `outer`, which waits for `inner`, which waits for an event; and the child's id."""
    outer = machine({"it": call_of("inner")})
    family = Family({"outer": outer, "inner": machine({"it": wait_for("paid")})})
    family.start()
    kit.settle(family.world)
    (child,) = family.children
    return family, child.run


def quarantine(world: SimulatorWorld, run: str) -> None:
    letter = dead_letters.StoredDeadLetter(messages.recover(TENANT, run, ("a", "b")), "c")
    world.call(dead_letters.revive(letter))


def reasons(world: SimulatorWorld, names: tuple[str, ...]) -> set[tuple[str, str]]:
    return {(row["execution"], row["reason"]) for row in findings(world, names=names)}


def test_of_a_child_in_quarantine_nothing_is_said_twice() -> None:
    family, child = waiting_for_a_child()
    quarantine(family.world, child)
    kit.vanish(family.world)
    assert reasons(family.world, NAMES) == {(child, "QUARANTINED")}


def test_a_quarantined_end_of_a_child_is_also_reported_for_its_parent() -> None:
    """A report on the parent alone has to say why it waits."""
    family, child = waiting_for_a_child()

    def die(_: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, PutIfAbsent) and when == "before" and effect.item["sk"] == "t#0.1":
            raise Killed

    family.world.hook = die
    family.pay()
    kit.settle(family.world)
    quarantine(family.world, child)
    kit.vanish(family.world)
    expected = {(child, "QUARANTINED"), (child, "CHILD_UNTOLD")}
    assert expected <= reasons(family.world, NAMES)


def test_a_child_with_an_unreadable_log_is_reported_once() -> None:
    family, child = waiting_for_a_child()
    items = family.world.services.items("executions")
    newest = next(item for item in reversed(items) if str(item["pk"]).endswith(child))
    torn = {key: value for key, value in newest.items() if key != "ev"}
    family.world.services.perform(Put("executions", torn))
    kit.vanish(family.world)
    assert reasons(family.world, NAMES) == {(child, "UNREADABLE_LOG")}


def test_a_child_with_a_missing_blob_is_reported_once() -> None:
    family, child = waiting_for_a_child()
    items = family.world.services.items("executions")
    newest = next(item for item in reversed(items) if str(item["pk"]).endswith(child))
    family.world.services.perform(Put("executions", {**newest, "bl": "0" * 64}))
    kit.vanish(family.world)
    assert reasons(family.world, NAMES) == {(child, "UNREADABLE_LOG")}


@pytest.mark.parametrize("names", [(), ("flow",)], ids=["undeployed", "deployed"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_vain_wait_of_a_child_of_a_map_is_reported_of_that_child(
    is_lost: bool, names: tuple[str, ...]
) -> None:
    nap = {"Type": "Wait", "Seconds": 300}
    shop = Shop(machine({"all": {**a_map({"nap": nap}, Items=[1, 2]), "End": True}}))
    run = shop.start()
    kit.settle(shop.world)
    if is_lost:
        kit.vanish(shop.world)
    lanes = [(f"{run}.0.{lane}", "TIMER_OVERDUE") for lane in range(2)]
    found = findings(shop.world, names=names)
    assert sorted((row["execution"], row["reason"]) for row in found) == (lanes if is_lost else [])


def test_the_children_of_a_map_whose_log_cannot_be_read_are_looked_at_by_themselves() -> None:
    nap = {"Type": "Wait", "Seconds": 300}
    shop = Shop(machine({"all": {**a_map({"nap": nap}, Items=[1, 2]), "End": True}}))
    run = shop.start()
    kit.settle(shop.world)
    items = shop.world.services.items("executions")
    newest = next(item for item in reversed(items) if item["pk"] == keys.execution(TENANT, run))
    torn = {key: value for key, value in newest.items() if key != "ev"}
    shop.world.services.perform(Put("executions", torn))
    kit.vanish(shop.world)
    lanes = [(f"{run}.0.{lane}", "TIMER_OVERDUE") for lane in range(2)]
    assert reasons(shop.world, ("flow",)) == {(run, "UNREADABLE_LOG"), *lanes}


def test_an_execution_that_never_began_is_guarded_by_its_message() -> None:
    def deadly(effect: RunTask) -> TaskResult:
        if effect.arguments["n"] == 1:
            raise Killed
        return TaskSucceeded({"n": effect.arguments["n"] + 1})

    shop = Shop(chain(2), tasks=deadly)  # type: ignore[arg-type]
    run = shop.start({"n": 0})
    kit.settle(shop.world)
    asked = shop.front.doctor(shop.tenant, {"execution": run}, is_repairing=False)
    assert shop.world.call(asked) == {"examined": 1, "findings": []}


def test_a_service_that_fails_for_a_moment_hides_no_child_of_a_map() -> None:
    nap = {"Type": "Wait", "Seconds": 300}
    shop = Shop(machine({"all": {**a_map({"nap": nap}, Items=[1, 2]), "End": True}}))
    run = shop.start()
    kit.settle(shop.world)
    looks: list[Effect] = []

    def busy_at(look: int) -> Hook:
        def hook(_world: SimulatorWorld, effect: Effect, when: When) -> None:
            is_log = isinstance(effect, Query) and effect.pk == keys.execution(TENANT, run)
            if is_log and when == "before":
                looks.append(effect)
                if len(looks) == look:
                    raise ServiceFault("HF321", "slow down")

        return hook

    shop.world.hook = busy_at(0)
    findings(shop.world, names=("flow",))
    assert looks
    for look in range(1, len(looks) + 1):
        looks.clear()
        shop.world.hook = busy_at(look)
        with pytest.raises(ServiceFault, match="slow down"):
            findings(shop.world, names=("flow",))


@pytest.mark.parametrize("whose", ["the execution's", "a child's", "that of what is held"])
def test_a_service_that_fails_for_a_moment_is_no_finding(whose: str) -> None:
    family, child = waiting_for_a_child()
    run = child if whose == "a child's" else family.outer.run
    if whose == "that of what is held":
        quarantine(family.world, run)

    def busy(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Query) and effect.pk == log and when == "before":
            raise ServiceFault("HF321", "slow down")

    log = keys.execution(TENANT, run)
    family.world.hook = busy
    with pytest.raises(ServiceFault, match="slow down"):
        findings(family.world, names=("outer",))
