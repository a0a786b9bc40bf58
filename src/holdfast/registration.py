"""Graphs that are registered at run time, compiled with the tasks of the deployed code.

Only the API imports the compiler, and only for a request about such a graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from holdfast.api.payloads import validating
from holdfast.api.sealing import Seals, Vault
from holdfast.asl.program import Json
from holdfast.errors import HoldfastError, RequestError, WorkflowError
from holdfast.runtime.storage.definitions import Definition

if TYPE_CHECKING:
    from holdfast.api.dag import Dag
    from holdfast.api.registry import Registry
    from holdfast.api.step_types import StepType
    from holdfast.api.tasks import Task

#: The name that a refusal gives to the document.
_FILE: Final = "document"
#: The fields of a refusal that the caller gets.
_DIAGNOSTIC: Final = ("code", "message", "help", "line", "column")
#: The most refusals of one document in an answer, which may have at most 6 MB on Lambda.
_REFUSALS_MAX: Final = 50
#: The graphs that a process keeps in memory. A graph in memory need not be read again at the next
#: start of an execution. It takes about 17 bytes for each character of its document.
_SMALL_CHARACTERS_MAX: Final = 20_000
_SMALL_GRAPHS_MAX: Final = 128
_LARGE_GRAPHS_MAX: Final = 2


class DeployedGraphs:
    """The `Graphs` of a deployment; see `runtime.commands.payloads`."""

    def __init__(self, registry: Registry, vault: Vault) -> None:
        self._parts: tuple[Task[..., Any] | StepType, ...] = (
            *registry.tasks.values(),
            *registry.step_types,
        )
        self._vault = vault
        self._small = lru_cache(maxsize=_SMALL_GRAPHS_MAX)(self._parsed)
        self._large = lru_cache(maxsize=_LARGE_GRAPHS_MAX)(self._parsed)

    def compile(self, text: str) -> tuple[str, Definition]:
        from holdfast.compiler.compile import compile_dag  # noqa: PLC0415 - most requests need no compiler
        from holdfast.compiler.diagnostics import CompileErrors  # noqa: PLC0415

        try:
            found = compile_dag(self._parsed(text))
        except CompileErrors as refused:
            shown, all_ = refused.diagnostics[:_REFUSALS_MAX], len(refused.diagnostics)
            text = str(CompileErrors(shown))
            if all_ > len(shown):
                text = f"{text}\n\nThese are the first {len(shown)} of {all_} refusals."
            raise _refused(text, map(asdict, shown)) from None
        except WorkflowError as refused:
            raise _refused(str(refused), [vars(refused)]) from None
        definition = Definition(found.asl, json.loads(found.map_text), found.definition_hash)
        return found.name, definition

    def normalise_input(self, tenant: str, text: str, value: Json) -> Json:
        read = self._small if len(text) <= _SMALL_CHARACTERS_MAX else self._large
        try:
            graph = read(text)
        except HoldfastError as refused:
            raise RequestError(
                "HF444",
                f"the deployed code no longer fits the graph: {refused.message}",
                status=409,
                help="register a document that fits, or deploy the task again",
            ) from None
        with validating("HF210", f"the input of {graph.name}"):
            return graph.normalise_input(value, Seals(self._vault, tenant, may_open=False))

    def _parsed(self, text: str) -> Dag:
        from holdfast.api.dag import Dag  # noqa: PLC0415 - most requests concern no graph
        from holdfast.compiler.graphs.documents import read_graph  # noqa: PLC0415

        return Dag.of(read_graph(text, self._parts, _FILE, _FILE))


def _refused(text: str, found: Iterable[Mapping[str, Any]]) -> RequestError:
    rows = [{name: one[name] for name in _DIAGNOSTIC if name in one} for one in found]
    return RequestError(
        "HF440",
        f"the graph is refused:\n{text}",
        help="mend the document, and register it again",
        diagnostics=rows,
    )
