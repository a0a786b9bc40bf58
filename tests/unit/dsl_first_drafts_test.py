"""Expressions of a first draft: members of enums, slices with steps, values of unknown type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_expressions_test import HEADER
from tests.unit.dsl_kit import assert_same, loaded

MORE = """
import dataclasses, itertools
from holdfast import timeout
class Mode(str, Enum):
    FAST = "f"
    SLOW = "s"
LIMIT = 10
def put(items: list[int], one: int) -> None:
    items.append(one)
    items.append(one * LIMIT)
def put_all(items: list[int], more: list[int]) -> list[int]:
    for item in [one for one in more if one]:
        put(items, item)
    return items
def twice(items: list[int]) -> None:
    put_all(items, list(items))
    items.sort(reverse=True)
class Cart(BaseModel):
    items: list[str] = []
    total: int = 0
    def put(self, item: str, price: int = 1) -> None:
        self.items.append(item)
        self.total += price
    def take(self) -> str:
        self.total -= 1
        return self.items.pop()
"""
THINGS: list[Any] = ["a", 1, True, None, 2.5, {"k": 1, "b": [2]}, [1, "x"], [], {}, ""]
MADE = "2026-03-01T08:00:00Z"
PROGRAMS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "slices with steps": (
        "xs: list[int], s: str",
        """rows = [[1], [2, 3], []]
return [xs[::-1], xs[::2], xs[1::2], xs[1:4:3], xs[::-2], rows[::-1], rows[::2],
    s[::-1], s[::2], s[1::2]]""",
        [{"xs": [1, 2, 3, 4, 5], "s": "añ😀b"}, {"xs": [1], "s": "a"}, {"xs": [], "s": ""}],
    ),
    "a sum of lists": (
        "rows: list[list[int]]",
        "return [sum(rows, []), sum(rows, [7]), sum([[r] for r in rows], start=[])]",
        [{"rows": [[1, 2], [], [3]]}, {"rows": [[]]}, {"rows": []}],
    ),
    "members of enums": (
        "c: Colour, v: Level, s: Status, m: Mode",
        """names = []
for one in Colour:
    names.append(one.name)
return [[one.value for one in Colour], list(Level), len(Status), names, v >= Level.HIGH, v < 3,
    s < Status.PAID, max(Level), sorted(Level, reverse=True), m <= Mode.FAST]""",
        [{"c": "r", "v": 1, "s": "open", "m": "f"}, {"c": "b", "v": 3, "s": "paid", "m": "s"}],
    ),
    "texts of members": (
        "c: Colour, v: Level, m: Mode, p: Colour | None",
        'return [str(c), f"{c} {v} {m} {p}", "%s" % m, str(v), "{}".format(c)]',
        [{"c": "r", "v": 1, "m": "f", "p": None}, {"c": "b", "v": 3, "m": "s", "p": "b"}],
    ),
    "the member of a text": (
        "s: str, n: int",
        "return [Colour(s).name, Colour(Colour.RED), Level(n) < 3, Mode(s[0]) if n else 1]",
        [{"s": "r", "n": 1}, {"s": "r", "n": 0}, {"s": "x", "n": 1}, {"s": "b", "n": 3}],
    ),
    "the member of a name": ("s: str", "return Colour[s]", [{"s": "RED"}, {"s": "r"}]),
    "pairs and products": (
        "xs: list[int], ss: list[str]",
        """found = [y - x for x, y in itertools.pairwise(xs)]
for x, s in itertools.product(xs, ss):
    found.append(x)
for x, y in itertools.pairwise(xs):
    found.append(x * y)
return [found, list(itertools.product(xs, ss, [True]))]""",
        [{"xs": [1, 3, 7], "ss": ["a", "b"]}, {"xs": [1], "ss": ["a"]}, {"xs": [], "ss": []}],
    ),
    "the class of an Any": (
        "x: Any",
        """if isinstance(x, str):
    return x.upper()
if isinstance(x, bool):
    return not x
if isinstance(x, int):
    return x + 1
if isinstance(x, (int, float)):
    return x * 2
if isinstance(x, dict):
    return [k + "!" for k in x]
return [isinstance(x, list), x is None, isinstance(x, int)]""",
        [{"x": thing} for thing in THINGS],
    ),
    "the size of an Any": ("x: Any", "return len(x)", [{"x": thing} for thing in THINGS]),
    "the items of an Any": (
        "x: Any",
        """found = []
for one in x:
    found.append(one)
return [found, [one for one in x]]""",
        [{"x": thing} for thing in THINGS],
    ),
    "the fields of an Any": (
        "x: Any",
        """pairs = [key for key, value in x.items() if value]
for key, value in x.items():
    pairs.append(key)
return {"a": pairs, "b": x.get("k"), "c": x.get("b", []), "d": x["k"], "e": list(x.keys()),
    "f": x.get("z", {}).get("y", 0), "g": len(x.get("b"))}""",
        [{"x": thing} for thing in THINGS],
    ),
    "an item of an Any": (
        "x: Any",
        "return x[-1]",
        [{"x": thing} for thing in THINGS if thing != "a"],
    ),
    "an endless loop that an error ends": (
        "xs: list[int]",
        """n = 0
try:
    while True:
        n += echo(xs[n])
except Exception:
    return n""",
        [{"xs": [1, 2, 1]}, {"xs": []}],
    ),
    "an endless loop that a deadline ends": (
        "n: int",
        """try:
    with timeout(minutes(5)):
        while True:
            n += 1
            sleep(minutes(1))
