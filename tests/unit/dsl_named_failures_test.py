"""Errors of expressions that a handler names: the test before the statement raises Python's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_expressions_test import HEADER
from tests.unit.dsl_kit import assert_same, loaded

HELPERS = """
def doubled(d: dict[str, int], k: str) -> int:
    return d[k] * 2
def twice(d: dict[str, int], k: str) -> int:
    total = 0
    for _ in range(2):
        total += d[k]
    return total
class Size(Enum):
    SMALL = 1
    LARGE = 2
class Letter(StrEnum):
    A = "a"
"""
GIVEN: list[dict[str, Any]] = [
    {"d": {"a": 1, 'it\'s "é"': 0}, "xs": [3, 0, 2], "s": "a", "n": 1, "thing": {"a": [5]}},
    {"d": {"a": 1}, "xs": [3, 0, 2], "s": 'it\'s "é"', "n": 0, "thing": {}},
    {"d": {}, "xs": [], "s": "", "n": -4, "thing": {"": []}},
]
PROGRAMS = {
    "an extreme": """
out = []
for ys in [xs, xs[1:], [x for x in xs if x > 2]]:
    try:
        out.append(str(max(ys) - min(ys[1:], key=lambda y: 0 - y)))
    except ValueError as err:
        out.append(str(err))
try:
    out.append(max([s, *d]) + min(list(d) if n else []))
except Exception as err:
    out.append(f"{type(err).__name__}: {err}")
return out
""",
    "an item that is taken out": """
ys = list(xs)
own = dict(d)
out = []
for k in [n, 0, -1, 7]:
    try:
        out.append(str(ys.pop(k)))
        del ys[k]
    except IndexError as err:
        out.append(str(err))
    try:
        out.append(str(ys.pop()))
    except LookupError as err:
        out.append(str(err))
    try:
        del own[s]
        out.append(str(own.pop(s + "b")))
    except KeyError as err:
        out.append(str(err))
return [*out, ys, own]
""",
    "the order of an error and a removal": """
ys = list(xs)
try:
    return d[s] + max(xs) + ys.pop(n) + 1 // n
except KeyError as err:
    return ["key", str(err), ys]
except ValueError as err:
    return ["value", str(err), ys]
except Exception as err:
    return [type(err).__name__, str(err), ys]
""",
    "a key": """
try:
    price = d[s]
except KeyError as err:
    return f"{type(err).__name__}: {err}"
return str(price)
""",
    "a place in a list and in a text": """
out = []
for place in [n, -1, 7]:
    try:
        out.append(str(xs[place]))
        out.append(s[place])
    except LookupError as err:
        out.append(str(err))
return out
""",
    "a division": """
