"""The fields of an error: from the exception of a task to the handler of the workflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast import TaskError
from holdfast.api.error_fields import cause_of_error
from holdfast.api.tracebacks import traceback_of
from holdfast.compiler.expressions.query import Variable, expression, message_of
from holdfast.limits import CAUSE_CHARACTERS_MAX
from holdfast.testing import World
from tests.unit.dsl_kit import loaded
from tests.unit.template_test import evaluate

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "language.md"
MODULE = """
from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from pydantic import SecretStr

from holdfast import TaskError, task, workflow


class Declined(TaskError):
    bank: ClassVar[str] = "First"
    code: str
    retry_on: date | None = None
    amounts: list[int]
    token: SecretStr

    def __init__(self, message: str, code: str, amounts: list[int]) -> None:
        super().__init__(message)
        self.code = code
        self.amounts = amounts
        self.token = SecretStr("hunter22")


@dataclass
class OverLimit(TaskError):
    limit: int
    text: str = "over the limit"


class Late(TaskError):
    days: int = 3


@task
def charge(cents: int) -> int: ...


@workflow
def pay(cents: int) -> str:
    try:
        return str(charge(cents))
    except OverLimit as err:
        return f"{err.limit - cents} {err.text}"
    except Declined as err:
        if err.code == "51" and err.retry_on is None:
            return f"{err}: {sum(err.amounts)}"
        raise
    except Exception as err:
        return f"other: {err}"


@workflow
def wait(cents: int) -> int:
    try:
        if cents > 5:
            raise Late(f"{cents} is too much")
        raise Late("too late")
    except Late as err:
        return err.days + len(str(err))


@workflow
def shop(cents: int) -> str:
    try:
        return pay(cents)
    except Declined as err:
        return err.code
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with loaded(tmp_path_factory.mktemp("flows"), MODULE) as found:
        yield found


def test_a_handler_reads_the_fields_of_the_error_of_a_task(module: ModuleType) -> None:
    declined = module.Declined('no "money"', "51", [1, 2])
    assert World({module.charge: declined}).run(module.pay, 7).result == 'no "money": 3'
    limit = World({module.charge: module.OverLimit(100)}).run(module.pay, 7)
    assert limit.result == "93 over the limit"
    assert World({module.charge: ValueError("odd")}).run(module.pay, 7).result == "other: odd"


def test_fields_cross_the_border_of_a_child_workflow(module: ModuleType) -> None:
    declined = module.Declined("no", "99", [])
    assert World({module.charge: declined}).run(module.shop, 7).result == "99"


def test_an_error_that_the_workflow_raises_has_the_fields_of_its_class(module: ModuleType) -> None:
    assert World().run(module.wait, 1).result == 3 + len("too late")
    assert World().run(module.wait, 12).result == 3 + len("12 is too much")


def test_the_cause_holds_the_declared_fields_and_no_secret(module: ModuleType) -> None:
    cause = cause_of_error(module.Declined("no", "51", [1]))
    assert cause == '{"message":"no","fields":{"code":"51","retry_on":null,"amounts":[1]}}'


def test_texts_of_an_error_are_shown_without_secrets(module: ModuleType) -> None:
    error = module.Declined("hunter22 refused", "hunter22", [])
    cause = cause_of_error(error, lambda text: text.replace("hunter22", "<secret>"))
    assert "hunter22" not in cause


def test_a_traceback_names_the_field_that_an_error_leaves_out(module: ModuleType) -> None:
    try:
        raise module.Declined("no", "51", ["one"])
    except TaskError as error:
        assert '"amounts"' not in cause_of_error(error)
        traceback = traceback_of(error, frozenset({__name__.partition(".")[0]}))
    assert "its field amounts is left out: " in (traceback or "")


def test_an_error_that_is_too_large_keeps_its_text(module: ModuleType) -> None:
    cause = cause_of_error(module.Declined("no", "5" * CAUSE_CHARACTERS_MAX, []))
    assert cause == "no"


@pytest.mark.parametrize(
    ("error", "cause", "text"),
    [
        ("Declined", '{"message":"no","fields":{}}', "no"),
        ("Declined", "a text of an older release", "a text of an older release"),
        ("ValueError", '{"message":"its own text"}', '{"message":"its own text"}'),
    ],
)
def test_the_text_of_an_older_error_is_read_as_it_is(error: str, cause: str, text: str) -> None:
    query = expression(message_of(Variable("err"), ("Declined",)))
    held: dict[str, Any] = {"err": {"Error": error, "Cause": cause}}
    assert evaluate(query, held) == text


def test_the_example_of_the_page_reads_a_field(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (example,) = (block for block in blocks if block.startswith("class CardRefused"))
    source = f"from holdfast import TaskError, task, workflow\n\n{example}"
    with loaded(tmp_path, source) as page:
        poor = page.CardRefused("wait", "insufficient_funds")
        assert World({page.charge_card: poor}).run(page.collect, "o1", 5).result == "later: wait"
        stolen = page.CardRefused("no", "stolen")
        assert World({page.charge_card: stolen}).run(page.collect, "o1", 5).error == "CardRefused"
