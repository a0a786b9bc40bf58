"""`holdfast compile FILE.json`: graphs in JSON documents, with tasks from modules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from holdfast.api.dag import Dag
from holdfast.api.registry import Registry
from holdfast.api.step_types import StepType
from holdfast.api.tasks import Task
from holdfast.compiler.compile import compile_dag
from holdfast.compiler.graphs.documents import read_graph
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import export_all
from holdfast.errors import RequestError
from holdfast.local.build import Output, exported_outputs, import_module, outputs_of


def compile_files(paths: Iterable[Path], modules: Sequence[str]) -> list[Output]:
    """Return `<workflow_id>.asl.json` and `<workflow_id>.map.json` for each document, not yet
    written.
    """
    return [
        output
        for path, graph, _ in _read(paths, modules)
        for output in outputs_of(path.parent, compile_dag(graph))
    ]


def export_files(paths: Iterable[Path], modules: Sequence[str]) -> tuple[list[Output], list[str]]:
    """Return the files for AWS and the notes, like `build.export_modules`, but for documents."""
    outputs: list[Output] = []
    notes: list[str] = []
    for path, graph, source in _read(paths, modules):
        for exported in export_all([compile_dag(graph, in_plain_asl=True)], source):
            outputs += exported_outputs(path.parent, exported)
            notes += [note.render() for note in exported.notes]
    return outputs, notes


def _read(paths: Iterable[Path], modules: Sequence[str]) -> Iterable[tuple[Path, Dag, Source]]:
    """Yield path, graph and source. Raises RequestError HF282 for a file that cannot be read,
    CompileErrors for its content.
    """
    for name in modules:
        import_module(name)
    registry = Registry.from_modules(modules)
    parts: list[Task[..., Any] | StepType] = [*registry.tasks.values(), *registry.step_types]
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise RequestError("HF282", f"{path}: {reason}") from None
        file = path.as_posix()
        graph = Dag.of(read_graph(text, parts, file, file))
        yield path, graph, Source(file, tuple(text.splitlines()), {})
