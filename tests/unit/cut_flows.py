"""Workflows with statements at the deadline of a block, for `cut_test.py`."""

from __future__ import annotations

from holdfast import (
    BlockTimeout,
    TaskError,
    again,
    each,
    first,
    publish,
    receive,
    seconds,
    send,
    shielded,
    sleep,
    task,
    timeout,
    wait_for_event,
    workflow,
)


class RefusedError(TaskError):
    """The work was refused."""


@task
def work(number: int) -> str:
    return f"done {number}"


@task
def note(text: str) -> None: ...


@workflow(key="name")
def rounds(name: str) -> str:
    for _ in range(5):
        try:
            with timeout(seconds(1)), receive("go", str, key=name) as request:
                send("taken", request.data, key="audit")
                publish("data", request.data)
                request.reply("ok")
                return request.data
        except BlockTimeout:
            pass
    return "never"


@workflow(key="name")
def many(name: str) -> list[str]:
    """Handles requests until a deadline."""
    handled: list[str] = []
    try:
        with timeout(seconds(10)):
            while True:
                with receive("go", str, key=name) as request:
                    handled.append(request.data)
                    request.reply(f"number {len(handled)}")
    except BlockTimeout:
        return handled


@workflow(key="name")
def works(name: str) -> str:
    """Handles a request with a task, which the deadline may interrupt."""
    try:
        with timeout(seconds(2)), receive("go", int, key=name) as request:
            done = work(request.data)
            request.reply(done)
            return done
    except BlockTimeout:
        return "late"
    return "rejected"


@workflow(key="name")
def shielded_work(name: str) -> str:
    try:
        with timeout(seconds(2)), receive("go", int, key=name) as request:
            number = request.data
            with shielded():
                done = work(number)
                request.reply(done)
                return done
    except BlockTimeout:
        return "late"
    return "rejected"


@workflow
def returned_in_a_shield(number: int) -> str:
    try:
        with timeout(seconds(1)), shielded():
            done = work(number)
            return done
    except BlockTimeout:
        return "late"


@workflow
def returned_behind_a_shield(number: int) -> str:
    try:
        with timeout(seconds(1)):
            with shielded():
                done = work(number)
            send("done", done, key="audit")
            return done
    except BlockTimeout:
        return "late"


@workflow
def left_behind_a_shield(number: int) -> str:
    done = ""
    try:
        with timeout(seconds(1)):
            with shielded():
                done = work(number)
            done += "!"
        note(done)
    except BlockTimeout:
        return "late"
    return done


@workflow
def slept_behind_a_shield(number: int) -> str:
    try:
        with timeout(seconds(1)):
            with shielded():
                done = work(number)
            send("done", done, key="audit")
            sleep(seconds(number - 1))
            return done
    except BlockTimeout:
        return "late"


@workflow
def broken_off_behind_a_shield(number: int) -> int:
    rounds_done = 0
    while True:
        try:
            with timeout(seconds(1)):
                with shielded():
                    work(number)
                rounds_done += 1
                if rounds_done == 3:
                    break
        except BlockTimeout:
            return -1
    return rounds_done


@workflow
def failed_behind_a_shield(number: int) -> str:
    try:
        with timeout(seconds(1)):
            with shielded():
                done = work(number)
            raise RefusedError(done)  # noqa: TRY301
    except BlockTimeout:
        return "late"
    except RefusedError as error:
        return f"refused: {error}"


@workflow
def failed_in_a_shield(number: int) -> str:
    with timeout(seconds(1)), shielded():
        work(number)
        raise RefusedError("no")


@workflow
def cleaned_up(number: int) -> str:
    try:
        with timeout(seconds(1)):
            try:
                with shielded():
                    done = work(number)
                return done
            finally:
                note("clean")
    except BlockTimeout:
        return "late"


@workflow
def both_late(number: int) -> str:
    try:
        with timeout(seconds(2)):
            try:
                with timeout(seconds(1)):
                    with shielded():
                        done = work(number)
                    send("inner", done, key="audit")
            except BlockTimeout:
                return "inner late"
            note("behind the inner block")
    except BlockTimeout:
        return "outer late"
    return done


@workflow
def branches_late(numbers: list[int]) -> list[str]:
    return each(numbers, returned_in_a_branch)


def returned_in_a_branch(number: int) -> str:
    with timeout(seconds(1)), shielded():
        return work(number)


@workflow
def raced(number: int) -> str:
    def slow() -> str:
        with shielded():
            done = work(number)
        send("lost", done, key="audit")
        note("never")
        return done

    def quick() -> str:
        sleep(seconds(1))
        return "quick"

    return first(quick, slow)


@workflow(key="name")
def renewed(name: str, left: int = 2) -> str:
    if left == 0:
        return "end"
    with timeout(seconds(1)), receive("go", int, key=name) as request:
        with shielded():
            request.reply(work(request.data))
        return again(name, left - 1)
    return "rejected"


@workflow(key="name")
def stopped(name: str) -> str:
    with shielded():
        went = wait_for_event("go", str, key=name)
        work(1)
    send("went", went, key="audit")
    publish("went", went)
    note("never")
    return went
