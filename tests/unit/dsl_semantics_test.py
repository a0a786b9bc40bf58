"""A compiled workflow behaves as the same Python: values, errors, steps and their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from enum import Enum, StrEnum
from typing import Any, Literal
from pydantic import BaseModel
from holdfast import (
    CompensationFailed, TaskError, WaitTimeout, ask, compensating, days, each, hours, minutes,
    parallel, pure, role, seconds, sleep, task, wait_for_event, workflow,
)

class Colour(Enum):
    RED = "red"
    BLUE = "blue"
class Size(StrEnum):
    S = "s"
    L = "l"
class Line(BaseModel):
    sku: str
    qty: int = 1
    tags: list[str] = []
class Order(BaseModel):
    id: str = "o1"
    coupon: str | None = None
    lines: list[Line] = []
    colour: Colour = Colour.RED
    notes: dict[str, str] = {}
class Answer(BaseModel):
    yes: bool
    note: str = ""
class Problem(TaskError): ...
class Small(Problem): ...
class Other(TaskError): ...

LIMIT = 10
NAMES = ["a", "b"]

@task
def echo(value: int) -> int:
    return value
@task
def say(text: str) -> None: ...
@task
def fail_with(name: str) -> int:
    errors = {"Problem": Problem, "Small": Small, "Other": Other, "ValueError": ValueError}
    if name in errors:
        raise errors[name](f"it was {name}")
    return 1
@task
def undo_it(number: int) -> None:
    if number == 13:
        raise Other("thirteen")
@task
def pair(value: int) -> tuple[int, str]:
    return value, str(value)
@pure
def upper(text: str) -> str:
    return text.upper()
"""

LINES = [{"sku": "x", "qty": 2, "tags": ["t"]}, {"sku": "y", "qty": 0}]
INPUTS: dict[str, tuple[str, list[Any]]] = {
    "n": ("int", [0, 7, -7]),
    "m": ("int", [3, -2, 0]),
    "f": ("float", [2.5, -0.5]),
    "b": ("bool", [True, False]),
    "s": ("str", ["", "abc", "a,b"]),
    "o": ("str | None", [None, "", "x"]),
    "xs": ("list[int]", [[], [4], [3, 1, 2]]),
    "ss": ("list[str]", [[], ["a"], ["b", "a"]]),
    "xss": ("list[list[int]]", [[], [[]], [[1]], [[1, 2], []], [[1, 2], [3]]]),
    "d": ("dict[str, int]", [{}, {"a": 1}, {"b": 2, "a": 0}]),
    "order": ("Order", [{}, {"coupon": "C", "lines": LINES, "notes": {"k": "v"}}]),
    "line": ("Line", [{"sku": "a"}]),
    "lines": ("list[Line]", [[], LINES, LINES[:1]]),
    "colour": ("Colour", ["red", "blue"]),
    "size": ("Size", ["s", "l"]),
    "anys": ("list[Any]", [[], [1, [2]], [[[3]], None], [[]]]),
    "os": ("list[str | None]", [[None], ["a", None]]),
}

