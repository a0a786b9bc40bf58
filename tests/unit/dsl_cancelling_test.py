"""A stopped or late part undoes its steps, and runs its `finally` and its handlers as
Python does.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.testing import World, real
from tests.unit.dsl_kit import loaded

HEADER = """
from __future__ import annotations
from holdfast import (
    BlockTimeout, CompensationFailed, TaskError, WaitTimeout, compensating, each, minutes, parallel,
    seconds, shielded, sleep, task, timeout, wait_for_event, workflow,
)

class Problem(TaskError): ...

@task
def say(text: str) -> None: ...
@task
def take_back(number: int) -> None:
    if number == 13:
        raise Problem("thirteen")
"""

STOPPED = {
    "finally": """
def flow(n: int) -> str:
    x = 1
    try:
        sleep(seconds(10))
        x = 2
        sleep(seconds(10))
    finally:
        say(f"finally {x}")
        sleep(seconds(5))
        say("done")
    say("after")
    sleep(seconds(10))
    return "end"
""",
    "finally in finally, with undo steps between": """
def flow(n: int) -> str:
    try:
        with compensating() as undo:
            undo(take_back, 1)
            try:
                sleep(seconds(10))
                undo(take_back, 2)
                sleep(seconds(10))
            finally:
                say("inner")
            sleep(seconds(10))
    except Exception:
        say("never")
    finally:
        say("outer")
    return "end"
""",
    "finally of a jump": """
def flow(n: int) -> str:
    for i in range(3):
        try:
            sleep(seconds(10))
            if i == 1:
                return "one"
        finally:
            say(f"finally {i}")
    return "end"
""",
    "a shielded part is finished": """
def flow(n: int) -> str:
    try:
        sleep(seconds(10))
        with shielded():
            say("one")
            sleep(seconds(10))
            say("two")
        sleep(seconds(10))
        say("three")
    finally:
        say("finally")
    return "end"
""",
    "branches run their own finally first": """
def flow(n: int) -> str:
    def left() -> str:
        try:
            sleep(seconds(10))
        finally:
            say("left")
        return "left"
    def right() -> str:
        try:
            sleep(seconds(20))
        finally:
            say("right")
        return "right"
    try:
        parallel(left, right)
    finally:
        say("outer")
    return "end"
""",
    "a finally that fails": """
def flow(n: int) -> str:
    try:
        try:
            sleep(seconds(10))
        finally:
            take_back(13)
    except Problem:
        say("caught")
        sleep(seconds(10))
    finally:
        say("outer")
    return "end"
""",
}


@pytest.mark.parametrize("second", [0, 5, 12, 17, 22, 27, 32, 60])
@pytest.mark.parametrize("title", STOPPED)
def test_a_stop_unwinds_as_a_cancellation_does(title: str, second: int, tmp_path: Path) -> None:
    with loaded(tmp_path, f"{HEADER}\n@workflow{STOPPED[title]}") as module:
        world = World(others=real)
        world.stop(at=timedelta(seconds=second, milliseconds=500))
        world.run(module.flow, 1)


LATE = {
    "nobody catches it": """
def flow(n: int) -> str:
    with timeout(seconds(20)):
        sleep(seconds(n))
        say("in time")
    return "end"
""",
    "its own handler, and one for every wait": """
def flow(n: int) -> str:
    try:
        with timeout(seconds(10)):
            sleep(seconds(n))
    except BlockTimeout:
        say("first")
    try:
        with timeout(seconds(20)):
            sleep(seconds(n))
    except WaitTimeout as err:
        return f"late {err}"
    return "end"
""",
    "undo and finally run before the handler": """
def flow(n: int) -> str:
    try:
        with timeout(seconds(20)), compensating() as undo:
            undo(take_back, 1)
            try:
                sleep(seconds(n))
                undo(take_back, 2)
                sleep(seconds(5))
            finally:
                say("finally")
    except BlockTimeout:
        say("late")
    finally:
        say("outer")
    return "end"
""",
    "the block is around no handler of its own": """
def flow(n: int) -> str:
    with timeout(seconds(20)):
        try:
            sleep(seconds(n))
            say("in time")
        except Exception:
            say("never")
        finally:
            say("finally")
    return "end"
""",
    "the undo around the block": """
def flow(n: int) -> str:
    try:
        with compensating() as undo:
            undo(take_back, 1)
            with timeout(seconds(n)):
                wait_for_event("never", str, key="k", timeout=seconds(20))
    except BlockTimeout:
        return "block"
    except WaitTimeout:
        return "wait"
    return "end"
""",
    "each round has its own time": """
def flow(n: int) -> str:
    rounds = 0
    for i in range(5):
        try:
            with timeout(seconds(10)):
                sleep(seconds(n + i))
                if i == 3:
                    return f"returned {rounds}"
        except BlockTimeout:
            rounds += 1
            if rounds == 3:
                break
    return f"{rounds}"
""",
    "an inner block and an outer one": """
def flow(n: int) -> str:
    try:
        with timeout(seconds(20)):
            try:
                with timeout(seconds(n)):
                    sleep(seconds(15))
                    say("inner done")
                sleep(seconds(15))
            except BlockTimeout:
                say("inner late")
                sleep(seconds(15))
    except BlockTimeout:
        return "outer late"
    return "end"
""",
    "a shielded part holds it up": """
def flow(n: int) -> str:
    try:
        with timeout(seconds(10)):
            with shielded():
                sleep(seconds(n))
                say("kept")
            sleep(seconds(1))
            say("in time")
    except BlockTimeout:
        return "late"
    return "end"
""",
    "branches are cancelled": """
def flow(n: int) -> str:
    try:
        with timeout(seconds(20)):
            each([1, n, 50], lambda x: sleep(seconds(x)))
    except BlockTimeout:
        return "late"
    return "end"
""",
}


@pytest.mark.parametrize("n", [1, 7, 12, 30])
@pytest.mark.parametrize("title", LATE)
def test_a_block_that_is_too_late_ends_as_in_python(title: str, n: int, tmp_path: Path) -> None:
    with loaded(tmp_path, f"{HEADER}\n@workflow{LATE[title]}") as module:
        World(others=real).run(module.flow, n)
