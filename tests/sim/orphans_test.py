"""When the judges take a message for lost that one of two has deleted."""

from __future__ import annotations

import pytest

from holdfast.runtime import messages
from holdfast.runtime.effects import Message, Send
from holdfast.sim import scenarios
from holdfast.sim.evidence import Evidence
from holdfast.sim.orphans import Orphans
from holdfast.sim.queues import Received
from holdfast.sim.services import Services
from holdfast.sim.swarm import Swarm
from tests.builders import machine

RUN = "01"


class Hands:
    """One message in the hands of "a" and "b"."""

    def __init__(self) -> None:
        given = {"name": "one", "about": "", "machines": {"main": machine({"p": {"Type": "Pass"}})}}
        self.services = Services(lambda: 0, is_metered=False)
        self.evidence = Evidence(scenarios.read(given), Swarm(), self.services)
        self.orphans = Orphans(self.evidence)
        self.services.perform(Send((Message(messages.recover("default", RUN)),)))
        (self.received,) = self.services.receive("work")

    def delete(self, received: Received | None = None) -> None:
        received = received or self.received
        self.services.delete(received.receipt, accepts_stale=False)
        self.orphans.deleted(received.message_id)

    def write(self, owner: str) -> None:
        self.orphans.wrote(RUN, self.received.message_id, owner)


def test_who_fails_after_he_wrote_under_a_message_that_is_gone_has_lost_it() -> None:
    hands = Hands()
    hands.delete()
    hands.write("a")
    assert not hands.evidence.lost
    hands.orphans.over("a", is_done=False)
    assert hands.evidence.lost == {RUN}


@pytest.mark.parametrize("failed", ["b", "a"])
def test_nothing_is_lost_once_he_who_wrote_has_done_it_all(failed: str) -> None:
    hands = Hands()
    hands.delete()
    hands.write("a")
    hands.orphans.over("a", is_done=True)
    hands.orphans.over(failed, is_done=False)  # a host dies with what else it has
    assert not hands.evidence.lost


def test_of_who_may_see_that_another_had_the_message_only_the_claim_is_excused() -> None:
    hands = Hands()
    hands.write("b")
    hands.delete()
    hands.write("a")
    hands.orphans.over("a", is_done=False)
    assert not hands.evidence.lost
    assert hands.evidence.unhidden == {RUN}


def test_who_fails_before_his_message_is_deleted_is_not_excused() -> None:
    hands = Hands()
    hands.write("a")
    hands.delete()
    hands.orphans.over("a", is_done=False)
    assert not hands.evidence.lost
    assert not hands.evidence.unhidden


def test_a_copy_that_is_left_is_as_good_as_the_message() -> None:
    hands = Hands()
    hands.services.queue("work").duplicate(hands.received.receipt, 0)
    hands.delete()
    hands.write("a")
    hands.orphans.over("a", is_done=False)
    assert not hands.evidence.lost
    (copy,) = hands.services.receive("work")
    hands.delete(copy)
    hands.write("b")
    hands.orphans.over("b", is_done=False)
    assert not hands.evidence.lost
