"""`first`, quorums, `each(…)` in all its forms, `sleep_until`: their compiled form and their
behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast import days
from holdfast.api.surface import Workflow
from holdfast.compiler.compile import compile_workflow
from holdfast.testing import World, real
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from datetime import datetime
from typing import Any
from pydantic import AwareDatetime, BaseModel
from holdfast import (
    BlockTimeout, TaskError, WaitTimeout, ask, compensating, days, each, first, minutes, parallel,
    role, sleep, sleep_until, task, wait_for_event, workflow,
)

class Line(BaseModel):
    sku: str
    tags: list[str] = []
class Refused(TaskError): ...

@task
def charge(order: str) -> str:
    if order.startswith("bad"):
        raise Refused(order)
    return order
@task
def tags(order: str) -> list[str]:
    return order.split(",") if order else []
@task
def maybe(order: str) -> str | None:
    return order or None
@task
def undo_it(order: str) -> None: ...
@task
def count(lines: list[Any]) -> int:
    return len(lines)
"""


Once = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Once]:
    """Yield a function that makes the module of a text: once for all tests with the same text."""
    known: dict[str, ModuleType] = {}
    folder = tmp_path_factory.mktemp("modules")
    with ExitStack() as stack:

        def module_of(text: str) -> ModuleType:
            if text not in known:
                known[text] = stack.enter_context(loaded(folder, HEADER + text))
            return known[text]

        yield module_of


def asl_of(folder: Path, text: str) -> dict[str, Any]:
    with loaded(folder, HEADER + text) as module:
        return compile_workflow(module.flow).asl


def state_of(folder: Path, text: str, type_: str) -> dict[str, Any]:
    """The only state of the type at the top of the machine."""
    states = asl_of(folder, f"@workflow\n{text}")["States"].values()
    (found,) = [state for state in states if state["Type"] == type_]
    return dict(found)


def came_to(flow: Workflow[..., Any], **values: Any) -> Any:
    """The output or the error, the same in plain Python and compiled."""
    found = assert_same(flow, values)
    return found.output if found.error is None else found.error


# The source.


def test_the_first_of_several_is_a_parallel_that_needs_one(tmp_path: Path) -> None:
    body = 'def flow(o: str) -> str:\n    won = first(lambda: charge(o), lambda: "late")\n'
    state = state_of(tmp_path, f"{body}    return won", "Parallel")
    assert state["Holdfast"] == {"Needed": 1}
    assert state["Assign"] == {
        "won": "{% $reduce($states.result, "
        "function($_winner, $_other){ $_winner != null ? $_winner : $_other }) %}"
    }


def test_a_returned_race_gives_the_winner_as_the_output(tmp_path: Path) -> None:
    body = 'def flow(o: str) -> str:\n    return first(lambda: charge(o), lambda: "late")\n'
    state = state_of(tmp_path, body, "Parallel")
    assert state["End"] is True
    assert state["Output"].startswith("{% $reduce($states.result, ")


@pytest.mark.parametrize(
    ("at_least", "expected"),
    [
        ("at_least=2", {"Needed": 2, "Tolerated": 1}),
        ("at_least=1", {"Needed": 1, "Tolerated": 2}),
    ],
)
def test_a_quorum_says_how_many_are_needed_and_may_fail(
    tmp_path: Path, at_least: str, expected: dict[str, int]
) -> None:
    body = f"def flow(n: int) -> None:\n    parallel(lambda: 1, lambda: 2, lambda: 3, {at_least})\n"
    assert state_of(tmp_path, body, "Parallel")["Holdfast"] == expected


def test_a_quorum_that_the_input_gives_is_checked_in_the_run(tmp_path: Path) -> None:
    body = "def flow(n: int) -> None:\n    parallel(lambda: 1, lambda: 2, at_least=n)\n"
    extension = state_of(tmp_path, body, "Parallel")["Holdfast"]
    assert extension == {"Needed": "{% $n %}", "Tolerated": "{% 2 - $n %}"}
    (rule,) = state_of(tmp_path, body, "Choice")["Choices"]
    assert rule["Condition"] == "{% $n >= 1 and $n <= 2 %}"
    failed = state_of(tmp_path, body, "Fail")
    assert (failed["Error"], failed["Cause"]) == ("ValueError", "at_least is not 1 to 2")


