"""Bugs of lanes, stops, undos, deadlines and redrives (I9, I10, I11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.core import cancelling, lanes, redriving, waits
from holdfast.core import decision as decision_module
from holdfast.core.apply import apply as apply_module
from holdfast.core.apply import cancelling as apply_cancelling
from holdfast.core.apply.frames import without
from holdfast.core.cancelling import is_stopped_by
from holdfast.core.events import Event
from holdfast.core.run_ids import child_run
from holdfast.core.state import Execution, FailedState, Lanes
from holdfast.runtime import children, follow_ups, inbox, watchdog
from holdfast.runtime.effects import Effect, PutIfAbsent
from holdfast.runtime.maintenance import diagnostics, quarantine
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker import recovery
from holdfast_simulator import aftermath
from holdfast_simulator.scenarios import statemachine_scenarios
from tests.builders import call, machine
from tests.sim.planted.kit import AttemptOutcome, Patch, Planted, Scenario

_GIVE_UP = [{"ErrorEquals": ["States.ALL"], "Next": "caught"}]


def _wait(seconds: int, target: str | None = None) -> dict[str, Any]:
    follow = {"End": True} if target is None else {"Next": target}
    return {"Type": "Wait", "Seconds": seconds, **follow}


def _branch(*states: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"StartAt": states[0][0], "States": dict(states)}


def _parallel(target: str, *branches: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"Type": "Parallel", "Branches": list(branches), "Next": target, **fields}


def _undo(name: str, target: str = "undone", task: str = "refund") -> dict[str, Any]:
    """Undo a step. `name`: the next state, also after a failure."""
    del name
    catch = [{"ErrorEquals": ["States.ALL"], "Next": target}]
    return {"Type": "Task", "Resource": f"holdfast:task:{task}", "Catch": catch, "Next": target}


_UNDONE = {"Type": "Fail", "Error": "Again"}
_DONE = {"Type": "Succeed"}
_SLOW = {"refund": (AttemptOutcome(seconds=20),)}

TWO_PARTS = Scenario(
    "two parts",
    "a stop inside both takes the inner one back first",
    {
        "main": machine(
            {
                "a": call("a", "b"),
                "b": call("b", "wait"),
                "wait": _wait(600, "end"),
                "undo b": _undo("b", "undone b", "refund b"),
                "undone b": {"Type": "Pass", "Next": "undo a"},
                "undo a": _undo("a", "undone a", "refund a"),
                "undone a": _UNDONE,
                "end": _DONE,
            },
            Holdfast={
                "Undo": [
                    {"States": ["wait"], "Begin": "undo b", "End": "undone b"},
                    {
                        "States": ["b", "wait", "undo b", "undone b"],
                        "Begin": "undo a",
                        "End": "undone a",
                    },
                ]
            },
        )
    },
    stops=True,
)
FAILS = Scenario(
    "a step that fails",
    "it is undone, and an operator stops it meanwhile",
    {
        "main": machine(
            {
                "charge": call(
                    "charge", "ship", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "end"}]
                ),
                "ship": call(
                    "ship", "end", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "undo"}]
                ),
                "undo": _undo("undo"),
                "undone": _UNDONE,
                "end": _DONE,
            },
            Holdfast={"Undo": [{"States": ["ship"], "Begin": "undo", "End": "undone"}]},
        )
    },
    tasks={
        "ship": (AttemptOutcome(error="Broken", seconds=1),),
        "refund": (AttemptOutcome(seconds=60),),
    },
    stops=True,
)
SLOW_STEPS = Scenario(
    "slow steps",
    "a stop while the first step is under way has nothing to take back",
    {
        "main": machine(
            {
                "charge": call("charge", "wait"),
                "wait": _wait(300, "end"),
                "undo": _undo("undo"),
                "undone": _UNDONE,
                "end": _DONE,
            },
            Holdfast={"Undo": [{"States": ["wait"], "Begin": "undo", "End": "undone"}]},
        )
    },
    tasks={"charge": (AttemptOutcome(seconds=50),), **_SLOW},
    stops=True,
)
SLOW_UNDO = Scenario(
    "a slow undo",
    "a second stop, and a stop that does not wait, come while it runs",
    {
        "main": machine(
            {
                "wait": _wait(60, "end"),
                "undo": call("refund", "undone"),
                "undone": _UNDONE,
                "end": _DONE,
            },
            Holdfast={"Undo": [{"States": ["wait"], "Begin": "undo", "End": "undone"}]},
        )
    },
    tasks={"refund": (AttemptOutcome(seconds=600),)},
    stops=True,
)
BEATING = Scenario(
    "two tasks with heartbeats",
    "a worker runs them itself, and a stop may come meanwhile",
    {
        "main": machine(
            {
                "a": call("a", "b", TimeoutSeconds=300, HeartbeatSeconds=30),
                "b": call("b", TimeoutSeconds=300, HeartbeatSeconds=30),
            }
        )
    },
    tasks={"a": (AttemptOutcome(seconds=20),), "b": (AttemptOutcome(seconds=90),)},
    stops=True,
)
SHORT = Scenario(
    "a short one",
    "its end and a stop are close",
    {"main": machine({"a": call("a", "b"), "b": _wait(20, "c"), "c": call("c")})},
    stops=True,
)
RACE = Scenario(
    "a race",
    "the loser still works when it is decided, and the machine goes on for long",
    {
        "main": machine(
            {
                "first": _parallel(
                    "later",
                    _branch(("a", _wait(5, "won")), ("won", {"Type": "Pass", "End": True})),
                    _branch(("b", _wait(40, "nap")), ("nap", _wait(9_000))),
                    Holdfast={"Needed": 1},
                ),
                "later": _wait(400, "end"),
                "end": _DONE,
            }
        )
    },
)
WORKING = Scenario(
    "a race with a task",
    "the loser's task ends long after the race",
    {
        "main": machine(
            {
                "first": _parallel(
                    "later",
                    _branch(("a", _wait(5, "won")), ("won", {"Type": "Pass", "End": True})),
                    _branch(("b", call("slow", "nap")), ("nap", _wait(9_000))),
                    Holdfast={"Needed": 1},
                ),
                "later": _wait(400, "end"),
                "end": _DONE,
            }
        )
    },
    tasks={"slow": (AttemptOutcome(seconds=40),)},
)
LOSERS = Scenario(
    "a lane that fails",
    "the other one has something to take back",
    {
        "main": machine(
            {
                "both": _parallel(
                    "end",
                    _branch(
                        ("a", call("a", "wait")),
                        ("wait", _wait(600)),
                        ("undo", _wait(40, "undo 2")),
                        ("undo 2", _undo("undo 2")),
                        ("undone", _UNDONE),
                    ),
                    _branch(("b", _wait(20, "bad")), ("bad", {"Type": "Fail", "Error": "Broken"})),
                    Catch=_GIVE_UP,
                ),
                "caught": _wait(300, "end"),
                "end": _DONE,
            },
            Holdfast={"Undo": [{"States": ["wait"], "Begin": "undo", "End": "undone"}]},
        )
    },
    stops=True,
)
QUORUM = Scenario(
    "two of three",
    "one lane fails first, within the tolerance",
    {
        "main": machine(
            {
                "some": _parallel(
                    "end",
                    _branch(("a", {"Type": "Fail", "Error": "Broken"})),
                    _branch(("b", _wait(5, "b 2")), ("b 2", call("b"))),
                    _branch(("c", _wait(50, "c 2")), ("c 2", call("c"))),
                    Holdfast={"Needed": 2, "Tolerated": 1},
                ),
                "end": _DONE,
            }
        )
    },
)
TOLERATED = Scenario(
    "one failure too many",
    "two lanes fail where one may",
    {
        "main": machine(
            {
                "some": _parallel(
                    "end",
                    _branch(("a", _wait(2, "a 2")), ("a 2", {"Type": "Fail", "Error": "A"})),
                    _branch(("b", _wait(5, "b 2")), ("b 2", {"Type": "Fail", "Error": "B"})),
                    _branch(("c", _wait(9, "c 2")), ("c 2", call("c"))),
                    Holdfast={"Tolerated": 1},
                ),
                "end": _DONE,
            }
        )
    },
)
ERRORS = Scenario(
    "errors as results",
    "two lanes fail where one may, and nothing is raised",
    {
        "main": machine(
            {
                "some": _parallel(
                    "end",
                    _branch(("a", _wait(2, "a 2")), ("a 2", {"Type": "Fail", "Error": "A"})),
                    _branch(("b", _wait(5, "b 2")), ("b 2", {"Type": "Fail", "Error": "B"})),
                    _branch(("c", _wait(9, "c 2")), ("c 2", call("c"))),
                    Holdfast={"Tolerated": 1, "ReturnErrors": True},
                ),
                "end": _DONE,
            }
        )
    },
)
ITEMS = Scenario(
    "items",
    "two at once, each slower than the next one",
    {
        "main": machine(
            {
                "map": {
                    "Type": "Map",
                    "Items": [3, 2, 1, 4, 1],
                    "MaxConcurrency": 2,
                    "ItemProcessor": _branch(
                        ("nap", {"Type": "Wait", "Seconds": "{% $states.input %}", "Next": "work"}),
                        ("work", call("work")),
                    ),
                    "End": True,
                }
            }
        )
    },
)
#: A compiled workflow, on a path on which it waits with things to take back.
ORDER = next(
    one
    for one in statemachine_scenarios(Path(__file__).parents[3] / "statemachines")
    if one.name == "payment_confirmation 1"
)
REDRIVEN = Scenario(
    "redriven",
    "one lane works, the other one fails twice",
    {
        "main": machine(
            {
                "both": _parallel(
                    "end",
                    _branch(("a", call("a"))),
                    _branch(("b", _wait(5, "b 2")), ("b 2", call("b"))),
                ),
                "end": _DONE,
            }
        )
    },
    tasks={"b": (AttemptOutcome(error="Broken"),)},
)
UNDONE_REDRIVEN = Scenario(
    "redriven after its undo",
    "it is stopped, its steps are undone, and an operator redrives it",
    {"main": TWO_PARTS.machines["main"]},
    stops=True,
)
LATE = Scenario(
    "late behind a shield",
    "the shielded part outlasts the block's time",
    {
        "main": machine(
            {
                "block": {"Type": "Pass", "Next": "one"},
                "one": call("one", "hold"),
                "hold": _wait(60, "two"),
                "two": call("two", "end"),
                "late": _wait(5, "end"),
                "end": _DONE,
            },
            Holdfast={
                "Deadlines": [
                    {
                        "Begin": "block",
                        "Seconds": 20,
                        "States": ["block", "one", "hold", "two"],
                        "Next": "late",
                    }
                ],
                "Shielded": [["hold"]],
            },
        )
    },
)
FINALLY = Scenario(
    "a finally",
    "its body has begun on the ordinary way when the stop comes",
    {
        "main": machine(
            {
                "work": call("work", "close"),
                "close": _wait(60, "close 2"),
                "close 2": call("close", "after"),
                "after": call("after", "end"),
                "close, stopped": _wait(60, "close 2, stopped"),
                "close 2, stopped": {**_undo("x"), "Resource": "holdfast:task:close"},
                "undone": _UNDONE,
                "end": _DONE,
            },
            Holdfast={
                "Undo": [{"States": ["work"], "Begin": "close, stopped", "End": "undone"}],
                "Shielded": [["close", "close 2"]],
            },
        )
    },
    tasks={"work": (AttemptOutcome(seconds=20),)},
    stops=True,
)
CALLS = Scenario(
    "a long child",
    "it works for hours, and its parent is stopped meanwhile",
    {
        "main": machine({"a": {**call(""), "Resource": "holdfast:workflow:inner"}}),
        "inner": machine({"b": _wait(40_000, "c"), "c": call("c")}),
    },
    stops=True,
)
LONG = Scenario(
    "a long wait",
    "stopped, redriven, and stopped once more",
    {"main": machine({"a": _wait(40_000, "b"), "b": call("b")})},
    stops=True,
)


# -- events that mean something else ---------------------------------------------------------------

Apply = Callable[[Execution, Any], Execution]


def _meaning(patch: Patch, handlers: Mapping[str, Callable[[Apply], Apply]]) -> None:
    """Handlers of events, made from the real ones."""
    real = apply_module._handler

    def handler(event_type: str) -> Apply:
        found = real(event_type)
        return handlers[event_type](found) if event_type in handlers else found

    patch.setattr(apply_module, "_handler", handler)


# -- stops -----------------------------------------------------------------------------------------


def _success_is_no_end(patch: Patch) -> None:
    """Abort a succeeded execution at a later stop."""
    is_over = property(lambda state: state.status not in {"RUNNING", "SUCCEEDED"})
    patch.setattr(Execution, "is_ended", is_over)
    real, real_apply = cancelling.stop, apply_module.apply

    def apply(state: Execution | None, event: Event) -> Execution:
        if state is not None and state.status == "SUCCEEDED":
            state = state._replace(status="RUNNING")
        return real_apply(state, event)

    for module in (apply_module, decision_module):
        patch.setattr(module, "apply", apply)

    def stop(decision: Any, fact: Any) -> None:
        if decision.state.frames:
            real(decision, fact)
        else:
            decision.emit("ExecutionAborted", details={}, control=fact.control_id)

    patch.setattr(cancelling, "stop", stop)


def _leave_cancelled_lines(patch: Patch) -> None:
    """Keep the lines of a closed Parallel or Map open: their timers fire, their tasks continue."""
    keep = lambda state, _frame: state  # noqa: E731
    patch.setattr(apply_module, "without_lanes", keep)
    patch.setattr(apply_cancelling, "without_lanes", keep)


def _leave_the_losers(patch: Patch) -> None:
    """Join a race without dropping the lanes that lost."""

    def keeping(real: Apply) -> Apply:
        def joined(state: Execution, event: Any) -> Execution:
            after = real(state, event)
            lost = {key: one for key, one in state.frames.items() if key not in after.frames}
            return after._replace(frames={**after.frames, **lost})

        return joined

    _meaning(patch, {"ParallelStateSucceeded": keeping})


def _forget_that_a_stop_counted(patch: Patch) -> None:
    """Forget an applied stop: a recovering worker finds it in the inbox again, and applies it a
    second time.
    """
    for module in (cancelling, inbox):
        patch.setattr(module, "is_stopped_by", lambda _state, _fact: True)


def _obey_each_stop(patch: Patch) -> None:
    """Apply each stop: a repeated one is recorded again in the log."""
    for module in (cancelling, inbox):
        patch.setattr(module, "is_stopped_by", _is_newer)


def _cut_at_the_second_stop(patch: Patch) -> None:
    """Treat a repeated stop as one that skips the undo."""
    _obey_each_stop(patch)
    real = cancelling.stop

    def stop(decision: Any, fact: Any) -> None:
        told = decision.state.stopping
        is_second = told is not None and told["status"] == "ABORTED"
        real(decision, replace(fact, now=fact.now or is_second))

    patch.setattr(cancelling, "stop", stop)


def _wait_for_every_undo(patch: Patch) -> None:
    """`now` is read, and does nothing once an execution is stopped."""
    real = is_stopped_by
    for module in (cancelling, inbox):
        patch.setattr(
            module, "is_stopped_by", lambda state, fact: real(state, replace(fact, now=False))
        )


def _is_newer(state: Any, fact: Any) -> bool:
    return bool(fact.control_id > state.last_control)


def _stop_nothing_twice(patch: Patch) -> None:
    """Stop a redriven execution never: it continues although a stop was requested."""
    real = is_stopped_by
    for module in (cancelling, inbox):
        patch.setattr(
            module, "is_stopped_by", lambda state, fact: not state.redrives and real(state, fact)
        )


def _stop_no_children(patch: Patch) -> None:
    """Stop no children: they continue after any end of their parent."""
    for module in (follow_ups, watchdog):
        patch.setattr(module, "abandoned", lambda _state: [])


def _wake_no_child(patch: Patch) -> None:
    """Send no wake to a child: it reads its stored stop at the sweeper's next check."""

    def stop(log: Log, entry: int, number: int, now_ms: int) -> Iterator[Effect]:
        run = child_run(log.run, entry, number)
        fields = {"kind": inbox.PARENT}
        item = inbox.control_item(log.tenant, run, children._CONTROL_ID, now_ms, fields)
        yield PutIfAbsent("mail", item)

    patch.setattr(children, "stop", stop)