out = []
for k in [n, 0]:
    try:
        out.append(str(3 // k))
        out.append(str(k % k))
    except ZeroDivisionError as err:
        out.append(str(err))
    try:
        out.append(f"{3 / k:.2f}")
    except ArithmeticError as err:
        out.append(str(err))
    try:
        out.append(f"{7.5 // (k * 0.5):.1f}")
    except ZeroDivisionError as err:
        out.append(str(err))
    try:
        out.append(f"{7.5 % (k * 0.5):.1f}")
    except ZeroDivisionError as err:
        out.append(str(err))
return out
""",
    "the number of a text": """
out: list[Any] = []
for text in [s, "12", " 7 ", "1_0", "x1", "+3"]:
    try:
        out.append(int(text))
    except ValueError as err:
        out.append(str(err))
return out
""",
    "an operand that Python may skip": """
try:
    if n > 0 and d[s] > 0:
        n += 1
    while xs[n] > 0 and n < 9:
        n += 1
    return d["zz"] if n == 0 else n
except (KeyError, IndexError) as err:
    return f"{n} {err}"
""",
    "a comprehension": """
try:
    return [d[k] for k in ["a", s]]
except KeyError as err:
    return str(err)
""",
    "helpers": """
try:
    n += doubled(d, "a")
    n += twice(d, s)
except KeyError as err:
    return f"{n} {err}"
return n
""",
    "branches": """
try:
    return each(["a", s], lambda k: d[k])
except KeyError as err:
    return str(err)
""",
    "the order of two errors": """
try:
    return d[s] + 1 // n + xs[n]
except (KeyError, ZeroDivisionError, IndexError) as err:
    return str(err)
""",
    "an inner handler for another error": """
try:
    try:
        return d[s] // n
    except IndexError:
        return "inner"
    finally:
        n += 1
except KeyError as err:
    return f"outer {err} {n}"
except Exception:
    return "any"
""",
    "an error that is raised again": """
try:
    try:
        return d[s]
    except KeyError:
        raise
except Exception as err:
    return str(err)
""",
    "values of unknown type": """
try:
    return thing[s][0]
except (KeyError, IndexError) as err:
    return str(err)
""",
    "counts and groups": """
counts: dict[str, int] = {}
groups = {"a": [0]}
for k in ["a", s, "b", "b"]:
    try:
        counts[k] += 1
    except KeyError:
        counts[k] = 1
    try:
        groups[k].append(n)
    except KeyError as err:
        groups[k] = [len(str(err))]
return [counts, groups]
""",
    "of two errors the first counts": """
try:
    return 1 // n + d[s]
except KeyError:
    return 0
except Exception:
    return 1
""",
    "so it does before a step of the library": """
try:
    return 1 // n + float("x")
except ValueError:
    return "text"
except Exception:
    return "division"
""",
    "a division that changes a name or an item": """
out = []
for k in [n, 0]:
    try:
        n //= k
        xs[0] %= k
        d["a"] //= k
        ratio = 1.5
        ratio /= k * 0.5
        out.append(str(ratio))
    except ZeroDivisionError as err:
        out.append(str(err))
    except (IndexError, KeyError) as err:
        out.append(str(err))
return [out, n, xs, d]
""",
    "a place in a list that is changed": """
out = []
for place in [n, 1, -7]:
    try:
        xs[place] = 5 // (place + 1)
        xs[place] += 1
        xs[place + 2] = place
    except IndexError as err:
        out.append(str(err))
try:
    xs[n] += 1
    rows = [[1], [2]]
    rows[n].append(4)
except IndexError as err:
    out.append(str(err))
return [out, xs]
""",
    "an exchange of two items": """
try:
    xs[0], xs[n] = xs[n], xs[0]
except IndexError as err:
    return [str(err), xs]
return xs
""",
    "an item that a list does not have": """
names = ["a", "it's"]
out = []
for k in [3, n]:
    try:
        out.append(str(xs.index(k)))
        out.append(str(names.index(s)))
        out.append(str(s.index("a")))
        names.remove(s)
        xs.remove(k)
        xs.remove(k)
    except ValueError as err:
        out.append(str(err))
return [out, xs, names]
""",
    "a member of an enum by its value": """
out = []
for k in [n, 2]:
    try:
        size = Size(k)
        out.append(size.name)
        out.append(Letter(s).name)
    except ValueError as err:
        out.append(str(err))
return out
""",
    "a list with another number of items": """
out = []
for items in [xs, xs[:2], xs[:1]]:
    a = 0
    try:
        a, b = items
        out.append(f"{a} {b}")
    except ValueError as err:
        out.append(str(err))
    try:
        a, *others = items
        out.append(f"{a} {len(others)}")
        first, *others, last = items
        out.append(f"{first} {last}")
    except ValueError as err:
        out.append(str(err))
    try:
        a, (b, c) = 7, items
        out.append(f"{a} {b} {c}")
    except ValueError as err:
        out.append(f"{a} {err}")
return out
""",
    "an error that a handler for Exception reads": """
out = []
for place in [n, 1, 7]:
    try:
        out.append(f"{xs[place]} {d[s]} {3 // n} {int(s)}")
    except Exception as err:
        out.append(f"{type(err).__name__}: {err} {isinstance(err, LookupError)}")
return out
""",
    "the errors of branches": """
one, two = parallel(lambda: d[s], lambda: xs[n], return_exceptions=True)
out = [f"{type(one).__name__}: {one}" if isinstance(one, Exception) else "a value"]
out.append(str(isinstance(two, IndexError)))
for k in each(["a", s], lambda k: d[k], return_exceptions=True):
    out.append(f"{k}" if isinstance(k, KeyError) else "no error")
return out
""",
    "a loop that an index ends": """
total = 0
while True:
    try:
        total += xs[n]
    except IndexError:
        break
    n += 1
return total
""",
}
REFUSED = {
    "HF032": """
try:
    return max(x for x in xs if x)
except ValueError:
    return 0
""",
    "HF013": """
try:
    return [*range(1 // n), d[s]]
except KeyError:
    return 0
except Exception:
    return 1
""",
}


def _module(body: str) -> str:
    rows = "".join(f"    {row}\n" for row in body.strip().split("\n"))
    parameters = "d: dict[str, int], xs: list[int], s: str, n: int, thing: Any"
    head = f"{HEADER}\nfrom enum import Enum, StrEnum\n{HELPERS}"
    return f"{head}\n@workflow\ndef flow({parameters}) -> Any:\n{rows}"


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_handler_catches_the_error_of_an_expression_by_its_name(
    what: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, _module(PROGRAMS[what])) as module:
        for given in GIVEN:
            assert_same(module.flow, given)


@pytest.mark.parametrize("code", REFUSED)
def test_an_error_that_no_test_can_name_is_refused(code: str, tmp_path: Path) -> None:
    with (
        loaded(tmp_path, _module(REFUSED[code])) as module,
        pytest.raises(CompileErrors, match=code),
    ):
        compile_workflow(module.flow)


LIBRARY = """
from decimal import Decimal
import json
import statistics
from holdfast import task, workflow

@task
def parsed(text: str) -> int:
    return int(json.loads(text))

@workflow
def flow(text: str) -> list[str]:
    found: list[str] = []
    try:
        found.append(str(parsed(text)))
    except ValueError as err:
        found.append(str(err))
    try:
        found.append(str(json.loads(text)))
    except ValueError as err:
        found.append(str(err))
    try:
        found.append(str(statistics.mean([float(k) for k in text if k == "5"])))
    except ValueError as err:
        found.append(str(err))
    try:
        found.append(str(Decimal(1) / Decimal(text)))
    except ZeroDivisionError:
        found.append("zero")
    except ArithmeticError:
        found.append("no number")
    return found
"""


@pytest.mark.parametrize("text", ["5", "0", "x"])
def test_a_handler_for_a_builtin_error_catches_its_subclass_of_pythons_library(
    text: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, LIBRARY) as module:
        assert_same(module.flow, {"text": text})


MOMENTS = """
from holdfast import ask, execution_started, send, sleep_until, start, timeout
@workflow
def later(n: int) -> None: ...
@workflow
def flow(at: datetime, wait: timedelta, n: int) -> str:
    try:
        {line}
        return "done"
    except {error} as err:
        return f"{{type(err).__name__}}: {{err}}"
"""
STEPS = {
    "sleep_until(at)": "Exception",
    "sleep_until(at - days(2))": "Exception",
    "sleep_until(days(n) + at)": "(OverflowError, ValueError)",
    "sleep_until(at - wait)": "Exception",
    "if n: return str((at + wait).date() + days(n))": "OverflowError",
    'send("go", "x", key="k", at=at)': "Exception",
    'send("go", "x", key="k", delay=wait)': "ValueError",
    "start(later, n, at=at)": "ValueError",
    "start(later, n, delay=wait)": "Exception",
    "sleep(wait)": "Exception",
    'wait_for_event("go", str, key=f"{{n}}", timeout=wait)': "Exception",
    'ask("q", bool, assignee="me", timeout=wait)': "Exception",
    "with timeout(wait): sleep(hours(1))": "Exception",
    "if at < execution_started(): n = 1": "Exception",
    "n = (at - execution_started()).days": "TypeError",
    "while at > execution_started() - wait: n += 1; at = at - days(1000)": "Exception",
    "sleep(wait * 2 + wait)": "Exception",
    "at += days(n); wait += wait; at -= wait; sleep_until(at)": "Exception",
    "days_of = {1: at}; days_of[1] -= wait; sleep_until(days_of[1])": "OverflowError",
    "if wait > hours(1): n = n // (n - n)": "Exception",
}


@pytest.mark.parametrize("line", STEPS)
def test_a_handler_reads_the_error_of_a_step_with_a_moment_or_a_duration(
    line: str, tmp_path: Path
) -> None:
    source = HEADER + MOMENTS.format(
        line=line.replace("{{", "{").replace("}}", "}"), error=STEPS[line]
    )
    with loaded(tmp_path, source) as module:
        for at in ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00", "0001-01-02T00:00:00+01:00"):
            for wait, n in (("PT1H", 1), ("-PT1H", -800_000), ("P2D", 3_000_000)):
                assert_same(module.flow, {"at": at, "wait": wait, "n": n})


def test_a_refusal_names_the_expression_whose_error_has_no_name(tmp_path: Path) -> None:
    source = HEADER + MOMENTS.format(line="at = max([at])", error="Exception")
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    line = source.splitlines().index("        at = max([at])") + 1
    for one in refused.value.diagnostics:
        assert f"`at = max([at])` on line {line}" in one.message
