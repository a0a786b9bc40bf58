"""state = fold(history), for random machines and facts.

`core_kit.Case` compares the state in hand with the fold of the history, and with its own JSON,
after every step.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.asl.jsonata.jsonata import compile_expression
from holdfast.core import facts
from holdfast.core.apply.apply import apply, fold
from holdfast.core.events import Event
from holdfast.core.facts import Fact
from holdfast.core.state_json import UnknownState, from_json, to_json
from holdfast.errors import HoldfastBug
from tests.builders import Machine, ask, call, wait_for
from tests.thorough import examples
from tests.unit.child_kit import Family, call_of
from tests.unit.core_kit import START_MS, Case, one, run

# The parser's library is read at the first expression and changes the recursion limit.
compile_expression("1")

RETRY = [{"ErrorEquals": ["Busy"], "MaxAttempts": 2, "IntervalSeconds": 2}]


def chained(names: Any, states: list[Machine]) -> Machine:
    """The states one after the other, under names that are used nowhere else."""
    labels = [f"s{next(names)}" for _ in states]
    found = {}
    for label, state, following in zip(labels, states, [*labels[1:], None], strict=True):
        plain = {key: value for key, value in state.items() if key not in {"Next", "End"}}
        found[label] = {**plain, **({"Next": following} if following else {"End": True})}
    return {"StartAt": labels[0], "States": found}


LEAVES = st.sampled_from(
    [
        {"Type": "Pass", "Assign": {"x": "{% $states.input %}"}},
        {"Type": "Pass", "Output": "{% $nothing %}"},
        {"Type": "Wait", "Seconds": 3},
        call("work", Retry=RETRY),
        call("work", Catch=[]),
        wait_for("paid", TimeoutSeconds=5),
        ask(HeartbeatSeconds=4),
    ]
)


@st.composite
def machines(draw: Any) -> Machine:
    names = iter(range(1_000))

    def level(depth: int) -> Machine:
        return chained(names, [state(depth) for _ in range(draw(st.integers(1, 2)))])

    def state(depth: int) -> Machine:
        kind = "leaf" if depth == 0 else draw(st.sampled_from(["leaf", "parallel", "map"]))
        retry = draw(st.sampled_from([[], [{**RETRY[0], "ErrorEquals": ["States.ALL"]}]]))
        match kind:
            case "parallel":
                branches = [level(depth - 1) for _ in range(draw(st.integers(1, 2)))]
                return {"Type": "Parallel", "Branches": branches, "Retry": retry}
            case "map":
                processor = level(depth - 1)
                bound = draw(st.integers(0, 2))
                return {
                    "Type": "Map",
                    "Items": [1, 2, 3],
                    "ItemProcessor": processor,
                    "MaxConcurrency": bound,
                    "Retry": retry,
                }
            case _:
                leaf: Machine = draw(LEAVES)
                return leaf

    return {"QueryLanguage": "JSONata", **level(2)}


ENTRY = st.integers(0, 8)
ATTEMPT = st.integers(1, 3)
FACTS = st.one_of(
    st.builds(facts.Succeeded, ENTRY, ATTEMPT, st.sampled_from([None, {"a": [1]}])),
    st.builds(facts.FailedWith, ENTRY, ATTEMPT, st.sampled_from(["Busy", "Bad", None]), st.none()),
    st.builds(facts.TimedOut, ENTRY, ATTEMPT),
    st.builds(
        facts.EventReceived,
        ENTRY,
        st.sampled_from(["e1", "e2"]),
        st.just(5),
        st.sampled_from([START_MS, START_MS + 4_000, START_MS + 90_000]),
    ),
    st.builds(facts.HeartbeatSeen, ENTRY, st.integers(START_MS, START_MS + 9_000)),
    st.just(facts.Tick()),
    st.builds(facts.TakenOver, ENTRY, ATTEMPT),
    st.builds(facts.TaskUnknown, ENTRY, ATTEMPT),
    st.builds(facts.Opened, st.integers(0, 3)),
)
#: Facts that report an observation, and so count once however often they are offered.
SEEN = (facts.Succeeded, facts.FailedWith, facts.TimedOut, facts.HeartbeatSeen, facts.Opened)


@settings(max_examples=examples(80), deadline=None, database=None, derandomize=True)
@given(machines(), st.lists(st.tuples(st.integers(0, 3), FACTS), max_size=12))
def test_any_history_folds_to_the_state_that_made_it(
    definition: Machine, offered: list[tuple[int, Fact]]
) -> None:
    case = Case(definition).start({"n": 1})
    for seconds, fact in offered:
        case.now_ms += 1_000 * seconds
        case.offer(fact)
        if isinstance(fact, SEEN):
            before = list(case.events)
            case.offer(fact)
            assert case.events == before
    ids = [event.id for event in case.events if event.id]

    assert ids == list(range(1, len(ids) + 1))
    assert all(event.previous < event.id for event in case.events if event.id)


# -- histories that cannot be ----------------------------------------------------------------------


def event(event_type: str, event_id: int = 0, **holdfast: Any) -> Event:
    return Event(event_type, event_id, 0, START_MS, {}, holdfast)


def a_state() -> Any:
    return Case(one(call("work"))).start().state


def test_a_history_begins_with_its_start() -> None:
    with pytest.raises(
        HoldfastBug, match=": a history begins with Opened, expected ExecutionStarted\n"
    ):
        apply(None, event("Opened"))


def test_nothing_can_follow_the_end() -> None:
    ended = run(one({"Type": "Pass"})).state

    with pytest.raises(HoldfastBug, match=": Opened follows the end of execution 01run\n"):
        apply(ended, event("Opened", sequence=1))


def test_ids_have_no_gaps() -> None:
    with pytest.raises(HoldfastBug, match=": TaskStarted has id 9 after event 3\n"):
        apply(a_state(), event("TaskStarted", 9))


def test_an_unknown_event_is_not_skipped() -> None:
    with pytest.raises(HoldfastBug, match=": the history holds an event of an unknown type\n"):
        apply(a_state(), event("Invented", 4))


def test_an_event_of_a_lane_that_is_gone_is_refused() -> None:
    with pytest.raises(HoldfastBug, match=r": TaskStarted belongs to frame '7\.1': gone\n"):
        apply(a_state(), event("TaskStarted", 4, frame="7.1"))


def test_a_lane_needs_an_owner_that_waits_for_it() -> None:
    with pytest.raises(
        HoldfastBug, match=r": PassStateEntered opens lane '7\.1' that nothing waits for\n"
    ):
        apply(a_state(), event("PassStateEntered", 4, frame="7.1"))


def test_a_resource_that_no_code_knows_is_refused() -> None:
    case = Case(one(call("work"))).start()
    scheduled = case.last("TaskScheduled")
    odd = scheduled._replace(details={**scheduled.details, "resource": "odd:thing"})

    with pytest.raises(HoldfastBug, match=": the history schedules an unknown resource "):
        fold([*case.events[:2], odd])


def test_an_older_snapshot_knows_the_children_that_are_waited_for() -> None:
    family = Family({"outer": one(call_of("inner")), "inner": one(wait_for("paid"))})
    family.start()
    family.settle()
    state = family.outer.state
    document = to_json(state)
    assert document.pop("children") == [[0, 1]]

    assert from_json(document) == state


def test_a_wait_that_no_code_knows_is_refused() -> None:
    document = to_json(a_state())
    document["frames"][0]["waiting"]["kind_of_wait"] = "Invented"

    with pytest.raises(UnknownState, match=r"^a wait of kind 'Invented'$"):
        from_json(document)


def test_a_wait_with_a_field_that_no_code_knows_is_refused() -> None:
    document = to_json(Case(one({"Type": "Wait", "Seconds": 5})).start().state)
    document["frames"][0]["waiting"]["invented"] = 1

    with pytest.raises(UnknownState, match=r"^Timer with the fields due_ms, entry, invented$"):
        from_json(document)