# -- undos -----------------------------------------------------------------------------------------


def _undo_from_outside(patch: Patch) -> None:
    def outermost(decision: Any, frame: Any, reason: Any) -> Any:
        for number, undo in reversed(list(enumerate(decision.program.undos))):
            if frame.position in undo.states and number not in reason.get("undone", ()):
                return number, undo
        return None

    patch.setattr(cancelling, "_next_undo", outermost)


def _skip_the_last_step(patch: Patch) -> None:
    """A compiled workflow keeps its steps in a list; its last one is taken to be not yet done."""
    real = cancelling._assigned

    def assigned(decision: Any, frame: Any, part: Any, error: Any) -> Any:
        found: dict[str, Any] = real(decision, frame, part, error) or {}
        return {
            name: value - 1 if name.startswith("undo_left") and value else value
            for name, value in found.items()
        }

    patch.setattr(cancelling, "_assigned", assigned)


def _undo_what_is_not_done(patch: Patch) -> None:
    """Every undo of the machine, wherever the line is."""

    def any_undo(decision: Any, frame: Any, reason: Any) -> Any:
        del frame
        for number, undo in enumerate(decision.program.undos):
            if number not in reason.get("undone", ()):
                return number, undo
        return None

    patch.setattr(cancelling, "_next_undo", any_undo)
    patch.setattr(
        cancelling, "_has_to_unwind", lambda decision, _frame: bool(decision.program.undos)
    )