@pytest.mark.parametrize(
    "call",
    [
        "parallel(lambda: 1, lambda: 2)",
        "parallel(lambda: 1, lambda: 2, at_least=2)",
        "each(xs, charge)",
        "each(xs, charge, tolerate=0)",
        "each(xs, charge, concurrency=2)",
        "each(xs, lambda some: 1, batch=2)",
    ],
)
def test_a_call_that_adds_nothing_to_asl_is_plain_asl(tmp_path: Path, call: str) -> None:
    text = f"@workflow\ndef flow(xs: list[str]) -> None:\n    {call}\n"
    assert "Holdfast" not in str(asl_of(tmp_path, text)["States"])


def test_tolerated_failures_and_concurrency_may_be_computed(tmp_path: Path) -> None:
    body = (
        "def flow(xs: list[str], n: int) -> None:\n"
        "    each(xs, charge, tolerate=3, concurrency=n)\n"
    )
    state = state_of(tmp_path, body, "Map")
    assert state["Holdfast"] == {"Tolerated": 3}
    assert state["MaxConcurrency"] == "{% $n %}"
    (rule,) = state_of(tmp_path, body, "Choice")["Choices"]
    assert rule["Condition"] == "{% $n >= 0 %}"


def test_enough_of_many_is_a_map_that_needs_so_many_and_tolerates_the_others(
    tmp_path: Path,
) -> None:
    body = "def flow(xs: list[str]) -> None:\n    each(xs, charge, at_least=2, concurrency=3)\n"
    state = state_of(tmp_path, body, "Map")
    assert state["Holdfast"] == {"Needed": 2, "Tolerated": "{% $count($xs) - 2 %}"}
    assert state["MaxConcurrency"] == 3
    (rule,) = state_of(tmp_path, body, "Choice")["Choices"]
    assert rule["Condition"] == "{% 2 <= $count($xs) %}"


def test_sleeping_until_a_moment_is_a_wait_with_a_timestamp(tmp_path: Path) -> None:
    body = "def flow(at: datetime) -> None:\n    sleep_until(at)\n"
    state = state_of(tmp_path, body, "Wait")
    assert state["Timestamp"].startswith('{% $substring($at, -1) = "Z" or ')
    assert "Seconds" not in state


def test_a_computed_moment_of_a_protected_part_is_made_where_it_can_be_caught(
    tmp_path: Path,
) -> None:
    text = """
@workflow
def flow(at: datetime) -> str:
    try:
        sleep_until(at)
    except Exception:
        return "naive"
    return "slept"
"""
    states = asl_of(tmp_path, text)["States"]
    (wait,) = [state for state in states.values() if state["Type"] == "Wait"]
    (compute,) = [state for state in states.values() if state["Type"] == "Parallel"]
    assert wait["Timestamp"] == "{% $moment %}"
    assert compute["Catch"][0]["ErrorEquals"] == ["States.ALL"]


def test_a_race_of_waits_names_their_types(tmp_path: Path) -> None:
    text = """
@workflow
def flow(o: str) -> None:
    first(
        lambda: wait_for_event("lines", list[Line], key=o),
        lambda: ask("How many?", dict[str, int], assignee=role("clerk"), timeout=days(1)),
        lambda: sleep(days(2)),
    )
"""
    with loaded(tmp_path, HEADER + text) as module:
        found = compile_workflow(module.flow)
        name = module.__name__
    assert found.events == {"lines": f"list[{name}:Line]"}
    assert found.answers == {"ask for dict[str, int]": "dict[str, builtins:int]"}


