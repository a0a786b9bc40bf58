"""Definitions by hash. Each one is stored once, never changed, and parsed once in each process."""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator
from dataclasses import field, replace
from typing import Any, Final

from holdfast.asl.parsing.parse import definition_hash, read_program
from holdfast.asl.program import Json, Program
from holdfast.errors import HoldfastBug
from holdfast.lazy_dataclass import dataclass
from holdfast.runtime.effects import Effect, Get, Put, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, Formats, require_format

#: A definition of format 2 has a field that code of format 1 would ignore, so that it would run the
#: workflow wrongly during a deployment. That code leaves an execution of format 2 to newer code.
_FORMATS: Final = Formats(oldest=FORMAT, newest=2, asked=FORMAT)
#: The fields that some code of format 1 ignores, as they are written. A text of the author with the
#: same characters gives its definition format 2 as well, which does no harm.
#:
#: All code that stores definitions for a stack reads `Undo`, `Shielded`, `Deadlines`, `Needed`,
#: `Tolerated` and `After`. `Poll` has a resource of its own, which older code refuses.
FIELDS_OF_2: Final = (
    '"ReturnErrors": ',
    '"AtMostOnce": ',
    '"Delays": ',
    '"Publish": ',
    '"Note": ',
    '"Cuts": ',
    '"kept": false',
)


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition. `source_map` is the compiler's map of sources, events and answers; {} for ASL
    that was not compiled by Holdfast.
    """

    asl: Json
    source_map: dict[str, Any]
    hash: str


def item_of(tenant: str, definition: Definition) -> dict[str, str | int | bytes]:
    text = _text_of(definition)
    is_newer = any(one in text for one in FIELDS_OF_2)
    return {
        "pk": keys.definition(tenant, definition.hash),
        "sk": keys.ONLY,
        FORMAT_FIELD: _FORMATS.newest if is_newer else FORMAT,
        "doc": _compressed(text),
    }


def compressed_of(definition: Definition) -> bytes:
    return _compressed(_text_of(definition))


def _text_of(definition: Definition) -> str:
    return json.dumps([definition.asl, definition.source_map], ensure_ascii=False)


def _compressed(text: str) -> bytes:
    return zlib.compress(text.encode(), 9)


def read_item(item: Any) -> Definition:
    require_format(item, "a definition", _FORMATS)
    with reading("a definition"):
        asl, source_map = json.loads(zlib.decompress(item["doc"]))
        found = Definition(asl, source_map, definition_hash(asl))
        if not str(item["pk"]).endswith(f"#{found.hash}"):
            raise HoldfastBug(f"the definition stored as {item['pk']} has the hash {found.hash}")
        return found


@dataclass
class Programs:
    """A process's cache of definitions and their parsed programs, by hash.

    The definitions are valid: the compiler or CreateStateMachine has checked them. `definitions`
    are the deployed ones. A hash covers only the ASL, not the source map, so each tenant has stored
    definitions of its own. Otherwise another tenant's state machine with the same ASL could change
    the type of a payload, or whether it is secret.
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
        """Store the definition. This happens before an execution refers to it, and costs one write
        for each process that starts executions of it.
        """
        if (tenant, definition.hash) in self._stored:
            return
        found = yield PutIfAbsent(tables.MAIL, item_of(tenant, definition))
        # A definition in a newer format was stored by newer code, so it stays as it is.
        if found is not None and definition.source_map and int(found[FORMAT_FIELD]) in _FORMATS:
            stored = read_item(found)
            newest = _with_secrets_of(stored, definition)
            if newest.source_map != stored.source_map:
                # The ASL is the same, but the types differ. Store the new types, so that answers to
                # waiting executions are checked with the types of this deployment.
                yield Put(tables.MAIL, item_of(tenant, newest))
        self._stored.add((tenant, definition.hash))

    def fetch(self, tenant: str, definition_hash: str) -> Generator[Effect, Any, Definition]:
        """Return the definition. Raises HoldfastBug when it is missing, because a definition is
        kept longer than its executions.
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
            # Add the definition to `_fetched` after its program is read. Other threads use it as
            # soon as it is there, and would otherwise find no program.
            self._fetched[key] = found
        return found


def _with_secrets_of(stored: Definition, definition: Definition) -> Definition:
    """Return the definition with the secrets of the stored one added. Executions that began with an
    older source map still wait for such payloads, and would otherwise store them in clear text.
    """
    secrets = {*stored.source_map.get("secrets", ()), *definition.source_map.get("secrets", ())}
    more = {"secrets": sorted(secrets)} if secrets else {}
    return replace(definition, source_map={**definition.source_map, **more})
