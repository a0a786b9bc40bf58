"""Types and expressions: an accepted one gives Python's result for every tested input."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NewType, Optional, TypeAlias
from uuid import UUID
from pydantic import BaseModel, Field
from holdfast import (
    WaitTimeout, days, each, hours, minutes, parallel, pure, seconds, sleep, task,
    wait_for_event, workflow,
)

class Status(StrEnum):
    OPEN = "open"
    PAID = "paid"
class Colour(Enum):
    RED = "r"
    BLUE = "b"
class Level(IntEnum):
    LOW = 1
    HIGH = 3
class Line(BaseModel):
    sku: str
    qty: int = 1
    tags: list[str] = []
class Address(BaseModel):
    street: str = "High Street"
    zip: str | None = None
class Base(BaseModel):
    id: UUID = UUID("00000000-0000-0000-0000-000000000001")
    made: datetime = datetime(2024, 5, 1, 12, 0, tzinfo=timezone.utc)
class Order(Base):
    name: str = "n"
    due: date = date(2024, 5, 3)
    grace: timedelta = timedelta(minutes=90)
    price: Decimal = Decimal("1.10")
    paid: datetime | None = None
    address: Address = Address()
    lines: list[Line] = Field(default_factory=list)
    status: Status = Status.OPEN
    pair: tuple[int, str] = (1, "a")
class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str = "4242"
    cents: int = 5
class Bank(BaseModel):
    kind: Literal["bank", "sepa"] = "bank"
    iban: str = "DE"
    cents: int = 7
@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)

Payment: TypeAlias = Card | Bank
UserId = NewType("UserId", str)
Cents = Annotated[int, "money"]
EPOCH = datetime(2020, 1, 1, tzinfo=timezone.utc)
DUE = date(2024, 5, 3)
KEY = UUID("00000000-0000-0000-0000-000000000001")
RATE = Decimal("0.19")
PAIR = ("a", "b")

@task
def echo(value: int) -> int:
    return value
@task
def moved(at: datetime, by: timedelta) -> datetime:
    return at + by
@task
def worth(price: Decimal, key: UUID, due: date) -> Decimal:
    return price + Decimal("0.10")
@task
def again(order: Order) -> Order:
    return order
@task
def spent(point: Point) -> Point:
    return point
@pure
def is_past(at: datetime) -> bool:
    return at.year < 2025
"""