def test_a_task_with_settings_and_a_workflow_are_branches_as_they_are(tmp_path: Path) -> None:
    text = """
@task
def ready() -> bool:
    return True
@workflow
def child(order: str) -> int:
    return len(order)
@workflow
def flow(orders: list[str]) -> list[int]:
    parallel(ready, ready.options(timeout=minutes(1), label="ready soon"))
    return each(orders, child)
"""
    document = str(asl_of(tmp_path, text))
    assert "'ready soon': {'Type': 'Task'" in document
    assert "'Resource': 'holdfast:workflow:child'" in document


# Its behaviour.


@pytest.mark.parametrize("order", ["a", "a,b", ""])
def test_the_winner_s_list_stays_a_list(tmp_path: Path, order: str) -> None:
    text = """
@workflow
def flow(o: str) -> list[str]:
    won = first(lambda: tags(o), lambda: sleep(days(1)))
    return won if won is not None else ["nobody"]
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, o=order) == module.tags(order)


def test_a_race_that_a_branch_ends_by_failing_fails(tmp_path: Path) -> None:
    text = """
@workflow
def flow(o: str) -> str:
    try:
        return first(lambda: charge(o), lambda: charge("good")) or "none"
    except Refused as err:
        return f"refused: {err}"
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, o="bad") == "refused: bad"
        assert came_to(module.flow, o="fine") == "fine"


def test_a_winner_without_a_value_gives_none(tmp_path: Path) -> None:
    text = """
@workflow
def flow(o: str) -> str:
    won = first(lambda: maybe(o), lambda: maybe("x"))
    return "nothing" if won is None else won
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, o="") == "nothing"
        assert came_to(module.flow, o="a") == "a"


@pytest.mark.parametrize("at_least", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("orders", [("a", "b", "c"), ("bad", "b", "c"), ("bad", "bad2", "c")])
def test_a_quorum_ends_with_enough_and_fails_without(
    once: Once, at_least: int, orders: tuple[str, ...]
) -> None:
    text = """
@workflow
def flow(a: str, b: str, c: str, n: int) -> list[str | None]:
    x, y, z = parallel(lambda: charge(a), lambda: charge(b), lambda: charge(c), at_least=n)
    return [x, y, z]
"""
    module = once(text)
    values = dict(zip("abc", orders, strict=True))
    came_to(module.flow, **values, n=at_least)


@pytest.mark.parametrize("tolerate", [-1, 0, 1, 2])
@pytest.mark.parametrize("orders", [[], ["a"], ["bad"], ["a", "bad", "b"], ["bad", "bad2", "c"]])
def test_as_many_failures_as_are_tolerated_leave_none(
    once: Once, tolerate: int, orders: list[str]
) -> None:
    text = """
@workflow
def flow(orders: list[str], n: int) -> list[str]:
    parcels = each(orders, charge, tolerate=n)
    return [p if p is not None else "lost" for p in parcels]
"""
    module = once(text)
    came_to(module.flow, orders=orders, n=tolerate)


@pytest.mark.parametrize("at_least", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("settings", ["", ", concurrency=1", ", concurrency=2", ", batch=2"])
@pytest.mark.parametrize("orders", [[], ["a"], ["bad"], ["a", "bad", "b"], ["bad", "bad2", "c"]])
def test_each_ends_with_enough_and_fails_without(
    once: Once, at_least: int, settings: str, orders: list[str]
) -> None:
    text = f"""
@task
def pack(orders: list[str]) -> str:
    return charge(orders[0])
@workflow
def flow(orders: list[str], n: int) -> list[str]:
    parcels = each(orders, {"pack" if "batch" in settings else "charge"}, at_least=n{settings})
    return [p if p is not None else "not needed" for p in parcels]
"""
    module = once(text)
    came_to(module.flow, orders=orders, n=at_least)


@pytest.mark.parametrize("concurrency", [0, 1, 2])
def test_calls_of_each_that_are_no_longer_needed_are_cancelled_and_undone(
    tmp_path: Path, concurrency: int
) -> None:
    text = f"""
@workflow
def flow(waits: list[int]) -> list[int | None]:
    def waited(wait: int) -> int:
        with compensating() as undo:
            undo(undo_it, f"{{wait}}")
            sleep(days(wait))
        return wait
    return each(waits, waited, at_least=2, concurrency={concurrency})