EXPRESSIONS = {
    "n": [
        "n + 1",
        "n - -3",
        "-n",
        "n * 2 - 1",
        "n / 4",
        "n // 2",
        "n % 4",
        "abs(n)",
        "n // LIMIT",
        "str(n)",
        "f'{n} of {LIMIT}'",
        "not n",
        "bool(n)",
        "n and 5",
        "n or 5",
        "0 <= n < 7",
        "'yes' if n > 0 else 'no'",
        "n in (0, 1)",
        "n in [7]",
        "[n]",
        "[[n]]",
        "[[n], []]",
        "{'a': n, 'b': {'c': [n]}}",
        "{str(n): n, '0': 'last'}",
        "[i * n for i in range(3)]",
        "[[i] for i in range(n)]",
        "list(range(n))",
        "max(n, 1)",
        "float(n)",
        "int(n > 0)",
        "sum([n, 1])",
        "[NAMES, [n]]",
        "{'%s': 1}",
        "'{% 1 + 1 %}'",
        "n == 7 and n != 0",
        "(n, 'x')",
        "[x for x in [n, None] if x is not None]",
        "Line(sku='s', qty=n)",
        "Order(lines=[])",
        "0 if n else 1",
        "n is None",
        "[Order(id=i, lines=[Line(sku=i)]) for i in NAMES]",
        "3 - (n - 1)",
        "2 * (n + 1)",
        "-(n + 1)",
    ],
    "n m": [
        "n // m",
        "n % m",
        "n / m",
        "n if m else m",
        "m and n % m > 0",
        "m == 0 or n // m > 0",
        "[n // i for i in [1, m]]",
        "min(n, m) + max([n, m])",
        "n > m",
        "(n, m) == (7, 3)",
        "n and m",
        "n or m",
        "not (n and m)",
        "round(n / 2)",
        "int(n / 2)",
        "-n // 2",
    ],
    "f": ["f * 2", "round(f)", "int(f)", "f > 1", "abs(f)", "not f", "f + 1 if f else 0"],
    "b": [
        "not b",
        "str(b)",
        "f'{b}'",
        "b and 1",
        "b or 'x'",
        "int(b)",
        "[b]",
        "b == True",
        "b is False",
        "any([b, False])",
        "all([b])",
    ],
    "s": [
        "s + '!'",
        "len(s)",
        "s.upper()",
        "s.lower()",
        "s.startswith('a')",
        "s.endswith('c')",
        "s.endswith('xabc')",
        "s.startswith('')",
        "s.split(',')",
        "s.replace('a', '$1')",
        "'b' in s",
        "'' in s",
        "not s",
        "s or 'none'",
        "s[1:]",
        "s[:1]",
        "s[:-1]",
        "s[-2:]",
        "s[1:2]",
        "s < 'b'",
        "f'<{s}>'",
        "','.join([s, s])",
        "s == 'abc'",
        "[s]",
        "s in NAMES",
        "s and s[0:1]",
        "upper(s)",
        "upper(s) + upper('x')",
        "role(s)",
        '{"k": s}["k"]',
        "s in {'abc', ''}",
        "s[2:1]",
        "s[5:]",
    ],
    "o": [
        "o is None",
        "o is not None",
        "o == 'x'",
        "o or 'none'",
        "not o",
        "f'{o}'",
        "str(o)",
        "len(o) if o is not None else -1",
        "o is not None and o.startswith('x')",
        "o.upper() if o else ''",
        "o if o is not None else 'none'",
        "o is None or o == ''",
        "bool(o)",
        "[o]",
        "o in ['x']",
        "o in [None]",
        "o != None",
        "Order(coupon=o)",
    ],
    "xs": [
        "len(xs)",
        "sum(xs)",
        "sorted(xs)",
        "sorted(xs, reverse=True)",
        "max(xs)",
        "min(xs)",
        "xs[0]",
        "xs[-1]",
        "xs[1:]",
        "xs[:2]",
        "xs[-2:]",
        "xs[:-1]",
        "xs[5:]",
        "[x * 2 for x in xs]",
        "[x for x in xs if x > 1]",
        "[[x] for x in xs]",
        "[[x] for x in xs if x > 1]",
        "xs + [9]",
        "xs + xs",
        "4 in xs",
        "4 not in xs",
        "xs == [4]",
        "not xs",
        "xs or [1]",
        "any(x > 2 for x in xs)",
        "all(x > 0 for x in xs)",
        "sum(x * x for x in xs if x != 1)",
        "{str(x): x for x in xs}",
        "{str(x % 2): x for x in xs}",
        "[i * x for i, x in enumerate(xs)]",
        "[x for i, x in enumerate(xs) if i > 0]",
        "[i + x for i, x in enumerate(xs, 1)]",
        "[a - b for a, b in zip(xs, xs[1:])]",
        "[(a, b) for a, b in zip(xs, [1, 2])]",
        "list(xs)",
        "[xs, xs]",
        "[xs]",
        "{'xs': xs, 'n': len(xs)}",
        "xs[len(xs) - 1]",
        "xs[xs[0]]",
        "len(xs) > 0 and xs[0] > 3",
        "xs[0] if xs else None",
        "[x // (x - 1) for x in xs]",
        "[y for y in [x + 1 for x in xs] if y > 2]",
        "max(x for x in xs)",
        "[[y + x for y in xs] for x in xs]",
        "[x for x in xs if x in [3, 4]]",
        "[None for x in xs]",
        "[None if x > 2 else x for x in xs]",
        "'odd' if len(xs) % 2 else 'even'",
        "3 in [x + 1 for x in xs]",
        "[x for x in range(len(xs))]",
        "[xs[i] for i in range(len(xs))]",
        "[i for i in range(1, len(xs))]",
    ],
    "ss": [
        "','.join(ss)",
        "sorted(ss)",
        "'a' in ss",
        "[s.upper() for s in ss]",
        "[s for s in ss if s != 'a']",
        "{s: len(s) for s in ss}",
        "[f'{i}{s}' for i, s in enumerate(ss)]",
        "ss == ['a']",
        "len(ss)",
    ],
    "xss": [
        "xss",
        "len(xss)",
        "[len(x) for x in xss]",
        "[x for x in xss]",
        "[x for x in xss if len(x) > 0]",
        "[x + [0] for x in xss]",
        "xss[0]",
        "xss[0][0]",
        "xss + [[9]]",
        "[1] in xss",
        "[] in xss",
        "[sum(x) for x in xss]",
        "[[y for y in x] for x in xss]",
        "xss[-1]",
        "not xss",
        "[xss, xss]",
        "{'a': xss}",
        "xss[0] if xss else []",
        "xss == [[]]",
        "any(len(x) == 0 for x in xss)",
        "[[]][3] in xss",
        "[[]][0] in xss",
        "xss[1:]",
        "xss[:1]",
        "xss[-1:]",
    ],
    "d": [
        "d",
        "d['a']",
        "d.get('a')",
        "d.get('a', 7)",
        "'a' in d",
        "'a' not in d",
        "len(d)",
        "list(d)",
        "[k for k in d]",
        "[k + str(v) for k, v in d.items()]",
        "sum(d.values())",
        "sorted(d)",
        "not d",
        "{**d, 'z': 1}",
        "{'a': 9, **d}",
        "{k: v + 1 for k, v in d.items()}",
        "list(d.keys())",
        "d == {'a': 1}",
        "[v for k, v in d.items() if k == 'a']",
        "d['a'] if 'a' in d else 0",
        "{k: [v] for k, v in d.items()}",
    ],
    "order": [
        "order",
        "order.coupon",
        "order.lines",
        "len(order.lines)",
        "[x.sku for x in order.lines]",
        "sum(x.qty for x in order.lines)",
        "order.lines[0].sku",
        "order.lines[0].tags",
        "[x.tags for x in order.lines]",
        "[x for x in order.lines if x.qty > 0]",
        "order.notes['k']",
        "order.coupon is not None and order.coupon.startswith('C')",
        "order.colour == Colour.RED",
        "order.coupon or 'none'",
        "order.lines[0].tags[0]",
        "order.notes.get('k', 'n')",
        "[x.qty for x in order.lines if x.tags]",
        "order.lines and order.lines[0].qty",
        "[y.sku for y in [x for x in order.lines]]",
        "{x.sku: x.tags for x in order.lines}",
        "order.lines[-1].qty",
        "'k' in order.notes",
        "order == Order()",
    ],
    "lines": [
        "lines",
        "[x.sku for x in lines]",
        "lines[0]",
        "not lines[0]",
        "lines[lines[0].qty :]",
        "lines[: lines[0].qty]",
        "[x for x in lines[lines[-1].qty : lines[0].qty]]",
        "[x for x in lines if x.qty]",
        "lines + [Line(sku='z')]",
        "{'first': lines[:1]}",
        "lines[1:]",
        "[x.qty * 2 for x in lines if x.sku == 'x']",
    ],
    "colour": [
        "colour",
        "colour == Colour.RED",
        "colour.value",
        "colour in [Colour.BLUE]",
        "colour.value + '!'",
    ],
    "size": ["size", "f'{size}'", "size == 's'", "size == Size.S", "str(size)"],
    "anys": [
        "[x for x in anys]",
        "[x for x in anys if x is not None]",
        "anys[1:]",
        "anys[0]",
        "len(anys)",
        "anys == []",
    ],
    "os": [
        "None in os",
        "'a' in os",
        "[x for x in os if x is not None]",
        "[x is None for x in os]",
        "os[0]",
        "[x or 'none' for x in os]",
        "[len(x) for x in os if x is not None]",
    ],
}
CASES = [(names, text) for names, texts in EXPRESSIONS.items() for text in texts]


