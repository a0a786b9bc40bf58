"""Graphs: each step begins when the last of those it depends on has ended, and none waits more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from holdfast import Dag, Step, Task, TaskError, dag, from_input, from_step, step
from holdfast.asl.validation.validate import diagnose
from holdfast.compiler.compile import compile_dag, compile_workflow
from holdfast.compiler.graphs.plan import (
    Chain,
    Core,
    Fork,
    Plan,
    SingleStep,
    arrange,
    by_levels,
    find_cycles,
)
from holdfast.errors import WorkflowError
from holdfast.testing import Run, World, fails, takes
from holdfast.testing.outcomes import Outcome
from tests.thorough import some

STEPS_MAX = 12
SEEDS = some(range(150))

Edges = list[frozenset[int]]


class Broken(TaskError):  # noqa: N818
    pass


def work(seen: list[Any]) -> Any:
    """Every form of JSON, so that none is flattened, dropped or unwrapped on its way."""
    forms: list[Any] = [seen, [seen], {"seen": seen}, None, [], [[]], len(seen), [None], "[]", {}]
    return forms[len(str(seen)) % len(forms)]


TASKS = [Task(work, name=f"work_{number}") for number in range(STEPS_MAX)]


def random_edges(chance: random.Random, count: int) -> Edges:
    """Steps in any order of definition; a third has redundant edges, too."""
    order = list(range(count))
    chance.shuffle(order)
    density = chance.choice((0.1, 0.2, 0.4, 0.7))
    edges: list[set[int]] = [set() for _ in order]
    for place, number in enumerate(order):
        edges[number] = {other for other in order[:place] if chance.random() < density}
    return [frozenset(earlier) for earlier in edges]


def graph_of(edges: Edges, chance: random.Random) -> Dag:
    """Each step takes the results of some of those that it depends on, and a field of the input."""
    steps = []
    for number, earlier in enumerate(edges):
        seen: list[object] = [from_input("day"), number]
        seen += [from_step(f"s{other}") for other in sorted(earlier) if chance.random() < 0.7]
        awaited = [f"s{other}" for other in sorted(earlier)]
        steps.append(
            step(f"s{number}", TASKS[number], depends_on=awaited, arguments={"seen": seen})
        )
    return dag("random", *steps)


def random_graphs() -> Iterator[tuple[str, random.Random, Edges, Dag]]:
    for seed in SEEDS:
        chance = random.Random(seed)
        edges = random_edges(chance, chance.randint(1, STEPS_MAX))
        yield (
            f"seed {seed}: {[sorted(row) for row in edges]}",
            chance,
            edges,
            graph_of(edges, chance),
        )


def durations_of(edges: Edges, chance: random.Random) -> list[int]:
    """Whole seconds, no two sums of them alike: things end at different times."""
    return [chance.randint(1, 9) * 10_000 + (1 << number) for number in range(len(edges))]


def run_with(
    graph: Dag, durations: list[int], others: dict[Task[..., Any] | str, Outcome] | None = None
) -> Run[Any]:
    outcomes: dict[Task[..., Any] | str, Outcome] = {
        TASKS[number]: takes(timedelta(seconds=duration), work)
        for number, duration in enumerate(durations)
    }
    return World({**outcomes, **(others or {})}).run(graph, day="monday")


def expected_begins(edges: Edges, durations: list[int]) -> list[int]:
    begins: dict[int, int] = {}
    while len(begins) < len(edges):
        for number, earlier in enumerate(edges):
            if number not in begins and begins.keys() >= earlier:
                ends = (begins[other] + durations[other] for other in earlier)
                begins[number] = max(ends, default=0)
    return [begins[number] for number in range(len(edges))]


def begins_in(run: Run[Any], edges: Edges) -> list[int]:
    found = {call.name: round(call.at) for call in run.calls}
    return [found[TASKS[number].name] for number in range(len(edges))]


def has_core(definition: dict[str, Any]) -> bool:
    return any(
        "Holdfast" in state or any(map(has_core, state.get("Branches", ())))
        for state in definition["States"].values()
    )


def has_an_n(edges: Edges) -> bool:
    """a before c, a and b before d, and no other of the pairs ordered."""
    ancestors: list[set[int]] = [set() for _ in edges]
    for _ in edges:
        for number, earlier in enumerate(edges):
            ancestors[number] |= earlier.union(*(ancestors[other] for other in earlier))

    def is_before(one: int, other: int) -> bool:
        return one in ancestors[other]

    def are_apart(one: int, other: int) -> bool:
        return not is_before(one, other) and not is_before(other, one)

    return any(
        is_before(a, c)
        and is_before(a, d)
        and is_before(b, d)
        and are_apart(a, b)
        and are_apart(c, d)
        and are_apart(b, c)
        for a, b, c, d in permutations(range(len(edges)), 4)
    )


# Runs.


def test_every_step_begins_once_and_exactly_when_the_last_it_depends_on_has_ended() -> None:
    for name, chance, edges, graph in random_graphs():
        durations = durations_of(edges, chance)
        run = run_with(graph, durations)
        assert len(run.calls) == len(edges), name
        assert begins_in(run, edges) == expected_begins(edges, durations), name


def test_a_run_gives_the_result_of_the_same_graph_in_plain_python() -> None:
    for name, chance, edges, graph in random_graphs():
        assert run_with(graph, durations_of(edges, chance)).output == graph(day="monday"), name


def test_a_failed_step_cancels_open_steps_and_no_step_begins_after_it() -> None:
    for name, chance, edges, graph in random_graphs():
        durations = durations_of(edges, chance)
        broken = chance.randrange(len(edges))
        error = takes(timedelta(seconds=durations[broken]), fails(Broken("out of order")))
        run = run_with(graph, durations, {TASKS[broken]: error})
        begins = expected_begins(edges, durations)
        failed = begins[broken] + durations[broken]
        assert (run.status, run.error, run.cause) == ("FAILED", "Broken", "out of order"), name
        assert run.ended == timedelta(seconds=failed), name
        assert {call.name for call in run.calls} == {
            TASKS[number].name for number, begin in enumerate(begins) if begin < failed
        }, name


def test_a_stop_ends_all_steps_at_once() -> None:
    graph = dag("two", step("a", TASKS[0], arguments={"seen": []}), step("b", TASKS[1]))
    world = World({task: takes(timedelta(hours=1), work) for task in TASKS[:2]})
    world.stop(at=timedelta(minutes=1))
    run = world.run(graph, seen=[])
    assert (run.status, run.ended) == ("ABORTED", timedelta(minutes=1))


# Definitions.


def test_only_a_graph_with_an_n_in_it_needs_the_extension() -> None:
    found = 0
    for name, _, edges, graph in random_graphs():
        definition = compile_workflow(graph).asl
        assert diagnose(definition) == (), name
        if len(edges) <= 9:
            assert has_core(definition) == has_an_n(edges), name
        found += has_core(definition)
    assert len(SEEDS) / 8 < found < len(SEEDS) * 7 / 8


def test_in_plain_asl_exactly_the_false_waits_that_are_named_delay_a_step() -> None:
    for name, chance, edges, graph in random_graphs():
        compiled = compile_dag(graph, in_plain_asl=True)
        assert not has_core(compiled.asl), name
        assert diagnose(compiled.asl) == (), name
        plan, waits = by_levels(arrange(edges))
        assert all(wait.other not in edges[wait.step] for wait in waits), name
        awaited = [
            earlier | {wait.other for wait in waits if wait.step == number}
            for number, earlier in enumerate(edges)
        ]
        durations = durations_of(edges, chance)
        begins: dict[int, int] = {}
        follow(plan, 0, durations, begins)
        assert [begins[n] for n in range(len(edges))] == expected_begins(awaited, durations), name


def follow(plan: Plan, now: int, durations: list[int], begins: dict[int, int]) -> int:
    """Notes when each step begins; gives when the plan ends."""
    match plan:
        case SingleStep(number):
            begins[number] = now
            return now + durations[number]
        case Chain(parts):
            for part in parts:
                now = follow(part, now, durations, begins)
            return now
        case Fork(branches):
            return max(follow(branch, now, durations, begins) for branch in branches)
        case Core():
            raise AssertionError("there is no core in plain ASL")


def test_a_chain_is_a_sequence_of_states_that_are_called_like_the_steps() -> None:
    graph = dag(
        "chain",
        step("c", TASKS[0], depends_on=["b"], arguments={"seen": [from_step("b")]}),
        step("a", TASKS[1]),
        step("b", TASKS[2], depends_on=["a"], arguments={"seen": [from_step("a")]}),
    )
    assert list(compile_workflow(graph).asl["States"]) == ["a", "b", "c"]


def test_the_map_leads_to_the_lines_of_the_steps() -> None:
    graph = dag(
        "lines",
        step("a", TASKS[0]),
        step("b", TASKS[1]),
    )
    sources: Any = compile_workflow(graph).sources
    assert sources["b"]["line"] == sources["a"]["line"] + 1
    assert sources["b"]["text"] == 'step("b", TASKS[1]),'
    assert sources["a, b"]["text"] == "graph = dag("


def test_forks_in_forks_stay_within_the_nesting_of_json() -> None:
    edges: Edges = [frozenset()]
    for number in range(1, 121):
        edges.append(frozenset({(number - 1) // 2 * 2}))
    steps = [
        step(f"s{number}", TASKS[0], depends_on=[f"s{other}" for other in earlier])
        for number, earlier in enumerate(edges)
    ]
    assert diagnose(compile_workflow(dag("deep", *steps)).asl) == ()


# The plan.


def test_two_pairs_of_steps_that_share_an_edge_are_a_core_without_false_waits() -> None:
    n_shape = [frozenset[int](), frozenset[int](), frozenset({0}), frozenset({0, 1})]
    assert arrange(n_shape) == Core(
        (SingleStep(0), SingleStep(1), SingleStep(2), SingleStep(3)), ((), (), (0,), (0, 1))
    )


def test_the_text_around_a_core_stays_plain() -> None:
    edges: Edges = [frozenset(), frozenset({0}), frozenset({0})]
    edges += [frozenset({1}), frozenset({1, 2}), frozenset({3, 4})]
    plan = arrange(edges)
    assert isinstance(plan, Chain)
    assert [type(part) for part in plan.parts] == [SingleStep, Core, SingleStep]


def test_a_graph_without_a_name_is_refused_where_it_is_made() -> None:
    with pytest.raises(WorkflowError, match="the name of a graph is Step, expected a text"):
        dag(step("a", TASKS[0]))  # type: ignore[arg-type]


def test_an_edge_that_others_imply_changes_nothing() -> None:
    for name, _, edges, _ in random_graphs():
        closed = list(edges)
        for _ in edges:
            closed = [row.union(*(closed[other] for other in row)) for row in closed]
        assert arrange(closed) == arrange(edges), name


def test_cycles_are_found_apart_from_each_other() -> None:
    edges: Edges = [frozenset({2}), frozenset({0}), frozenset({1}), frozenset({4}), frozenset({3})]
    assert find_cycles([*edges, frozenset({0})]) == [(0, 2, 1), (3, 4)]


@pytest.mark.parametrize(
    "edges",
    [
        pytest.param([frozenset(), *(frozenset({n}) for n in range(299))], id="300 deep"),
        pytest.param([frozenset()] * 200 + [frozenset(range(200))] * 200, id="200 wide, twice"),
        pytest.param(random_edges(random.Random(7), 500), id="500 at random"),
    ],
)
def test_a_large_graph_compiles_to_a_valid_definition(edges: Edges) -> None:
    steps: list[Step] = [
        step(f"s{number}", TASKS[0], depends_on=[f"s{other}" for other in sorted(earlier)])
        for number, earlier in enumerate(edges)
    ]
    definition = compile_workflow(dag("large", *steps)).asl
    assert [found for found in diagnose(definition) if found.severity == "ERROR"] == []
