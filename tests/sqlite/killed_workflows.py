"""A workflow whose tasks note each of their calls in a file that survives the process."""

from __future__ import annotations

import os
import uuid

from pydantic import BaseModel

from holdfast import seconds, sleep, task, wait_for_event, workflow

#: Names the file of the calls; the children of the script have it.
CALLS = "HOLDFAST_TEST_CALLS"


class Released(BaseModel):
    by: str


@task(timeout=seconds(20))
def note(key: str, step: int) -> str:
    """Return the id of this call, after its line is in the file."""
    call = uuid.uuid4().hex
    file = os.open(os.environ[CALLS], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{key} {step} {call}\n".encode())
    finally:
        os.close(file)
    return call


@workflow
def chain(key: str) -> list[str]:
    first = note(key, 1)
    sleep(seconds(1))
    second = note(key, 2)
    wait_for_event("released", Released, key=key)
    third = note(key, 3)
    return [first, second, third]