def _inputs(names: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{}]
    for name in names:
        rows = [{**row, name: value} for row in rows for value in INPUTS[name][1]]
    return rows


@pytest.fixture(scope="module")
def expressions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Yield a module with a workflow of each expression: the classes around them are made once."""
    programs = []
    for number, (names, text) in enumerate(CASES):
        parameters = ", ".join(f"{name}: {INPUTS[name][0]}" for name in names.split())
        programs.append(f"@workflow\ndef flow_{number}({parameters}):\n    return {text}\n")
    with loaded(tmp_path_factory.mktemp("expressions"), "\n".join([HEADER, *programs])) as module:
        yield module


@pytest.mark.parametrize("number", range(len(CASES)), ids=[text for _, text in CASES])
def test_an_expression_gives_the_same_value(number: int, expressions: ModuleType) -> None:
    for values in _inputs(CASES[number][0].split()):
        assert_same(getattr(expressions, f"flow_{number}"), values)


PROGRAMS: dict[str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a loop over a list": (
        """
def flow(xs: list[int]) -> int:
    total = 0
    for x in xs:
        if x == 3:
            continue
        if x == 2:
            break
        total += echo(x)
    return total
""",
        [{"xs": []}, {"xs": [3]}, {"xs": [1, 3, 4, 2, 9]}],
        [{}],
    ),
    "a loop over a range counts as Python does": (
        """
