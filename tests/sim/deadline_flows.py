"""A workflow that handles requests in rounds, each with a deadline."""

from __future__ import annotations

import logging

from pydantic import BaseModel

from holdfast import BlockTimeout, receive, seconds, task, timeout, workflow

ROUNDS = 6
log = logging.getLogger(__name__)


class Order(BaseModel):
    number: int


@task
def check(number: int) -> int:
    return number


@workflow(key="name", starts_on="desk")
def desk(name: str, rounds: int = ROUNDS) -> int:
    total = 0
    for _ in range(rounds):
        try:
            with timeout(seconds(30)), receive("desk", Order, key=name) as request:
                total += request.data.number
                log.info("%s brings %s", name, request.data.number)
                request.reply(total)
        except BlockTimeout:
            total += check(1_000)
    return total
