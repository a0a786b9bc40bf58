"""Definitions by hash: stored once, never changed, parsed once per process."""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from holdfast.asl.parse import definition_hash, read_program
from holdfast.asl.program import Json, Program
from holdfast.errors import HoldfastBug
from holdfast.runtime import keys
from holdfast.runtime.codec import reading
from holdfast.runtime.effects import Effect, Get, PutIfAbsent
from holdfast.runtime.formats import FORMAT, require_format


@dataclass(frozen=True, slots=True)
class Definition:
    """`source_map` is the compiler's map: sources, events, answers; {} for foreign ASL."""

    asl: Json
    source_map: dict[str, Any]
    hash: str


def item_of(tenant: str, definition: Definition) -> dict[str, str | int | bytes]:
    text = json.dumps([definition.asl, definition.source_map], ensure_ascii=False)
    return {
        "pk": keys.definition(tenant, definition.hash),
        "sk": keys.ONLY,
        "f": FORMAT,
        "doc": zlib.compress(text.encode(), 9),
    }


def read_item(item: Any) -> Definition:
    require_format(item, "a definition")
    with reading("a definition"):
        asl, source_map = json.loads(zlib.decompress(item["doc"]))
        found = Definition(asl, source_map, definition_hash(asl))
        if not str(item["pk"]).endswith(f"#{found.hash}"):
            raise HoldfastBug(f"the definition stored as {item['pk']} has the hash {found.hash}")
        return found


@dataclass
class Programs:
    """The process's cache: definitions and their programs by hash.

    What comes here was validated: by the compiler, or when its state machine was created.
    """

    definitions: dict[str, Definition] = field(default_factory=dict)
    _programs: dict[str, Program] = field(default_factory=dict)
    _stored: set[tuple[str, str]] = field(default_factory=set)

    def add(self, definition: Definition) -> None:
        self.definitions[definition.hash] = definition

    def is_known(self, definition_hash: str) -> bool:
        return definition_hash in self.definitions

    def program(self, definition_hash: str) -> Program:
        found = self._programs.get(definition_hash)
        if found is None:
            asl = self.definitions[definition_hash].asl
            assert isinstance(asl, dict)
            found = read_program(asl)
            self._programs[definition_hash] = found
        return found

    def store(self, tenant: str, definition: Definition) -> Generator[Effect, Any, None]:
        """Before an execution names it. Costs one write for each process that starts any."""
        if (tenant, definition.hash) not in self._stored:
            yield PutIfAbsent("mail", item_of(tenant, definition))
            self._stored.add((tenant, definition.hash))

    def fetch(self, tenant: str, definition_hash: str) -> Generator[Effect, Any, Definition]:
        """Raises HoldfastBug when it is nowhere: a definition outlives what uses it."""
        if definition_hash not in self.definitions:
            item = yield Get("mail", keys.definition(tenant, definition_hash), keys.ONLY)
            if item is None:
                raise HoldfastBug(f"the definition {definition_hash} is not stored")
            self.add(read_item(item))
        return self.definitions[definition_hash]