def flow(n: int) -> list[int]:
    seen: list[int] = []
    for i in range(n):
        seen.append(i)
    for i in range(5, n, -2):
        seen.append(i)
    for i in range(1, n):
        n = 0
        seen.append(i)
    return seen
""",
        [{"n": 0}, {"n": 3}, {"n": -3}],
        [{}],
    ),
    "a loop over pairs, rows and dicts": (
        """
def flow(d: dict[str, int], xs: list[int]) -> list[str]:
    seen = []
    for i, (a, b) in enumerate(zip(xs, xs)):
        seen.append(f"{i}{a}{b}")
    for key, value in d.items():
        d = {}
        seen.append(key + str(value))
    for key in {"q": 1}:
        seen.append(key)
    for row in [[1], []]:
        seen.append(str(len(row)))
    return seen
""",
        [{"d": {}, "xs": []}, {"d": {"a": 1, "b": 2}, "xs": [5, 6]}],
        [{}],
    ),
    "a while loop that sleeps": (
        """
def flow(n: int) -> int:
    while n > 0:
        sleep(minutes(n))
        n -= 1
        if n == 2:
            break
    while True:
        n += 10
        if n > 20:
            return n
""",
        [{"n": 0}, {"n": 1}, {"n": 4}],
        [{}],
    ),
    "names that JSONata or ASL would take for their own": (
        """
def flow(count: int, states: list[int], _x: int) -> int:
    sum_ = len(states) + count + _x
    map = [each_ + count for each_ in states]
    for length in map:
        sum_ += length
    return sum_
""",
        [{"count": 1, "states": [1, 2], "_x": 3}],
        [{}],
    ),
    "a comprehension's variable hides the workflow's": (
        """
def flow(n: int, xs: list[int]) -> list[int]:
    x = n
    ys = [x * n for x in xs]
    return ys + [x]
