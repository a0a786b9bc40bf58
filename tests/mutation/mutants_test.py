"""The mutants themselves: the changed code, the unchanged code, and that a planted mutant has an
effect.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from holdfast.core.apply import apply
from tests.mutation.__main__ import SURVIVORS, changed_lines, kind_of
from tests.mutation.explained import explained
from tests.mutation.mutants import CORE, Module, Mutant
from tests.mutation.planting import plant
from tests.mutation.runner import IMPORT, NotPlanted, Outcome, find_killer
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
    modules = [Module(str(path.relative_to(CORE))) for path in CORE.rglob("*.py")]
    assert [one for module in modules for one in module.mutants if not one.line] == []


@pytest.mark.parametrize(
    ("name", "line", "change"),
    [
        ("flow.py", 'details={"name": name, "input": data},', "'name' → 'XXnameXX'"),
        ("apply/apply.py", '"TimerSet": _timer_set,', "'TimerSet' → 'XXTimerSetXX'"),
        ("state.py", "last_event: int = 1", "1 → 2"),
    ],
)
def test_a_mutant_is_felt_by_the_whole_engine(name: str, line: str, change: str) -> None:
    module = Module(name)
    mutant = mutant_of(module, line, change)
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


def mutant_of(module: Module, line: str, change: str) -> Mutant:
    return next(one for one in module.mutants if (one.text, one.change) == (line, change))


ORDINARY = ("state.py", "last_event: int = 1", "1 → 2")


def test_a_failed_import_is_told_from_a_finding_of_a_test() -> None:
    fields = Module("apply/frames.py")
    mutant = next(one for one in fields.mutants if one.change == "'frames' → 'XXframesXX'")

    assert find_killer(fields, mutant, []) == IMPORT


def test_a_mutant_that_no_test_is_asked_about_survives() -> None:
    module = Module(ORDINARY[0])

    assert find_killer(module, mutant_of(module, *ORDINARY[1:]), []) is None


def test_a_planter_that_fails_has_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: object) -> None:
        raise KeyError("a mistake")

    def vanish(*_given: object) -> None:
        os._exit(9)

    module = Module(ORDINARY[0])
    mutant = mutant_of(module, *ORDINARY[1:])
    for planter, problem in ((fail, "a mistake"), (vanish, "ended with 9")):
        monkeypatch.setattr("tests.mutation.runner.plant", planter)
        with pytest.raises(NotPlanted, match=problem):
            find_killer(module, mutant, [])
    outcome = Outcome(mutant, None, 0, "a mistake")

    assert kind_of(outcome, set()) == "not planted"


def test_a_function_that_was_made_by_another_is_felt_with_fewer_variables_around_it() -> None:
    """Its code cannot be carried over, because another table holds it."""
    module = Module("apply/map_run.py")
    mutant = mutant_of(module, "kind=kind,", "without kind=")
    process = os.fork()
    if process == 0:
        try:
            before = apply._HANDLERS["ItemsAsked"]
            plant(module, mutant)
            os._exit(FELT if apply._HANDLERS["ItemsAsked"] is not before else 0)
        finally:
            os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == FELT


def test_every_explained_survivor_is_a_mutant() -> None:
    made = {
        (mutant.module, mutant.text, mutant.change)
        for path in CORE.rglob("*.py")
        for mutant in Module(str(path.relative_to(CORE))).mutants
    }
    assert explained(SURVIVORS) - made == set()


def test_since_an_empty_tree_every_line_has_changed() -> None:
    empty_tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    lines = (CORE / "retry.py").read_text(encoding="utf-8").splitlines()
    assert changed_lines("retry.py", empty_tree) == set(range(1, len(lines) + 1))


def test_a_commit_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match="--since nowhere: "):
        changed_lines("retry.py", "nowhere")
