"""Workflows whose waits an event fails: the other side could not do what it was asked for."""

from __future__ import annotations

from holdfast import (
    Retry,
    TaskError,
    WaitTimeout,
    each,
    hours,
    receive,
    task,
    wait_for_event,
    workflow,
)


class PrinterError(TaskError): ...


class NoPaperError(PrinterError): ...


@workflow
def label(parcel: str) -> str:
    try:
        return wait_for_event("label.printed", str, key=parcel, timeout=hours(1))
    except PrinterError as error:
        return f"{type(error).__name__}: {error}"
    except WaitTimeout:
        return "late"


@workflow
def labels(parcels: list[str]) -> list[str]:
    return each(parcels, lambda parcel: wait_for_event("label.printed", str, key=parcel))


@task(retry=Retry(max_attempts=2))
def note(text: str) -> str:
    return text


@workflow(key="parcel", starts_on="label.wanted")
def printing(parcel: str) -> str:
    try:
        wait_for_event("label.wanted", int, key=parcel)
    except NoPaperError:
        return note("no paper")
    return note("printed")


@workflow
def asked(parcel: str) -> None:
    with receive("label.asked", str, key=parcel) as request:
        request.reply(request.data)