""",
        [{"n": 2, "xs": [1, 2]}],
        [{}],
    ),
    "handlers choose by class, the first that fits": (
        """
def flow(name: str) -> str:
    try:
        fail_with(name)
    except Small as err:
        return f"small {err}"
    except (Problem, ValueError) as err:
        say(str(err))
    except Exception:
        return "any"
    else_ = "end"
    return else_
""",
        [{"name": n} for n in ("Problem", "Small", "Other", "ValueError", "none")],
        [{}],
    ),
    "an error that nobody catches fails the run": (
        """
def flow(name: str) -> int:
    try:
        return fail_with(name)
    except Small:
        say("small")
        raise
""",
        [{"name": n} for n in ("Problem", "Small", "none")],
        [{}],
    ),
    "raise inside try is caught here, outside it fails the run": (
        """
def flow(n: int) -> str:
    try:
        if n == 1:
            raise Small(f"n is {n}")
        if n == 2:
            raise Other("two")
        if n == 3:
            raise Problem
    except Small as err:
        say(f"caught {err}")
        raise Other("again") from err
    except Problem as err:
        return f"problem {err}"
    return "fine"
""",
        [{"n": n} for n in range(4)],
        [{}],
    ),
    "nested handlers": (
        """
def flow(name: str) -> str:
    try:
        try:
            fail_with(name)
        except Small:
            raise
        except Other as err:
            raise Problem("from other") from err
        say("inner done")
    except Problem as err:
        return f"outer {err}"
    return "end"
""",
        [{"name": n} for n in ("Problem", "Small", "Other", "none")],
        [{}],
    ),
    "undo steps run in reverse, then the handler": (
        """
def flow(n: int, name: str) -> str:
    try:
        with compensating() as undo:
            first = echo(n)
            undo(undo_it, first)
            if n > 1:
                undo(undo_it, number=first + 1)
            for i in range(n):
                undo(undo_it, i + 100)
            fail_with(name)
            undo(undo_it, 99)
    except Problem as err:
        return f"problem {err}"
    except CompensationFailed as err:
        return f"{err}"
    return "fine"
""",
        [{"n": n, "name": k} for n in (0, 2, 13) for k in ("Small", "Other", "none")],
        [{}],
    ),
    "compensation inside a loop starts afresh": (
        """
def flow(names: list[str]) -> list[str]:
    done: list[str] = []
    for name in names:
        try:
            with compensating() as undo:
                undo(undo_it, len(done))
                if name == "skip":
                    continue
                fail_with(name)
                done.append(name)
        except Problem:
            done.append("undone")
    return done
""",
        [{"names": ["a", "Problem", "skip", "b", "Small"]}, {"names": []}],
        [{}],
    ),
    "compensation inside compensation": (
        """
def flow(name: str) -> str:
    with compensating() as outer:
        outer(undo_it, 1)
        with compensating() as inner:
            inner(undo_it, 2)
            outer(undo_it, 3)
            fail_with(name)
        say("inner kept")
        fail_with("Small")
    return "never"
""",
        [{"name": "Other"}, {"name": "none"}],
        [{}],
    ),
    "an expression's error runs the undo steps and the handler": (
        """
def flow(xs: list[int], n: int) -> str:
    try:
        with compensating() as undo:
            undo(undo_it, n)
            y = xs[0] // n
            if xs[1] > y:
                say("more")
            while xs[2] > n:
                n += 1
            for x in [xs[3]]:
                n += x
            undo(undo_it, xs[4])
            echo(xs[5])
            sleep(seconds(xs[6]))
            if n > 100:
                raise Problem(f"{xs[8]}")
            return str(xs[7])
    except Exception:
        say("caught")
    return "end"
""",
        [{"xs": [5] * k, "n": 1} for k in range(10)]
        + [{"xs": [1] * 9, "n": 0}]
        + [{"xs": [200] * k, "n": 1} for k in (8, 9)],
        [{}],
    ),
    "branches side by side": (
        """
