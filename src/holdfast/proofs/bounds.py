"""The worst case of a machine: events, transitions, durable steps, and seconds of waiting.

The cost of one visit of a state follows core/flow.py: an entry, for each try the events of its
kind, and an exit. A retry is one more try. A failed lane (branch or iteration) costs no more than
one that ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.asl.documents import StateJson
from holdfast.asl.program import Json
from holdfast.asl.resources import is_polled, read_resource
from holdfast.limits import RETRY_DELAY_SECONDS_MAX
from holdfast.proofs.amounts import ZERO, Amount, Bound, most, number, plus, symbol, times
from holdfast.proofs.counters import Counters
from holdfast.proofs.expressions import is_certain, reads, tree_of, whole
from holdfast.proofs.graph import (
    GraphNode,
    MachineLevel,
    RetryBound,
    is_distributed,
    is_shielded_at,
)
from holdfast.proofs.polls import polls_within

EVENTS_MAX_OF_STEP_FUNCTIONS: Final = 25_000
#: The kinds of tasks that are answered after their call. Each try has one more event,
#: TaskSubmitted.
_ANSWERED_LATER: Final = frozenset({"callback", "sync"})
WAITS: Final = frozenset({"event", "ask", "token", "callback", "sync", "activity"})
_START_AND_END: Final = 2
#: The most characters of an expression that a formula contains. A longer one could not be read.
_SYMBOL_LENGTH_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst case. `transitions` are entered states and retries, as AWS bills them. `seconds` is
    the time of waiting, by time-outs, sleeps and delays of retries. It does not include the time of
    tasks without a time-out.
    """

    events: Bound
    transitions: Bound
    steps: Bound
    messages: Bound
    seconds: Bound


MEASURES: Final = tuple(Worst.__slots__)


def worst_of(levels: Sequence[MachineLevel]) -> Worst:
    """Return the worst run of the machine, without a redrive and without its child executions."""
    found = _level(levels[0])
    events = plus(found.events, number(_START_AND_END))
    return Worst(events, found.transitions, found.steps, found.messages, found.seconds)


def _level(level: MachineLevel) -> Worst:
    counters = Counters(level)
    visits = {name: _visit(level, name, counters) for name in level.states}

    def heaviest(measure: str) -> Bound:
        weights = {
            GraphNode(name, is_cancelled): getattr(visit, measure)
            for name, visit in visits.items()
            for is_cancelled in (False, True)
        }
        if measure == "seconds":
            return _seconds_of_level(level, counters, weights)
        return counters.paths.heaviest(weights)

    return Worst(*(heaviest(measure) for measure in MEASURES))


def _seconds_of_level(
    level: MachineLevel, counters: Counters, weights: Mapping[GraphNode, Bound]
) -> Bound:
    """Return the smaller of two bounds. The first one adds up the states. In the second one the
    time of a block with a deadline counts where the block is entered, and its states are free.
    """
    blocks = {node: _block_of(level, node) for node in weights}
    entered = _entries(level, blocks)

    def of_loop(nodes: frozenset[GraphNode]) -> Bound:
        if any(node.is_cancelled for node in nodes):
            return None
        seconds = block_seconds(level, frozenset(node.state for node in nodes))
        return None if seconds is None else number(seconds)

    def of_loop_in_block(nodes: frozenset[GraphNode]) -> Bound:
        seconds = of_loop(nodes)
        return seconds if seconds is None or nodes & entered else ZERO

    by_state = counters.paths.heaviest(weights, of_loop)
    if not any(blocks.values()):
        return by_state
    of_blocks = {
        node: weight
        if (block := blocks[node]) is None
        else number(block.seconds if node in entered else 0)
        for node, weight in weights.items()
    }
    by_block = counters.paths.heaviest(of_blocks, of_loop_in_block)
    known = [one for one in (by_state, by_block) if one is not None]
    return min(known, key=_size, default=None)


def _size(bound: Amount) -> tuple[bool, float]:
    """Order bounds: numbers before formulas, whose values are not known here."""
    return bound.constant is None, bound.constant or 0


@dataclass(frozen=True, slots=True)
class _Block:
    """The states of a block with a deadline, and its seconds."""

    states: frozenset[str]
    seconds: int


