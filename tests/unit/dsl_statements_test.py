"""Statements of control flow behave as the same Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.dsl_kit import assert_same, loaded
from tests.unit.dsl_semantics_test import HEADER

MORE = """
from holdfast import BlockTimeout, shielded, timeout

class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str = "1"
class Bank(BaseModel):
    kind: Literal["bank"] = "bank"
    iban: str = "DE"
class Payment(BaseModel):
    status: Literal["pending", "paid", "refused"]
    cents: int = 0
    method: Card | Bank | None = None

@task
def left(value: int) -> int:
    return value - 1
@task
def is_above(value: int, bound: int) -> bool:
    return value > bound
@task
def several(value: int) -> list[int]:
    return [value] * value
@task
def nested(value: int) -> tuple[int, tuple[str, list[int]]]:
    return value, (str(value), [value])
"""

NAMES = [{"name": n} for n in ("Problem", "Small", "Other", "ValueError", "none")]
NUMBERS = [{"n": n} for n in range(5)]

TRY: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "the else of a try runs without an error, and its own errors are not caught": (
        """
def flow(name: str) -> str:
    text = "start"
    try:
        fail_with("none")
        x = fail_with(name)
    except Problem as err:
        text = f"caught {err}"
    else:
        say(f"else {x}")
        fail_with("Other")
        text = "never"
    say(text)
    return text
""",
        NAMES,
    ),
    "an else that returns": (
        """
def flow(name: str) -> str:
    try:
        fail_with(name)
    except Exception:
        say("caught")
    else:
        return "fine"
    return "bad"
""",
        NAMES,
    ),
    "finally runs after the end and after an error": (
        """
def flow(name: str) -> str:
    x = 0
    try:
        x = echo(5)
        fail_with(name)
        x = 6
    finally:
        say(f"x is {x}")
    return f"end {x}"
""",
        NAMES,
    ),
    "finally runs after the handlers, also when one fails or raises again": (
        """
def flow(name: str) -> str:
    try:
        fail_with(name)
    except Small:
        raise
    except Problem:
        fail_with("Other")
    except ValueError as err:
        say(f"{err}")
    else:
        say("else")
    finally:
        say("finally")
    return "end"
""",
        NAMES,
    ),
    "a value is returned as it was before finally": (
        """
def flow(n: int) -> int:
    try:
        if n == 1:
            return n
        if n == 2:
            return echo(n) * 10
        if n == 3:
            return echo(n)
        n = 7
    finally:
        n += 100
        say(str(n))
    return n
""",
        NUMBERS,
    ),
    "break and continue go through finally": (
        """
def flow(n: int) -> str:
    seen = ""
    for i in range(4):
        try:
            if i == n:
                continue
            if i > n:
                break
            seen = seen + str(i)
        finally:
            seen = seen + "f"
            say(seen)
        seen = seen + "-"
    return seen
""",
        NUMBERS,
    ),
    "a jump leaves several finallys, innermost first": (
        """
def flow(n: int) -> str:
    try:
        for i in range(3):
            try:
                try:
                    if n == 0:
                        break
                    if n == 1:
                        continue
                    if n == 2:
                        return "returned"
                    if n == 3:
                        raise Small("three")
                finally:
                    say(f"inner {i}")
            except Problem as err:
                say(f"{err}")
            finally:
                say(f"middle {i}")
        say("behind the loop")
    finally:
        say("outer")
    return "end"
""",
        NUMBERS,
    ),
    "an error in finally takes the place of the one before": (
        """
def flow(name: str) -> str:
    try:
        try:
            fail_with(name)
        finally:
            fail_with("Other")
    except Problem:
        return "problem"
    except Other as err:
        return f"other {err}"
    return "end"
""",
        NAMES,
    ),
    "a finally that raises": (
        """
def flow(n: int) -> str:
    try:
        try:
            if n > 0:
                return str(echo(n))
        finally:
            if n < 3:
                raise Small(f"n {n}")
            say("not raised")
    except Small as err:
        return f"{err}"
    return "end"
""",
        NUMBERS,
    ),
    "a try and a loop inside finally": (
        """
def flow(name: str) -> str:
    done = 0
    try:
        fail_with(name)
    finally:
        for i in range(3):
            if i == 1:
                continue
            try:
                fail_with("Small")
            except Problem:
                done += 1
                say(f"{i}")
    return f"{done}"
""",
        NAMES,
    ),
    "an expression's error passes finally": (
        """
def flow(n: int) -> int:
    xs = [1, 2]
    try:
        try:
            y = xs[n]
            return 10 // (y - 1)
        finally:
            say("finally")
    except Exception:
        say("caught")
    return -1
""",
        NUMBERS,
    ),
    "finally around undo steps and inside them": (
        """
