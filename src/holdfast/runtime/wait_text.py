"""The subjects of an execution's waits as one short text, for the list and the index of waits.

    [["ask","role:credit_manager",1767225600000],["retry","charge",1767225601000,"Declined"]]

DynamoDB finds a kind, or a kind with its target, in the text by `contains`: see `needle`. The
length is limited, so that a list entry fits into one write unit. If an execution has more waits
than fit, the text contains those that have lasted longest.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

from holdfast.core.subjects import ERROR_CHARACTERS_MAX, TARGET_CHARACTERS_MAX, Subject, WaitKind
from holdfast.lazy_dataclass import dataclass
from holdfast.runtime.effects import Item

#: The greatest length of a text in bytes. It is large enough for one subject, whose target and
#: error are cut, so a text is never empty because of its length.
TEXT_BYTES_MAX: Final = 400
NOTHING: Final = "[]"
#: The attributes of a record in which `IndexedWaits` is stored.
_CHECKSUM: Final = "wc"
_HAS_ROW: Final = "wr"


def text_of(subjects: Iterable[Subject]) -> str:
    """Return the text with as many of the subjects as fit, in their order."""
    parts: list[str] = []
    size_bytes = len(NOTHING)
    for subject in subjects:
        part = _json(_fields(subject))
        size_bytes += len(part.encode()) + 1
        if parts and size_bytes > TEXT_BYTES_MAX:
            break
        parts.append(part)
    return f"[{','.join(parts)}]"


def read_subjects(text: str) -> list[Subject]:
    return [_subject(*fields) for fields in json.loads(text)]


def needle(kind: WaitKind, target: str | None) -> str:
    """Return the part of the text that says that the execution waits for this. `target` None: for
    any target.
    """
    beginning = f"[{_json(kind.value)},"
    return beginning if target is None else f"{beginning}{_json(target[:TARGET_CHARACTERS_MAX])},"


def error_needle(error: str) -> str:
    """Return the part of the text that says that the last failure of a wait has this error."""
    return f",{_json(error[:ERROR_CHARACTERS_MAX])}]"


def checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _fields(subject: Subject) -> list[Any]:
    fields: list[Any] = [subject.kind.value, subject.target, subject.since_ms]
    return fields if subject.error is None else [*fields, subject.error]


def _subject(kind: str, target: str, since_ms: int, error: str | None = None) -> Subject:
    return Subject(since_ms, WaitKind(kind), target, error)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


@dataclass(frozen=True, slots=True)
class IndexedWaits:
    """The content of the index of waits for the execution, as of a record (`runtime/wait_rows.py`).

    `checksum` is that of the text; 0 while the execution is in no list. `has_row`: the execution
    may have a row of its own, so its end must empty it.
    """

    checksum: int = 0
    has_row: bool = False

    @classmethod
    def of(cls, record: Item) -> IndexedWaits:
        return cls(int(record.get(_CHECKSUM, 0)), _HAS_ROW in record)

    def attributes(self) -> dict[str, str | int | bytes]:
        checksum = {_CHECKSUM: self.checksum} if self.checksum else {}
        return {**checksum, _HAS_ROW: 1} if self.has_row else {**checksum}


UNLISTED: Final = IndexedWaits()
