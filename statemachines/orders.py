"""The edge of the shop: order files in, workflow inputs out, money in whole pence.

An order file has one JSON object per line: `{id, placed_at, customer_id | null, country, lines:
[{sku, description | null, qty, unit_price}]}`, `unit_price` a decimal string in pounds. Whatever
the shop would have to guess is refused here, with file, line and field; whatever it can decide
(cancellations, returns, orders worth nothing) is left to the workflow.

Codes: HF220 not JSON or not UTF-8, HF221 a field is missing or of the wrong type, HF222 a price is
not an amount in pence, HF223 the amounts cannot be added exactly, HF224 an id comes twice, HF225
the file cannot be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NoReturn

from holdfast.errors import RequestError
from statemachines.shop import Line, Order

ID_CHARACTERS_MAX: Final = 64
PENCE_EXACT_MAX: Final = 2**53 - 1  # beyond it a JSON number is no longer exact everywhere

_PRICE: Final = re.compile(r"(-?)(0|[1-9][0-9]{0,14})(?:\.([0-9]{1,6}))?")
_FORM: Final = "{id, placed_at, customer_id, country, lines: [{sku, description, qty, unit_price}]}"
_KINDS: Final = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number with a fraction",
    str: "a string",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """An accepted order: the name of its execution and the input of `order_fulfilment`."""

    order: Order

    @property
    def name(self) -> str:
        return self.order.id

    @property
    def input(self) -> dict[str, Any]:
        return {"order": self.order.model_dump(mode="json")}


@dataclass(frozen=True, slots=True)
class OrderFile:
    """What a file holds: the orders that can be started, and everything that is wrong with it."""

    requests: tuple[OrderRequest, ...]
    errors: tuple[RequestError, ...]


def read_orders(path: Path) -> OrderFile:
    """Raises RequestError HF225 when there is nothing to read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(
            "HF225",
            f"{path}: cannot be read: {error.strerror}",
            help="name a file with one JSON order per line",
        ) from None
    # Not splitlines(): U+2028 and its like may stand inside a description.
    return parse_orders(content.split(b"\n"), str(path))


def parse_orders(lines: Iterable[bytes], file: str) -> OrderFile:
    """Empty lines are skipped but counted; an id that comes twice is an error."""
    found: dict[str, tuple[int, OrderRequest]] = {}
    errors: list[RequestError] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        try:
            request = parse_order(_decode(line, where), where)
        except RequestError as error:
            errors.append(error)
            continue
        first, _ = found.setdefault(request.name, (number, request))
        if first != number:
            errors.append(_repeated(request, first, where))
    return OrderFile(tuple(request for _, request in found.values()), tuple(errors))


def _repeated(request: OrderRequest, first: int, where: str) -> RequestError:
    return RequestError(
        "HF224",
        f"{where}: id: order {request.name} stands in line {first} already",
        help="an order is fulfilled once: remove one of the two lines",
    )


def parse_order(line: str, where: str) -> OrderRequest:
    """The order of one line; `where` is its `file:line` for error messages."""
    order = _Fields(_load(line, where), where)
    lines = [
        _parse_line(_Fields(item, where, f"lines[{index}]"))
        for index, item in enumerate(order.list("lines"))
    ]
    pence = sum(abs(line.qty * line.unit_pence) for line in lines)
    largest = max((abs(line.qty) for line in lines), default=0)
    if max(pence, largest) > PENCE_EXACT_MAX:
        raise RequestError(
            "HF223",
            f"{where}: lines: quantities and prices come to more than {PENCE_EXACT_MAX} pence",
            help="correct the quantities and prices, or split the order",
        )
    return OrderRequest(
        Order(
            id=_parse_id(order),
            placed_at=_parse_placed_at(order),
            customer_id=order.optional_text("customer_id"),
            country=order.text("country"),
            lines=lines,
        )
    )


