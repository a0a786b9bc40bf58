"""docs/how-to/find.md: its workflow is found by the commands and the calls that it shows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.cli import main, screen
from holdfast.errors import RequestError
from holdfast.remote.operations import executions
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


def test_the_client_and_the_command_count_by_any_groups(
    stack: MemoryStack, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Client.of(stack.api)
    found = client.counts(by=("status", "workflow"))
    assert found.rows == [{"status": "SUCCEEDED", "workflow": "fulfil", "count": 3}]
    assert (found.oldest, found.after) == (None, None)
    assert client.counts(status="FAILED").rows == []
    with served(stack) as url:
        assert main(["count", "--by", "workflow,status,wait", "--endpoint", url.url]) == 0
        assert capsys.readouterr().out.split()[-4:] == ["executions", "fulfil", "SUCCEEDED", "3"]
        assert main(["count", "--json", "--since", "9999d", "--endpoint", url.url]) == 0
        assert json.loads(capsys.readouterr().out)["counts"][0]["count"] == 3
    with pytest.raises(RequestError) as refused:
        client.counts(by=("colour",))
    assert refused.value.code == "HF482"


def test_a_count_adds_up_its_parts_and_keeps_the_longest_wait() -> None:
    """Two parts, each with a wait of its own."""

    def wait(name: str, since: str) -> dict[str, str]:
        return {"name": name, "workflow": "w", "wait": "ask:anna", "since": since}

    parts = [
        {"counts": [{"status": "RUNNING", "count": 2}], "at": "t1", "next": "k",
         "oldest": wait("young", "2027-01-02T00:00:00.000Z")},
        {"counts": [{"status": "FAILED", "count": 1}, {"status": "RUNNING", "count": 3}],
         "at": "t2", "oldest": wait("old", "2027-01-01T00:00:00.000Z")},
    ]  # fmt: skip
    operation = executions.counts()
    first = next(operation)
    second = operation.send(parts[0])
    with pytest.raises(StopIteration) as over:
        operation.send(parts[1])
    found = over.value.value
    assert [row["count"] for row in found.rows] == [1, 5]
    assert (found.oldest["name"], found.at) == ("old", "t1")
    assert "after=k" not in str(first) and "after=k" in str(second)
    now = datetime(2027, 1, 3, tzinfo=UTC)
    assert screen.longest_wait(found.oldest, now) == "longest wait: old (w) for ask:anna, 2 d"