"""
    with loaded(tmp_path, HEADER + text) as module:
        found = assert_same(module.flow, {"waits": [3, 1, 2, 4]})
    undone = sorted(call[1]["order"] for call in found.trace if call[0] == "undo_it")
    expected = {0: ([None, 1, 2, None], ["3", "4"]), 1: ([3, 1, None, None], [])}
    assert (found.output, undone) == expected.get(concurrency, ([3, 1, None, None], ["2"]))


@pytest.mark.parametrize("size", [-1, 0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    ("type_", "items"),
    [
        ("int", [1, 2, 3, 4, 5, 6]),
        ("list[int]", [[1], [], [2, 3], [4], [[5]], [6], []]),
        ("Any", [1, [2], None, [], [[]], {"a": [3]}, "x"]),
        ("int | None", [None, 1, None]),
    ],
)
def test_batches_are_python_s_slices_whatever_is_in_them(
    once: Once, type_: str, items: list[Any], size: int
) -> None:
    text = f"""
@workflow
def flow(items: list[{type_.replace("list[int]", "list[Any]")}], n: int) -> Any:
    return each(items, lambda some: some, batch=n)
"""
    module = once(text)
    for length in range(len(items) + 1):
        came_to(module.flow, items=items[:length], n=size)
        came_to(module.flow, items=items[len(items) - length :], n=size)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_of_a_constant_size_hold_models(tmp_path: Path, size: int) -> None:
    text = f"""
@workflow
def flow(lines: list[Line]) -> list[int]:
    return each(lines, lambda some: count([line.sku for line in some]), batch={size}, concurrency=2)
"""
    lines = [{"sku": str(number), "tags": ["a"]} for number in range(5)]
    with loaded(tmp_path, HEADER + text) as module:
        for length in range(6):
            came_to(module.flow, lines=lines[:length])


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("1969-01-01T00:00:00Z", "slept"),
        ("1969-01-01T00:00:00.123456+05:30", "slept"),
        ("1969-01-01T00:00:00-03:00", "slept"),
        ("1969-01-01T00:00:00", "naive"),
        ("1969-01-01T00:00:00.123456", "naive"),
    ],
)
def test_a_moment_without_a_time_zone_is_an_error_that_can_be_caught(
    tmp_path: Path, moment: str, expected: str
) -> None:
    text = """
@workflow
def flow(at: datetime) -> str:
    try:
        with compensating() as undo:
            undo(undo_it, "a")
            sleep_until(at)
    except Exception:
        return "naive"
    return "slept"
"""
    with loaded(tmp_path, HEADER + text) as module:
        found = assert_same(module.flow, {"at": moment})
        assert found.output == expected
        undone = [call for call in found.trace if call[0] == "undo_it"]
        assert len(undone) == (expected == "naive")


def test_an_aware_datetime_needs_no_check_in_the_workflow(tmp_path: Path) -> None:
    text = "@workflow\ndef flow(at: AwareDatetime) -> None:\n    sleep_until(at)\n"
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, at="1969-01-01T00:00:00Z") is None


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize(
    "call",
    [
        'parallel(lambda: charge("a"), lambda: charge("b"), at_least=n)',
        "each(orders, charge, tolerate=n)",
        "each([o for o in orders if o], charge, at_least=n + 1)",
        "each(orders, charge, concurrency=n)",
        "each(orders, lambda some: len(some), batch=n)",
    ],
)
def test_a_number_out_of_range_can_be_caught_and_undoes(once: Once, call: str, number: int) -> None:
    text = f"""
@workflow
def flow(orders: list[str], n: int) -> str:
    try:
        with compensating() as undo:
            undo(undo_it, "a")
            {call}
    except Exception:
        return "refused"
    return "done"
"""
    module = once(text)
    found = assert_same(module.flow, {"orders": ["a", "b", "c"], "n": number})
    undone = [call for call in found.trace if call[0] == "undo_it"]
    assert len(undone) == (found.output == "refused")


def test_the_loser_of_a_race_undoes_its_steps(tmp_path: Path) -> None:
    text = """