def _parse_line(fields: _Fields) -> Line:
    return Line(
        sku=fields.text("sku"),
        description=fields.optional_text("description"),
        qty=fields.integer("qty"),
        unit_pence=parse_pence(fields.text("unit_price"), fields.place("unit_price")),
    )


def parse_pence(text: str, where: str) -> int:
    """Pounds as a decimal string, in whole pence: "2.5" -> 250. Never through a float.

    The shop has prices of a tenth of a penny for tokens of goods: they round to the nearest penny,
    halves away from zero.
    """
    match = _PRICE.fullmatch(text)
    if match is None:
        _refuse_price(text, where, 'an amount such as "2.55": at most 15 digits and 6 decimals')
    sign, pounds, fraction = match.groups(default="")
    millionths = int(pounds) * 1_000_000 + int(fraction.ljust(6, "0"))
    if sign and millionths == 0:
        _refuse_price(text, where, 'zero without a sign, "0.00"')
    pence = (millionths + 5_000) // 10_000
    return -pence if sign else pence


def _refuse_price(text: str, where: str, expected: str) -> NoReturn:
    shown = text if len(text) <= 24 else text[:24] + "…"
    raise RequestError(
        "HF222",
        f"{where}: found {json.dumps(shown)}, expected {expected}",
        help="write the price in pounds as a plain decimal string",
    )


def _parse_id(order: _Fields) -> str:
    found = order.text("id")
    if not 1 <= len(found) <= ID_CHARACTERS_MAX:
        order.refuse("id", f"{len(found)} characters", f"1 to {ID_CHARACTERS_MAX}")
    return found


def _parse_placed_at(order: _Fields) -> str:
    found = order.text("placed_at")
    try:
        datetime.fromisoformat(found)
    except ValueError:
        order.refuse("placed_at", "another string", 'a time such as "2010-12-01 08:26:00"')
    return found


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of one JSON object, each asked for by name and kind."""

    value: object
    where: str
    path: str = ""

    def text(self, name: str) -> str:
        found = self._get(name)
        if not isinstance(found, str):
            self.refuse(name, _kind(found), "a string")
        if any("\ud800" <= character <= "\udfff" for character in found):
            self.refuse(name, "half of a surrogate pair", "text that UTF-8 can hold")
        return found

    def optional_text(self, name: str) -> str | None:
        return None if self._object().get(name) is None else self.text(name)

    def integer(self, name: str) -> int:
        found = self._get(name)
        if not isinstance(found, int) or isinstance(found, bool):
            self.refuse(name, _kind(found), "an integer")
        return found

    def list(self, name: str) -> list[object]:
        found = self._get(name)
        if not isinstance(found, list):
            self.refuse(name, _kind(found), "a list")
        return found

    def place(self, name: str) -> str:
        return f"{self.where}: {self.path}.{name}" if self.path else f"{self.where}: {name}"

    def refuse(self, name: str, found: str, expected: str) -> NoReturn:
        raise _wrong_field(self.place(name), found, expected)

    def _get(self, name: str) -> object:
        fields = self._object()
        if name not in fields:
            self.refuse(name, "no such field", "one")
        return fields[name]

    def _object(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            place = f"{self.where}: {self.path}" if self.path else self.where
            raise _wrong_field(place, _kind(self.value), "an object")
        return self.value


def _wrong_field(place: str, found: str, expected: str) -> RequestError:
    return RequestError(
        "HF221", f"{place}: found {found}, expected {expected}", help=f"an order is {_FORM}"
    )


def _kind(value: object) -> str:
    return _KINDS[type(value)]


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise RequestError(
            "HF220",
            f"{where}: byte {error.start} is not UTF-8",
            help="save the file as UTF-8",
        ) from None


def _load(line: str, where: str) -> object:
    try:
        return json.loads(line, parse_constant=_no_constant, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(
            "HF220",
            f"{where}: not one JSON object: {reason}",
            help=f"each line is one order: {_FORM}",
        ) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuses an object that says two things under one name; json.loads would keep the last."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field name comes twice in one object")
    return fields
