"""Sets, TypedDicts and keys of an enum cross the borders of tasks, and behave as in Python."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from holdfast.testing import World, real
from tests.unit.dsl_kit import loaded

MODULE = """
from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel
from typing_extensions import NotRequired, TypedDict

from holdfast import pure, task, workflow

KNOWN = frozenset({"b", "a"})


class Item(TypedDict):
    sku: str
    qty: int


class Gift(Item):
    note: NotRequired[str]


class Stage(StrEnum):
    NEW = "new"
    DONE = "done"


class Basket(BaseModel):
    tags: set[str] = set()
    counts: dict[Stage, int] = {}


@task
def tags_of(sku: str) -> set[str]: ...


@pure
def size(tags: set[str], known: frozenset[str]) -> int:
    return len(tags | known)


@pure
def total(items: list[Item]) -> int:
    return sum(item["qty"] for item in items)


@workflow
def collect(basket: Basket, skus: list[str]) -> Any:
    seen = set(basket.tags)
    for sku in skus:
        seen |= tags_of(sku)
        seen.add(sku)
    seen.discard("x")
    return [sorted(seen), size(seen, KNOWN), sorted(seen - KNOWN), "a" in basket.tags]


@workflow
def count(items: list[Item], basket: Basket) -> Any:
    more: Item = {"sku": "z", "qty": 1}
    more["qty"] = items[0]["qty"] + 1
    counts = dict(basket.counts)
    counts[Stage.NEW] = counts.get(Stage.NEW, 0) + total([*items, more, Item(sku="q", qty=5)])
    return [more, counts, [stage for stage in counts if stage == Stage.DONE]]


@workflow
def tags(skus: list[str]) -> set[str]:
    return {sku.upper() for sku in skus}


@workflow
def walk(edges: dict[str, list[str]], start: str) -> list[str]:
    queue, seen, found = [start], {start}, [""]
    while queue:
        name = queue.pop(0)
        found.append(name)
        for other in edges.get(name, []):
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return found[1:]


class Point(NamedTuple):
    x: int
    name: str = "here"


@workflow
def stroll(steps: list[int]) -> Any:
    place = Point(0)
    for step in steps:
        place = Point(place.x + step, place.name)
    return [place.x, place]


@workflow
def gifts(note: str) -> list[Gift]:
    plain: Gift = {"sku": "a", "qty": 1}
    return [plain, Gift(sku="b", qty=2, note=note)]


@workflow
def ranked(names: list[str], pairs: list[tuple[int, str]], marks: tuple[int, ...]) -> Any:
    by_size = sorted(set(names), key=lambda name: (len(name), name))
    last = sorted(set(pairs), key=lambda pair: (pair[1], pair[0]))
    return [by_size, last, len({marks, (1,), (1, 2)})]
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with loaded(tmp_path_factory.mktemp("values"), MODULE) as found:
        yield found


def test_a_set_grows_by_the_results_of_tasks(module: ModuleType) -> None:
    world = World({module.tags_of: {"new", "a"}}, others=real)
    run = world.run_json(module.collect, {"basket": {"tags": ["a", "old"]}, "skus": ["x", "y"]})
    assert run.result == [["a", "new", "old", "y"], 5, ["new", "old", "y"], True]


def test_a_typed_dict_is_made_changed_and_passed_on(module: ModuleType) -> None:
    given: Any = {"items": [{"sku": "a", "qty": 2}], "basket": {"counts": {"done": 4}}}
    run = World(others=real).run_json(module.count, given)
    assert run.result == [{"sku": "z", "qty": 3}, {"done": 4, "new": 10}, ["done"]]


def test_a_worklist_visits_each_name_once(module: ModuleType) -> None:
    edges: Any = {"a": ["b", "c"], "b": ["a", "d"], "c": ["d"]}
    run = World().run_json(module.walk, {"edges": edges, "start": "a"})
    assert run.result == ["a", "b", "c", "d"]


def test_the_order_of_a_set_is_no_difference_between_the_runs(module: ModuleType) -> None:
    run = World().run(module.tags, ["a", "b", "c", "d", "e", "a"])
    assert sorted(run.result) == ["A", "B", "C", "D", "E"]


def test_a_key_that_is_not_required_may_be_omitted(module: ModuleType) -> None:
    run = World().run(module.gifts, "for you")
    assert run.output == [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 2, "note": "for you"}]


def test_a_set_is_sorted_by_a_key_that_decides_between_all_its_members(module: ModuleType) -> None:
    run = World().run(module.ranked, ["bb", "aa", "c"], [(2, "x"), (1, "x"), (3, "a")], (1,))
    assert run.output == [["c", "aa", "bb"], [(3, "a"), (1, "x"), (2, "x")], 2]


def test_a_named_tuple_keeps_its_names_in_a_loop(module: ModuleType) -> None:
    assert World().run(module.stroll, [1, 2]).output == [3, (3, "here")]