def flow(n: int) -> list[str]:
    x = n
    def third() -> str:
        x = echo(3)
        if x > n:
            return "more"
        return f"{x}"
    a, b, c, d = parallel(lambda: echo(n) + 1, lambda: [x, x], third, lambda: pair(n))
    return [f"{a}", f"{len(b)}", c, d[1]]
""",
        [{"n": 1}, {"n": 5}],
        [{}],
    ),
    "each item in a branch of its own": (
        """
def flow(lines: list[Line]) -> list[str]:
    prefix = "p"
    def handle(line: Line) -> str:
        total = 0
        for n in range(line.qty):
            total += echo(n)
        return f"{prefix}{line.sku}{total}"
    texts = each(lines, handle, concurrency=1)
    numbers = each([line.qty for line in lines], echo)
    each(range(len(lines)), lambda i: say(texts[i]))
    return texts + [str(sum(numbers))]
""",
        [{"lines": []}, {"lines": LINES}, {"lines": LINES[:1]}],
        [{}],
    ),
    "an error of a branch is caught outside": (
        """
def flow(names: list[str]) -> str:
    try:
        each(names, lambda name: fail_with(name))
    except Problem as err:
        return f"{err}"
    return "none"
""",
        [{"names": ["none"]}, {"names": ["none", "Small"]}],
        [{}],
    ),
    "waits and questions": (
        """
def flow(key: str, n: int) -> str:
    try:
        answer = wait_for_event("bank", Answer, key=key, timeout=days(n))
    except WaitTimeout as err:
        say(f"late {err}")
        return "late"
    if not answer.yes:
        return answer.note
    try:
        ok = ask(f"Sure about {key}?", bool, assignee=role("clerk"), timeout=hours(2))
    except WaitTimeout:
        return "nobody"
    return "yes" if ok else "no"
""",
        [{"key": "k", "n": 3}],
        [
            {},
            {"bank": {"yes": False, "note": "no"}},
            {"bank": {"yes": True, "note": ""}},
            {"bank": {"yes": True, "note": ""}, "Sure about k?": True},
            {"bank": {"yes": True, "note": ""}, "Sure about k?": False},
        ],
    ),
    "steps inside expressions run in Python's order": (
        """
def flow(n: int) -> str:
    if echo(n) > echo(2):
        return f"{echo(1)}-{upper('a')}"
    elif not echo(0):
        say(f"{pair(echo(n) + 1)[1]}")
    total = echo(1) + echo(2) * n
    total += echo(3)
    return str([echo(4), total][1])
""",
        [{"n": 1}, {"n": 3}],
        [{}],
    ),
    "a variable that only some paths assign": (
        """
def flow(n: int) -> str:
    if n > 1:
        text = "many"
    elif n == 1:
        text = None
    else:
        return "none"
    if text is None:
        return "one"
    return text.upper()
""",
        [{"n": n} for n in range(3)],
        [{}],
    ),
    "a value that grows its type": (
        """
def flow(n: int) -> str:
    last = None
    xs = []
    for i in range(n):
        if last is not None:
            xs.append(last + i)
        last = i
    return f"{last} {len(xs)} {sum(xs)}"
""",
        [{"n": n} for n in range(4)],
        [{}],
    ),
    "an undo step keeps the value it was given": (
        """
def flow(n: int) -> None:
    with compensating() as undo:
        undo(undo_it, n)
        n = 5
        undo(undo_it, n)
        n += 1
        raise Problem("x")
""",
        [{"n": 1}],
        [{}],
    ),
    "falling off the end returns None": (
        "\ndef flow(n: int) -> None:\n    echo(n)\n",
        [{"n": 1}],
        [{}],
    ),
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_workflow_behaves_as_its_python(title: str, tmp_path: Path) -> None:
    text, inputs, arrivals = PROGRAMS[title]
    with loaded(tmp_path, f"{HEADER}\n@workflow{text}") as module:
        for values in inputs:
            for come in arrivals:
                assert_same(module.flow, values, come)