@workflow
def flow(o: str) -> str:
    def slow() -> str:
        with compensating() as undo:
            charge(o)
            undo(undo_it, o)
            sleep(days(2))
        return "slow"
    def quick() -> str:
        sleep(days(1))
        return "quick"
    return first(slow, quick)
"""
    with loaded(tmp_path, HEADER + text) as module:
        found = assert_same(module.flow, {"o": "a"})
    assert found.output == "quick"
    assert [call[0] for call in found.trace] == ["charge", "sleep", "sleep", "undo_it"]


@pytest.mark.parametrize(
    ("come", "days", "expected"),
    [
        ({"paid": {"sku": "a"}}, 1, "paid a"),
        ({}, 1, "nobody"),
        ({}, 5, "too late"),
        ({"Sure?": False}, 5, "refused"),
    ],
)
def test_the_clock_and_the_events_decide_a_race(
    tmp_path: Path, come: dict[str, Any], days: int, expected: str
) -> None:
    text = f"""
@workflow
def flow(o: str) -> str:
    try:
        won = first(
            lambda: wait_for_event("paid", Line, key=o, timeout=days(3)),
            lambda: ask("Sure?", bool, assignee=role("clerk"), timeout=days(9)),
            lambda: sleep(days({days})),
        )
    except WaitTimeout:
        return "too late"
    if won is None:
        return "nobody"
    if isinstance(won, bool):
        return "refused"
    return f"paid {{won.sku}}"
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert assert_same(module.flow, {"o": "o1"}, come).output == expected


def test_a_quorum_goes_by_the_clock_and_keeps_the_places(tmp_path: Path) -> None:
    text = """
@workflow
def flow(a: int, b: int, c: int) -> list[int | None]:
    def first_one() -> int:
        sleep(days(a))
        return a
    def second_one() -> int:
        sleep(days(b))
        return b
    def third_one() -> int:
        sleep(days(c))
        return c
    x, y, z = parallel(first_one, second_one, third_one, at_least=2)
    return [x, y, z]
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, a=3, b=1, c=2) == [None, 1, 2]
        assert came_to(module.flow, a=1, b=3, c=2) == [1, None, 2]


def test_items_that_fail_late_are_tolerated_beside_those_that_run(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str | None]:
    def slow(order: str) -> str:
        sleep(days(len(order)))
        return charge(order)
    return each(orders, slow, tolerate=1, concurrency=2)
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, orders=["badly", "a", "bc"]) == [None, "a", "bc"]
        assert came_to(module.flow, orders=["badly", "bad", "a"]) == "Refused"


@pytest.mark.parametrize("setting", ["tolerate", "batch", "concurrency"])
def test_a_handler_around_a_computed_number_can_run(tmp_path: Path, setting: str) -> None:
    text = f"""
@workflow
def flow(n: int) -> str:
    try:
        each([1, 2], lambda item: 0, {setting}=n)
    except Exception:
        return "refused"
    return "done"
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, n=-1) == "refused"
        assert came_to(module.flow, n=1) == "done"


