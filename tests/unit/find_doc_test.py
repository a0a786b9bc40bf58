"""docs/how-to/find.md: its workflow is found by the commands and the calls that it shows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.cli import main
from tests.unit.client_kit import MemoryStack, served
from tests.unit.dsl_kit import loaded

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "find.md").read_text(encoding="utf-8")
PROGRAM, CALL, *_ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CENTS = (5_000, 10_000, 20_000)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStack]:
    with loaded(tmp_path_factory.mktemp("find"), PROGRAM) as module:
        found = MemoryStack(module.__name__)
        client = Client.of(found.api)
        for number, cents in enumerate(CENTS):
            customer = "C-17" if number else "C-1,2"
            order = {"id": str(number), "customer_id": customer, "total_cents": cents}
            client.start("fulfil", {"order": order}, name=f"o{number}")
        yield found


def test_the_client_sends_every_condition(stack: MemoryStack) -> None:
    client = Client.of(stack.api)
    assert CALL.startswith("client.page(where=[")
    page: Any = eval(CALL, {"client": client})
    assert {row["name"] for row in page.rows} == {"o1", "o2"}
    assert page.rows[0]["attributes"]["stage"] == "packed"
    assert [row["name"] for row in client.page(where="customer=C-1,2").rows] == ["o0"]
    assert [row["name"] for row in client.list(where="total<20000")] == ["o1", "o0"]


def test_the_commands_of_the_page_find_what_they_say(
    stack: MemoryStack, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [{"o1", "o2"}, set(), set()]  # the others ask for executions that run
    lines = [line for line in PAGE.splitlines() if line.startswith("holdfast list --where")]
    with served(stack) as url:
        for line, names in zip(lines[-3:], wanted, strict=True):
            words = shlex.split(line, comments=True)[1:]
            assert main([*words, "--json", "--endpoint", url.url]) == 0
            rows = json.loads(capsys.readouterr().out)
            assert {row["name"] for row in rows} == names
