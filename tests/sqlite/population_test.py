"""2,000 orders and loans under `serve`: each question of an operator is one command."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast import Client
from holdfast.cli import main
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.sqlite.population_workflows import ERRORS, RETRIED

SIZE = 2_000
LATER = 50
PATIENCE_SECONDS = 240


def workflow_of(number: int) -> str:
    return ("order", "loan")[number % 2]


def kind_of(number: int) -> str:
    part = number % 100
    if part < len(ERRORS):
        return "FAILED"
    if part == RETRIED:
        return "retry:charge"
    if part < 44:
        return ("ask:role:clerk", "ask:role:credit_manager")[number % 2]
    return "SUCCEEDED"


def start(client: Client, number: int) -> None:
    given = {"number": number, "customer": f"C-{number % 100}"}
    client.start(workflow_of(number), {"order": given}, name=f"n{number}")


def wait_for(client: Client, counted: Counter[str]) -> None:
    """Wait until the list has every execution in its last condition."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        rows = client.counts(by=("status", "wait")).rows
        found = Counter({row["wait"] or row["status"]: row["count"] for row in rows})
        if found == counted:
            return
        time.sleep(1)
    raise AssertionError(f"{found} after {PATIENCE_SECONDS} s")


@pytest.fixture(scope="module")
def say(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two thousand executions, then three days, then fifty more."""
    folder = tmp_path_factory.mktemp("population")
    deployment = deployment_of(["tests.sqlite.population_workflows"])
    with serving(deployment, 0, data=folder / "holdfast.db") as served:
        client = Client(served.url)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: start(client, number), range(SIZE)))
        wait_for(client, Counter(map(kind_of, range(SIZE))))
        assert main(["advance", "3d", "--endpoint", served.url]) == 0
        for number in range(SIZE, SIZE + LATER):
            start(client, number)
        wait_for(client, Counter(map(kind_of, range(SIZE + LATER))))
        yield served.url


@pytest.mark.slow
def test_each_question_of_an_operator_is_one_command(
    say: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(line: str) -> Any:
        capsys.readouterr()
        began = time.monotonic()
        assert main([*line.split(), "--json", "--endpoint", say]) == 0
        found = json.loads(capsys.readouterr().out)
        with capsys.disabled():
            print(f"{time.monotonic() - began:.2f} s  holdfast {line}")
        return found

    def names(line: str) -> set[str]:
        return {row["name"] for row in ask(line)}

    everyone = range(SIZE + LATER)
    assert names("list --error Declined --ended-since 1d --limit 5000") == {
        f"n{number}" for number in everyone if number >= SIZE and number % 100 == 0
    }
    assert names("list --where customer=C-17 --limit 5000") == {
        f"n{number}" for number in everyone if number % 100 == 17
    }
    old = names("list --waiting-for ask:role:credit_manager --older-than 2d --limit 5000")
    assert old == {
        f"n{number}" for number in range(SIZE) if kind_of(number).endswith("credit_manager")
    }
    retried = ask("list --waiting-for retry --limit 5000")
    assert {row["name"] for row in retried} == {
        f"n{number}" for number in everyone if number % 100 == RETRIED
    }
    assert {row["waits"][0]["error"] for row in retried} == {"Busy"}
    counted = ask("count --by workflow,status,wait")
    assert sum(row["count"] for row in counted["counts"]) == SIZE + LATER
    assert Counter(
        {(row["workflow"], row["wait"] or row["status"]): row["count"] for row in counted["counts"]}
    ) == Counter((workflow_of(number), kind_of(number)) for number in everyone)
    assert counted["oldest"]["wait"] in {kind_of(number) for number in range(SIZE)}
