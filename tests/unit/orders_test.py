"""Order files: the orders read, and the errors about unreadable lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import RequestError
from statemachines.orders import parse_order, parse_orders, parse_pence, read_orders

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SAMPLE = Path(__file__).parents[2] / "statemachines" / "orders-sample.jsonl"

LINE = {"sku": "LH01", "description": "TEA TOWEL", "qty": 2, "unit_price": "4.50"}
ORDER: dict[str, Any] = {
    "id": "700100",
    "placed_at": "2026-03-02 09:00:00",
    "customer_id": "4001",
    "country": "Norway",
    "lines": [LINE],
}


def order_with(**changes: Any) -> str:
    return json.dumps({**ORDER, **changes})


def line_with(**changes: Any) -> str:
    return order_with(lines=[LINE, {**LINE, **changes}])


def without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


def test_an_order_line_becomes_the_input_of_the_workflow_in_pence() -> None:
    request = parse_order(json.dumps(ORDER), "o.jsonl:1")
    assert request.name == "700100"
    assert request.input == {
        "order": {
            "id": "700100",
            "placed_at": "2026-03-02 09:00:00",
            "customer_id": "4001",
            "country": "Norway",
            "lines": [{"sku": "LH01", "description": "TEA TOWEL", "qty": 2, "unit_pence": 450}],
        }
    }


@pytest.mark.parametrize(
    "missing", [order_with(customer_id=None), json.dumps(without(ORDER, "customer_id"))]
)
def test_an_order_without_a_customer_is_accepted(missing: str) -> None:
    assert parse_order(missing, "o.jsonl:1").order.customer_id is None


def test_descriptions_may_be_null_and_prices_zero() -> None:
    order = parse_order(line_with(description=None, unit_price="0.0"), "o.jsonl:1").order
    assert (order.lines[1].description, order.lines[1].unit_pence) == (None, 0)


def test_an_order_without_lines_is_left_to_the_workflow() -> None:
    assert parse_order(order_with(lines=[]), "o.jsonl:1").order.lines == []


@pytest.mark.parametrize(
    ("pounds", "pence"),
    [
        ("0", 0),
        ("0.0", 0),
        ("0.00", 0),
        ("2.5", 250),
        ("2.55", 255),
        ("0.29", 29),
        ("1.15", 115),
        ("27.5", 2750),
        ("-27.5", -2750),
        ("-0.01", -1),
        ("8142.75", 814275),
        ("90071992547409.91", 2**53 - 1),
        ("0.001", 0),
        ("0.005", 1),
        ("1.0049", 100),
        ("-1.005", -101),
        ("2.550", 255),
    ],
)
def test_pounds_become_whole_pence(pounds: str, pence: int) -> None:
    assert parse_pence(pounds, "here") == pence


@pytest.mark.parametrize(
    "price",
    [
        "1.0000001", "1e2", "1E-2", "NaN", "Infinity", "-0", "-0.00", "+1", " 1", "1 ", "1\n",
        "", ".5", "5.", "1,50", "1_000", "007", "£2", "0x10", "\u0661", "1" * 16, "9" * 5000, "--1",
    ],
)  # fmt: skip
def test_a_price_that_is_no_plain_amount_is_refused_at_its_field(price: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_order(line_with(unit_price=price), "o.jsonl:7")
    assert caught.value.code == "HF222"
    assert caught.value.message.startswith("o.jsonl:7: lines[1].unit_price: found ")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("[]", "o.jsonl:7: ", "a list"),
        ("null", "o.jsonl:7: ", "null"),
        ('"order"', "o.jsonl:7: ", "a string"),
        (json.dumps(without(ORDER, "id")), "id: ", "no such field"),
        (order_with(id=536365), "id: ", "an integer"),
        (order_with(id=""), "id: ", "0 characters"),
        (order_with(id="7" * 65), "id: ", "65 characters"),
        (order_with(placed_at="yesterday"), "placed_at: ", "another string"),
        (order_with(placed_at=None), "placed_at: ", "null"),
        (order_with(customer_id=4001), "customer_id: ", "an integer"),
        (order_with(country=None), "country: ", "null"),
        (json.dumps(without(ORDER, "lines")), "lines: ", "no such field"),
        (order_with(lines={}), "lines: ", "an object"),
        (order_with(lines=[LINE, 7]), "lines[1]: ", "an integer"),
        (order_with(lines=[without(LINE, "qty")]), "lines[0].qty: ", "no such field"),
        (line_with(sku=None), "lines[1].sku: ", "null"),
        (line_with(description=1), "lines[1].description: ", "an integer"),
        (line_with(qty="6"), "lines[1].qty: ", "a string"),
        (line_with(qty=6.0), "lines[1].qty: ", "a number with a fraction"),
        (line_with(qty=True), "lines[1].qty: ", "a boolean"),
        (line_with(unit_price=2.55), "lines[1].unit_price: ", "a number with a fraction"),
        (line_with(sku="\ud800"), "lines[1].sku: ", "half of a surrogate pair"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(text: str, place: str, found: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_order(text, "o.jsonl:7")
    assert caught.value.code == "HF221"
    assert caught.value.message.startswith("o.jsonl:7: ")
    assert f"{place}found {found}, expected " in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "order",
        '{"id": "1"} {"id": "2"}',
        '{"id": NaN}',
        '{"id": -Infinity}',
        '{"id": "1", "id": "2"}',
        "[" * 100_000,
        '{"qty": ' + "9" * 5000 + "}",
        "\ufeff{}",
    ],
)
def test_a_line_that_is_not_one_json_object_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_order(text, "o.jsonl:7")
    assert caught.value.code == "HF220"
    assert caught.value.message.startswith("o.jsonl:7: ")


@pytest.mark.parametrize(
    "changes",
    [
        {"qty": 2**53, "unit_price": "0"},
        {"qty": 2**52, "unit_price": "0.02"},
        {"qty": -(2**52), "unit_price": "0.02"},
    ],
)
def test_amounts_that_numbers_cannot_hold_exactly_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        parse_order(line_with(**changes), "o.jsonl:7")
    assert caught.value.code == "HF223"


def messages_of(lines: list[bytes]) -> list[str]:
    return [f"{error.code} {error.message}" for error in parse_orders(lines, "o.jsonl").errors]


def test_every_bad_line_is_reported_and_the_good_ones_are_kept() -> None:
    lines = [b"{", json.dumps(ORDER).encode(), order_with(id=7).encode()]
    file = parse_orders(lines, "o.jsonl")
    assert [request.name for request in file.requests] == ["700100"]
    assert [error.message.partition(": ")[0] for error in file.errors] == ["o.jsonl:1", "o.jsonl:3"]


def test_an_id_that_comes_twice_names_both_lines() -> None:
    line = json.dumps(ORDER).encode()
    expected = "HF224 o.jsonl:3: id: order 700100 stands in line 1 already"
    assert messages_of([line, b"", line]) == [expected]


def test_empty_lines_are_skipped_but_counted() -> None:
    (message,) = messages_of([json.dumps(ORDER).encode(), b"", b"  \r", b"{"])
    assert message.startswith("HF220 o.jsonl:4: ")


def test_a_separator_inside_a_description_does_not_end_the_line(tmp_path: Path) -> None:
    path = tmp_path / "orders.jsonl"
    text = json.dumps({**ORDER, "country": "Nor\u2028way"}, ensure_ascii=False)
    path.write_text(text + "\r\n", encoding="utf-8")
    (request,) = read_orders(path).requests
    assert request.order.country == "Nor\u2028way"


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    assert messages_of([b'{"\xff": 1}']) == ["HF220 o.jsonl:1: byte 2 is not UTF-8"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(RequestError) as caught:
            read_orders(path)
        assert caught.value.code == "HF225"
        assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("day", "orders", "lines", "cancellations", "largest"),
    [("2010-12-01", 143, 3108, 6, 592), ("2010-12-02", 167, 2109, 23, 121)],
)
def test_a_real_trading_day_is_read_completely(
    day: str, orders: int, lines: int, cancellations: int, largest: int
) -> None:
    path = DATA / f"orders-{day}.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    file = read_orders(path)
    read = [request.order for request in file.requests]
    assert file.errors == ()
    assert len(read) == orders
    assert sum(len(order.lines) for order in read) == lines
    assert sum(order.id.startswith("C") for order in read) == cancellations
    assert max(len(order.lines) for order in read) == largest


def test_the_shipped_sample_is_read() -> None:
    assert len(read_orders(SAMPLE).requests) == 24
