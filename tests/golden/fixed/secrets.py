# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from pydantic import BaseModel, SecretStr

from holdfast import (pure, task, workflow)


class Login(BaseModel):
    user: str
    password: SecretStr


@task
def call(token: SecretStr) -> None: ...


@task
def note(text: SecretStr) -> None: ...


@task
def anything(value: SecretStr) -> None: ...


@task
def sign_in(value: Login) -> None: ...


@task
def noted(text: SecretStr | None) -> None: ...


@task
def listed(value: list[SecretStr | None]) -> None: ...


@pure
def is_so(token: SecretStr, maybe: SecretStr | None) -> bool:
    return token == maybe


@task
def perhaps(token: SecretStr | None) -> None: ...


@workflow
def flow(login: Login, token: SecretStr, maybe: SecretStr | None, given: SecretStr) -> None:
    note(token)
    call(token)
    anything(token)
    sign_in(login)
    noted(maybe)
    listed([maybe])
    call(given)
    if is_so(token, maybe):
        call(token)
    if maybe is not None:
        note(maybe)


@workflow
def told(token: SecretStr) -> SecretStr:
    return token


@task
def sign(token: SecretStr) -> str: ...


@workflow
def signed(token: SecretStr) -> str:
    return sign(token)


@workflow
def odd(token: SecretStr | None) -> None:
    perhaps(token)
