"""Workflows whose secrets go to every place that a value can reach."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, Field, RootModel, SecretStr

from holdfast import ask, each, pure, task, wait_for_event, workflow

#: The tasks' inputs in clear text: only a test may keep them.
seen: list[str] = []


class Login(BaseModel):
    user: str
    password: SecretStr
    pin: SecretStr | None = None


class Pin(BaseModel):
    pin: SecretStr


class Pair(RootModel[dict[str, SecretStr]]):
    """A model whose fields the compiler must not read."""


@task
def sign_in(login: Login) -> SecretStr:
    password = login.password.get_secret_value()
    seen.append(password)
    return SecretStr(f"token-of-{password}")


@task
def use(token: Annotated[SecretStr, Field(max_length=60)], several: list[SecretStr]) -> int:
    seen.extend(one.get_secret_value() for one in (token, *several))
    return len(several)


@task
def break_with(token: SecretStr) -> None:
    raise ValueError(f"the door does not take {token.get_secret_value()}")


@task
def pairs(token: SecretStr) -> Pair:
    return Pair({"first": token})


@pure
def is_long(token: SecretStr) -> bool:
    return len(token.get_secret_value()) > 8


@workflow
def lend(token: SecretStr) -> SecretStr:
    use(token, [])
    return token


@workflow
def visit(login: Login, spare: SecretStr | None, others: list[SecretStr]) -> dict[str, SecretStr]:
    token = sign_in(login)
    borrowed = lend(token)
    for other in others:
        use(other, [borrowed])
    each(others, lambda one: use(one, []))
    if spare is not None:
        fits = is_long(spare)
        if fits:
            use(spare, [token, login.password])
    paid = wait_for_event("paid", Login, key=login.user)
    pin = ask("your pin", Pin, assignee=login.user, timeout=timedelta(days=1))
    made = Login(user="made", password=paid.password, pin=pin.pin)
    last = sign_in(made)
    try:
        break_with(last)
    except Exception:  # noqa: BLE001
        use(pin.pin, [])
    return {"last": last, "pin": pin.pin}


@workflow
def fail(token: SecretStr) -> None:
    break_with(token)


@workflow
def pair_up(token: SecretStr) -> Pair:
    return pairs(token)
