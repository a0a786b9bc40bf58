"""The stored form of graphs that were registered at run time: one item for each name.

The item names the newest version's definition and keeps its document. Definitions of earlier
versions stay in the table of definitions, so executions of those versions go on unchanged.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from holdfast.asl.program import Json
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Get,
    Item,
    NoResult,
    PutIfAbsent,
    Query,
    Replace,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A registered graph in its newest version. Versions count from 1. `text`: its document,
    letter by letter. `definition`: the hash of its compiled form.
    """

    name: str
    version: int
    definition: str
    text: str
    registered_ms: int

    @property
    def document(self) -> Json:
        found: Json = json.loads(self.text)
        return found


def find(tenant: str, name: str) -> Generator[Effect, Any, StoredGraph | None]:
    item = yield Get(tables.MAIL, keys.graphs(tenant), name)
    return None if item is None else read_item(item)


def stored_graphs(tenant: str) -> Generator[Effect, Any, list[StoredGraph]]:
    """Return all registered graphs, by name."""
    items = yield Query(tables.MAIL, keys.graphs(tenant))
    return [read_item(item) for item in items]


def names(tenant: str, limit: int) -> Generator[Effect, Any, list[str]]:
    items = yield Query(tables.MAIL, keys.graphs(tenant), limit=limit)
    return [str(item["sk"]) for item in items]


def store(tenant: str, graph: StoredGraph) -> Generator[Effect, Any, bool]:
    """Store a new version. Return False when another caller has stored this version first."""
    item = _item(tenant, graph)
    if graph.version == 1:
        return (yield PutIfAbsent(tables.MAIL, item)) is None
    is_stored: bool = yield Replace(tables.MAIL, item, graph.version - 1)
    return is_stored


def remove(tenant: str, name: str) -> NoResult:
    """Remove the graph, and leave its definitions: executions may still run with them."""
    yield Delete(tables.MAIL, keys.graphs(tenant), name)


def compressed(text: str) -> bytes:
    return zlib.compress(text.encode(), 9)


def _item(tenant: str, graph: StoredGraph) -> Item:
    return {
        "pk": keys.graphs(tenant),
        "sk": graph.name,
        FORMAT_FIELD: FORMAT,
        "rv": graph.version,
        "dh": graph.definition,
        "doc": compressed(graph.text),
        "t0": graph.registered_ms,
    }


def read_item(item: Item) -> StoredGraph:
    require_format(item, "a registered graph")
    with reading("a registered graph"):
        document = item["doc"]
        assert isinstance(document, bytes)
        text = zlib.decompress(document).decode()
        name, definition = str(item["sk"]), str(item["dh"])
        return StoredGraph(name, int(item["rv"]), definition, text, int(item["t0"]))
