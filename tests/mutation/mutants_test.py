"""The mutants themselves: what is changed, what is left alone, and that a planted one is felt."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from tests.mutation.__main__ import explained
from tests.mutation.mutants import CORE, Module
from tests.mutation.planting import plant
from tests.unit.core_kit import one, run

FELT = 7
WAIT = one({"Type": "Wait", "Seconds": 5})


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("return a < b", ["return None", "a < b → a <= b"]),
        ("return a and b", ["return None", "a and b → a or b"]),
        ("return None", []),
        ("return False", ["False → True"]),
        ("x = a + 1", ["a + 1 → a - 1", "1 → 2"]),
        ("x = 'a'", ["'a' → 'XXaXX'"]),
        ("x = f'{a}'", ["f'…' → f'XX…XX'"]),
        ("x = True", ["True → False"]),
        ("a.x = b", ["assignment → pass"]),
        ("f(a, n=b)", ["call → pass", "without n="]),
        ("x = [i for i in a if b]", ["without if b"]),
        ("if a: f()", ["if not (a)", "call → pass"]),
        ("if a is b: f()", ["a is b → a is not b", "call → pass"]),
        ("raise a", ["raise → pass"]),
        ("assert a < b", []),
        ("x: Literal['a'] = a", []),
        ("'a sentence'", []),
    ],
)
def test_a_statement_is_changed_in_each_of_these_ways(
    statement: str, changes: list[str], tmp_path: Path
) -> None:
    (tmp_path / "it.py").write_text(f"def it(a, b):\n    {statement}\n", encoding="utf-8")
    assert [mutant.change for mutant in Module(str(tmp_path / "it.py")).mutants] == changes


def test_every_mutant_names_its_line() -> None:
    """Or those tests are asked that do not run it."""
    modules = [Module(path.name) for path in CORE.glob("*.py")]
    assert [one for module in modules for one in module.mutants if not one.line] == []


@pytest.mark.parametrize(
    ("name", "line", "change"),
    [
        ("flow.py", 'details={"name": name, "input": data},', "'name' → 'XXnameXX'"),
        ("apply.py", '"TimerSet": _timer_set,', "'TimerSet' → 'XXTimerSetXX'"),
        ("state.py", "last_event: int = 1", "1 → 2"),
    ],
)
def test_a_mutant_is_felt_by_the_whole_engine(name: str, line: str, change: str) -> None:
    module = Module(name)
    mutant = next(one for one in module.mutants if (one.text, one.change) == (line, change))
    healthy = run(WAIT).events
    process = os.fork()
    if process == 0:
        try:
            plant(module, mutant)
            with contextlib.suppress(Exception):
                if run(WAIT).events == healthy:
                    os._exit(0)
            os._exit(FELT)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == FELT
    assert run(WAIT).events == healthy


def test_every_explained_survivor_is_a_mutant() -> None:
    made = {
        (mutant.module, mutant.text, mutant.change)
        for path in CORE.glob("*.py")
        for mutant in Module(path.name).mutants
    }
    assert explained() - made == set()
