"""Lists that grow in a loop: each round visits what it adds, with the same result."""

from __future__ import annotations

import random
from typing import Any

import pytest

from holdfast.asl.jsonata import values
from holdfast.asl.jsonata.growing import ITEMS_MIN, NEWEST, GrowingLists, Measure
from holdfast.asl.template import EvaluationError, compile_template
from holdfast.core.state import Execution
from holdfast.runtime.effects import TaskSucceeded
from holdfast.runtime.storage.value_book import ValueBook, reference
from tests.builders import Shop, call, machine

MOMENT = values.EvaluationMoment(now_ms=0, draw=lambda: 0.5)
APPEND = compile_template("{% $append($list, [$new]) %}", "/States/s/Assign/list")


def appended(items: list[Any], new: Any) -> Any:
    return APPEND.evaluate({"list": items, "new": new, "states": {}}, MOMENT)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of values that were visited, one for each visit of a value."""
    visited: list[int] = []
    count = values.node_count

    def counting(value: Any) -> int:
        visited.append(count(value))
        return visited[-1]

    monkeypatch.setattr(values, "node_count", counting)
    return visited


def test_a_round_of_a_loop_visits_the_appended_item_and_no_older_one(counted: list[int]) -> None:
    grown: Any = appended([{"n": n} for n in range(500)], {"n": 0})
    counted.clear()
    for number in range(20):
        grown = appended(grown, {"n": number})

    assert len(grown) == 521
    assert sum(counted) == 20 * 3  # a list of one item with one field


@pytest.mark.parametrize("seed", range(5))
def test_the_size_of_a_list_that_grew_is_that_of_all_its_items(seed: int) -> None:
    draws = random.Random(seed)
    grown: Any = ["x"] * ITEMS_MIN
    for _ in range(30):
        new: Any = draws.choice([1, "ä" * draws.randrange(9), {"k": [1, {}]}, [[]], None])
        grown = appended(grown, new)
        known = NEWEST.measure_of(grown)

        assert known == Measure(values.node_count(grown), values.character_count(grown)), seed


@pytest.mark.parametrize(
    ("limit", "maximum"), [("VALUE_NODES_MAX", 300), ("RESULT_CHARACTERS_MAX", 1_000)]
)
def test_a_list_that_grows_past_a_bound_is_refused(
    limit: str, maximum: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, limit, maximum)
    grown: Any = ["x"] * ITEMS_MIN
    with pytest.raises(EvaluationError, match="made a value of more than"):
        for _ in range(60):
            grown = appended(grown, {"long": "x" * 20, "a": 1, "b": 2})
    assert len(grown) < ITEMS_MIN + 60


def test_a_list_that_was_changed_after_it_was_measured_is_measured_anew() -> None:
    lists, changed = GrowingLists(), ["x"] * ITEMS_MIN
    lists.note_measured(changed, Measure(ITEMS_MIN + 1, ITEMS_MIN))
    changed.append("y")

    assert lists.measure_of(changed) is None


def test_old_lists_are_forgotten_so_that_the_memory_is_bounded() -> None:
    lists = GrowingLists()
    older = [[number] * 1_000 for number in range(1_000)]
    for items in older:
        lists.note_measured(items, Measure(1_001, 0))

    known = [items for items in older if lists.measure_of(items) is not None]
    assert known == older[-len(known) :]
    assert 0 < len(known) < 500


@pytest.mark.parametrize("text", ["$t", '{"k": [$t]}', "[[], $t]"])
def test_lists_that_are_only_counted_leave_no_long_texts_in_memory(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = GrowingLists()
    monkeypatch.setattr("holdfast.asl.jsonata.values.NEWEST", lists)
    monkeypatch.setattr("holdfast.asl.jsonata.natives.NEWEST", lists)
    grown = appended(["x"] * ITEMS_MIN, "x")
    made = f"($t := $pad($string($n), 100000); $count($append($list, [{text}])))"
    count = compile_template(f"{{% {made} %}}", "/States/s/Assign/n")
    for number in range(200):
        count.evaluate({"list": grown, "n": number, "states": {}}, MOMENT)

    kept = sum(values.character_count(entry.value) for entry in lists._entries.values())
    assert kept < 10_000_000


# -- in the log ------------------------------------------------------------------------------------


def test_the_book_of_a_log_keeps_the_newest_versions_of_a_list_and_reads_every_one() -> None:
    book, versions = ValueBook(), [[f"item {n}" for n in range(100)]]
    book.learn(0, 0, versions[0], "the list")
    for number in range(1, 50):
        versions.append([*versions[-1], f"new {number}"])
        text = f'{reference(number - 1, 0)[:-2]},["new {number}"]]}}'
        book.learn(number, 0, versions[-1], text)

    assert [book.at((number, 0)) for number in range(50)] == versions
    assert len(book.values) <= 6
    assert sorted(set(book.places())) == [(number, 0) for number in range(50)]
    with pytest.raises(KeyError):
        book.at((50, 0))


def _loop(rounds: int) -> tuple[Shop, Execution]:
    again = {"Condition": f"{{% $count($results) < {rounds} %}}", "Next": "work"}
    results = {"results": "{% $append($results, [$states.result]) %}"}
    states = {
        "begin": {"Type": "Pass", "Assign": {"results": []}, "Next": "work"},
        "work": call("add", "again?", Arguments={"n": 1}, Assign=results),
        "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
        "done": {"Type": "Succeed", "Output": "{% $results %}"},
    }
    result = {"text": "x" * 90, "n": 1}
    shop = Shop(machine(states), lambda _: TaskSucceeded(dict(result)))
    return shop, shop.run().state


def test_a_loop_with_several_snapshots_ends_with_every_result() -> None:
    shop, state = _loop(250)

    assert state.output == [{"text": "x" * 90, "n": 1}] * 250
    assert sum("so" in item for item in shop.world.services.items("executions")) > 2
