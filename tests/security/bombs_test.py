"""Definitions and inputs that would only cost money: each ends, soon, with a name."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from holdfast.core import advance, facts, lanes
from holdfast.limits import LANES_MAX, PURE_STATES_PER_RECORD_MAX
from holdfast_simulator.invariants import check
from tests.builders import Machine, Shop, call, machine
from tests.security.cases import Case, Outcome, each, generator, run_generated, time_limit
from tests.security.worker_kit import echo
from tests.unit.core_kit import Case as Core
from tests.unit.core_kit import one

PASS: Final = machine({"a": {"Type": "Pass", "End": True}})
TOO_MANY: Final = "Holdfast.TooManyLanes"
EXPRESSION: Final = "States.QueryEvaluationError"


def each_of(items: Any, processor: Machine = PASS, **fields: Any) -> Machine:
    return one({"Type": "Map", "Items": items, "ItemProcessor": processor, **fields})


def branches(count: int) -> Machine:
    return one(
        {
            "Type": "Parallel",
            "Branches": [machine({f"b{n}": {"Type": "Pass", "End": True}}) for n in range(count)],
        }
    )


def gives(expression: str) -> Machine:
    return one({"Type": "Pass", "Output": f"{{% {expression} %}}"})


ITEMS: Final = "{% $states.input %}"
ACKERMANN: Final = (
    "($a := function($m, $n){$m = 0 ? $n + 1 : $n = 0 ? $a($m - 1, 1) : "
    "$a($m - 1, $a($m, $n - 1))}; $a(4, 4))"
)
#: The results that an expression would make.
MADE = [
    Case("a text of a gigabyte", "$pad('', 1000000000)", EXPRESSION),
    Case("a text doubled for ever", "($f := function($s){$f($s & $s)}; $f('x'))", EXPRESSION),
    Case("no end of recursion", "($f := function($n){1 + $f($n)}; $f(1))", EXPRESSION),
    Case("a loop without an end", "($f := function($n){$f($n + 1)}; $f(1))", EXPRESSION),
    Case("Ackermann", ACKERMANN, EXPRESSION),
    Case("a product of lists", "[1..3000].(function($x){[1..3000]})($)", EXPRESSION),
    Case("sorting what is made", "$sort([1..5000000])", EXPRESSION),
    Case("a power", "$power(10, 400)", EXPRESSION),
    Case(
        "a replacement that grows",
        "$replace($pad('', 5000, 'x'), 'x', $pad('', 5000, 'y'))",
        EXPRESSION,
    ),
]
#: How many lanes a state would open: from its items, or its branches.
OPENED = [
    Case("one iteration too many", (each_of(ITEMS), LANES_MAX + 1), TOO_MANY),
    Case("200,000 iterations", (each_of(ITEMS), 200_000), TOO_MANY),
    Case("200,000, one by one", (each_of(ITEMS, MaxConcurrency=1), 200_000), TOO_MANY),
    Case("as many as may be made", (each_of("{% [1..10000] %}"), 0), TOO_MANY),
    Case("a million iterations", (each_of("{% [1..1000000] %}"), 0), EXPRESSION),
    Case("a billion iterations", (each_of("{% [1..1000000000] %}"), 0), EXPRESSION),
    Case("as many as numbers go", (each_of("{% [1..9007199254740991] %}"), 0), EXPRESSION),
    Case("a million by mapping", (each_of("{% [1..1000].([1..1000]) %}"), 0), EXPRESSION),
    Case("6,251 branches", (branches(LANES_MAX + 1), 0), TOO_MANY),
]


@each(*MADE)
def test_an_expression_that_makes_too_much_fails_by_name_within_a_second(case: Case) -> None:
    require_small_failure(gives(case.given), None, case.code)


@each(*OPENED)
def test_a_state_that_opens_too_much_fails_by_name_within_a_second(case: Case) -> None:
    definition, count = case.given
    require_small_failure(definition, [0] * count, case.code)


def require_small_failure(definition: Machine, data: Any, code: str) -> None:
    with time_limit():
        shop = Shop(definition)
        found = shop.run(data).state

    assert (found.status, found.error) == ("FAILED", code)
    assert found.cause
    assert len(found.cause) < 1_000
    assert len(shop.world.services.items("executions")) <= 2


def test_a_step_with_too_many_lanes_may_be_caught() -> None:
    catch = [{"ErrorEquals": ["Holdfast.TooManyLanes"], "Next": "less"}]
    big: Machine = {"Type": "Map", "Items": "{% $states.input %}", "ItemProcessor": PASS}
    states = {"it": {**big, "Catch": catch, "End": True}, "less": {"Type": "Succeed"}}

    assert Shop(machine(states)).run([0] * (LANES_MAX + 1)).state.status == "SUCCEEDED"


def test_as_many_lanes_as_are_allowed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LANES_MAX", 300)

    assert Shop(each_of("{% $states.input %}")).run([0] * 300).state.output == [0] * 300
    assert Shop(branches(300)).run().state.status == "SUCCEEDED"
    assert Shop(branches(301)).run().state.error == TOO_MANY


ALWAYS: Final = {"Condition": "{% true %}", "Next": "a"}
RETRY: Final = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0, "MaxAttempts": 99_999_999}]
LOOPS: Final[dict[str, Machine]] = {
    "a Choice of itself": machine({"a": {"Type": "Choice", "Choices": [ALWAYS]}}),
    "two states": machine({"a": {"Type": "Pass", "Next": "b"}, "b": {"Type": "Pass", "Next": "a"}}),
    "a wait of nothing": machine({"a": {"Type": "Wait", "Seconds": 0, "Next": "a"}}),
    "a wait for what is past": machine(
        {"a": {"Type": "Wait", "Timestamp": "1970-01-01T00:00:00Z", "Next": "a"}}
    ),
    "a catcher of its own": machine(
        {
            "a": {
                "Type": "Map",
                "Items": "{% 5 %}",
                "ItemProcessor": PASS,
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "b"}],
                "End": True,
            },
            "b": {"Type": "Pass", "Next": "a"},
        }
    ),
    "inside a branch": one(
        {"Type": "Parallel", "Branches": [machine({"a": {"Type": "Choice", "Choices": [ALWAYS]}})],
         "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "it"}]}
    ),
    "a Map of nothing": machine(
        {"a": {"Type": "Map", "Items": [], "ItemProcessor": PASS, "Next": "a"}}
    ),
    "tasks that do nothing": machine({"a": call("x", "a")}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_nothing_ends_is_ended_by_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advance, "EVENTS_MAX", 2_000)
    shop = Shop(LOOPS[name], tasks=echo)
    found = shop.run()

    assert (found.state.status, found.state.error) == ("FAILED", "Holdfast.TooManyEvents")
    assert found.state.last_event < 2_100
    assert check(shop.world) == []


def test_a_loop_can_be_stopped_while_it_runs() -> None:
    core = Core(LOOPS["a Choice of itself"])
    core.events = []
    with time_limit():
        core._step((facts.Started("01run", None, "flow", None, core.now_ms),))
        assert not core.state.is_ended
        assert len(core.events) <= 2 * PURE_STATES_PER_RECORD_MAX + 2
        core._step((facts.StopRequested("1", None, None),))

    assert core.status == "ABORTED"


# -- generated -------------------------------------------------------------------------------------


@generator("cost bombs", full=1_000)
def bomb(draw: Random) -> Outcome:
    """Maps in Maps, ranges and loops whose sizes multiply, under bounds that are soon reached."""
    kinds = {"map": _nested_map, "loop": _loop, "range": _range}
    definition = kinds[draw.choice(list(kinds))](draw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advance, "EVENTS_MAX", 1_500)
        patch.setattr(lanes, "LANES_MAX", 60)
        shop = Shop(definition, tasks=echo)
        found = shop.run({"n": draw.randrange(10)})
    assert found.state.is_ended
    assert found.state.last_event < 1_500 + 200
    assert check(shop.world) == []
    if found.state.status == "SUCCEEDED":
        return "accepted"
    assert found.state.error in {"Holdfast.TooManyEvents", TOO_MANY, EXPRESSION, "States.Runtime"}
    return "refused"


def _nested_map(draw: Random) -> Machine:
    inner = PASS
    for level in range(draw.randrange(1, 4)):
        count = draw.choice([0, 1, 3, 30, 61, 10**4, 10**8])
        state = {
            "Type": "Map",
            "Items": f"{{% [1..{count}] %}}",
            "ItemProcessor": inner,
            "End": True,
        }
        inner = machine({f"m{level}": state})
    return inner


def _loop(draw: Random) -> Machine:
    count = draw.choice([1, 5, 100, 10**9])
    works: list[Machine] = [{"Type": "Pass"}, {"Type": "Wait", "Seconds": 0}, call("x", "more")]
    state = draw.choice(works)
    rule = {"Condition": f"{{% $n < {count} %}}", "Next": "work"}
    states = {
        "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "work"},
        "work": {**state, "Next": "more", "Assign": {"n": "{% $n + 1 %}"}},
        "more": {"Type": "Choice", "Choices": [rule], "Default": "end"},
        "end": {"Type": "Succeed"},
    }
    return machine(states)


def _range(draw: Random) -> Machine:
    size = draw.choice([1, 10**3, 10**6, 10**9])
    text = f"[1..{size}]"
    for wrap in draw.choices(["$sum({})", "$string({})", "$map({}, function($x){{$x}})"], k=2):
        text = wrap.format(text)
    return gives(text)


def test_no_generated_bomb_goes_off() -> None:
    tally = run_generated("cost bombs", 30, seed=1)

    assert min(tally.refused, tally.accepted) > 3
