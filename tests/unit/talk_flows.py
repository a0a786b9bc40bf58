"""Workflows that talk to each other, for the test of a whole stack."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, SecretStr

from holdfast import again, minutes, publish, send, start, stop, task, wait_for_event, workflow

#: What the task has read, in clear.
read: list[str] = []


class Login(BaseModel):
    kind: Literal["login"] = "login"
    user: str
    token: SecretStr


class Logout(BaseModel):
    kind: Literal["logout"] = "logout"


@task
def use(token: SecretStr) -> int:
    read.append(token.get_secret_value())
    return len(read)


@workflow
def session(user: str, logins: int = 0) -> int:
    message: Login | Logout = wait_for_event("session", Login | Logout, key=user)
    match message:
        case Login(token=token):
            publish("login", message)
            return again(user, logins=use(token))
        case Logout():
            return logins


@workflow
def door(user: str, token: SecretStr) -> str:
    send("session", Login(user=user, token=token), key=user)
    return start(session, user)


@workflow
def tomorrow(user: str, token: SecretStr) -> list[str]:
    event = send("session", Login(user=user, token=token), key=user, delay=minutes(10))
    return [event, start(session, user, delay=minutes(5))]


@workflow
def leave(user: str) -> None:
    send("session", Logout(), key=user)


@workflow
def guard(user: str) -> None:
    stop(start(session, user))


@workflow
def halt(execution: str) -> None:
    stop(execution)
