"""The demo: real orders, the deployed handlers, a bank that speaks over the bus, no waiting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.cli import main
from holdfast.cost import COMMIT_MEMORY_MB, COMMIT_MS
from holdfast.local import demo
from holdfast.local.demo import DemoReport
from holdfast.local.stack import deployment_of

# One worker, so that the run that most of these look at happens once.
pytestmark = pytest.mark.xdist_group("demo")

DATA = Path(__file__).parents[2].parent / "shared" / "data"
PAYMENT = {"card_declined", "payment_not_settled", "payment_timed_out"}


def run_demo(*arguments: str) -> dict[str, Any]:
    """Return the document that the demo prints, which is one line and the last."""
    with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as complaints:
        status = main(["demo", "--json", *arguments])
    assert (status, complaints.getvalue()) == (0, "")
    assert printed.getvalue().count("\n") == 1
    document: dict[str, Any] = json.loads(printed.getvalue())
    return document


@cache
def report() -> DemoReport:
    """The sample orders are run once; both forms of the report are printed of this run."""
    return demo.run_demo(deployment_of([demo.MODULE]), demo.read_orders(None), lambda _: None)


@contextmanager
def one_run() -> Iterator[None]:
    made = report()
    with patch.object(demo, "run_demo", lambda *_: made):
        yield


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    with one_run():
        return run_demo()


@pytest.fixture(scope="module")
def printed() -> str:
    """Return the report for a person."""
    with (
        one_run(),
        redirect_stdout(StringIO()) as printed,
        redirect_stderr(StringIO()) as complaints,
    ):
        status = main(["demo"])
    assert (status, complaints.getvalue()) == (0, "")
    return printed.getvalue()


def test_the_sample_orders_meet_every_outcome_and_none_is_lost(document: dict[str, Any]) -> None:
    assert (document["orders"], document["lost"]) == (24, 0)
    assert document["outcomes"] == {
        "shipped": 11,
        "nothing_to_pack": 1,
        "cancellation": 2,
        "non_positive_total": 2,
        "return": 1,
        "card_declined": 2,
        "payment_not_settled": 1,
        "payment_timed_out": 2,
        "out_of_stock": 2,
    }
    assert document["statuses"] == {"SUCCEEDED": 24}
    # The workflow waits three days for the silent bank; the test does not.
    assert document["virtual_seconds"] >= 3 * 86_400
    assert document["wall_seconds"] < 60


def test_the_bill_is_made_of_counted_calls(document: dict[str, Any]) -> None:
    calls = document["calls"]
    # Every record of the log is a put; beside them stand names, rows, events and registrations.
    assert calls["dynamodb.PutItem"] > document["orders"]
    assert calls["events.PutEvents"] >= 8
    assert calls["sqs.ReceiveMessage"] > 0
    assert not any("Transact" in call or "Scan" in call for call in calls)
    assert 0 < document["usd_per_million_steps"] < document["step_functions_usd_per_million_steps"]
    assert document["usd"] == pytest.approx(
        document["usd_per_million_steps"] * document["durable_steps"] / 1e6, rel=0.01
    )


@pytest.mark.slow
def test_the_same_orders_end_the_same_way_twice(document: dict[str, Any]) -> None:
    same = ("orders", "outcomes", "lost", "durable_steps", "transitions", "retries")
    again = run_demo()
    assert [document[key] for key in same] == [again[key] for key in same]


def test_the_report_shows_outcomes_steps_time_and_both_prices(printed: str) -> None:
    for words in (
        "shipped", "card_declined", "of 24; 0 lost", "durable steps", "time in the shop",
        "DynamoDB", "Holdfast", "Step Functions (Standard)", "API Gateway",
    ):  # fmt: skip
        assert words in printed
    assert f"Assumed: {COMMIT_MS} ms at {COMMIT_MEMORY_MB} MB" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.splitlines()[-1] == "next: ./holdfast serve"


def test_the_kinds_of_durable_steps_add_up_to_their_number(printed: str) -> None:
    figures = r"durable steps +(\d+)  (\d+) results, (\d+) failures, (\d+) timeouts, (\d+) timers\n"
    found = re.search(figures, printed)
    assert found is not None
    steps, *kinds = map(int, found.groups())
    assert steps == sum(kinds)


def test_the_front_door_stands_below_both_totals_and_says_so(printed: str) -> None:
    firsts = [line.partition("  ")[0] for line in printed.splitlines()]
    door = firsts.index("API Gateway")
    assert firsts[door - 1] == "on neither bill"
    assert door > firsts.index("Step Functions (Standard)") > firsts.index("Holdfast")


# -- bad input -------------------------------------------------------------------------------------

LINE = {"sku": "A", "description": None, "qty": 1, "unit_price": "2.50"}
GOOD = {
    "id": "900100",
    "placed_at": "2026-03-02 09:00:00",
    "customer_id": None,
    "country": "Norway",
    "lines": [LINE],
}


def test_a_file_with_bad_lines_is_refused_with_every_one_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "orders.jsonl"
    lines = [
        json.dumps(GOOD),
        "{not json",
        json.dumps({**GOOD, "id": "900101", "country": 7}),
        json.dumps({**GOOD, "id": "900102", "lines": [{**LINE, "unit_price": "NaN"}]}),
        json.dumps(GOOD),
        json.dumps({**GOOD, "id": "not a name"}),
    ]
    path.write_text("\n".join(lines) + "\n")
    assert main(["demo", "--orders", str(path), "--json"]) == 2
    printed, complaints = capsys.readouterr()
    assert printed == ""
    assert f"{path}:2: not one JSON object" in complaints
    assert f"{path}:3: country: found an integer" in complaints
    assert f"{path}:4: lines[0].unit_price: found" in complaints
    assert f"{path}:5: id: order 900100 stands in line 1 already" in complaints
    assert "'not a name' is not a name" in complaints
    assert "Traceback" not in complaints


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--orders", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl: cannot be read" in capsys.readouterr().err


def test_no_orders_at_all_is_a_run_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("\n")
    document = run_demo("--orders", str(tmp_path / "none.jsonl"))
    assert (document["orders"], document["lost"], document["outcomes"]) == (0, 0, {})


# -- whole days ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("day", "orders", "cancellations"), [("2010-12-01", 143, 6), ("2010-12-02", 167, 23)]
)
def test_a_day_of_the_shop_ends_with_an_outcome_for_every_order(
    day: str, orders: int, cancellations: int
) -> None:
    path = DATA / f"orders-{day}.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    document = run_demo("--orders", str(path))
    assert (document["orders"], document["lost"]) == (orders, 0)
    assert document["statuses"] == {"SUCCEEDED": orders}
    assert document["outcomes"]["cancellation"] == cancellations
    assert document["outcomes"]["shipped"] >= 100
    assert document["outcomes"].keys() >= {"shipped", "out_of_stock", *PAYMENT}
    assert document["retries"] > 0
    assert document["wall_seconds"] < 60
