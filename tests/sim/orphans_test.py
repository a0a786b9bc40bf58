"""The invariants excuse a worker that continued with a message that another had deleted, and
failed.
"""

from __future__ import annotations

from holdfast.runtime import messages
from holdfast.runtime.effects import Message, Send
from holdfast_simulator import scenarios
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.orphans import Orphans
from holdfast_simulator.queues import Received
from holdfast_simulator.services import Services
from holdfast_simulator.swarm import Swarm
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

    def write(self, owner: str, sequence: int = 1) -> None:
        self.orphans.wrote(("default", RUN, sequence), self.received.message_id, owner)

    def require_strict(self) -> None:
        assert not self.evidence.lost
        assert not self.evidence.unhidden


def test_a_worker_that_fails_after_writing_under_a_deleted_message_has_lost_it() -> None:
    hands = Hands()
    hands.delete()
    hands.write("a")
    hands.require_strict()
    hands.orphans.failed("a")
    assert hands.evidence.lost == {RUN}


def test_a_record_that_comes_after_its_writer_has_failed_counts_as_well() -> None:
    hands = Hands()
    hands.delete()
    hands.orphans.failed("a")
    hands.write("a")
    assert hands.evidence.lost == {RUN}


def test_a_start_that_is_deleted_before_there_is_a_log_is_never_excused() -> None:
    hands = Hands()
    hands.delete()
    hands.write("a", 0)
    hands.write("a", 1)
    hands.orphans.failed("a")
    hands.require_strict()


def test_a_worker_that_read_the_other_record_is_excused_only_for_its_own_leases() -> None:
    hands = Hands()
    hands.write("b")
    hands.delete()
    hands.write("a", 2)
    hands.orphans.failed("a")
    hands.require_strict()


def test_a_single_writer_under_a_message_that_another_deleted_is_not_excused() -> None:
    hands = Hands()
    hands.write("a")
    hands.delete()
    hands.write("a", 2)
    hands.orphans.failed("a")
    hands.require_strict()


def test_a_copy_that_is_left_is_as_good_as_the_message() -> None:
    hands = Hands()
    hands.services.queue("work").duplicate(hands.received.receipt, 0)
    hands.delete()
    hands.write("a")
    hands.orphans.failed("a")
    hands.require_strict()
    (copy,) = hands.services.receive("work")
    hands.delete(copy)
    hands.write("a", 2)
    hands.orphans.failed("a")
    hands.require_strict()