except WaitTimeout:
    return n""",
        [{"n": 0}],
    ),
    "the truth of values of several types": (
        "n: int, s: str, b: bool, xs: list[int], note: str | None, level: Colour, made: datetime",
        """values = {"n": n, "s": s, "b": b, "xs": xs, "note": note, "f": n / 4}
true = [name for name, value in values.items() if value]
either = s if b else n
other = xs if b else note
when = level if b else made
return [true, either or "none", not either, bool(other), bool(other and n), any(values.values()),
    all([n, s, b]), 1 if when else 2, [one or 0 for one in (n, s, xs)],
    list(filter(None, [n, s]))]""",
        [
            {"n": n, "s": s, "b": b, "xs": xs, "note": note, "level": "r", "made": MADE}
            for n, s, b, xs, note in [
                (0, "", True, [], None),
                (0, "", False, [0], None),
                (1, "a", True, [0], ""),
                (2, "", False, [], "x"),
            ]
        ],
    ),
    "helpers that change their arguments": (
        "s: str, xs: list[int]",
        """counts: dict[str, int] = {}
def bump(counts: dict[str, int], key: str, by: int = 1) -> int:
    if by > 5:
        return -1
    counts[key] = counts.get(key, 0) + by
    return counts[key]
last = 0
for one in (s, "a"):
    last = bump(counts, one)
    last = bump(key="z", by=last * 5, counts=counts)
item = 5
twice(xs)
cart = Cart()
cart.put(s, 2)
cart.put("b")
taken = cart.take()
made = put_all([9], xs)
put(made, 3)
return [counts, last, xs, item, cart, taken, made]""",
        [{"s": "a", "xs": [1, 2]}, {"s": "", "xs": []}],
    ),
    "local helpers that change variables around them": (
        "xs: list[int], s: str",
        """log: list[str] = []
count = 0
def say(text: str) -> None:
    log.append(text.title())
def step(number: int) -> int:
    nonlocal count
    count += 1
    try:
        say(f"try {number} {count}")
        return echo(xs[number])
    except Exception:
        say("failed")
        return -1
    finally:
        log.append(s)
one = step(0)
found = [one]
found[0] = step(1)
return [log, count, found]""",
        [{"xs": [4, 5], "s": "q"}, {"xs": [4], "s": ""}],
    ),
    "an argument that a helper inside assigns": (
        "x: int",
        """def bump() -> None:
    nonlocal x
    x += 1
def before(number: int) -> int:
    bump()
    return number
found = before(x)
return [found, x]""",
        [{"x": 1}],
    ),
    "a helper that fails after its change": (
        "xs: list[int]",
        """def put(found: list[int], one: int) -> None:
    found.append(one)
    found.append(10 // one)
found: list[int] = []
try:
    for x in xs:
        put(found, x)
except Exception:
    found.append(-1)
return found""",
        [{"xs": [1, 0, 2]}, {"xs": [5]}, {"xs": []}],
    ),
    "two names of one argument": (
        "xs: list[int], ys: list[int]",
        """def move(a: list[int], b: list[int]) -> list[int]:
    if a:
        b.append(a.pop())
    return b
move(xs, xs)
same = move(xs, ys)
return [xs, ys, same]""",
        [{"xs": [1, 2], "ys": []}, {"xs": [], "ys": [3]}],
    ),
    "the difference of two moments": (
        "a: datetime, b: datetime, wait: timedelta",
        """def lag(one: datetime, other: datetime) -> timedelta:
    return one - other
elapsed = a - b
other: timedelta = b - a
return [elapsed.total_seconds(), other.total_seconds(), elapsed.days, (b - a).days,
    elapsed > wait, wait >= other, elapsed < other, lag(b, a) <= timedelta(seconds=1),
    int(elapsed.total_seconds() // 60), f"{(b - a).total_seconds():.1f}"]""",
        [
            {"a": a, "b": b, "wait": "PT1H"}
            for a, b in [
                (MADE, MADE),
                (MADE, "2026-03-01T10:00:00+01:00"),
                ("2026-03-01T08:00:00.000001Z", "2026-02-27T07:59:59.999999-05:00"),
                ("2026-03-01T08:00:00.1", "2026-03-01T08:00:00.35"),
                ("2026-03-01T08:00:00", MADE),
                ("1900-01-01T00:00:00.7Z", "2026-03-01T08:00:00.4Z"),
                ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
            ]
        ],
    ),
    "a text in an Any": ("x: Any", "return x.upper()", [{"x": thing} for thing in THINGS]),
}


def source_of(parameters: str, body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{HEADER}{MORE}\n@workflow\ndef flow({parameters}) -> Any:\n{lines}\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_expression_of_a_first_draft_has_the_value_of_python(name: str, tmp_path: Path) -> None:
    parameters, body, inputs = PROGRAMS[name]
    with loaded(tmp_path, source_of(parameters, body)) as module:
        for values in inputs:
            assert_same(module.flow, values)


@pytest.mark.parametrize(
    "line",
    [
        "return sum([(y := echo(1)) & 1 for _ in range(2)])",
        "y = yield echo(1)",
        "y = (z := echo(1)) & 1",
        'return f"{echo(1) & 2!r:>{echo(3)}}"',
        "return (lambda q: q)(echo(1))",
        "return minutes(n) == 0",
        "return EPOCH - EPOCH == 0.0",
    ],
)
def test_what_python_answers_differently_is_refused(line: str, tmp_path: Path) -> None:
    source = source_of("n: int", line)
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_module(module)
    assert all(one.code.startswith("HF0") for one in refused.value.diagnostics)