def _forget_that_it_is_undone(patch: Patch) -> None:
    patch.setattr(Execution, "is_undone", property(lambda _state: False))


def _look_at_positions_alone(patch: Patch) -> None:
    """Decide on an undo from the state alone, without the shield around it."""

    def has_to_unwind(decision: Any, frame: Any) -> bool:
        return any(frame.position in undo.states for undo in decision.program.undos) or any(
            has_to_unwind(decision, lane) for lane in cancelling._lanes_of(decision, frame)
        )

    patch.setattr(cancelling, "_has_to_unwind", has_to_unwind)


def _shield_no_undo(patch: Patch) -> None:
    def shields(decision: Any, frame: Any, reason: Any) -> Any:
        del reason
        return [one for one in decision.program.shielded if frame.position in one]

    patch.setattr(cancelling, "_shields", shields)


def _undo_again_after_a_shield(patch: Patch) -> None:
    """Undo a shielded part with the undo of the part before it."""
    real = cancelling._unwind

    def unwind(decision: Any, frame: Any) -> None:
        begun = next(iter(decision.program.undos), None)
        undone = (frame.cancelled or {}).get("undone", ())
        if begun is not None and not undone:
            frame = frame._replace(position=min(begun.states))
        real(decision, frame)

    patch.setattr(cancelling, "_unwind", unwind)