def flow(name: str) -> str:
    try:
        with compensating() as undo:
            undo(undo_it, 1)
            try:
                fail_with(name)
            finally:
                say("inner")
                undo(undo_it, 2)
            fail_with("Other")
    except Problem:
        return "problem"
    finally:
        say("outer")
    return "end"
""",
        NAMES,
    ),
    "finally in a branch": (
        """
def flow(n: int) -> list[str]:
    def branch() -> str:
        try:
            return str(echo(n))
        finally:
            say("branch")
    a, b = parallel(branch, lambda: echo(1))
    return [a, str(b)]
""",
        NUMBERS[:2],
    ),
    "assert raises AssertionError": (
        """
def flow(n: int) -> str:
    try:
        assert n > 0
        assert is_above(n, 1), f"{n} is too small"
        assert n != 3, "three"
    except AssertionError as err:
        return f"wrong: {err}"
    assert n == 2
    return "right"
""",
        NUMBERS,
    ),
    "assert narrows": (
        """
def flow(text: str | None) -> str:
    assert text is not None, "no text"
    return text.upper()
""",
        [{"text": None}, {"text": "a"}],
    ),
}

LOOPS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "the else of a for runs unless it breaks": (
        """
def flow(n: int) -> str:
    for i in [1, 2, 3]:
        if i == n:
            found = f"found {i}"
            break
    else:
        found = "none"
        say("else")
    return found
""",
        NUMBERS,
    ),
    "the else of a while runs when its test fails": (
        """
def flow(n: int) -> str:
    while n < 3:
        n += 1
        if n == 2:
            break
    else:
        say(f"{n}")
        return "else"
    return "broken"
""",
        NUMBERS,
    ),
    "the else of an inner loop breaks the outer one": (
        """
def flow(n: int) -> list[int]:
    seen: list[int] = []
    for i in range(4):
        for j in range(i):
            if j == n:
                seen.append(100 + i)
                break
        else:
            if i == 2:
                break
            seen.append(i)
            continue
        seen.append(-1)
    else:
        seen.append(-100)
    return seen
""",
        NUMBERS,
    ),
    "the test of a while runs its steps each round": (
        """
def flow(n: int) -> int:
    rounds = 0
    while is_above(n, 1):
        rounds += 1
        if rounds == 3:
            continue
        n = left(n)
    while not is_above(n, 2) and rounds < 100:
        n += 1
    else:
        say("ready")
    return rounds * 10 + n
""",
        NUMBERS,
    ),
    "a step in a test that fails is caught": (
        """
def flow(name: str) -> str:
    rounds = 0
    try:
        while fail_with(name) < 2:
            rounds += 1
            if rounds == 2:
                name = "Small"
    except Problem as err:
        return f"{rounds} {err}"
    return "end"
""",
        [{"name": n} for n in ("Problem", "none")],
    ),
}

MATCH: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "match on constants, alternatives, guards and captures": (
        """
def flow(n: int) -> str:
    match n:
        case 0:
            return "zero"
        case 1 | 2:
            text = "few"
        case x if x > 3:
            text = f"many {x}"
        case y:
            text = f"{y}"
    return text
""",
        NUMBERS,
    ),
    "match on a step runs it once": (
        """
def flow(n: int) -> str:
    match echo(n) % 3:
        case 0:
            return "none"
        case rest if rest == 2:
            return "even"
    return "odd"
""",
        NUMBERS,
    ),
    "match on every member of an enum needs no last case": (
        """
def flow(colour: Colour) -> str:
    match colour:
        case Colour.RED:
            text = "stop"
        case Colour.BLUE:
            text = "go"
    return text
""",
        [{"colour": "red"}, {"colour": "blue"}],
    ),
    "match on None and text": (
        """
def flow(text: str | None) -> str:
    match text:
        case None:
            return "nothing"
        case "a" | "b":
            say(text.upper())
        case other:
            say(other.lower())
    return text
""",
        [{"text": t} for t in (None, "a", "b", "C")],
    ),
    "match on a model and its fields": (
        """
def flow(payment: Payment) -> str:
    match payment:
        case Payment(status="pending", cents=0):
            return "free"
        case Payment(status="pending" | "paid", method=Card(number=number)):
            return f"card {number}"
        case Payment(method=None):
            return "no method"
        case Payment(status="refused"):
            return f"refused {payment.cents}"
    return "else"
""",
        [
            {"payment": {"status": s, "cents": c, "method": m}}
            for s in ("pending", "paid", "refused")
            for c in (0, 5)
            for m in (None, {"kind": "card", "number": "7"}, {"kind": "bank"})
        ],
    ),
    "match tells the models of a union apart by their tag": (
        """
