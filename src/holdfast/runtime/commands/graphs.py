"""Graphs that are registered at run time, beside the workflows of the deployed code.

A registered graph is a workflow of the tenant that registered it. Its steps run tasks of the
deployed code. An equal document is the same version, so a repeated request changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.errors import RequestError
from holdfast.limits import PAGE_BYTES_MAX, RECORD_BYTES_MAX
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.presentation import sent_bytes
from holdfast.runtime.effects import Clock, Effect, JsonResult, NoResult
from holdfast.runtime.listing import PageFilter, read_page
from holdfast.runtime.storage import graphs, keys
from holdfast.runtime.storage.definitions import Definition, compressed_of
from holdfast.runtime.storage.graphs import StoredGraph

#: The greatest size of a document, and of a picture. An answer may have both, and Lambda limits an
#: answer to 6 MB.
_PART_BYTES_MAX: Final = PAGE_BYTES_MAX // 2


@dataclass(frozen=True, slots=True)
class FoundWorkflow:
    """A workflow that can be started. `graph`: None for a workflow of the deployed code."""

    name: str
    definition: Definition
    graph: StoredGraph | None = None


def register(known: Lookup, tenant: str, text: str) -> JsonResult:
    """Register the graph of a document, or a new version of it. Executions keep their version.

    Raises RequestError HF440 for a refused document, HF441 to HF443.
    """
    # Check the size before the compilation. A document of several megabytes would take seconds to
    # compile, only to be refused.
    _require_size(len(graphs.compressed(text)))
    name, definition = known.graphs.compile(text)
    if name in known.workflows:
        raise RequestError(
            "HF441",
            f"{name} is a workflow of this stack's code",
            status=409,
            help="choose another workflow_id",
        )
    _require_size(len(compressed_of(definition)))
    now_ms = yield Clock()
    found = yield from graphs.find(tenant, name)
    version = 1 if found is None else found.version + 1
    wanted = StoredGraph(name, version, definition.hash, text, now_ms)
    if found is not None and _is_same(found, wanted):
        return {**shown(found), "registered": False}
    # Store the definition before the graph. As soon as the graph can be found, an execution of it
    # may start, and needs the definition.
    yield from known.programs.store(tenant, definition)
    if not (yield from graphs.store(tenant, wanted)):
        yield from _require_stored(tenant, wanted)
    return {**shown(wanted), "registered": True}


def remove(known: Lookup, tenant: str, name: str) -> JsonResult:
    """Remove a registered graph. Its executions go on, and no further one starts.

    Raises RequestError HF205; HF446 for a workflow of the deployed code.
    """
    found = (yield from graphs.find(tenant, name)) if keys.is_name(name) else None
    if found is None and name in known.workflows:
        raise RequestError(
            "HF446",
            f"{name} is a workflow of this stack's code",
            status=409,
            help="remove it from the code, and deploy",
        )
    if found is None:
        raise known.no_workflow(name)
    yield from graphs.remove(tenant, name)
    return {"workflow": name, "removed": True}


def _is_same(found: StoredGraph, wanted: StoredGraph) -> bool:
    return found.definition == wanted.definition and found.document == wanted.document


def _require_stored(tenant: str, wanted: StoredGraph) -> Generator[Effect, Any, None]:
    """Accept a version that a request with the same document has stored. Raises RequestError
    HF443.
    """
    found = yield from graphs.find(tenant, wanted.name)
    if found is None or not _is_same(found, wanted):
        raise RequestError(
            "HF443",
            f"another request has registered a version of {wanted.name} at the same time",
            status=409,
            help="read the new version, and register again if yours should replace it",
        )


def _require_size(size: int) -> None:
    if size > RECORD_BYTES_MAX:
        raise RequestError(
            "HF442",
            f"the graph has {size} bytes compressed, {RECORD_BYTES_MAX} are allowed",
            status=413,
            help="divide it into several graphs",
        )


def find_workflow(known: Lookup, tenant: str, name: Any) -> Generator[Effect, Any, FoundWorkflow]:
    """Return the workflow of the deployed code, or else the registered graph, of this name.

    A deployed workflow costs no read. Raises RequestError HF205.
    """
    if isinstance(name, str) and name in known.workflows:
        return FoundWorkflow(name, known.workflows[name])
    found = (yield from graphs.find(tenant, name)) if keys.is_name(name) else None
    if found is None:
        raise known.no_workflow(name, "; `holdfast workflows` lists registered graphs, too")
    definition = yield from known.programs.fetch(tenant, found.definition)
    return FoundWorkflow(found.name, definition, found)


def require_listed(known: Lookup, tenant: str, workflow: str | None, now_ms: int) -> NoResult:
    """Raise RequestError HF205 when no execution was ever listed under this workflow name, and no
    graph has it.

    A workflow whose executions have other statuses than the requested one is valid: the list is
    empty.
    """
    page = yield from read_page(tenant, known.spread, PageFilter(1, workflow), now_ms)
    if not page.entries and page.after is None:
        yield from find_workflow(known, tenant, workflow)


def normalised_input(known: Lookup, tenant: str, found: FoundWorkflow, data: Json) -> Json:
    """Return the input in the form of its type. Raises RequestError HF210, HF444."""
    if found.graph is None:
        return known.types.normalise_input(tenant, found.name, data)
    return known.graphs.normalise_input(tenant, found.graph.text, data)


def shown(graph: StoredGraph) -> dict[str, Any]:
    return {
        "workflow": graph.name,
        "version": graph.version,
        "definition": graph.definition,
        "registered_ms": graph.registered_ms,
    }


# -- reading ---------------------------------------------------------------------------------------


def workflows(known: Lookup, tenant: str) -> JsonResult:
    """Return the deployed workflows and the registered graphs. A graph has a `version`."""
    deployed = [_of_code(name, one) for name, one in known.workflows.items()]
    registered = yield from graphs.stored_graphs(tenant)
    found = [{**shown(one), "events": []} for one in registered if one.name not in known.workflows]
    return {"workflows": [*deployed, *found]}


def workflow(known: Lookup, tenant: str, name: str) -> JsonResult:
    """Return one workflow with its picture as SVG; a graph also with its `document`.

    `omitted` names those that are too large for an answer, if any. Raises RequestError HF205.
    """
    from holdfast.pictures.read import read_drawing  # noqa: PLC0415 - only this route draws
    from holdfast.pictures.svg import draw_svg  # noqa: PLC0415

    found = yield from find_workflow(known, tenant, name)
    definition, graph = found.definition, found.graph
    row = _of_code(name, definition) if graph is None else {**shown(graph), "events": []}
    picture = draw_svg(read_drawing(definition.asl, definition.source_map, title=name))
    document = {} if graph is None else {"document": graph.document}
    parts = {**document, "picture": picture}
    large = [part for part, value in parts.items() if sent_bytes(value) > _PART_BYTES_MAX]
    shown_parts = {part: value for part, value in parts.items() if part not in large}
    return {**row, **shown_parts, **({"omitted": large} if large else {})}


def _of_code(name: str, definition: Definition) -> dict[str, Any]:
    events = sorted(definition.source_map.get("events", {}))
    return {"workflow": name, "definition": definition.hash, "events": events}