# -- lanes -----------------------------------------------------------------------------------------


def _number_by_completion(patch: Patch) -> None:
    real = apply_module._lane_ended

    def lane_ended(state: Any, frame: Any, event: Any) -> Any:
        owner = state.frames[frame.owner]
        before = owner.waiting.results
        after = real(state, frame, event)
        ended: Any = after.frames[frame.owner]
        results = before.with_result(len(before), frame.input)
        return after.with_frame(ended._replace(waiting=ended.waiting._replace(results=results)))

    patch.setattr(apply_module, "_lane_ended", lane_ended)


def _one_more_at_once(patch: Patch) -> None:
    def has_room(owner: Any, entry: int) -> bool:
        open_lanes = owner.waiting
        if not isinstance(open_lanes, Lanes) or open_lanes.entry != entry:
            return False
        running = open_lanes.started - len(open_lanes.results)
        return open_lanes.started < open_lanes.count and running <= open_lanes.concurrency

    patch.setattr(lanes, "_has_room", has_room)


def _any_number_at_once(patch: Patch) -> None:
    patch.setattr(lanes, "whole_number", lambda _value, _field: 0)


def _drop_who_has_to_unwind(patch: Patch) -> None:
    real = cancelling.close

    def close(decision: Any, owner: Any, closing: Any, failed: Any = None) -> bool:
        return closing["then"] != "fail" and real(decision, owner, closing, failed)

    patch.setattr(cancelling, "close", close)