def flow(payment: Payment) -> str:
    method = payment.method
    match method:
        case Card():
            text = method.number
        case Bank(iban=iban):
            text = iban
        case None:
            text = "none"
    return text
""",
        [
            {"payment": {"status": "paid", "method": m}}
            for m in (None, {"kind": "card", "number": "7"}, {"kind": "bank", "iban": "X"})
        ],
    ),
    "match on lists and tuples": (
        """
def flow(xs: list[int]) -> str:
    match xs:
        case []:
            return "empty"
        case [1]:
            return "one"
        case [first]:
            return f"single {first}"
        case [1, second]:
            return f"two {second}"
        case [first, *_] if first > 2:
            text = f"long {first}"
        case _:
            text = "other"
    match (len(xs), text):
        case (2, word):
            return word
        case (size, "other"):
            return f"other {size}"
    return "end"
""",
        [{"xs": xs} for xs in ([], [1], [2], [1, 5], [2, 5], [3, 1], [3, 1, 1], [0, 1, 2])],
    ),
    "match on a bool and on classes of scalars": (
        """
def flow(b: bool, t: str | bool | None) -> str:
    match b:
        case True:
            text = "yes"
        case False:
            text = "no"
    match t:
        case str() as word:
            return text + word
        case None:
            return text
        case flag:
            return text + str(flag)
""",
        [{"b": b, "t": t} for b in (True, False) for t in ("a", None, True)],
    ),
    "a guard whose error is caught": (
        """
def flow(n: int, xs: list[int]) -> str:
    try:
        match n:
            case 0:
                return "zero"
            case m if xs[m] > 1:
                return f"{m}"
    except Exception:
        return "caught"
    return "end"
""",
        [{"n": n, "xs": xs} for n in (0, 1, 2) for xs in ([], [1, 1, 5], [2, 2])],
    ),
    "match in a loop jumps": (
        """
def flow(n: int) -> list[int]:
    seen: list[int] = []
    for i in range(10):
        match i:
            case 1:
                continue
            case j if j > n:
                break
        seen.append(i)
    return seen
""",
        NUMBERS,
    ),
}

SCOPES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "a block in time and shielded is plain otherwise": (
        """
def flow(n: int) -> str:
    x = 0
    for i in range(3):
        with timeout(minutes(30)):
            x = echo(i)
            if x == n:
                break
        with shielded(), timeout(hours(n + 1)):
            say(f"{x}")
            if n == 4:
                return "four"
    return f"{x}"
""",
        NUMBERS,
    ),
    "an undo step that fails stops the others when it shall": (
        """
def flow(n: int) -> str:
    try:
        with compensating(on_undo_failure="stop") as undo:
            undo(undo_it, 1)
            undo(undo_it, 11 + n)
            undo(undo_it, 3)
            raise Small("x")
    except CompensationFailed as err:
        return f"{err}"
    except Small:
        return "small"
""",
        NUMBERS,
    ),
}

VALUES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "several targets": (
        """
def flow(n: int) -> str:
    a = b = n * 2
    c = d = echo(a)
    e = (f, g) = (a + 1, "g")
    b += 1
    d += 1
    return f"{a} {b} {c} {d} {e[0]} {f} {g}"
""",
        NUMBERS,
    ),
    "unpacking": (
        """
def flow(n: int) -> str:
    a, b = n, n + 1
    a, b = b, a
    c, (d, [e, f]) = 1, (str(a), [a, b])
    g, (h, i) = nested(n)
    [j, k] = pair(n)
    l, m = several(2)
    return f"{a} {b} {c} {d} {e} {f} {g} {h} {i[0]} {j} {k} {l} {m}"
""",
        NUMBERS,
    ),
    "unpacking a list of another length is an error": (
        """
def flow(n: int) -> str:
    a = 5
    try:
        a, b = several(n)
        say(f"{a} {b}")
    except Exception:
        say(f"caught {a}")
    x, y, z = [0] * n + [1]
    return f"{x} {y} {z}"
""",
        NUMBERS,
    ),
    "lists that are changed in place": (
        """
def flow(n: int) -> list[int]:
    xs = [1, 2, 3]
    xs += [4]
    xs.extend(several(n))
    for i in range(len(xs)):
        xs[i] = xs[i] * 2
        xs[-1] += i
    ys = list(xs)
    ys.append(0)
    xs[0] = len(ys)
    return xs + ys
""",
        NUMBERS,
    ),
    "a branch has lists of its own": (
        """
def flow(n: int) -> list[list[int]]:
    def branch(value: int) -> list[int]:
        seen: list[int] = []
        for i in range(value):
            seen.append(echo(i))
        seen[-1] = n
        return seen
    found = each([1, 2], branch)
    found.append([n])
    mine = [n]
    if n > 2:
        mine.append(5)
    kept = {"mine": mine}
    mine = list(mine)
    mine += kept["mine"]
    found.append(mine)
    return found
