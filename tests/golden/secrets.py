# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr, field_serializer

from holdfast import (days, task, wait_for_event, workflow)


class Login(BaseModel):
    user: str
    password: SecretStr


class Told(BaseModel):
    password: SecretStr

    @field_serializer("password")
    def tell(self, password: SecretStr) -> str:
        return password.get_secret_value()


@task
def call(token: SecretStr) -> None: ...


@task
def note(text: str) -> None: ...


@task
def anything(value: Any) -> None: ...


@task
def perhaps(value: SecretStr | str) -> None: ...


@task
def several(values: set[SecretStr]) -> None: ...


@workflow
def flow(login: Login, token: SecretStr, maybe: SecretStr | None, given: str, json: Any) -> None:
    note(token)
    note(f"the token is {token}")
    note(token.get_secret_value())
    anything(token)
    anything(login)
    call(given)
    call(json)
    call("in the source")
    note(maybe)
    anything([maybe])
    if token == maybe:
        note("a")
    if maybe:
        note("b")


@workflow
def told(token: SecretStr) -> str:
    return token


@task(cache=days(1))
def sign(token: SecretStr) -> str: ...


@workflow
def signed(token: SecretStr) -> str:
    return sign(token)


@workflow
def odd(told: Told, raw: SecretBytes, given: str) -> None:
    perhaps(given)
    several([])