def _count_failures(patch: Patch) -> None:
    patch.setattr(Lanes, "succeeded", property(lambda self: len(self.results)))


def _tolerate_one_more(patch: Patch) -> None:
    real = lanes.is_tolerated

    def is_tolerated(decision: Any, lane: Any, owner: Any, *failure: Any) -> bool:
        waiting = owner.waiting._replace(tolerated=owner.waiting.tolerated + 1)
        return real(decision, lane, owner._replace(waiting=waiting), *failure)

    patch.setattr(lanes, "is_tolerated", is_tolerated)


def _forget_what_did_not_end(patch: Patch) -> None:
    patch.setattr(lanes, "_CANCELLED", None)


# -- deadlines and redrives ------------------------------------------------------------------------


def _ignore_lateness(patch: Patch) -> None:
    """Forget a deadline that passed behind a shield."""
    real = cancelling.is_taken

    def is_taken(decision: Any, frame: Any) -> bool:
        return "deadline" not in frame.cancelled and real(decision, frame)

    patch.setattr(cancelling, "is_taken", is_taken)
    patch.setattr(cancelling, "is_late", lambda *_: False)


def _redrive_a_success(patch: Patch) -> None:
    real = apply_module._ended

    def ended(state: Any, event: Any, status: Any) -> Any:
        return real(state, event, status)._replace(resting=state.frames)

    patch.setattr(apply_module, "_ended", ended)


