"""I16 to I20: that everything goes on once nothing goes wrong any more."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.sim.invariants.case import Case


def open_runs(case: Case) -> set[str]:
    """-> executions that were accepted and have not ended."""
    accepted = {
        str(item["run"])
        for item in case.services.items("mail")
        if str(item["pk"]).split("#")[1:2] == ["n"]
    }
    ended = {history.run for history in case.histories if history.state.is_ended}
    return (accepted | {history.run for history in case.histories}) - ended


def none_lost(case: Case) -> Iterator[str]:
    if case.evidence is not None:  # a world may have been looked at in the middle
        for run in sorted(open_runs(case)):
            yield f"{run} was accepted and has not ended"
    yield from _listed_as_running(case)


def _listed_as_running(case: Case) -> Iterator[str]:
    ended = {history.run for history in case.histories if history.state.is_ended}
    for item in case.services.items("executions"):
        is_running_entry = str(item.get("lp", "")).split("#")[2:3] == ["RUNNING"]
        if is_running_entry and str(item["ls"]).partition("#")[2] in ended:
            yield f"{item['pk']!r}: ended, and still listed as RUNNING"


def none_stuck(case: Case) -> Iterator[str]:
    for run, since_ms, at_ms in case.schedule.stuck:
        yield f"{run} should have moved at {since_ms}, and had not at {at_ms}"


def in_time(case: Case) -> Iterator[str]:
    del case
    yield from ()


def dead_letters(case: Case) -> Iterator[str]:
    del case
    yield from ()


def bounded(case: Case) -> Iterator[str]:
    del case
    yield from ()
