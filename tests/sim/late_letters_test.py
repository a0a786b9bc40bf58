"""Dead letters that are sent again after the end must change nothing (I19)."""

from __future__ import annotations

from typing import Final

from holdfast_simulator import aftermath, levels
from holdfast_simulator.invocations import Workers
from holdfast_simulator.people import People
from holdfast_simulator.queues import Received
from holdfast_simulator.runner import KEYS
from holdfast_simulator.schedule import WrittenTape
from holdfast_simulator.simulation import Simulation
from holdfast_simulator.swarm import Swarm

CHAIN: Final = "chain of tasks"
RAN: Final = "a dead letter ran a task of an execution that had ended"


class DeadStart:
    """An accepted execution that no worker has begun, because its start is a dead letter."""

    def __init__(self) -> None:
        (deployed,) = [one for one in levels.programs(None) if one.scenario.name == CHAIN]
        self.simulation = Simulation(
            deployed.scenario, Swarm(safety_ms=1_000, callers=1), WrittenTape([])
        )
        People(self.simulation, deployed.front()).begin()
        self.simulation.run_until_faults_end()
        self.letter = self._take()
        self.simulation.letters.append(self.letter)
        setting = deployed.setting(lambda: KEYS)
        Workers(self.simulation, lambda _: setting)

    def _take(self) -> Received:
        (letter,) = self.simulation.services.receive("starts")
        self.simulation.services.delete(letter.receipt)
        return letter

    def redriven(self) -> list[str]:
        """Return the changes that the judge reports when the letter is sent again."""
        self.simulation.evidence.redriven.clear()
        aftermath.redrive_letters(self.simulation)
        return self.simulation.evidence.redriven


def test_a_dead_start_may_begin_an_execution_whose_start_was_lost() -> None:
    """The judge counted an execution that had never begun among those that had ended."""
    dead = DeadStart()
    dead.simulation.lose(dead.letter.body)
    assert dead.redriven() == []
    assert dead.simulation.evidence.ran
    assert not dead.simulation.open


def test_a_dead_start_changes_nothing_once_its_execution_has_ended() -> None:
    dead = DeadStart()
    dead.simulation.lose(dead.letter.body)
    dead.redriven()
    ran = len(dead.simulation.evidence.ran)
    assert dead.redriven() == []
    assert len(dead.simulation.evidence.ran) == ran


def test_a_dead_start_that_runs_an_ended_execution_again_is_reported() -> None:
    dead = DeadStart()
    dead.simulation.lose(dead.letter.body)
    dead.redriven()
    # As if TTL had deleted the log while the message was still in its queue.
    for item in dead.simulation.services.items("executions"):
        dead.simulation.services.expire("executions", item)
    assert RAN in dead.redriven()


def test_a_dead_start_must_not_begin_an_execution_whose_start_was_not_lost() -> None:
    assert RAN in DeadStart().redriven()