def _block_of(level: MachineLevel, node: GraphNode) -> _Block | None:
    """Return the outermost block whose deadline interrupts the state."""
    if node.is_cancelled or block_seconds(level, frozenset([node.state])) is None:
        return None
    around = [due for due in level.extension["Deadlines"] if node.state in due["States"]]
    known = [(due, _deadline_seconds(due)) for due in around]
    blocks = [_Block(frozenset(due["States"]), limit) for due, limit in known if limit is not None]
    return max(blocks, key=lambda block: len(block.states))


def _entries(
    level: MachineLevel, blocks: Mapping[GraphNode, _Block | None]
) -> frozenset[GraphNode]:
    """Return the states at which a block is entered."""
    found = {GraphNode(level.start)}
    for edge in level.edges:
        block = blocks[edge.target]
        if block is not None and edge.source.state not in block.states:
            found.add(edge.target)
    return frozenset(found)


def _deadline_seconds(due: Mapping[str, Any]) -> int | None:
    return whole(due["Seconds"]) or whole(tree_of(due["Seconds"]))


def _visit(level: MachineLevel, name: str, counters: Counters) -> Worst:
    state = level.states[name]
    cap = block_seconds(level, frozenset([name]))
    match state["Type"]:
        case "Task":
            worst = _task(state, counters, cap)
        case "Wait":
            seconds = _wait_seconds(state, counters)
            worst = Worst(number(2), number(1), number(1), number(1), seconds)
        case "Parallel" | "Map":
            worst = _lanes(level, name, counters)
        case _:
            worst = Worst(number(2), number(1), ZERO, ZERO, ZERO)
    if worst.seconds is None and cap is not None:
        return replace(worst, seconds=number(cap))
    return worst


# -- tasks -----------------------------------------------------------------------------------------


def kind_of(state: StateJson) -> str:
    """Return the kind of a Task, as asl/program.py names it; "" for an unknown one."""
    resource = read_resource(state["Resource"])
    return "" if resource is None else resource.kind


def retriers_of(state: StateJson) -> list[RetryBound]:
    return [RetryBound.of(written) for written in state.get("Retry", ())]


def retries_of(state: StateJson) -> int:
    return sum(retrier.attempts_max for retrier in retriers_of(state))


def retry_seconds_of(state: StateJson) -> float:
    """Return the longest sum of the delays of all retries."""
    return sum(map(_delays, retriers_of(state)))


def _delays(retrier: RetryBound) -> float:
    """Return the sum of the delays. They grow up to the longest one, and then stay the same."""
    cap = min(retrier.delay_seconds_max or RETRY_DELAY_SECONDS_MAX, RETRY_DELAY_SECONDS_MAX)
    if retrier.delays:
        known = [min(delay, cap) for delay in retrier.delays]
        further = max(retrier.attempts_max - len(known), 0)
        return sum(known[: retrier.attempts_max]) + further * known[-1]
    total, delay, left = 0.0, float(retrier.interval_seconds), retrier.attempts_max
    while left and 0 < delay < cap and retrier.rate > 1:
        total, delay, left = total + delay, delay * retrier.rate, left - 1
    return total + left * min(delay, cap)


def _task(state: StateJson, counters: Counters, cap: int | None) -> Worst:
    tries = 1 + retries_of(state)
    kind = kind_of(state)
    each_try = 3 + (kind in _ANSWERED_LATER) + _may_fail(state)
    # `kind` is "" when the resource of the task is unknown. Such a task may be of a kind that is
    # answered later, whose attempts have one event more. Without this line the bound could be too
    # low.
    each_try += not kind
    seconds = _patience(state, kind, counters)
    events, transitions = number(2 + tries * each_try), number(tries)
    if is_polled(state["Resource"]):
        # The events of Step Functions do not show the polls between the first and the last one. But
        # each poll is a record and a delivery of a message, so count the polls as steps and
        # messages. After an error the intervals between them begin with the shortest one again.
        polls = None if cap is None else number(tries * polls_within(state, cap))
        return Worst(events, transitions, steps=polls, messages=polls, seconds=None)
    return Worst(
        events=events,
        transitions=transitions,
        steps=number(tries),
        messages=number(tries if kind in WAITS or tries > 1 else 0),
        seconds=plus(times(number(tries), seconds), number(retry_seconds_of(state))),
    )


