"""Programs that once did something else when compiled: each is refused now, or does the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.api.boundary import Boundary, Misfit
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
import copy
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, NoReturn
from pydantic import BaseModel
from holdfast import TaskError, each, parallel, task, workflow

class Problem(TaskError): ...
class Priced(BaseModel):
    price: Decimal
    prices: dict[str, Decimal] = {}
class Listed(TaskError):
    names: list[int]
    def __init__(self, names: list[int]) -> None:
        super().__init__("listed")
        self.names = names
@dataclass
class Noted:
    sku: str = "x"
    note: str = field(default="", compare=False)
@dataclass
class Odd:
    sku: str = "x"
    def __eq__(self, other: object) -> bool:
        return False
class Switch(Enum):
    OFF = "off"
    def __bool__(self) -> bool:
        return self is not Switch.OFF
class Loud(StrEnum):
    YES = "yes"
    def __str__(self) -> str:
        return "YES!"
class Mistaken(BaseModel):
    switch: Loud = "yes"
class Tree(BaseModel):
    name: str = "leaf"
    left: Tree | None = None
class Marked(BaseModel):
    name: str
    notes: dict[str, int] = {}
    marks: list[str] = []
    count: int = 0
class Sized(BaseModel):
    size: int
@task
def reject(why: str) -> NoReturn:
    raise Problem(why)
def half(n: int) -> int:
    if n % 2 == 0:
        return n // 2
    reject("odd")
@workflow
def refuse(why: str) -> NoReturn:
    reject(why)
def add(lines: list[int], line: int) -> None:
    lines.append(line)
    lines.sort(key=lambda one: -one)
LONG_LIMIT = float("inf")
TABLE = {"a": 1}
@task
def echo(value: int) -> int:
    return value
@task
def fail() -> None:
    raise Problem("no")
ECHOS = {"A": echo, "B": echo}
"""