def _redrive_nothing(patch: Patch) -> None:
    """Drop an accepted redrive: its reader treats it as an old one."""
    for module in (redriving, recovery, aftermath, diagnostics, quarantine):
        patch.setattr(module, "is_redriven_by", lambda _state, _fact: False)


def _forget_failed_lanes(patch: Patch) -> None:
    """Treat failed lanes as succeeded ones."""

    def forgetful(real: Apply) -> Apply:
        def redriven(state: Execution, event: Any) -> Execution:
            after = real(state, event)
            for frame in state.resting.values():
                owner = None if frame.owner is None else after.frames.get(frame.owner)
                if owner is None or not isinstance(frame.waiting, FailedState):
                    continue
                waiting = owner.waiting
                if isinstance(waiting, Lanes) and frame.waiting.lanes is None:
                    ended = waiting._replace(results=waiting.results.with_result(frame.lane, None))
                    after = without(after, {frame.id})
                    after = after.with_frame(owner._replace(waiting=ended))
            return after

        return redriven

    _meaning(patch, {"ExecutionRedriven": forgetful})


_STOPS = {"stop_percent": 100}
_REDRIVES = {"redrive_percent": 100}
#: A lost answer, so that the caller asks again, or a caller that asks twice.
_LOST = {"answer lost": 0.1, "duplicated": 0.3}
_CRASHES = {"killed after": 0.05, "killed before": 0.05}
_I9, _I10, _I11 = frozenset({"I9"}), frozenset({"I10"}), frozenset({"I11"})