def _may_fail(state: StateJson) -> bool:
    """Return True when an Assign or Output may fail after the task has succeeded."""
    return not all(is_certain(state.get(field)) for field in ("Assign", "Output")) or any(
        field in state for field in ("ResultSelector", "ResultPath", "OutputPath")
    )


def _patience(state: StateJson, kind: str, counters: Counters) -> Bound:
    """Return how long one try may wait. A task that runs without a time-out counts as zero: it
    works and does not wait.
    """
    if kind == "activity":
        # `has_timeout` explains why this kind has no bound.
        return None
    if "TimeoutSecondsPath" in state:
        return symbol(state["TimeoutSecondsPath"].removeprefix("$."))
    if "TimeoutSeconds" in state:
        return _seconds(state["TimeoutSeconds"], counters)
    return None if kind in WAITS or not kind else ZERO


def has_timeout(state: StateJson) -> bool:
    """Return True when the task has a time-out that certainly passes. The time-out of an activity
    begins only when a worker polls for the task, which may never happen. That of a polled task
    ends one call, and not the wait.
    """
    if kind_of(state) == "activity" or is_polled(state["Resource"]):
        return False
    return has_timeout_of_call(state)


def has_timeout_of_call(state: StateJson) -> bool:
    """Return True when a time-out ends a call that hangs."""
    return "TimeoutSeconds" in state or "TimeoutSecondsPath" in state


def _seconds(written: Json, counters: Counters) -> Bound:
    known = whole(written)
    if known is not None:
        return number(known)
    tree = tree_of(written)
    found = None if tree is None else counters.value(tree)
    return symbol(_name_of_seconds(str(written))) if found is None else found


def _name_of_seconds(written: str) -> str:
    """Return the expression as a symbol; of a long one, only the names that it reads."""
    text = written.removeprefix("{%").removesuffix("%}").strip().replace("$", "")
    if len(text) > _SYMBOL_LENGTH_MAX:
        return f"seconds({', '.join(sorted(reads(written))) or '…'})"
    return f"({text})" if " " in text else text


def _wait_seconds(state: StateJson, counters: Counters) -> Bound:
    if "Seconds" in state:
        return _seconds(state["Seconds"], counters)
    if "SecondsPath" in state:
        return symbol(state["SecondsPath"].removeprefix("$."))
    # The time comes from data and may be far in the future, so there is no bound.
    return None


def block_seconds(level: MachineLevel, names: frozenset[str]) -> int | None:
    """Return how long a block with a deadline lets a state, or the states of a loop, take at most;
    None without a deadline, or when that is not known.

    After the deadline the branches still undo their work, which has no deadline.
    """
    around = [due for due in level.extension.get("Deadlines", ()) if names <= {*due["States"]}]
    if not around or any(is_shielded_at(level, one) or _takes_back(level, one) for one in names):
        return None
    known = map(_deadline_seconds, around)
    return min((seconds for seconds in known if seconds is not None), default=None)


# -- lanes -----------------------------------------------------------------------------------------


def _lanes(level: MachineLevel, name: str, counters: Counters) -> Worst:
    state = level.states[name]
    if is_distributed(state):
        # The items run in executions of their own. The histories and costs of those do not count
        # here.
        return Worst(number(6 + 6 * (1 + retries_of(state))), number(1), number(1), number(1), None)
    inner = [_level(found) for found in level.inner.get(name, [])]
    if state["Type"] == "Map":
        one = _iteration(state, inner[0])
        lanes = _of_items(state, one, counters)
    else:
        # Branches run at the same time, unless one waits for another.
        seconds = _side_by_side(level, name, [lane.seconds for lane in inner])
        lanes = Worst(
            plus(*(lane.events for lane in inner)),
            plus(*(lane.transitions for lane in inner)),
            plus(*(lane.steps for lane in inner)),
            plus(*(lane.messages for lane in inner)),
            seconds,
        )
    tries = number(1 + retries_of(state))
    once = plus(lanes.events, number(2 + 1))
    return Worst(
        events=plus(number(3), times(tries, once)),
        transitions=times(tries, plus(number(1), lanes.transitions)),
        steps=times(tries, lanes.steps),
        messages=times(tries, plus(lanes.messages, number(retries_of(state) > 0))),
        seconds=plus(times(tries, lanes.seconds), number(retry_seconds_of(state))),
    )


