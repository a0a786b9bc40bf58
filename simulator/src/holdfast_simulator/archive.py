"""Records when the archiver stored each object, and when TTL got leave to delete each record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime.effects import Effect, PutArchive, PutIfAbsent, Update
from holdfast.runtime.storage import tables


@dataclass
class ArchiveEvidence:
    """True times. `put_ms`: the first put of each object, by its key; `expiring_ms`: the time at
    which a record got its TTL, by partition and sequence number.
    """

    put_ms: dict[str, int] = field(default_factory=dict)
    expiring_ms: dict[tuple[str, int], int] = field(default_factory=dict)

    def see(self, effect: Effect, answer: Any, now_ms: int) -> None:
        match effect:
            case PutArchive(key):
                self.put_ms.setdefault(key, now_ms)
            case Update(tables.EXECUTIONS, pk, sk) if answer.is_done and "ttl" in answer.item:
                self.expiring_ms.setdefault((pk, int(sk)), now_ms)
            case PutIfAbsent(tables.EXECUTIONS, item) if answer is None and "ttl" in item:
                self.expiring_ms.setdefault((str(item["pk"]), int(item["sk"])), now_ms)