WORDS = [
    "",
    "abc",
    "a b",
    " a\t b \n",
    "\u00a0x\u2003",
    "x\r\ny\nz\n",
    "\n",
    "-5",
    "+7",
    "42",
    "a,b,,c",
    "\U0001f600b\U0001f600",
    "xxabxx",
    "\u001c\u0085",
    "abab",
    "1_0",
    " 12 ",
    "Z\n\n",
]
LINES = [{"sku": "b", "qty": 2, "tags": ["t", "u"]}, {"sku": "a", "qty": 2}, {"sku": "c", "qty": 0}]
INPUTS: dict[str, tuple[str, list[Any]]] = {
    "n": ("int", [0, 1, 7, -7, 1234567, -100]),
    "m": ("int", [3, -2, 0]),
    "f": ("float", [2.5, -0.5]),
    "b": ("bool", [True, False]),
    "s": ("str", WORDS),
    "t": ("str", ["", "a", "xx", "\U0001f600", "abc"]),
    "o": ("str | None", [None, "", "x"]),
    "xs": ("list[int]", [[], [4], [3, 1, 2, 3]]),
    "ss": ("list[str]", [[], ["a"], ["b", "aa", "b"]]),
    "xss": ("list[list[int]]", [[], [[]], [[1]], [[1, 2], [], [3]]]),
    "bs": ("list[bool]", [[], [True], [False, True, True]]),
    "d": ("dict[str, int]", [{}, {"a": 1}, {"b": 2, "a": 0}]),
    "dl": ("dict[str, list[int]]", [{}, {"a": []}, {"a": [1], "b": [1, 2]}]),
    "e": ("dict[str, int]", [{}, {"a": 9, "c": 3}]),
    "lines": ("list[Line]", [[], LINES, LINES[:1]]),
    "order": (
        "Order",
        [
            {},
            {
                "paid": "2024-01-01T00:00:00+02:00",
                "grace": "P1DT2S",
                "price": "2",
                "id": "00000000-0000-0000-0000-00000000000A",
                "lines": LINES,
                "status": "paid",
            },
        ],
    ),
    "orders": ("list[Order]", [[], [{"name": "z"}, {"grace": 30, "name": "a"}]]),
    "grace": ("timedelta", [0, 90, "-PT5S", "P400DT2H3M", 86400 * 30]),
    "maybe": ("timedelta | None", [None, 5]),
    "at": ("datetime", ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+02:00"]),
    "due": ("date", ["2024-05-03", "1999-01-01", "2024-12-31"]),
    "key": (
        "UUID",
        ["00000000-0000-0000-0000-000000000001", "FFFFFFFF-0000-0000-0000-000000000001"],
    ),
    "price": ("Decimal", ["1.10", "2", "1E+2"]),
    "colour": ("Colour", ["r", "b"]),
    "status": ("Status", ["open", "paid"]),
    "level": ("Level", [1, 3]),
    "pay": ("Card | Bank", [{"kind": "card"}, {"kind": "bank"}, {"kind": "sepa", "iban": "X"}]),
    "perhaps": ("Card | Bank | None", [None, {"kind": "card"}, {"kind": "sepa"}]),
    "mixed": ("int | str | None", [None, "", "a", 0, 5]),
    "several": ("list[int] | str", ["a", [], [1], [2, 3]]),
    "point": ("Point", [{"x": 1}, {"x": 2, "y": 3, "tags": ["k"]}]),
    "user": ("UserId", ["u", ""]),
    "cents": ("Cents", [5]),
    "opt": ("Optional[int]", [None, 0, 3]),
    "pair": ("tuple[int, list[int]]", [[1, []], [2, [3]]]),
    "pairs": ("list[tuple[str, int]]", [[], [["b", 1]], [["b", 1], ["a", 1], ["b", 3]]]),
    "row": ("tuple[int, ...]", [[], [1], [1, 2]]),
}

EXPRESSIONS: dict[str, list[str]] = {
    "s": [
        "s.strip()",
        "s.lstrip()",
        "s.rstrip()",
        "s.strip('x')",
        "s.rstrip('-x]')",
        "s.strip('^b')",
        "s.split()",
        "s.splitlines()",
        "s.removeprefix('xx')",
        "s.removesuffix('xx')",
        "s.find('b')",
        "s.find('')",
        "s.index('b')",
        "s.count('a')",
        "s.count('xx')",
        "s.count(',')",
        "s.zfill(5)",
        "s.zfill(1)",
        "s.rjust(6)",
        "s.ljust(6, '.')",
        "s.rjust(6, '0')",
        "s[0]",
        "s[1]",
        "s[-1]",
        "s[-2]",
        "s * 2",
        "2 * s",
        "s * 0",
        "int(s)",
        "f'{s:>5}|{s:5}|{s:x<7}'",
        "s.startswith(('a', 'x'))",
        "s.endswith(('b', '\\n'))",
        "[*s.split(), s]",
        "len(s.split())",
        "s in {'abc', ''}",
        "'b' in s",
        "s.upper().lower()",
        "[c for c in [s] if c.strip()]",
        "s.strip().split(',')",
        "', '.join(s.split())",
        "s.replace(' ', '').strip('x')",
        "[s.split('a', 1), s.split(', ', 1), s.split(' ', 1)]",
        "[s.rsplit('a', 1), s.rsplit(' ', 1), s.rsplit('.', 1)[-1]]",
        "[s.strip(), s.strip()]",
        "isinstance(s, str)",
        "'a' <= s <= 'b' <= 'c'",
        "f'{s!s}'",
        "s < 'b' < 'c' < 'd'",
        "not s.strip()",
    ],
    "s t": [
        "s.removeprefix(t)",
        "s.removesuffix(t)",
        "s.find(t)",
        "t in s",
        "s.startswith(t)",
        "s.startswith((t, 'x'))",
        "s == t",
    ],
    "n": [
        "f'{n:d}'",
        "f'{n:,}'",
        "f'{n:05d}'",
        "f'{n:02d}'",
        "f'{n:>10}'",
        "f'{n:<10}|'",
        "f'{n:10}'",
        "f'{n:x>9}'",
        "f'{n:>12,}'",
        "n ** 2",
        "n ** 0",
        "(n % 100 + 1) ** 3",
        "pow(n, 2)",
        "divmod(n, 4)",
        "'ab' * n if n < 9 else ''",
        "[1] * (n % 3)",
        "(n % 3) * [n]",
        "+n",
        "-1 < n < 7 < 9",
        "0 <= n <= 7 <= 9 < 10",
        "min(n, 3, key=lambda x: -x)",
        "max(n, -n)",
        "list(range(0, n % 10, 2))",
        "list(range(n % 10, 0, -3))",
        "list(reversed(range(n % 5)))",
        "sum([n, 1], 5)",
        "isinstance(n, int)",
        "isinstance(n, (int, str))",
        "f'{n // 100}.{n % 100:02d}'",
        "f'{n / 100:.2f} {n / 10:.1f} {-n / 1000:.3f}'",
        "f'{(n + 5) / 100:,.2f}|{n / 100:>15,.2f}|{n / 100:x<9.2f}|{n / 100:9.2f}'",
        "f'{n=} {n > 3!r} {[n, 1][0]!r}'",
        "[[n] * 2] * 2",
        "min(str(n), '5')",
        "minutes(5) * 2 == minutes(10)",
        "n in {1, 7}",
        "n not in {n + 1}",
    ],
    "n m": [
        "divmod(n, m)",
        "divmod(n, m)[1]",
        "n > m",
        "m < n < 7",
    ],
    "xs": [
        "sorted(xs, key=lambda x: -x)",
        "sorted(xs, key=lambda x: x % 2)",
        "min(xs, default=0)",
        "sorted(xs, key=lambda x: x % 2, reverse=True)",
        "max(xs, key=lambda x: x % 3)",
        "min(xs, key=lambda x: (x % 2, x))",
        "max(xs, key=lambda x: x % 2, default=None)",
        "sorted(xs, key=lambda x: (x % 2, -x))",
        "[x + y for x in xs for y in xs]",
        "[x * y for x in xs if x > 1 for y in range(x) if y]",
        "[(x, y) for x in xs for y in xs if x != y]",
        "[[x, y] for x in xs for y in [1]]",
        "{str(x): y for x in xs for y in range(x)}",
        "sum(x for x in xs for _ in xs)",
        "sum(xs, 10)",
        "sum(x > 1 for x in xs)",
        "xs * 2",
        "2 * xs",
        "[*xs, 9]",
        "[0, *xs, *xs]",
        "[*xs]",
        "xs.index(3)",
        "xs.count(3)",
        "xs.copy()",
        "xs.count(99)",
        "list(reversed(xs))",
        "[x for x in reversed(xs)]",
        "len(set(xs))",
        "sorted(set(xs))",
        "len({x % 2 for x in xs})",
        "3 in set(xs)",
        "3 in {x + 1 for x in xs}",
        "max({x % 3 for x in xs})",
        "sum({x % 2 for x in xs})",
        "any(xs)",
        "all(xs)",
        "any(x for x in xs)",
        "[i for i, x in enumerate(xs, start=2)]",
        "list(zip(xs, xs, xs))",
        "list(zip(xs, xs, xs, strict=False))",
        "list(zip(xs, xs, xs, strict=True))",
        "list(zip(xs, sorted(set(xs)), strict=True))",
        "list(zip(xs, [x for x in xs if x > 0], range(2), strict=True))",
        "[a + b for a, b in zip(xs, range(1, 4), strict=True)]",
        "[(i, a) for i, (a, b) in enumerate(zip(xs, [1], strict=True))]",
        "list(zip([1], zip(xs, [2], strict=True), strict=True))",
        "len(list(zip(xs, [[1]], strict=True)))",
        "[a + b + c for a, b, c in zip(xs, xs[1:], xs[2:])]",
        "[x for xs2 in [xs, [5]] for x in xs2]",
        "dict([(str(x), x) for x in xs])",
        "max([x * 2 for x in xs], default=-1)",
        "min((x for x in xs if x > 2), default=0)",
        "[sorted([x, 2], reverse=True) for x in xs]",
        "sorted(xs)[-1:]",
        "sorted(xs, key=lambda x: min([1, 2], key=lambda y: (y - x) * (y - x)))",
        "xs + [*xs]",
        "[x in (1, 2) for x in xs]",
    ],
    "ss": [
        "sorted(ss, key=len)",
        "sorted(ss, key=str.upper)",
        "min(ss, key=len, default='')",
        "max(ss)",
        "min(ss, default=None)",
        "','.join(s for s in ss)",
        "','.join(sorted(set(ss)))",
        "[s[0] for s in ss]",
        "dict(zip(ss, [1, 2, 3]))",
        "ss.index('aa')",
        "ss.count('b')",
        "any(ss)",
        "all(ss)",
        "[c for s in ss for c in [s, s.upper()]]",
        "{s: i for i, s in enumerate(ss)}",
        "sorted(ss, key=lambda s: (len(s), s), reverse=True)",
        "[f'{i:02d}-{s}' for i, s in enumerate(ss, start=1)]",
        "' '.join(reversed(ss))",
        "min('b', 'a')",
    ],
    "xss": [
        "[x for xs in xss for x in xs]",
        "sum([len(x) for x in xss])",
        "xss * 2",
        "[*xss, []]",
        "list(reversed(xss))",
        "sorted(xss, key=len)",
        "max(xss, key=len, default=[])",
        "xss.count([])",
        "xss.index([1])",
        "any(xss)",
        "all(xss)",
        "[[x] for xs in xss for x in xs]",
        "min(xss, key=len)",
        "sorted(xss, key=lambda x: len(x), reverse=True)",
        "[[*x, 0] for x in xss]",
        "[xs for xs in xss for _ in [1, 2]]",
        "sum([x for xs in xss for x in xs])",
        "xss.copy()",
    ],
    "bs": [
        "any(bs)",
        "all(bs)",
        "sum(bs)",
        "sorted(bs)",
        "bs.count(True)",
        "max(bs, default=False)",
        "sorted(bs, reverse=True)",
        "[int(b) for b in bs]",
        "True in bs",
    ],
    "d": [
        "dict(d)",
        "dict(d, z=1)",
        "dict(a=1)",
        "dict()",
        "d.copy()",
        "len(d.keys())",
        "'a' in d.keys()",
        "1 in d.values()",
        "sorted(d.items(), key=lambda kv: kv[1])",
        "sorted(d.items())",
        "sorted(d.items(), reverse=True)",
        "max(d, key=lambda k: d.get(k, 0))",
        "{**d, 'z': 1}",
        "[k for k in reversed(list(d))]",
        "sorted(d.values())",
        "any(d.values())",
        "any(d)",
        "sum(v for k, v in d.items() for _ in [1, 2])",
        "dict(d.items())",
        "{k: v for k, v in sorted(d.items(), key=lambda kv: kv[0])}",
    ],
    "d e": [
        "d | e",
        "d | {'q': 1}",
        "{**d, **e}",
        "d == e",
    ],
    "dl": [
        "list(dl.values())",
        "[x for xs in dl.values() for x in xs]",
        "dl.get('a', [])",
        "dict(dl)",
        "sum(len(v) for v in dl.values())",
        "sorted(dl.items())",
        "[k for k, v in sorted(dl.items())]",
        "{k: [*v, 1] for k, v in dl.items()}",
        "dl | {'z': []}",
    ],
    "lines": [
        "sorted(lines, key=lambda line: line.sku)",
        "[x.sku for x in sorted(lines, key=lambda x: x.qty, reverse=True)]",
        "min(lines, key=lambda x: x.qty, default=None)",
        "max(lines, key=lambda x: x.qty)",
        "[tag for line in lines for tag in line.tags]",
        "[t for x in lines if x.qty for t in x.tags if t != 't']",
        "lines[0].model_copy(update={'qty': 9})",
        "[x.model_copy(update={'tags': ['n']}) for x in lines]",
        "lines[0].model_copy()",
        "sorted(lines, key=lambda x: (x.qty, x.sku))",
        "len({x.sku for x in lines})",
        "'a' in {x.sku for x in lines}",
        "lines.count(Line(sku='a', qty=2))",
        "[*lines, Line(sku='q')]",
        "{x.sku: x for x in lines}",
        "any(x.qty > 1 for x in lines)",
        "sum(x.qty * 2 for x in lines)",
        "max((x.qty for x in lines), default=0)",
        "sorted(lines, key=lambda x: x.tags == [])",
    ],
    "order": [
        "order",
        "order.id",
        "order.made",
        "order.due",
        "order.grace",
        "order.price",
        "order.paid",
        "order.id == KEY",
        "order.paid is None",
        "order.due == DUE",
        "order.due < DUE",
        "order.address.street",
        "order.address.zip is None",
        "[order.made, order.made]",
        "{'at': order.made, 'k': order.id}",
        "order.grace == minutes(90)",
        "order.grace > hours(1)",
        "order.grace + minutes(5) > hours(2)",
        "order.grace * 2 > days(1)",
        "order.grace.total_seconds()",
        "f'{order.id}/{order.due}/{order.price}'",
        "str(order.id)",
        "order.due.isoformat()",
        "Order(id=order.id, made=order.made, grace=order.grace, price=order.price)",
        "Order(name='q')",
        "Order()",
        "order.model_copy(update={'status': Status.PAID, 'paid': order.made})",
        "order.model_copy(update={'grace': minutes(5)})",
        "Order(grace=minutes(10))",
        "Order(made=EPOCH, due=DUE, id=KEY, price=RATE)",
        "[order.paid, None]",
        "order.model_copy(update={'address': Address(street='x')})",
        "order.status.value",
        "order.status.name",
        "order.status == Status.PAID",
        "order.status in (Status.OPEN, Status.PAID)",
        "order.pair[1]",
        "order.pair",
        "order.id in [KEY]",
        "bool(order.grace)",
        "order.paid or order.made",
        "not order.id",
        "order.address == Address()",
        "1 if order.grace else 0",
        "order.grace == order.grace",
        "order.grace != hours(2)",
        "(order.due, order.id)",
        "order.paid if order.paid is not None else EPOCH",
        "-1 if order.paid else 1",
        "minutes(5)",
        "order.made is not None",
    ],
    "orders": [
        "[o.id for o in orders]",
        "sorted(orders, key=lambda o: o.grace)",
        "min(orders, key=lambda o: (o.due, o.name))",
        "{str(o.id): o.made for o in orders}",
        "[o.grace > minutes(1) for o in orders]",
        "len({o.id for o in orders})",
    ],
    "grace": [
        "grace",
        "grace > minutes(1)",
        "grace.total_seconds()",
        "[grace]",
        "grace == timedelta(days=30)",
        "grace + grace == grace * 2",
        "not grace",
        "grace < seconds(1) or grace >= days(30)",
        "{'g': grace}",
    ],
    "maybe": [
        "maybe",
        "maybe is None",
        "maybe.total_seconds() if maybe is not None else 0",
        "bool(maybe)",
        "(maybe or minutes(1)) > seconds(30)",
    ],
    "due": [
        "due",
        "due == DUE",
        "due <= DUE",
        "str(due)",
        "f'{due}'",
        "due.isoformat()",
        "due in (DUE,)",
        "sorted([due, DUE])",
        "max([due, DUE])",
        "max(due, DUE)",
    ],
    "key": [
        "key",
        "key == KEY",
        "str(key)",
        "key != KEY",
        "{str(key): key}",
        "key < KEY",
        "key in [KEY]",
    ],
    "at": [
        "at",
        "[at]",
        "{'at': at}",
        "at or EPOCH",
        "at is None",
        "is_past(at)",
        "EPOCH",
    ],
    "price": [
        "price",
        "str(price)",
        "[price]",
        "RATE",
        "price is None",
    ],
    "colour": [
        "colour.name",
        "colour.value",
        "colour == Colour.RED",
        "colour in (Colour.RED,)",
        "colour is Colour.RED",
        "{colour.name: colour}",
        "Colour.BLUE.value",
        "Colour.BLUE.name",
        "f'{colour.value}{colour.name}'",
        "colour in {Colour.RED, Colour.BLUE}",
        "[colour].count(Colour.RED)",
        "isinstance(colour, Colour)",
    ],
    "status": [
        "status.name",
        "status.value",
        "f'{status:>6}'",
        "status == 'paid'",
        "status in ('open',)",
        "status",
        "status is not Status.OPEN",
    ],
    "level": [
        "level.name",
        "level.value",
        "level == Level.HIGH",
        "level",
        "level in (Level.LOW,)",
        "level.value + 1",
    ],
    "pay": [
        "pay",
        "pay.kind",
        "pay.cents",
        "isinstance(pay, Card)",
        "pay.number if isinstance(pay, Card) else pay.iban",
        "pay.iban if pay.kind != 'card' else pay.number",
        "pay.number if pay.kind == 'card' else pay.cents",
        "isinstance(pay, (Card, Bank))",
        "isinstance(pay, Card | Bank)",
        "not isinstance(pay, Bank)",
        "[pay.kind]",
        "isinstance(pay, Bank) and pay.iban == 'X'",
        "pay.cents + 1",
        "[p.number for p in [pay] if isinstance(p, Card)]",
    ],
    "perhaps": [
        "perhaps is None or perhaps.cents > 5",
        "isinstance(perhaps, Card)",
        "perhaps.cents if perhaps else 0",
        "isinstance(perhaps, Card | None)",
        "perhaps.iban if isinstance(perhaps, Bank) else None",
    ],
    "mixed": [
        "isinstance(mixed, str)",
        "isinstance(mixed, int)",
        "mixed + 1 if isinstance(mixed, int) else mixed",
        "mixed.upper() if isinstance(mixed, str) else ''",
        "isinstance(mixed, (int, str))",
        "mixed is None",
        "isinstance(mixed, int | None)",
    ],
    "several": [
        "isinstance(several, str)",
        "several.upper() if isinstance(several, str) else sum(several)",
    ],
    "point": [
        "point",
        "point.x + point.y",
        "Point(1, 2)",
        "Point(x=point.y)",
        "Point(point.x, tags=['q'])",
        "point == Point(1)",
        "[point, Point(3)]",
        "point.tags",
        "[p.x for p in [point]]",
    ],
    "user": [
        "user + '!'",
        "UserId('k')",
        "UserId(user)",
        "user or 'none'",
    ],
    "cents": [
        "cents * 2",
        "f'{cents:,}'",
    ],
    "opt": [
        "opt or 5",
        "opt + 1 if opt is not None else 0",
    ],
    "pair": [
        "pair[0]",
        "pair[1]",
        "[pair, pair]",
        "pair",
        "len(pair)",
        "bool(pair)",
        "{'p': pair}",
    ],
    "pairs": [
        "pairs",
        "dict(pairs)",
        "[a for a, _ in pairs]",
        "sorted(pairs, key=lambda p: p[1])",
        "max(pairs, key=lambda p: (p[1], p[0]))",
        "{k: v for k, v in pairs}",
        "[p for p in pairs if p[1] > 1]",
        "[k * v for k, v in pairs]",
        "sum(p[1] for p in pairs)",
    ],
    "row": [
        "len(row)",
        "[x + 1 for x in row]",
        "row[0]",
        "sum(row)",
    ],
    "b": [
        "f'{b!s}'",
        "b == True",
        "PAIR",
        "[*PAIR]",
        "'a' in PAIR",
        "len(PAIR)",
        "PAIR[0]",
    ],
    "o": [
        "o.strip() if o else ''",
        "isinstance(o, str)",
        "o",
    ],
    "f": [
        "abs(f)",
        "max(f, 1.0)",
        "isinstance(f, float)",
        "+f",
        "min([f, 1.0], key=lambda x: -x)",
    ],
}


def inputs_of(names: str) -> list[dict[str, Any]]:
    columns = [[(name, value) for value in INPUTS[name][1]] for name in names.split()]
    return [dict(row) for row in itertools.product(*columns)]


def program_of(names: str) -> str:
    """A module with a workflow `flow_<number>` for each expression of these names."""
    parameters = ", ".join(f"{name}: {INPUTS[name][0]}" for name in names.split())
    flows = (
        f"@workflow\ndef flow_{number}({parameters}):\n    return {text}\n"
        for number, text in enumerate(EXPRESSIONS[names])
    )
    return HEADER + "\n".join(flows)


@pytest.mark.parametrize("names", EXPRESSIONS)
def test_an_expression_gives_the_same_value(names: str, tmp_path: Path) -> None:
    with loaded(tmp_path, program_of(names)) as module:
        for number, text in enumerate(EXPRESSIONS[names]):
            for values in inputs_of(names):
                try:
                    assert_same(getattr(module, f"flow_{number}"), values)
                except AssertionError as difference:
                    raise AssertionError(f"{text} of {values}: {difference}") from None


PROGRAMS: dict[str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a duration that came in is slept and waited for": (
        """
def flow(order: Order, maybe: timedelta | None, b: bool) -> str:
    sleep(order.grace)
    sleep(order.grace * 2 + minutes(1))
    if maybe is not None:
        sleep(maybe)
    wait = order.grace if b else minutes(5)
    sleep(wait)
    pause: timedelta = seconds(30)
    sleep(pause)
    try:
        late = wait_for_event("paid", Card, key=str(order.id), timeout=order.grace)
    except WaitTimeout:
        return "late"
    return late.number
""",
        [
            {"order": {}, "maybe": None, "b": True},
            {"order": {"grace": "P400DT2H3M4S"}, "maybe": 7, "b": False},
            {"order": {"grace": "PT1S"}, "maybe": "PT1H", "b": True},
        ],
        [{}, {"paid": {"number": "1"}}],
    ),
    "dates, decimals and keys cross tasks unchanged": (
        """
def flow(order: Order, grace: timedelta) -> dict[str, Any]:
    at = moved(order.made, grace)
    again_at = moved(by=minutes(5), at=at)
    same = again(order.model_copy(update={"paid": again_at, "grace": grace}))
    price = worth(same.price, order.id, due=same.due)
    seen = spent(Point(1, y=2))
    if is_past(again_at):
        return {"at": again_at, "price": price, "same": same, "seen": seen, "key": KEY}
    return {"at": None}
""",
        [{"order": {}, "grace": 90}, {"order": {"price": "2.50"}, "grace": "-P1DT3S"}],
        [{}],
    ),
    "a duration is returned as pydantic writes it": (
        """
def flow(n: int, grace: timedelta) -> timedelta | None:
    if n == 0:
        return None
    if n == 1:
        return grace
    if n > 3:
        return grace + seconds(n) * 2
    return seconds(n)
""",
        [{"n": n, "grace": g} for n in (0, 1, 2, 99999, 40000000) for g in (0, -90, "P400DT2S")],
        [{}],
    ),
    "unions are told apart by their tag": (
        """
def flow(pays: list[Card | Bank | None]) -> list[str]:
    seen: list[str] = []
    for pay in pays:
        if pay is None:
            seen.append("none")
        elif isinstance(pay, Card):
            seen.append(pay.number)
        elif pay.kind == "sepa":
            seen.append(f"sepa {pay.iban}")
        else:
            seen.append(pay.iban)
    return seen
""",
        [{"pays": []}, {"pays": [{"kind": "card"}, None, {"kind": "sepa"}, {"kind": "bank"}]}],
        [{}],
    ),
    "each item in order, through loops in loops": (
        """
def flow(lines: list[Line], d: dict[str, int]) -> list[str]:
    total = 0
    for line in sorted(lines, key=lambda line: (line.qty, line.sku), reverse=True):
        total += echo(line.qty)
    for number, (key, value) in enumerate(reversed(list(d.items())), start=1):
        total += number * value
    names = [f"{line.sku}{tag}" for line in lines for tag in line.tags]
    return [*names, f"{total:03d}"]
""",
        [{"lines": [], "d": {}}, {"lines": LINES, "d": {"a": 1, "b": 5}}],
        [{}],
    ),
    "names may be annotated in every way": (
        """
def flow(s: str, n: int) -> str:
    maybe: Optional[int] = None
    kind: Literal["a", "b"] = "a"
    many: Annotated[list[int], []] = []
    pause: timedelta | None = None
    if n > 0:
        maybe = n
        kind = "b"
        pause = minutes(n)
    many.append(n)
    text = "none" if maybe is None else str(maybe + 1)
    sleep(pause or seconds(1))
    return f"{kind}{text}{len(many)}{UserId(s)}"
""",
        [{"s": "x", "n": 0}, {"s": "", "n": 4}],
        [{}],
    ),
    "a list that is a copy is changed alone": (
        """
def flow(xs: list[int]) -> list[list[int]]:
    mine = xs.copy()
    mine.append(1)
    more = [*xs]
    more.append(2)
    return [xs, mine, more]
""",
        [{"xs": []}, {"xs": [5]}],
        [{}],
    ),
    "an int that is read from text fails as an expression does": (
        """
def flow(s: str) -> int:
    try:
        return echo(int(s))
    except Exception:
        return -1
""",
        [{"s": s} for s in ("12", "x", "", " 7 ", "-0012", "1__0", "+ 1")],
        [{}],
    ),
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_workflow_behaves_as_its_python(title: str, tmp_path: Path) -> None:
    text, inputs, arrivals = PROGRAMS[title]
    with loaded(tmp_path, f"{HEADER}\n@workflow{text}") as module:
        for values in inputs:
            for come in arrivals:
                assert_same(module.flow, values, come)