def _give_up_attempts_that_succeed(patch: Patch) -> None:
    real, place = waits.abandoned_attempts, "holdfast.runtime.worker.committing.abandoned_attempts"
    patch.setattr(place, lambda before, after, _, now_ms: real(before, after, (), now_ms))


PLANTED = (
    Planted(
        "an attempt with a result is marked as over",
        _give_up_attempts_that_succeed,
        frozenset({"I7"}),
        BEATING,
        {},
    ),
    Planted("a success is stopped", _success_is_no_end, _I9, SHORT, {"late": 0.2}, _STOPS),
    Planted("what is cancelled keeps its timers", _leave_cancelled_lines, _I11, RACE, {}),
    Planted("a lost race leaves its task running", _leave_the_losers, _I11, WORKING, {}),
    Planted("a stop counts twice", _forget_that_a_stop_counted, _I9, TWO_PARTS, _CRASHES, _STOPS),
    Planted("a second stop cuts the undo", _cut_at_the_second_stop, _I10, SLOW_UNDO, _LOST, _STOPS),
    Planted("a repeated stop is a new one", _obey_each_stop, _I9, SLOW_UNDO, _LOST, _STOPS),
    Planted("a stop at once has to wait", _wait_for_every_undo, _I9, SLOW_UNDO, {}, _STOPS),
    Planted(
        "what was redriven is not stopped",
        _stop_nothing_twice,
        _I9,
        LONG,
        {"duplicated": 0.5},
        {**_STOPS, **_REDRIVES},
    ),
    Planted("an end stops no children", _stop_no_children, _I9, CALLS, {}, _STOPS),
    Planted("a child is not woken for its stop", _wake_no_child, _I9, CALLS, {}, _STOPS),
    Planted("undone from the outside", _undo_from_outside, _I10, TWO_PARTS, {}, _STOPS),
    Planted("the last step is not undone", _skip_the_last_step, _I10, ORDER, {}, _STOPS),
    Planted("a step is undone that failed", _undo_what_is_not_done, _I10, SLOW_STEPS, {}, _STOPS),
    Planted(
        "what is undone is redriven, and undone twice",
        _forget_that_it_is_undone,
        _I9,
        UNDONE_REDRIVEN,
        {},
        {**_STOPS, **_REDRIVES},
    ),
    Planted(
        "an undo is skipped when the stop comes in it",
        _look_at_positions_alone,
        _I10,
        FAILS,
        {},
        _STOPS,
    ),
    Planted("an undo is not shielded", _shield_no_undo, _I10, TWO_PARTS, {}, _STOPS),
    Planted("a finally is run twice", _undo_again_after_a_shield, _I10, FINALLY, {}, _STOPS),
    Planted("results stand as they came", _number_by_completion, _I11, ITEMS, {}),
    Planted("one more runs at once", _one_more_at_once, _I11, ITEMS, {}),
    Planted("any number of items runs at once", _any_number_at_once, _I11, ITEMS, {}),
    Planted("a lane that has to unwind is dropped", _drop_who_has_to_unwind, _I10, LOSERS, {}),
    Planted("a quorum counts failures", _count_failures, _I11, QUORUM, {}),
    Planted("one more failure is tolerated", _tolerate_one_more, _I11, TOLERATED, {}),
    Planted("a lane that did not end has no result", _forget_what_did_not_end, _I11, ERRORS, {}),
    Planted("a block's time is forgotten behind a shield", _ignore_lateness, _I9, LATE, {}),
    Planted("a success is redriven", _redrive_a_success, _I9, SHORT, {}, _REDRIVES),
    Planted("a redrive is never carried out", _redrive_nothing, _I9, REDRIVEN, {}, _REDRIVES),
    Planted("a redrive forgets a failed lane", _forget_failed_lanes, _I11, REDRIVEN, {}, _REDRIVES),
)
