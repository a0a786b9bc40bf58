"""docs/reference/language.md and language-values.md: a first column compiles, and does what Python
does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.api.boundary import JsonValue
from holdfast.api.surface import Workflow
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, real
from tests.unit.docs_kit import INPUT, code_of, module_of, module_with, tables
from tests.unit.dsl_kit import loaded

#: The subjects of patterns: the type, and values that fit it or do not.
SUBJECTS: Final[dict[str, tuple[str, list[JsonValue]]]] = {
    "1 | 2": ("int", [2, 3]),
    '"paid"': ("str", ["paid", ""]),
    "None": ("str | None", [None, "a"]),
    "True": ("bool", [True, False]),
    "Colour.RED": ("Colour", ["red", "green"]),
    "Payment(": ("Payment", [{"id": "p", "cents": 500}, {"id": "p", "cents": 1, "status": "no"}]),
    "Point(": ("Point", [{"x": 0, "y": 3}, {"x": 4, "y": 2}, {"x": 1}]),
    "Card(": (
        "Card | Transfer",
        [{"kind": "card", "digits": "1"}, {"kind": "transfer", "iban": "D"}],
    ),
    "[a, b]": ("list[int]", [[1, 2], [1]]),
    "[a, *_]": ("list[int]", [[1, 2], [1], []]),
    "(1, b)": ("tuple[int, str]", [[1, "a"], [2, "b"]]),
    '{"status"': ("dict[str, str]", [{"status": "paid", "id": "p"}, {"status": "no"}, {}]),
    '{"id"': ("dict[str, int]", [{"id": 1, "cents": 500}, {"cents": 1}]),
    "str(": ("Any", ["a", 2, ["a"]]),
    "int(": ("Any", [2, "2", None]),
    "dict(": ("Any", [{}, {"a": 1}, []]),
    "[a, *others": ("list[int]", [[1, 2], [1], []]),
    "found if": ("str | None", [None, "a"]),
    "other": ("int", [1]),
    "_": ("int", [1]),
}


def spans(page: str, *headings: str) -> list[str]:
    """Return the pieces of code in the first column of all tables that begin so."""
    rows = [(found[0], cells) for found, cells in tables(page) if found[0] in headings]
    cells = [cells[-1] if heading == "Of" else cells[0] for heading, cells in rows]
    return [code for cell in cells for code in code_of(cell)]


#: The examples have a parameter of this name; tests/unit/find_doc_test.py runs the step.
NOTE: Final = 'note(stage="packed")'
STATEMENTS = [code for code in spans("language.md", "Python", "Policy") if code != NOTE]
EXPRESSIONS = spans("language-values.md", "Python", "Of")
ANNOTATIONS = spans("language-values.md", "Annotation")
PATTERNS = spans("language.md", "Pattern")
DIFFERENCES = [
    (code, cells[-1].startswith("refused"))
    for heading, cells in tables("language-values.md")
    if heading[0] == "In Python"
    for code in code_of(cells[0])
]


@dataclass(frozen=True)
class Sample:
    """A body of a workflow, the type of its parameter `subject`, and values for it."""

    body: str
    type_: str = "int"
    values: tuple[JsonValue, ...] = field(default=(0,), compare=False)


Programs = dict[Sample, Workflow[..., Any]]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """Yield the workflow of each sample that compiles."""
    samples = list(dict.fromkeys(_samples()))
    text = module_of([(sample.body, sample.type_) for sample in samples])
    with loaded(tmp_path_factory.mktemp("pages"), text) as module:
        yield {
            sample: getattr(module, f"program_{number}") for number, sample in enumerate(samples)
        }


def run(programs: Programs, sample: Sample) -> None:
    """Run a body both ways; `World.run` compares the results."""
    answers = {"bank.confirmed": {"id": "p1", "cents": 500}, "Ship it?": True, "total": 8}
    for value in sample.values:
        world = World(answers, others=real)
        world.run_json(programs[sample], {**INPUT, "subject": value})


def as_body(code: str) -> str:
    """The statements of a workflow in which `code` has its place."""
    tree = ast.parse(code if code not in ("break", "continue") else f"while True: {code}")
    match tree.body[-1]:
        case ast.Expr(value=value) if len(tree.body) == 1 and not _is_change(value):
            return f"return {code}"
        case ast.While() if code == "break":
            return "for k in numbers: break\nreturn 0"
        case ast.While() if code == "continue":
            return "for k in numbers: continue\nreturn 0"
        case ast.Return() | ast.Raise():
            return code
        case _:
            return f"{code}\nreturn n"


def _is_change(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in (
        "found.append",
        "sleep_until",
    )


def of_statement(code: str) -> Sample:
    return Sample(as_body(code))


def of_expression(code: str) -> Sample:
    return Sample(f"result = {code}\nreturn result")


def of_annotation(code: str) -> Sample:
    if "SecretStr" in code:
        # It stands beside nothing but None, and a result that is one says so.
        return Sample("kept = [subject, subject]\nreturn len(kept)", code, ("open sesame",))
    return Sample("kept = subject\nreturn kept", f"{code} | int")


def of_pattern(code: str) -> Sample:
    pattern = code.removeprefix("case ").removesuffix(":")
    type_, values = next(SUBJECTS[start] for start in SUBJECTS if pattern.startswith(start))
    last = "" if pattern in ("other", "_") else "\n    case _: return 0"
    return Sample(f"match subject:\n    {code} return 1{last}", type_, tuple(values))


def of_difference(code: str) -> Sample:
    return Sample(f"return {code}")


def _samples() -> Iterator[Sample]:
    yield from map(of_statement, STATEMENTS)
    yield from map(of_expression, EXPRESSIONS)
    yield from map(of_annotation, ANNOTATIONS)
    yield from map(of_pattern, PATTERNS)
    yield from (of_difference(code) for code, is_refused in DIFFERENCES if not is_refused)


@pytest.mark.parametrize("code", STATEMENTS)
def test_a_statement_of_the_page_compiles_and_behaves_as_in_python(
    code: str, programs: Programs
) -> None:
    run(programs, of_statement(code))


@pytest.mark.parametrize("code", EXPRESSIONS)
def test_an_expression_of_the_page_compiles_and_has_the_value_of_python(
    code: str, programs: Programs
) -> None:
    run(programs, of_expression(code))


@pytest.mark.parametrize("code", ANNOTATIONS)
def test_a_value_of_each_type_crosses_a_workflow(code: str, programs: Programs) -> None:
    run(programs, of_annotation(code))


@pytest.mark.parametrize("code", PATTERNS)
def test_a_pattern_of_the_page_fits_as_in_python(code: str, programs: Programs) -> None:
    run(programs, of_pattern(code))


@pytest.mark.parametrize(("code", "is_refused"), DIFFERENCES)
def test_values_that_differ_in_json_are_refused_or_as_python_has_them(
    code: str, is_refused: bool, programs: Programs, tmp_path: Path
) -> None:
    if is_refused:
        with (
            loaded(tmp_path, module_with(f"return {code}", subject="int")) as module,
            pytest.raises(CompileErrors),
        ):
            compile_workflow(module.program)
    else:
        run(programs, of_difference(code))
