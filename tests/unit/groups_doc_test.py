"""docs/how-to/groups.md: its workflow, its stack's settings and its prices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import cli
from holdfast.cost import PRICES, Usage, receipt
from holdfast.deployment import Deployment
from holdfast.testing import World
from tests.unit.client_kit import _compile
from tests.unit.dsl_kit import loaded

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "groups.md").read_text(encoding="utf-8")
PROGRAM, STACK = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
USD_PER_MILLION = {(price.service, price.what): price.usd_per_million for price in PRICES}


def test_the_workflow_of_the_page_charges_or_is_declined(tmp_path: Path) -> None:
    with loaded(tmp_path, PROGRAM) as page:
        deployment = Deployment.from_modules([page.__name__], _compile)
        assert deployment.groups == {"payments"}
        assert cli.main(["check", "--strict", page.__name__]) == 0
        assert page.checkout("o1") == "o1: 200 cents"
        assert page.checkout("a long order") == "declined"
        world = World({page.price: 5, page.charge: page.Declined("no")})
        assert world.run(page.checkout, "o1").output == "declined"


def test_the_stack_of_the_page_names_the_group_of_its_workflow() -> None:
    assert '"payments": Group(' in STACK
    assert 'flows.group("payments")' in STACK
    compile(STACK, "groups.md", "exec")


def test_the_price_of_a_result_that_comes_by_a_queue_is_that_of_its_parts() -> None:
    by_queue = Usage(
        write_units=2,
        sqs_send_requests=1,
        sqs_deliveries=1,
        lambda_requests=1,
        read_units=1,
        commits=1,
    )
    usd = receipt(by_queue).total_usd * 1e6
    assert f"${usd:.2f} for a million attempts" in PAGE
    waited = usd / (USD_PER_MILLION["Lambda", "GB-seconds"] * 0.5)
    assert f"waits {waited:.1f} s for that price" in PAGE


@pytest.mark.parametrize(("column", "seconds"), [(1, 0.1), (2, 1.0), (3, 60.0)])
def test_the_prices_are_those_of_the_list(column: int, seconds: float) -> None:
    run = USD_PER_MILLION["Lambda", "GB-seconds"] * 0.5 * seconds
    call = USD_PER_MILLION["Lambda", "requests"]
    rows: dict[str, Any] = dict(re.findall(r"^\| (in .*?) \|(.*)\|$", PAGE, re.MULTILINE))
    found = {name: cells.split("|")[column - 1].strip() for name, cells in rows.items()}
    assert found == {
        "in the worker": f"${run:.2f}",
        "in a group: the calls": f"${call:.2f}",
        "in a group: its function": f"${run:.2f}",
        "in a group: the worker that waits": f"${run:.2f}",
    }