@pytest.mark.parametrize("at_least", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("tolerate", [-1, 0, 1, 3])
@pytest.mark.parametrize(
    "orders", [["a"], ["a", "bad", "b"], ["bad", "bad2", "c"], ["a", "b", "bad"]]
)
def test_enough_successes_end_a_call_and_too_many_failures_fail_it(
    once: Once, at_least: int, tolerate: int, orders: list[str]
) -> None:
    text = """
@workflow
def flow(orders: list[str], n: int, m: int, at_once: int) -> list[str | None]:
    return each(orders, charge, at_least=n, tolerate=m, concurrency=at_once)
"""
    module = once(text)
    for at_once in (0, 1, 2):
        came_to(module.flow, orders=orders, n=at_least, m=tolerate, at_once=at_once)


@pytest.mark.parametrize("limits", ["tolerate=1", "tolerate=m", "at_least=n, tolerate=m"])
@pytest.mark.parametrize("at_once", ["", ", concurrency=1", ", concurrency=2", ", concurrency=k"])
def test_branches_have_the_limits_of_items(tmp_path: Path, limits: str, at_once: str) -> None:
    text = f"""
@workflow
def flow(a: str, b: str, c: str, n: int, m: int, k: int) -> list[str | None]:
    x, y, z = parallel(
        lambda: charge(a), lambda: charge(b), lambda: charge(c), {limits}{at_once}
    )
    return [x, y, z]
"""
    with loaded(tmp_path, HEADER + text) as module:
        for n, m, k in [
            (1, 0, 0),
            (2, 0, 1),
            (2, 1, 2),
            (3, 2, 3),
            (4, 0, 1),
            (1, -1, 1),
            (1, 1, -1),
        ]:
            for orders in ("abc", ("bad", "b", "c"), ("a", "bad", "bad2")):
                came_to(module.flow, **dict(zip("abc", orders, strict=True)), n=n, m=m, k=k)


def test_no_more_branches_than_the_limit_run_at_the_same_time(tmp_path: Path) -> None:
    text = """
@workflow
def flow() -> tuple[int, str, int]:
    def slow(wait: int) -> int:
        with compensating() as undo:
            undo(undo_it, f"{wait}")
            sleep(days(wait))
        return wait
    return parallel(lambda: slow(3), lambda: charge("a"), lambda: slow(1), concurrency=2)
"""
    with loaded(tmp_path, HEADER + text) as module:
        run = World(others=real).run(module.flow)
    assert (run.output, run.ended) == ((3, "a", 1), days(3))


def test_a_limit_that_every_branch_keeps_is_plain_asl(tmp_path: Path) -> None:
    for number, type_ in [(0, "Parallel"), (2, "Parallel"), (1, "Map")]:
        text = f'parallel(lambda: charge("a"), lambda: charge("b"), concurrency={number})'
        state = state_of(tmp_path, f"def flow() -> None:\n    {text}\n", type_)
        assert "Holdfast" not in state


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 4])
@pytest.mark.parametrize(
    "call",
    [
        'parallel(lambda: charge("a"), lambda: charge("b"), at_least=n)',
        'parallel(lambda: charge("a"), lambda: charge("b"), concurrency=n)',
        "each(orders, charge, at_least=n)",
        "each(orders, charge, at_least=2, tolerate=n)",
        "each(orders, count, batch=n, at_least=2)",
    ],
)
@pytest.mark.parametrize("orders", [["a", "b", "c"], ["bad", "b"], ["bad", "bad2", "c"], []])
def test_a_number_that_is_out_of_range_is_a_value_error(
    once: Once, call: str, number: int, orders: list[str]
) -> None:
    text = f"""
@workflow
def flow(orders: list[str], n: int) -> str:
    try:
        {call}
    except ValueError as error:
        return str(error)
    except Refused as error:
        return f"{{type(error).__name__}} {{error}}"
    return "done"
"""
    module = once(text)
    came_to(module.flow, orders=orders, n=number)


@pytest.mark.parametrize("number", [-1, 0, 1, 5])
@pytest.mark.parametrize("orders", [["a", "b"], ["bad", "b"], []])
def test_the_items_are_evaluated_before_the_numbers_are_checked(
    tmp_path: Path, number: int, orders: list[str]
) -> None:
    text = """
@workflow
def flow(orders: list[str], n: int) -> str:
    each([orders[n], orders[0]], charge, at_least=n, tolerate=n // n, concurrency=-1 * n)
    return "done"
"""
    with loaded(tmp_path, HEADER + text) as module:
        came_to(module.flow, orders=orders, n=number)


def test_a_quorum_that_was_never_possible_is_a_value_error_of_the_workflow(tmp_path: Path) -> None:
    text = """
@workflow
def flow(orders: list[str]) -> list[str | None]:
    return each(orders, charge, at_least=2)
"""
    with loaded(tmp_path, HEADER + text) as module:
        assert came_to(module.flow, orders=["a"]) == "ValueError"
        assert came_to(module.flow, orders=["a", "bad"]) == "Refused"