def _iteration(state: StateJson, lane: Worst) -> Worst:
    selector = state.get("ItemSelector", state.get("Parameters"))
    own = 2 + (0 if selector is None else 1)
    return Worst(
        plus(lane.events, number(own)), lane.transitions, lane.steps, lane.messages, lane.seconds
    )


def _of_items(state: StateJson, one: Worst, counters: Counters) -> Worst:
    count = _items(state, counters)
    # In the worst case the iterations run one after the other, even if MaxConcurrency allows more
    # at once.
    return Worst(*(times(count, getattr(one, measure)) for measure in MEASURES))


def _items(state: StateJson, counters: Counters) -> Bound:
    written = state.get("Items", state.get("ItemsPath"))
    if isinstance(written, list):
        return number(len(written))
    tree = tree_of(written)
    if tree is not None:
        ranged = _range(tree, counters)
        return counters.length(tree) if ranged is None else ranged
    return symbol(f"len({written or 'input'})".replace("$.", ""))


def _range(tree: Any, counters: Counters) -> Bound:
    """Return the length of an expression such as `[0..$count($xs) - 1]`."""
    if tree.type != "unary" or tree.value != "[" or len(tree.expressions) != 1:
        return None
    (part,) = tree.expressions
    if part.type != "binary" or part.value != ".." or whole(part.lhs) is None:
        return None
    first, last, extra = whole(part.lhs) or 0, part.rhs, 1
    if last.type == "binary" and last.value == "-" and whole(last.rhs) is not None:
        extra, last = 1 - (whole(last.rhs) or 0), last.lhs
    value = counters.value(last)
    return None if value is None else plus(value, number(max(0, extra - first)))


def _takes_back(level: MachineLevel, name: str) -> bool:
    """Return True when a cancelled branch in the state needs time to end, for an undo or a shielded
    part.
    """
    marked = frozenset[str]().union(*level.extension.get("Shielded", ()))
    return any(
        inner.undos or any(state in marked or _takes_back(inner, state) for state in inner.states)
        for inner in level.inner.get(name, ())
    )


def _side_by_side(level: MachineLevel, name: str, seconds: Sequence[Bound]) -> Bound:
    state = level.states[name]
    if any(state.get("Holdfast", {}).get("After", ())):
        return plus(*seconds)
    ends = ends_that_decide(state)
    bounded = [bound for bound in seconds if bound is not None]
    known = sorted(bound.constant for bound in bounded if bound.constant is not None)
    # The engine undoes the steps of the other branches after the end of the one that decides. That
    # takes time, so the end of the first branches does not bound the whole time.
    if ends is None or len(bounded) < ends or _takes_back(level, name):
        return most(seconds)
    return most(bounded) if len(known) < ends else number(known[ends - 1])


def ends_that_decide(state: StateJson) -> int | None:
    """Return how many branches must end before the result is known; None unless the first ones
    decide.

    When this many have ended, either enough have succeeded or more have failed than are tolerated.
    """
    extension = state.get("Holdfast", {})
    needed, tolerated = whole(extension.get("Needed")), whole(extension.get("Tolerated", 0))
    if needed is None or tolerated is None or any(extension.get("After", ())):
        return None
    return needed + tolerated


def ends_in_time(level: MachineLevel) -> bool:
    """Return True when a branch ends within a bounded time, even if a task in it hangs."""
    tasks = [state for state in level.states.values() if state["Type"] == "Task"]
    return (
        all(map(has_timeout, tasks))
        and all(_end_in_time(level, name) for name in level.inner)
        and _level(level).seconds is not None
    )


def _end_in_time(level: MachineLevel, name: str) -> bool:
    """Return True when the branches of a state end in time; if the first ones decide, only these
    must.
    """
    lines = level.inner[name]
    ends = (
        ends_that_decide(level.states[name]) if level.states[name]["Type"] == "Parallel" else None
    )
    if is_distributed(level.states[name]):
        return False
    if ends is None or _takes_back(level, name):
        ends = len(lines)
    return sum(map(ends_in_time, lines)) >= ends
