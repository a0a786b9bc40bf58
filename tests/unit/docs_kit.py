"""The subjects of the tables on the pages about the language, and the reading of their cells."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).parents[2] / "docs"
_SPAN: Final = re.compile(r"`([^`]+)`")
#: The code around every example: the names that it uses.
MODULE: Final = """
from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import itertools
import json
import logging
import math
import random
import re
import uuid
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from operator import attrgetter, itemgetter
from pathlib import Path
from random import randint
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, SecretStr, TypeAdapter

from holdfast import (
    Retry, TaskError, WaitTimeout, Worker, ask, aws, choice, compensating, days, each,
    execution_id, execution_name, execution_started, first, hours, http, minutes, parallel,
    publish, pure, request, role, seconds, send, shielded, sleep, sleep_until, start, task,
    timeout, wait_for_condition, wait_for_event, workflow,
)

VAT_PERCENT = 20
log = logging.getLogger("shop")

class Colour(Enum):
    RED = "red"
    GREEN = "green"

class Line(BaseModel):
    sku: str
    qty: int

class Order(BaseModel):
    id: str
    lines: list[Line]
    note: str | None = None

class Payment(BaseModel):
    id: str
    cents: int
    status: str = "paid"

class Card(BaseModel):
    kind: Literal["card"] = "card"
    digits: str

class Transfer(BaseModel):
    kind: Literal["transfer"] = "transfer"
    iban: str

@dataclass
class Point:
    x: int
    y: int = 0

class Spot(NamedTuple):
    x: int
    y: int = 0

class OutOfStock(TaskError): ...

@task
def arrived(order_id: str) -> Payment | None:
    return Payment(id=order_id, cents=1)

def with_vat(cents: int) -> int:
    return cents + cents * VAT_PERCENT // 100

def sum_of(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += with_vat(number)
    return total

def add_to(found: list[int], number: int) -> int:
    found.append(number)
    return len(found)

def settled(order_id: str) -> bool:
    for _ in range(3):
        if is_ready(order_id):
            return True
        sleep(minutes(1))
    return False

@pure
def is_cheap(price: Decimal) -> bool:
    return price < 1

@task
def charge(order_id: str, cents: int) -> Payment:
    return Payment(id=order_id, cents=cents)

@task
def refund(payment_id: str) -> None: ...

@task(runs_on=Worker("gpu"))
def render(film: str) -> str:
    return film

@task
def is_ready(order_id: str) -> bool:
    return True

@pure
def vat(cents: int) -> int:
    return cents // 5

@pure
def total_of(cents: list[int]) -> int:
    return sum(cents)

TOOLS = choice(charge, vat)
HANDLERS = {"sum": total_of, "vat": vat}
BY_COLOUR = {Colour.RED: vat}

@workflow
def pack(order_id: str, quick: bool = False) -> str:
    return order_id

@workflow
def dispatch(order_id: str) -> str:
    return order_id

CHILDREN = choice(pack, dispatch)

@workflow
def program(
    order: Order, name: str, names: list[str], n: int, numbers: list[int], ratio: float,
    flag: bool, prices: dict[str, int], note: str | None, colour: Colour, payment: Card | Transfer,
    bill: Payment, when: AwareDatetime, closes: AwareDatetime, day: date, other_day: date,
    uid: UUID, other_uid: UUID, price: Decimal, wait: timedelta,
    names_by_number: dict[int, str], by_colour: dict[Colour, int],
    anything: Any, subject: SUBJECT,
):
BODY
"""
INPUT: Final[dict[str, Any]] = {
    "order": {"id": "o1", "lines": [{"sku": "tea", "qty": 2}, {"sku": "cup", "qty": 1}]},
    "name": "a-banana",
    "names": ["x", "y"],
    "n": 4,
    "numbers": [3, 1],
    "ratio": 2.5,
    "flag": True,
    "prices": {"tea": 300, "cup": 900},
    "note": None,
    "colour": "red",
    "payment": {"kind": "card", "digits": "1234"},
    "bill": {"id": "p1", "cents": 500},
    "when": "2026-02-01T00:00:00Z",
    "closes": "2026-02-01T12:30:00.5+05:30",
    "day": "2026-02-01",
    "other_day": "2026-03-01",
    "uid": "8fd1a4b2-6f57-4f7e-9d64-0d4f3d1b6a01",
    "other_uid": "8fd1a4b2-6f57-4f7e-9d64-0d4f3d1b6a02",
    "price": "1.50",
    "wait": "PT2H",
    "names_by_number": {"4": "four", "1": "one"},
    "by_colour": {"red": 3},
    "anything": 7,
}


_PROGRAM: Final = "@workflow\ndef program("


def module_of(programs: Sequence[tuple[str, str]]) -> str:
    """Return the source of a module with a workflow `program_0`, `program_1` … for each (body, type
    of its subject). What is around them is run and parsed once.
    """
    around, start, rest = MODULE.partition(_PROGRAM)
    texts = [
        (f"{start[:-1]}_{number}(" + rest)
        .replace("BODY", textwrap.indent(body, "    "))
        .replace("SUBJECT", subject)
        for number, (body, subject) in enumerate(programs)
    ]
    return "\n".join([around, *texts])


def module_with(body: str, *, more: str = "", subject: str = "int") -> str:
    """Return the source of a module whose workflow `program` has this body; `more` comes
    before it.
    """
    source = MODULE.replace("BODY", textwrap.indent(body, "    ")).replace("SUBJECT", subject)
    return f"{source}\n{more}\n"


def tables(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the heading and the cells of each row of each table of a page."""
    heading: list[str] | None = None
    for line in next(DOCS.rglob(page)).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            heading = None
        elif heading is None:
            heading = cells
        elif set(cells[0]) != {"-"}:
            yield heading, cells


def code_of(cell: str) -> list[str]:
    """Return the pieces of code in a cell."""
    return [span.replace("\\|", "|") for span in _SPAN.findall(cell)]
