"""Definitions by hash: stored once, never changed, parsed once per process."""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.asl.parsing.parse import definition_hash, read_program
from holdfast.asl.program import Json, Program
from holdfast.errors import HoldfastBug
from holdfast.runtime.effects import Effect, Get, Put, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition. `source_map` is the compiler's map: sources, events, answers; {} for foreign
    ASL.
    """

    asl: Json
    source_map: dict[str, Any]
    hash: str


def item_of(tenant: str, definition: Definition) -> dict[str, str | int | bytes]:
    text = json.dumps([definition.asl, definition.source_map], ensure_ascii=False)
    return {
        "pk": keys.definition(tenant, definition.hash),
        "sk": keys.ONLY,
        FORMAT_FIELD: FORMAT,
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

    Its definitions are valid: the compiler or CreateStateMachine has checked them. `definitions`
    are the deployed ones. A hash is of the ASL alone, so each tenant has stored definitions of its
    own, with their source maps: another tenant's state machine must not decide the type of a
    payload, or whether it is secret.
    """

    definitions: dict[str, Definition] = field(default_factory=dict)
    _fetched: dict[tuple[str, str], Definition] = field(default_factory=dict)
    _programs: dict[str, Program] = field(default_factory=dict)
    _stored: set[tuple[str, str]] = field(default_factory=set)

    def add(self, definition: Definition) -> None:
        self.definitions[definition.hash] = definition

    def is_known(self, tenant: str, definition_hash: str) -> bool:
        return definition_hash in self.definitions or (tenant, definition_hash) in self._fetched

    def program(self, definition_hash: str) -> Program:
        found = self._programs.get(definition_hash)
        if found is None:
            found = self._read(self.definitions[definition_hash])
        return found

    def _read(self, definition: Definition) -> Program:
        assert isinstance(definition.asl, dict)
        found = self._programs[definition.hash] = read_program(definition.asl)
        return found

    def store(self, tenant: str, definition: Definition) -> Generator[Effect, Any, None]:
        """Store the definition, before an execution names it. Costs one write for each process that
        starts executions of it.
        """
        if (tenant, definition.hash) in self._stored:
            return
        found = yield PutIfAbsent(tables.MAIL, item_of(tenant, definition))
        # Leave a definition that newer code has stored.
        if found is not None and definition.source_map and int(found[FORMAT_FIELD]) <= FORMAT:
            stored = read_item(found)
            newest = _with_secrets_of(stored, definition)
            if newest.source_map != stored.source_map:
                # The steps are the same and the types differ: answers to these executions are
                # checked with this deployment's types.
                yield Put(tables.MAIL, item_of(tenant, newest))
        self._stored.add((tenant, definition.hash))

    def fetch(self, tenant: str, definition_hash: str) -> Generator[Effect, Any, Definition]:
        """Return the definition. Raises HoldfastBug when it is missing: a definition outlives its
        executions.
        """
        found = yield from self.find(tenant, definition_hash)
        if found is None:
            raise HoldfastBug(f"the definition {definition_hash} is not stored")
        return found

    def find(self, tenant: str, definition_hash: str) -> Generator[Effect, Any, Definition | None]:
        """Return the definition, or None when it is not stored."""
        key = (tenant, definition_hash)
        found = self.definitions.get(definition_hash) or self._fetched.get(key)
        if found is None:
            item = yield Get(tables.MAIL, keys.definition(tenant, definition_hash), keys.ONLY)
            if item is None:
                return None
            found = read_item(item)
            if definition_hash not in self._programs:
                self._read(found)
            # Set the entry last: from then on threads of other deliveries use its program.
            self._fetched[key] = found
        return found


def _with_secrets_of(stored: Definition, definition: Definition) -> Definition:
    """Keep the secrets of older source maps. Executions of that time still wait for such a payload;
    without its type it would be stored in clear text.
    """
    secrets = {*stored.source_map.get("secrets", ()), *definition.source_map.get("secrets", ())}
    more = {"secrets": sorted(secrets)} if secrets else {}
    return replace(definition, source_map={**definition.source_map, **more})
