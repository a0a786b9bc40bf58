"""`Counter` and `defaultdict` in local variables do what they do in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
import collections
import json
from collections import Counter, defaultdict
from enum import Enum
from typing import Any
from pydantic import BaseModel
from holdfast import each, publish, task, workflow

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

@task
def size(name: str) -> int:
    return len(name)
@task
def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("even")
    return value
@task
def total(counts: dict[str, int]) -> int:
    return sum(counts.values())

class Tally(BaseModel):
    @staticmethod
    def of(names: list[str]) -> dict[str, int]:
        counts = Counter(names)
        return counts

def counted(names: list[str]) -> dict[str, int]:
    counts = Counter(names)
    return counts

def top(names: list[str]) -> list[str]:
    counts = Counter(names)
    return [name for name, _ in counts.most_common(2)]

"""
NAMES: list[dict[str, Any]] = [
    {"xs": []},
    {"xs": ["a", "b", "a", "c", "b", "a"]},
    {"xs": ["z", "y", "x"]},
]
SAME: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "a Counter that is counted by hand": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    counts: Counter[str] = Counter()
    for x in xs:
        counts[x] += 1
        counts[x + "!"] -= 2
    missing = counts["none"]
    best = counts.most_common(2)
    return [counts, missing, best, len(counts), "a" in counts, sum(counts.values()), counts.total()]
""",
        NAMES,
    ),
    "a Counter of a list": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    counts = Counter(xs)
    n = len(counts)
    text = ", ".join(f"{name}={count}" for name, count in counts.most_common())
    found = [name for name in xs if counts[name] > 1]
    order = sorted(counts, key=counts.get, reverse=True)
    more = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    for name in counts:
        text += name
    return [counts, text, found, order, more, dict(counts), counts.most_common(n - 1), top(xs)]
""",
        NAMES,
    ),
    "Counters of other things": (
        """
@workflow
def flow(xs: list[str], numbers: list[int], colours: list[Colour], text: str) -> Any:
    a = Counter(numbers)
    b = Counter(colours)
    c = Counter(text)
    d = Counter(len(x) for x in xs)
    e = Counter({"x": 2})
    f = Counter(a=1, b=2)
    g = collections.Counter(xs[1:])
    h = Counter(x.upper() for x in xs if x)
    known = [a[1] + 1, b[Colour.RED], c["a"], d[1], e["y"], f["a"]]
    return [a, b, c, d, e, f, g, h, known, sorted(a), [one.name for one in b]]
""",
        [
            {"xs": ["a", "bb"], "numbers": [1, 10, 1], "colours": ["red", "red"], "text": "banana"},
            {"xs": [], "numbers": [], "colours": [], "text": ""},
        ],
    ),
    "a Counter that is updated": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    counts = Counter(xs)
    counts.update(["a", "q"])
    counts.update({"a": 10, "z": 0})
    counts.update(x + "2" for x in xs)
    counts["k"] += size("abc")
    counts[xs[0] if xs else "none"] *= 2
    del counts["q"]
    del counts["never"]
    gone = counts.pop("a", 0)
    return [counts, gone, total(counts), json.dumps(counts), list(counts.keys())]
""",
        NAMES,
    ),
    "a defaultdict of ints": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    sums = defaultdict(int)
    for place, x in enumerate(xs):
        sums[x] += place
        sums[x.upper()] += place * 2
    read = sums["read"]
    if sums["test"] == 0 and xs:
        sums["test"] = 7
    sums["step"] += size("abc")
    found = [f"{x} {sums[x]}" for x in sorted(sums)]
    for x in sorted(sums):
        found.append(x * sums[x])
    best = max(sums, key=lambda name: sums[name])
    return [sums, read, found, best, "new" in sums, sums.get("new", 5), dict(sums)]
""",
        NAMES,
    ),
    "a defaultdict of lists": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for x in xs:
        groups[len(x)].append(x)
        groups[0].extend([x, x])
        groups[-1] += [x]
    sizes = {key: len(rows) for key, rows in groups.items()}
    rows = [len(groups[key]) for key in groups]
    return [groups, sizes, rows, sorted(groups)]
""",
        [*NAMES, {"xs": ["aa", "b", "cc"]}],
    ),
    "defaultdicts of floats, sets and texts": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    shares = defaultdict(float)
    seen = defaultdict(set)
    texts = defaultdict(str)
    least = defaultdict(lambda: 10)
    for x in xs:
        shares[x] += 0.5
        seen[len(x)].add(x)
        texts[x] += x
        least[x] -= 1
    sizes = [len(seen[key]) for key in sorted(seen)]
    last = f"{shares['a'] + 1:.2f}"
    return [shares, sizes, texts, least, last]
""",
        NAMES,
    ),
    "a key stays where its value cannot be computed": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    sums: dict[str, int] = defaultdict(int)
    counts = Counter()
    for n in (1, 2):
        try:
            sums[str(n)] += odd(n)
            counts[str(n)] += odd(n)
        except ValueError:
            sums["failed"] += 1
    return {"sums": sums, "counts": counts}
""",
        NAMES[:1],
    ),
    "branches read a Counter": (
        """
@workflow
def flow(xs: list[str]) -> Any:
    counts = Counter(xs)
    sizes = each(["a", "none"], lambda name: size("x" * counts[name]))
    publish("counts", {"counts": counts})
    return [sizes, [double(counts[x]) for x in xs]]

def double(n: int) -> int:
    return n * 2
""",
        NAMES,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_same_in_python_and_compiled(name: str, tmp_path: Path) -> None:
    source, cases = SAME[name]
    with loaded(tmp_path, HEADER + source) as module:
        for values in cases:
            assert_same(module.flow, values)


REFUSED = {
    "a text that names the class": "counts = Counter(xs)\nreturn f'{counts}'",
    "a helper, to which it is a Counter": "counts = Counter(xs)\nreturn [taken(counts)]",
    "another name": "counts = Counter(xs)\nother = counts\nreturn other['a']",
    "a sum of Counters": "counts = Counter(xs)\nreturn dict(counts + Counter(xs))",
    "a Counter that is changed while it is gone through": (
        "counts = Counter(xs)\ncounts.update(x + '2' for x in counts)\nreturn counts.total()"
    ),
    "Counters that are compared": "counts = Counter(xs)\nreturn counts == {'a': 0}",
    "a read in a comprehension, which adds a key": (
        "sums = defaultdict(int)\nreturn [sums[x] for x in xs]"
    ),
    "a dict of another class, too": "sums = defaultdict(int)\nsums = {'a': 1}\nreturn sums['b']",
    "a function that makes the default": "sums = defaultdict(lambda: len(xs))\nreturn sums['a']",
    "a local function that reads it": (
        "sums = defaultdict(int)\ndef read() -> int:\n    return sums['a']\nreturn [read(), sums]"
    ),
    "a method that gives it to the workflow": "return Tally.of(xs)['none']",
    "a helper that gives it to the workflow": "return counted(xs)['none']",
    "a Counter without a name": "return Counter(xs)['a']",
    "keys of tuples": "counts = Counter((x, 1) for x in xs)\nreturn counts.total()",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_use_that_shows_its_class_is_refused(name: str, tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in REFUSED[name].splitlines())
    helper = "def taken(counts: dict[str, int]) -> int:\n    return counts['none']\n\n"
    source = f"{helper}@workflow\ndef flow(xs: list[str]) -> Any:\n{body}"
    with loaded(tmp_path, HEADER + source) as module, pytest.raises(CompileErrors):
        compile_module(module)