def program(parameters: str, body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{HEADER}\n@workflow\ndef flow({parameters}) -> Any:\n{lines}\n"


REFUSED = {
    "a zip is used up once": ("xs: list[int]", "z = zip(xs, xs)\nreturn [list(z), list(z)]"),
    "a generator is used up once": ("xs: list[int]", "g = (x for x in xs)\nreturn sum(g) + sum(g)"),
    "a generator computes late": (
        "xs: list[int], n: int",
        "for x in (x + n for x in xs):\n    n += echo(x)\nreturn n",
    ),
    "so it does inside enumerate": (
        "xs: list[int], n: int",
        "for i, x in enumerate(x + n for x in xs):\n    n += echo(x + i)\nreturn n",
    ),
    "a view is no list": ("d: dict[str, int]", "return d.keys() == list(d)"),
    "a view has no positions": ("d: dict[str, int]", "return d.values()[0]"),
    "an infinite literal": ("", "return 1e400"),
    "an infinite constant": ("", "return LONG_LIMIT"),
    "a line behind a task that always raises": ("", 'reject("no")\nreturn 1'),
    "one row at two places": (
        "rows: list[list[int]]",
        "rows[0], rows[1] = rows[1], rows[1]\nrows[0].append(1)\nreturn rows",
    ),
    "a list that `update` puts in by a name": (
        "d: dict[str, list[int]], row: list[int]",
        "d.update(c=row)\nrow.append(4)\nreturn [d, row]",
    ),
    "a list that a merge puts in": (
        "d: dict[str, list[int]], row: list[int]",
        "d |= {'c': row}\nd['c'].append(4)\nreturn [d, row]",
    ),
    "a list that an insertion puts in": (
        "rows: list[list[int]], row: list[int]",
        "rows.insert(0, row)\nrows[0].append(4)\nreturn [rows, row]",
    ),
    "an f-string fails before its step": ("n: int", 'return f"{10 // n} {echo(1)}"'),
    "a spread fails before a step": ("n: int", "return [*[10 // n], echo(1)]"),
    "an error is returned": (
        "",
        "try:\n    fail()\nexcept Problem as err:\n    return err",
    ),
    "an error is returned in a list": (
        "",
        "try:\n    fail()\nexcept Problem as err:\n    return [err]",
    ),
    "an error is returned by a branch": (
        "",
        "try:\n    fail()\nexcept Problem as err:\n    return parallel(lambda: err, lambda: 1)",
    ),
    "a field that does not compare as its text": (
        "a: Priced, b: Priced",
        "return a == b",
    ),
    "a field that is not compared": ("a: Noted, b: Noted", "return a == b"),
    "a class that says itself what is equal": ("a: Odd, b: Odd", "return a in [b]"),
    "an enum that says itself what is true": ("a: Switch", "return 1 if a else 2"),
    "an enum that makes its text itself": ("a: Loud", 'return f"{a}"'),
    "a default of another type": ("", "return Mistaken().switch.name"),
    "a list that a raised error holds": (
        "xs: list[int]",
        "try:\n    raise Listed(xs)\nexcept Listed as err:\n    xs.append(1)\n    return err.names",
    ),
    "a key of a dict that is a float, beside a step": (
        "xs: list[float]",
        "return {x: echo(1) for x in xs}",
    ),
    "an operator of matrices on a field": ("tree: Tree", "tree.name @= tree.name\nreturn tree"),
    "a call that does not fit an error": ("n: int", "raise Listed()"),
    "a table that holds no tasks": ("name: str", "return TABLE[name](1)"),
    "a decimal of a float": ("x: float", "return Decimal(x)"),
    "the key of a table has a step, and an argument has one": (
        "name: str, n: int",
        "return ECHOS[name.title()](value=echo(n))",
    ),
    "the part that a method changes fails before a step": (
        "groups: dict[str, list[int]], n: int",
        "groups['x'].insert(0, echo(n))\nreturn groups",
    ),
    "the owner of a method fails before a step": (
        "names: list[str], n: int",
        "return names[n].count(str(echo(1)))",
    ),
    "items that are used up fail before a step of the library": (
        "n: int, bag: dict[str, Any]",
        "return [*range(10 // n), Tree.model_validate(bag)]",
    ),
    "a parameter without a name": ("n: int, /", "return n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_that_cannot_be_exact_is_refused(name: str, tmp_path: Path) -> None:
    text = program(*REFUSED[name])
    with loaded(tmp_path, text) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert all(diagnostic.help for diagnostic in refused.value.diagnostics)


@pytest.mark.parametrize(
    ("annotation", "value"), [("str", "1"), ("Priced", '{"price": "1"}'), ("list[Tree]", "[{}]")]
)
def test_the_returned_value_has_the_annotated_type(
    annotation: str, value: str, tmp_path: Path
) -> None:
    text = f"{HEADER}\n@workflow\ndef flow() -> {annotation}:\n    return {value}\n"
    with loaded(tmp_path, text) as module, pytest.raises(CompileErrors, match="`flow` returns"):
        compile_workflow(module.flow)


LONG = "a_name_" * 15
SAME: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "a default that fails and is not needed": (
        "d: dict[str, int], xs: list[int]",
        'e = dict(d)\nn = e.setdefault("a", xs.index(0))\nreturn [n, e.pop("a", xs[0])]',
        [{"d": {"a": 1}, "xs": []}, {"d": {}, "xs": [0]}, {"d": {"a": 1}, "xs": [0]}],
    ),
    "an item of an empty list is added": ("n: int", "n += [][0]\nreturn n", [{"n": 1}]),
    "views where they are gone through": (
        "d: dict[str, int], n: int",
        (
            "a = [len(d.keys()), n in d.values(), sum(d.values())]\n"
            'b = [*d.keys(), ", ".join(d.keys()), *sorted(d.keys())]\n'
            'return ("a" in d.keys(), a, b)'
        ),
        [{"d": {}, "n": 0}, {"d": {"b": 2, "a": 1}, "n": 2}],
    ),
    "generators that are gone through at once": (
        "xs: list[int], n: int",
        (
            "return [list(x + n for x in xs), n in (x + 1 for x in xs), sum(x for x in xs),"
            " each((x * 2 for x in xs), echo)]"
        ),
        [{"xs": [], "n": 1}, {"xs": [1, 2], "n": 2}],
    ),
    "zips that are gone through": (
        "xs: list[int]",
        (
            "total = 0\nfor a, b in zip(xs, xs[1:]):\n    total += echo(a * b)\n"
            "return [total, (1, 2) in zip(xs, xs[1:])]"
        ),
        [{"xs": []}, {"xs": [1, 2, 3]}],
    ),
    "a name that gets a value where it had none": (
        "note: str | None",
        'if note is None:\n    note = "none"\nreturn note.upper()',
        [{"note": None}, {"note": "a"}],
    ),
    "the other way round": (
        "note: str | None",
        'if note is not None:\n    pass\nelse:\n    note = "none"\nreturn note.upper()',
        [{"note": None}, {"note": "a"}],
    ),
    "names longer than a variable of ASL": (
        f"{LONG}: int",
        f"{LONG}b = {LONG} + 1\n{LONG}c = echo({LONG}b)\nreturn [{LONG}, {LONG}b, {LONG}c]",
        [{LONG: 1}],
    ),
    "a local function under names of the same spelling": (
        "n: int",
        (
            "def more(k: int) -> int:\n    return k + n\n"
            "def twice(n: int) -> int:\n    return more(n) * 2\n"
            "def hidden() -> int:\n    n = echo(100)\n    return more(n)\n"
            "return [twice(10), hidden(), [more(1) for n in range(2)],"
            " [more(echo(1)) for n in range(2)], each([1, 2], lambda n: more(n) + 1),"
            " sorted([-2, 1], key=lambda n: more(0) * n), any(more(n) > 4 for n in range(2)), n]"
        ),
        [{"n": 3}],
    ),
    "a comprehension with steps over a name that it gives another value": (
        "n: int, xs: list[int]",
        (
            "a = [echo(n) for n in range(n)]\nb = [[echo(x) for x in range(x)] for x in xs]\n"
            "c = any(echo(x) > 2 for x in [x for x in xs])\n"
            "return [a, b, c, [echo(xs) for xs in xs], n, xs]"
        ),
        [{"n": 2, "xs": [3, 1]}, {"n": 0, "xs": []}],
    ),
    "the key of a comprehension is evaluated before its value": (
        "xs: list[int]",
        "return {str(10 // echo(x)): echo(x + 1) for x in xs}",
        [{"xs": [2, 1]}, {"xs": [1, 0]}],
    ),
    "a step of the library beside another in a comprehension": (
        "x: float",
        "return [[str(x * k), echo(k)] for k in [1, 2]]",
        [{"x": 1.5}],
    ),
    "decimals and texts of floats in parts": (
        "priced: Priced, price: Decimal, x: float, tree: Tree",
        (
            'priced.price += price\npriced.prices["a"] = price\n'
            'priced.prices["a"] += priced.price * 2\n'
            "prices = [price, price]\nprices[-1] -= 1\ntree.name += str(x)\n"
            'sizes = {"a": 1}\nsizes["a"] += len(str(x))\nreturn [priced, prices, tree, sizes]'
        ),
        [{"priced": {"price": "1.10"}, "price": "2.50", "x": 1.5, "tree": {}}],
    ),
    "a field changes whose owner is made by a step": (
        "x: float",
        (
            'tree = copy.deepcopy(Marked(name=f"{x}"))\n'
            'tree.notes |= {"k": 0}\n'
            'tree.marks += ["a"]\n'
            "tree.count += 1\n"
            "return tree"
        ),
        [{"x": 1.5}],
    ),
    "the part that a method changes is read before a step of the library": (
        "groups: dict[str, list[int]], bag: dict[str, Any]",
        'groups["x"].insert(0, Sized.model_validate(bag).size)\nreturn groups',
        [
            {"groups": groups, "bag": bag}
            for groups in ({}, {"x": [1]})
            for bag in ({}, {"size": 3})
        ],
    ),
    "of two errors the first counts, beside a step of the library": (
        "n: int, bag: dict[str, Any]",
        (
            'text = f"{10 // n} {Sized.model_validate(bag).size}"\n'
            'pair = {"a": [10 // n, Sized.model_validate(bag).size]}\n'
            "return [text, pair, 10 // n > 3 and Sized.model_validate(bag).size > 1]"
        ),
        [{"n": n, "bag": bag} for n in (0, 2) for bag in ({}, {"size": 3})],
    ),
    "so it does in an argument": (
        "xs: list[int], bag: dict[str, Any]",
        "return echo(xs[0] + Sized.model_validate(bag).size)",
        [{"xs": xs, "bag": bag} for xs in ([], [1]) for bag in ({}, {"size": 3})],
    ),
    "an inner list of another length, after a name has its value": (
        "rows: list[list[int]]",
        (
            "a = b = c = d = 0\ntry:\n    (a, b), (c, d) = rows\nexcept Exception:\n    pass\n"
            "return [a, b, c, d]"
        ),
        [{"rows": rows} for rows in ([], [[1, 2], [3]], [[1], [2, 3]], [[1, 2], [3, 4]])],
    ),
    "targets that are items, fields and inner names": (
        "rows: list[list[int]], tree: Tree, xs: list[int], i: int",
        (
            "i, rows[i][0] = 1, i\ntree.name, name = 'z', tree.name\na = xs[0] = echo(4)\n"
            "(b, *c), rows[0] = xs, [a, i]\n[first, *rest] = each(xs, echo)\nrest.append(first)\n"
            "return [rows, tree, xs, i, name, a, b, c, rest]"
        ),
        [{"rows": [[1], [2]], "tree": {}, "xs": [5, 6], "i": 0}],
    ),
    "rows that change places are still the list's own": (
        "rows: list[list[int]]",
        (
            "for _ in range(2):\n    for i in range(len(rows) - 1):\n"
            "        if rows[i][0] < rows[i + 1][0]:\n"
            "            rows[i], rows[i + 1] = rows[i + 1], rows[i]\n"
            "rows[0].append(0)\nreturn rows"
        ),
        [{"rows": [[1], [2], [3]]}],
    ),
    "a helper that changes its argument and orders it by a key": (
        "xs: list[int]",
        "add(xs, 5)\nreturn xs",
        [{"xs": [3, 9]}],
    ),
    "new items belong to the list that gets them": (
        "rows: list[list[int]], d: dict[str, list[int]]",
        (
            "rows += [[3]]\nrows[-1].append(4)\nrows.extend([[7]])\nrows[0].append(5)\n"
            "rows.insert(0, [8])\nrows[0].append(5)\nrows[1:2] = [[6]]\nrows[1].append(5)\n"
            "d |= {'b': [3]}\nd['b'].append(4)\nd.update({'c': [3]})\nd['c'].append(4)\n"
            "return [rows, d]"
        ),
        [{"rows": [[1], [2]], "d": {"a": [1]}}],
    ),
    "a task that always raises": (
        "n: int",
        (
            "if n == 0:\n    reject('none')\nif n == 5:\n    return reject('five')\n"
            "if n == 6:\n    refuse('six')\n"
            "try:\n    return half(n)\nexcept Problem as err:\n    return str(err)"
        ),
        [{"n": n} for n in (0, 1, 2, 5, 6)],
    ),
    "models that hold models of their own kind": (
        "a: Tree, b: Tree",
        "return a == b",
        [{"a": {}, "b": {"left": {}}}, {"a": {"left": {}}, "b": {"left": {"name": "leaf"}}}],
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_an_accepted_program_does_the_same(name: str, tmp_path: Path) -> None:
    parameters, body, inputs = SAME[name]
    with loaded(tmp_path, program(parameters, body)) as module:
        for values in inputs:
            assert_same(module.flow, values)


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_a_number_that_json_does_not_have_stops_at_the_border(number: str) -> None:
    def weigh(kilos: float = 1.0) -> list[float]:
        return [kilos]

    border = Boundary(weigh)
    with pytest.raises(Misfit, match="JSON has no infinite number"):
        border.normalise_arguments({"kilos": number})
    with pytest.raises(Misfit, match="result"):
        border.dump_result([1.0, float(number)])
