"""Expressions that Python's library computes as steps, because JSONata has no exact form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, real
from tests.unit.dsl_expressions_test import HEADER
from tests.unit.dsl_kit import assert_same, loaded

HELPERS = """
import hashlib, itertools, random, re, time, uuid
def share(n: int) -> str:
    return f"{n / 7}"
def tail(name: str) -> str:
    found = name.partition("@")
    return found[2].title()
"""
MOMENTS = ["2026-03-01T09:00:00.250000+01:00", "2026-03-01T09:00:00Z", "2026-03-01T09:00:00"]
PROGRAMS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "texts of floats": (
        "x: float",
        "return [str(x), f'{x:.3} {x!r} {x:>10}', repr(x), format(x, '.1f'), round(x, 9)]",
        [{"x": 4}, {"x": 0.30000000000000004}, {"x": 1e-7}],
    ),
    "texts of lists and dicts": (
        "xs: list[str], d: dict[str, int | None]",
        "return f'{xs} {d} {xs!r}' + str([1, True])",
        [{"xs": ["é'\"", ""], "d": {"a": None}}, {"xs": [], "d": {}}],
    ),
    "moments": (
        "at: datetime",
        "return [str(at), at.isoformat(), f'{at:%d %b %Y}', at.replace(hour=1), at.timestamp()]",
        [{"at": text} for text in MOMENTS[:2]],
    ),
    "moments of numbers": (
        "n: int, x: float",
        """utc = datetime.fromtimestamp(n, tz=timezone.utc)
return [utc, datetime.fromtimestamp(x, timezone.utc)]""",
        [{"n": 1_700_000_000, "x": 0.25}, {"n": -1, "x": 1e9}],
    ),
    "digests": (
        "s: str, ss: list[str]",
        """key = hashlib.sha256(f"{s}é".encode()).hexdigest()
others = [hashlib.sha1(one.encode("utf-8")).hexdigest()[:8] for one in ss]
last = hashlib.md5(s.title().encode()).hexdigest() if s else hashlib.sha512(s.encode()).hexdigest()
return [key, others, last]""",
        [{"s": "añ😀", "ss": ["a", ""]}, {"s": "", "ss": []}],
    ),
    "whether a pattern matches": (
        "s: str, ss: list[str]",
        """out = ["a"] if re.match("[a-z]+", s) and not re.search("z", s) else []
while re.fullmatch("x*", s) is not None and len(s) < 3:
    s += "x"
if s == "-" or re.match("x", s):
    out.append(s)
return [out, bool(re.match("b", s)), [one for one in ss if re.search("[0-9]", one)]]""",
        [{"s": "añ", "ss": ["a1", ""]}, {"s": "", "ss": []}, {"s": "xz", "ss": ["1"]}],
    ),
    "naive moments": (
        "at: datetime",
        "return [str(at), at.isoformat(), at.strftime('%A %H:%M')]",
        [{"at": text} for text in MOMENTS],
    ),
    "methods of texts": (
        "s: str",
        "return [s.title(), s.partition('@'), s.rsplit('.', 2), s.center(9, '*'), s.isdigit()]",
        [{"s": "ann-b@x.y.z"}, {"s": ""}, {"s": "12"}],
    ),
    "steps in conditions, loops and helpers": (
        "s: str, n: int",
        """while not s.isupper():
    s = s.upper() + "b"
    if s.isdigit() or s.isalpha():
        break
    s = s.upper()
return [s, share(n) + share(n + 1), tail(s) if n > 1 else f"{n / 3}"]""",
        [{"s": "a@b", "n": 1}, {"s": "B@c", "n": 2}],
    ),
    "decimals": (
        "p: Decimal, n: int",
        """q = p * 2 + Decimal("1.50")
q += n
return [q, q > 3, p == n, n * p, float(p), int(p), f"{q:.2f}", round(p, 1), q / 3, -1 * p]""",
        [{"p": "1.10", "n": 2}, {"p": "2.00", "n": 2}],
    ),
    "dates that are made": (
        "n: int",
        """at = datetime.fromisoformat("2026-03-01T00:00:00+01:00")
zero = datetime(2030, 1, 1, tzinfo=timezone.utc)
return [date(2026, 1, 1), date(2026, n, 1), zero, at, float("1.5")]""",
        [{"n": 2}],
    ),
    "map, filter and the like": (
        "xs: list[int], ss: list[str]",
        """lists = [list(map(str, xs)), list(filter(None, ss)), list(dict.fromkeys(ss))]
return [lists, ",".join(map(str.upper, ss)), sum(map(lambda x: x * 2, xs)),
    list(filter(lambda x: x > 1, xs)), sorted(map(abs, xs)), [y for y in map(str, xs) if y],
    list(itertools.chain(xs, [9])), list(itertools.chain.from_iterable([xs, xs]))]""",
        [{"xs": [1, 2, 3], "ss": ["a", "", "a"]}, {"xs": [], "ss": []}],
    ),
    "the first item": (
        "lines: list[Line]",
        """found = next((line for line in lines if line.qty > 1), None)
name = next((line.sku for line in lines if line.qty > 5), "none")
return [found.qty if found else 0, name, next(line.qty for line in lines)]""",
        [{"lines": [{"sku": "a"}, {"sku": "b", "qty": 2}]}, {"lines": []}],
    ),
    "durations": ("d: timedelta", "return f'{d}' + str(minutes(90))", [{"d": "PT90S"}]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_of_the_library_has_the_value_of_python(name: str, tmp_path: Path) -> None:
    parameters, body, inputs = PROGRAMS[name]
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"{HEADER}{HELPERS}\n@workflow\ndef flow({parameters}) -> Any:\n{lines}\n"
    with loaded(tmp_path, source) as module:
        for values in inputs:
            assert_same(module.flow, values)


def test_the_clock_of_a_workflow_is_the_virtual_one_and_chance_has_one_result(
    tmp_path: Path,
) -> None:
    body = """
    ends, rounds = datetime.now(timezone.utc) + timedelta(hours=1), 0
    while datetime.now(tz=timezone.utc) < ends:
        sleep(minutes(20))
        rounds += 1
    key = str(uuid.uuid4())
    echo(random.randint(3, 3))
    return [rounds, len(key), random.choice(["a"]), 0 <= random.random() < 1,
        f"{date.today()} {time.time():.0f} {datetime.now()}", uuid.uuid4().hex == key]"""
    source = f"{HEADER}{HELPERS}\n@workflow\ndef flow(n: int) -> Any:{body}\n"
    with loaded(tmp_path, source) as module:
        run = World(others=real).run(module.flow, 1)
    moment = "2026-01-01 1767229200 2026-01-01 01:00:00"
    assert run.output == [3, 36, "a", True, moment, False]
    assert run.steps == ["echo"]


def test_the_key_of_an_order_has_no_steps_of_the_library(tmp_path: Path) -> None:
    line = 'return sorted(xs, key=lambda x: "".join([y for y in [x.title()]]) + x.title())'
    source = f"{HEADER}\n@workflow\ndef flow(xs: list[str]) -> Any:\n    {line}"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert "def title_of(x: …)" in refused.value.diagnostics[0].help
