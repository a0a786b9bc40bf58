"""Fields that take any value or keep their defaults, texts made by `%` and `format`, and the
arguments of a task that is chosen by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from datetime import date, timedelta
from typing import Any
from pydantic import BaseModel, Field
from pydantic.functional_validators import AfterValidator
from typing_extensions import Annotated
from holdfast import choice, task, workflow

class Result(BaseModel):
    name: str
    value: Any
    other: object = None
    more: dict[str, Any] = {}

class Settings(BaseModel):
    size: int = Field(default=100, ge=10, le=1000)
    small: int = Field(default=1, ge=10)
    names: list[str] = Field(default=["a"], max_length=3)

class Checked(BaseModel):
    size: int = Field(default=1, ge=10, validate_default=True)

class Odd(BaseModel):
    size: Annotated[int, AfterValidator(lambda size: size + 1)] = 1

@task
def ratio() -> float:
    return 2.0

@task
def rows() -> list[dict[str, Any]]:
    return [{"a": 1}]

@task
def count(data: str, n: int) -> str:
    return f"count {data} {n}"

@task
def show(data: str, n: int, width: int = 0) -> str:
    return f"show {data} {n} {width}"

TOOLS = choice(count, show)

@workflow
def flow(n: int, x: float, wait: timedelta, xs: list[int], given: dict[str, Any]) -> object:
"""
VALUES: dict[str, Any] = {"n": 5, "x": 2.675, "wait": "PT1H3S", "xs": [1, 2], "given": {"n": 3}}
SAME = {
    "an int": "return Result(name='a', value=5)",
    "a list": "return Result(name='a', value=xs, other=[xs, 'b', None, True])",
    "a dict": "return Result(name='a', value={'a': n}, other=given, more={'a': 1, 'b': xs})",
    "a result of a task": "return Result(name='a', value=rows())",
    "a part": "made = Result(name='a', value={'a': n}); return made.value['a']",
    "a type of two": "return Result(name='a', value=n if n > 3 else 'small')",
    "defaults": "return [Settings(), Settings(names=['x'])]",
    "percent": "return ['%s' % x, '%s|%d|%s' % (wait, n, xs), '%.2f' % x, '%.0f %%' % n]",
    "format": "return ['{}'.format(x), '{0} {0:.1f} {w}'.format(x, w=wait), '{}'.format(xs)]",
    "a step in a text": "return '%s and %s' % (ratio(), '{}'.format(ratio()))",
    "texts in a loop": "return ['%s %s' % (x, one) for one in xs]",
    "a text in a test": "return 'two' if '%s' % x == '2.675' else 'other'",
    "chosen": "return TOOLS['show'](data='d', **given)",
    "chosen after": "return TOOLS['count'](**given, data='d')",
}
REFUSED = {
    "a float": ("return Result(name='a', value=x)", "HF045"),
    "a date": ("return Result(name='a', value=date(2026, 1, 2))", "HF045"),
    "a model": ("return Result(name='a', value=Settings())", "HF045"),
    "a default that is checked": ("return Checked()", "HF045"),
    "a default with a validator": ("return Odd()", "HF045"),
    "two dicts of arguments": ("return TOOLS['show'](data='d', **given, **given)", "HF062"),
    "a number for a text": ("return '%d' % x", "HF040"),
}


def _flow(body: str) -> str:
    return f"{HEADER}    {body}\n"


@pytest.mark.parametrize("what", SAME)
def test_fields_texts_and_arguments_are_those_of_python(what: str, tmp_path: Path) -> None:
    with loaded(tmp_path, _flow(SAME[what])) as module:
        assert_same(module.flow, VALUES)


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_exact_is_refused(what: str, tmp_path: Path) -> None:
    body, code = REFUSED[what]
    with loaded(tmp_path, _flow(body)) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert code in str(refused.value)


def test_an_argument_that_is_given_twice_fails_as_in_python(tmp_path: Path) -> None:
    body = """try:
        return TOOLS["show"](data="d", **given)
    except Exception:
        return "twice"
"""
    with loaded(tmp_path, _flow(body)) as module:
        given = {**VALUES, "given": {"n": 1, "data": "x"}}
        assert assert_same(module.flow, given).output == "twice"
