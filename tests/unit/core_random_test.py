"""Random machines under random facts: no result is lost, leaked or left waiting."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.facts import Fact, FailedWith, RedriveRequested, StopRequested, Succeeded
from holdfast.core.state import Attempt, Awaiting, Delay, Frame, Lanes, Timer
from holdfast_simulator.generator import SECONDS_MAX, Generator
from tests.thorough import examples, some
from tests.unit.core_kit import Case

SEEDS = 300
_STEPS_MAX = 400


class Play:
    """One machine, driven to its end. `seen` are all answers that were given, to be given again."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.case = Case(Generator(self.random).machine())
        self.undos = self.case.program.undos
        self.seen: list[Fact] = []
        self.controls = 0
        self.stops_now = False
        self.parts: dict[str, set[int]] = {}
        self.read = 0

    def run(self) -> Case:
        self.case.start()
        return self._until_the_end()

    def redrive(self) -> Case:
        """Stops that were asked for before are over."""
        self.case.offer(RedriveRequested("9"))
        return self._until_the_end()

    def _until_the_end(self) -> Case:
        self._check()
        for _ in range(_STEPS_MAX):
            if self.case.state.is_ended:
                return self.case
            self._happen()
            self._check()
        raise AssertionError(f"it does not end: {self.case.state}")

    # -- what happens ------------------------------------------------------------------------------

    def _happen(self) -> None:
        chance = self.random.random()
        if chance < 0.02 and self.controls < 2:
            self.controls += 1
            self.stops_now = self.random.random() < 0.3
            self.case.offer(StopRequested(str(self.controls), None, None, now=self.stops_now))
        elif chance < 0.3:
            self.case.after(self.random.randint(1, SECONDS_MAX))
        elif chance < 0.35 and self.seen:
            self.case.offer(self.random.choice(self.seen))
        else:
            facts = [self._answer(frame) for frame in self._asking()]
            self.random.shuffle(facts)
            facts = facts[: self.random.randint(1, 3)]
            self.seen += facts
            self.case.offer(*facts)

    def _asking(self) -> list[Frame]:
        frames = self.case.state.frames.values()
        return [frame for frame in frames if isinstance(frame.waiting, Attempt | Awaiting)]

    def _answer(self, frame: Frame) -> Fact:
        waiting = frame.waiting
        assert isinstance(waiting, Attempt | Awaiting)
        if self.random.random() < 0.1:
            return FailedWith(waiting.entry, waiting.attempt, "Broken", "why")
        return Succeeded(waiting.entry, waiting.attempt, waiting.entry)

    # -- what has to hold --------------------------------------------------------------------------

    def _check(self) -> None:
        self._each_waits_for_something()
        self._no_deadline_is_stale()
        if self.case.state.redrives:
            return  # Undone steps are not repeated
        for event in self.case.events[self.read :]:
            self._follow(event)
        self.read = len(self.case.events)
        frames = self.case.state.frames
        gone = [key for key in self.parts if key not in frames]
        for key in gone:
            left = self.parts.pop(key)
            assert self._was_cut_short() or not left, (key, left)

    def _each_waits_for_something(self) -> None:
        frames = self.case.state.frames
        owners = {frame.owner for frame in frames.values()}
        for frame in frames.values():
            is_waiting = isinstance(frame.waiting, Attempt | Awaiting | Timer | Delay)
            has_lanes = isinstance(frame.waiting, Lanes) and frame.id in owners
            assert is_waiting or has_lanes, frame
        if self.case.state.stopping is not None and frames:
            assert frames[""].cancelled is not None
            for frame in frames.values():
                assert self._is_protected(frame), f"goes on after the stop: {frame}"

    def _is_protected(self, frame: Frame) -> bool:
        """Return True when it is in a shielded part or an undo, or in lanes opened there, or has
        such lanes open.
        """
        parts = [*self.case.program.shielded, *(undo.own for undo in self.undos)]
        line: Frame | None = frame
        while line is not None:
            if isinstance(frame.waiting, Lanes) or any(line.position in part for part in parts):
                return True
            line = None if line.owner is None else self.case.state.frames[line.owner]
        return False

    def _no_deadline_is_stale(self) -> None:
        deadlines = self.case.program.deadlines
        for frame in self.case.state.frames.values():
            numbers = [due.number for due in frame.deadlines]
            assert len(set(numbers)) == len(numbers)
            for number in numbers:
                inside = {deadlines[number].begin, *deadlines[number].states}
                assert frame.position in inside, (frame, deadlines[number])

    def _follow(self, event: Event) -> None:
        """Keeps for each line which parts with an undo it is in."""
        if not event.type.endswith("StateEntered"):
            return
        name, line = event.details["name"], event.holdfast.get("frame", "")
        parts = self.parts.setdefault(line, set())
        for number, undo in enumerate(self.undos):
            if name in undo.states:
                parts.add(number)
            elif name == undo.begin:
                assert number in parts, f"{name} takes back what was not done, or twice"
                parts.remove(number)
            elif number in parts:
                parts.remove(number)  # the part was left at its own end

    def _was_cut_short(self) -> bool:
        """By a stop that does not wait; a second one that does changes nothing."""
        return self.case.state.status == "ABORTED" and self.stops_now


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_random_machines_end_once_and_undo_their_steps(first: int) -> None:
    for seed in some(range(first, first + 50)):
        print(f"seed {seed}")
        case = Play(seed).run()
        assert sum(event.type in TERMINAL_EVENTS for event in case.events) == 1
        stopping = [e.holdfast["stopping"]["status"] for e in case.events if e.type == "Stopping"]
        assert not stopping or case.status == stopping[-1]


def test_a_redrive_continues_from_every_end_except_that_of_an_undo() -> None:
    seen: set[bool] = set()
    for seed in range(examples(200)):
        print(f"seed {seed}")
        play = Play(seed)
        if play.run().status != "SUCCEEDED":
            is_undone = play.case.state.is_undone
            assert play.redrive().state.redrives == (0 if is_undone else 1)
            seen.add(is_undone)
    assert seen == {False, True}
