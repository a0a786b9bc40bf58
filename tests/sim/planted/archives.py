"""Bugs of the archive: a record may expire first, or its execution is forgotten (I24)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from holdfast.runtime import follow_ups
from holdfast.runtime.effects import Effect, PutArchive, Update
from holdfast.runtime.worker import archiving
from tests.sim.planted.kit import CORPUS, Patch, Planted

_TASKS: Final = CORPUS["chain of tasks"]
_ALWAYS: Final = {"archives": True, "stop_percent": 0, "redrive_percent": 0}


def _expire_first(patch: Patch) -> None:
    """Give the first record its TTL before the object is stored."""
    real = archiving._archive

    def archive(*arguments: Any) -> Generator[Effect, Any, None]:
        handler, held = real(*arguments), list[Effect]()
        answer: Any = None
        while True:
            try:
                effect = handler.send(answer)
            except StopIteration:
                return
            if isinstance(effect, PutArchive):
                held.append(effect)
                answer = None
                continue
            answer = yield effect
            if isinstance(effect, Update) and held:
                yield held.pop()

    patch.setattr(archiving, "_archive", archive)


def _forget_first(patch: Patch) -> None:
    """Delete the row before the records are archived: a crash between them loses the execution."""
    real = archiving._archive

    def archive(row: Any, owner: str, formats: Any) -> Generator[Effect, Any, None]:
        yield from follow_ups.drop_row(row)
        yield from real(row, owner, formats)

    patch.setattr(archiving, "_archive", archive)


def _cut_off(patch: Patch) -> None:
    """The object lacks the newest record."""
    real = archiving._packed
    patch.setattr(
        archiving, "_packed", lambda state, records, now_ms: real(state, records[:-1], now_ms)
    )


PLANTED = (
    Planted(
        "a record may expire before its object is stored",
        _expire_first,
        frozenset({"I24"}),
        _TASKS,
        {},
        _ALWAYS,
    ),
    Planted(
        "a worker that crashes in the archive forgets the execution",
        _forget_first,
        frozenset({"I24"}),
        _TASKS,
        {"killed before": 0.1, "killed after": 0.1},
        {**_ALWAYS, "safety_ms": 20_000_000},
    ),
    Planted(
        "an object lacks the newest record",
        _cut_off,
        frozenset({"I24"}),
        _TASKS,
        {},
        _ALWAYS,
    ),
)
