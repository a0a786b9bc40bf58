# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict, deque
from functools import reduce
from itertools import groupby
from datetime import datetime, timedelta

from holdfast import task, workflow
from tests.golden.shop import CardDeclined


@task
def now() -> datetime: ...


@task
def charge(order_id: str) -> str: ...


@workflow
def grouped(words: list[str]) -> str:
    groups = defaultdict(list)
    counts = Counter(words)
    ordered = OrderedDict()
    waiting = deque(words)
    numbers = Counter({name: words for name in words})
    lengths = Counter(word for word in words)
    lengths.update({len(word): 1 for word in words})
    halves = Counter([len(word) / 2 for word in words])
    return f"{groups} {counts}"


@workflow
def matched(n: int) -> str:
    found = re.match("(a)", n)
    total = reduce(lambda one: one, [n], 0)
    rows = list(groupby([n]))
    return found.group(1) if found else ""


@workflow
def tried(order_id: str) -> str:
    try:
        return charge(order_id)
    except (CardDeclined, ConnectionError) as err:
        return str(type(err))


@workflow
def timed(closes: datetime) -> None:
    left = closes - now()