""",
        NUMBERS,
    ),
    "an item that is not there is an error": (
        """
def flow(n: int) -> list[int]:
    xs = [1, 2]
    try:
        xs[n] = 5
    except Exception:
        say("caught")
    xs[n - 3] = 6
    return xs
""",
        NUMBERS,
    ),
    "lists of lists keep their form": (
        """
def flow(n: int) -> list[list[int]]:
    rows = [[1], [], [2, 3]]
    rows[n] = [n]
    rows[0] = []
    rows[-1] = [7, 8]
    rows += [[9]]
    return rows
""",
        NUMBERS,
    ),
    "dicts that are changed in place": (
        """
def flow(n: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in ["b", "a", "b"]:
        if word not in counts:
            counts[word] = 0
        counts[word] += 1
    counts[f"k{n}"] = echo(n)
    counts["k1"] += 5
    return counts
""",
        NUMBERS,
    ),
}

PAIRS = [{"xs": xs, "ys": ys} for xs in ([], [1], [1, 2]) for ys in ([], [3], [3, 4])]

ZIPS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "a loop over a strict zip fails where the shortest list ends": (
        """
def flow(xs: list[int], ys: list[int]) -> str:
    text = ""
    try:
        with compensating() as undo:
            for x, y in zip(xs, ys, strict=True):
                undo(undo_it, x)
                echo(x + y)
                text += "."
                xs = []
            else:
                echo(100)
    except Exception:
        return f"uneven {text}"
    return text
""",
        PAIRS,
    ),
    "a loop over a strict zip that nobody catches": (
        """
def flow(xs: list[int], ys: list[int]) -> int:
    total = 0
    for n in range(2):
        for i, (x, y, z) in enumerate(zip(xs, several(2), ys, strict=True), 1):
            total += echo(x + y + z + i)
    return total
""",
        PAIRS,
    ),
    "a loop over a strict zip that is left early": (
        """
def flow(xs: list[int], ys: list[int]) -> int:
    for x, y in zip(xs, ys, strict=True):
        if echo(x) == 2:
            break
    else:
        return 0
    return 1
""",
        PAIRS,
    ),
}

CHOICES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "what is None before a loop is something else in it": (
        """
def flow(n: int) -> int:
    last = None
    for i in range(n):
        try:
            last = echo(i) if last is None else last + 2
        except Problem:
            return -1
    return 0 if last is None else last
""",
        NUMBERS,
    ),
    "a conditional expression runs the steps of the arm that is chosen": (
        """
def flow(n: int) -> int:
    x = echo(n) if n > 2 else echo(-n)
    y: int = echo(n) + 1 if is_above(n, 1) else 0
    a = b = echo(7) if n == 3 else 8
    x += echo(5) if n < 2 else n
    say("odd") if n % 2 else None
    echo(n) if n == 4 else say("no") if n == 2 else pair(n)
    return echo(a + b) if is_above(x, n) else x + y
""",
        NUMBERS,
    ),
    "a conditional expression in a loop, a handler and a branch": (
        """
def flow(n: int) -> list[str]:
    found = []
    last = 0
    for i in range(n):
        try:
            last, text = pair(i) if last == 0 else (last + 1, upper(f"x{last}"))
            found = [*found, text]
            found = found + ["last"] if i == 3 else several_texts(i) if i == 2 else found
        except Exception:
            found = []
        finally:
            say("done") if i > 1 else pair(i)
    a, b = parallel(
        lambda: echo(n) if n > 1 else upper("small") if n else None,
        lambda: upper("b") if n == 2 else "c",
    )
    return [*found, f"{b}"] if a is None else several_texts(n)
@pure
def several_texts(n: int) -> list[str]:
    return [str(n)] * n
""",
        NUMBERS,
    ),
    "an arm whose step fails is caught, and what it narrows is known": (
        """
def flow(name: str) -> str:
    other: str | None = name if name != "none" else None
    try:
        text = upper(other) if other is not None else "nothing"
        n = fail_with(name) if name != "Small" else 5
    except Problem as err:
        return upper(f"{err}") if name == "Problem" else "small"
    return f"{text}{n}"
""",
        NAMES[:2] + NAMES[4:],
    ),
}

PROGRAMS = {**TRY, **LOOPS, **ZIPS, **CHOICES, **MATCH, **SCOPES, **VALUES}


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_statement_behaves_as_in_python(title: str, tmp_path: Path) -> None:
    text, inputs = PROGRAMS[title]
    with loaded(tmp_path, f"{HEADER}{MORE}\n@workflow{text}") as module:
        for values in inputs:
            assert_same(module.flow, values)
