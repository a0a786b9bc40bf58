"""docs/reference/errors.md and docs/explanation/proofs.md explain every code that the sources
raise, and no other.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.docs_kit import code_of, module_with, tables
from tests.unit.dsl_kit import loaded

ROOT = Path(__file__).parents[2]
ERRORS_PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
PROOFS_PAGE = (ROOT / "docs" / "explanation" / "proofs.md").read_text(encoding="utf-8")
CODE = re.compile(r"\bHF\d{3}\b")
ROW = re.compile(r"^\| (HF\d{3}) \|(?:.*\| ([^|]+) \|)?", re.MULTILINE)
STATUS_DEFAULT = 400


def sources() -> list[Path]:
    folders = ("src", "simulator/src", "infra", "statemachines", "functions")
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return [*modules, ROOT / "app.py"]


def raised_statuses() -> dict[str, set[int]]:
    """Return the HTTP statuses of every `RequestError` whose code and status are written out."""
    found: dict[str, set[int]] = defaultdict(set)
    for path in sources():
        text = path.read_text(encoding="utf-8")
        if "RequestError" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id != "RequestError":
                continue
            status = {keyword.arg: keyword.value for keyword in node.keywords}.get("status")
            match node.args, status:
                case [ast.Constant(str(code)), *_], None:
                    found[code].add(STATUS_DEFAULT)
                case [ast.Constant(str(code)), *_], ast.Constant(int(number)):
                    found[code].add(number)
    return found


def documented_statuses() -> dict[str, set[int]]:
    """Return the last column of the tables; a dash says that no HTTP client sees the code."""
    rows = {code: re.findall(r"\d+", last) for code, last in ROW.findall(ERRORS_PAGE)}
    return {code: set(map(int, numbers)) for code, numbers in rows.items() if numbers}


def test_every_code_of_the_sources_is_explained_and_no_other() -> None:
    raised = {code for path in sources() for code in CODE.findall(path.read_text(encoding="utf-8"))}
    pages = ERRORS_PAGE + PROOFS_PAGE
    assert {code for code, _ in ROW.findall(pages)} == raised
    assert set(CODE.findall(pages)) == raised


def test_no_page_explains_a_code_twice() -> None:
    for page in (ERRORS_PAGE, PROOFS_PAGE):
        counts = Counter(code for code, _ in ROW.findall(page))
        assert [code for code, number in counts.items() if number > 1] == []


def test_the_http_statuses_are_those_that_the_sources_give() -> None:
    documented = {
        code: statuses
        for code, statuses in documented_statuses().items()
        if code[:4] in {"HF34", "HF43", "HF44"}
        or code in {"HF373", "HF412", "HF413"}  # the rest of HF37 and HF41 is not of the API
        or "HF100" <= code < "HF300"
        or "HF500" <= code < "HF600"
    }
    raised = raised_statuses()
    assert documented == {code: raised[code] for code in documented}
    seen_over_http = {code for code, statuses in raised.items() if statuses != {STATUS_DEFAULT}}
    assert seen_over_http <= documented.keys()


def examples() -> list[tuple[str, str, str]]:
    """Return code, example and fix, from the table that shows them."""
    rows = [cells for heading, cells in tables("errors.md") if heading[-2] == "For example"]
    joined = [(code, *map("\n".join, map(code_of, parts))) for code, _, *parts in rows]
    return [(code, example, fix) for code, example, fix in joined]


def compile_example(folder: Path, code: str) -> None:
    """Compile an example. Raises CompileErrors. Code that begins with a decorator is placed beside
    the workflow.
    """
    is_module = code.startswith("@")
    source = module_with("pass" if is_module else code, more=code if is_module else "")
    with loaded(folder, source) as module:
        compile_module(module)


@pytest.mark.parametrize(("code", "example", "fix"), examples())
def test_an_example_is_refused_with_its_code_and_its_fix_compiles(
    code: str, example: str, fix: str, tmp_path: Path
) -> None:
    with pytest.raises(CompileErrors) as refused:
        compile_example(tmp_path, example)
    assert {diagnostic.code for diagnostic in refused.value.diagnostics} == {code}
    compile_example(tmp_path, fix)
