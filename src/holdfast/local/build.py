"""Compiles a project's modules: returns the files to write, and the refusals."""

from __future__ import annotations

import keyword
import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from linecache import getline
from pathlib import Path
from types import ModuleType
from typing import Final

from holdfast.api.payloads import require_one_type
from holdfast.api.registry import Registry, require_one_receiver
from holdfast.api.sealing import LocalVault, Seals
from holdfast.compiler.compile import CompiledWorkflow, compile_module
from holdfast.compiler.diagnostics import CompileErrors, Diagnostic
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import Exported, export_all
from holdfast.core.decision import iso_time
from holdfast.core.schedules import fault_in
from holdfast.deployment import rule_of
from holdfast.errors import HoldfastError, WorkflowError
from holdfast.sealed import hidden

#: The beginning of the file names of Holdfast's own modules.
_PACKAGE: Final = f"{Path(__file__).parents[1]}{os.sep}"


@dataclass(frozen=True, slots=True)
class Output:
    path: Path
    text: str

    def is_current(self) -> bool:
        try:
            return self.path.read_text(encoding="utf-8") == self.text
        except (FileNotFoundError, UnicodeDecodeError):
            return False

    def write(self) -> None:
        self.path.write_text(self.text, encoding="utf-8")


def compile_modules(names: Iterable[str]) -> list[Output]:
    """Return `<workflow>.asl.json` and `<workflow>.map.json` for each module. They are not yet
    written. Raises WorkflowError HF162 when two workflows take an event with different types.
    """
    found = [(compile_module(module), _folder(module)) for module in map(import_module, names)]
    require_one_type({one.name: one.events for compiled, _ in found for one in compiled})
    return [
        output for compiled, here in found for one in compiled for output in outputs_of(here, one)
    ]


def export_modules(names: Iterable[str]) -> tuple[list[Output], list[str]]:
    """Return the files for AWS (`<workflow>.stepfunctions.asl.json` and its substitutions), which
    are not yet written, and the notes to print.
    """
    outputs: list[Output] = []
    notes: list[str] = []
    for module in map(import_module, names):
        compiled = compile_module(module, in_plain_asl=True)
        here = _folder(module)
        for exported in export_all(compiled, Source.of(module)):
            outputs += exported_outputs(here, exported)
            notes += [note.render() for note in exported.notes]
    return outputs, notes


def exported_outputs(folder: Path, exported: Exported) -> list[Output]:
    return [
        Output(folder / f"{exported.name}.stepfunctions.asl.json", exported.asl_text),
        Output(folder / f"{exported.name}.stepfunctions.json", exported.substitutions_text),
    ]


def try_modules(names: Iterable[str]) -> tuple[list[CompiledWorkflow], list[str]]:
    """Return the compiled workflows, and the text of every error because of which others were not
    compiled.
    """
    errors: list[str] = []
    imported: list[str] = []
    compiled: list[CompiledWorkflow] = []
    for name in names:
        try:
            module = import_module(name)
            imported.append(name)
            compiled += compile_module(module)
        except CompileErrors as refused:
            errors += [diagnostic.render() for diagnostic in refused.diagnostics]
        except HoldfastError as error:
            errors.append(str(error))
    try:
        registry = Registry.from_modules(imported)
        require_schedules(registry)
        for workflow in compiled:
            called = workflow.tasks, workflow.workflows, workflow.task_modules
            registry.require_known(workflow.name, *called)
        keyed = {one.name: one.keyed.starts_on for one in compiled if one.keyed is not None}
        require_one_receiver({name: event for name, event in keyed.items() if event is not None})
        require_one_type({one.name: one.events for one in compiled})
    except HoldfastError as clash:
        errors.append(str(clash))
    return compiled, errors


def require_schedules(registry: Registry) -> None:
    """Raise WorkflowError: HF081 for an invalid cron expression or time zone, HF082 for an input
    that contains a secret. Raises RequestError HF210 for an input that does not fit its type.
    """
    for name, workflow in registry.workflows.items():
        schedule = workflow.schedule
        if schedule is None:
            continue
        fault = fault_in(rule_of(schedule))
        if fault is not None:
            raise WorkflowError(
                "HF081",
                f"the schedule of {name}: {fault}",
                help="expected: five fields like 0 9 * * MON-FRI, and a zone like Europe/Berlin",
            )
        data = {**schedule.input, **({schedule.time_as: iso_time(0)} if schedule.time_as else {})}
        normal = workflow.normalise_input(data, Seals(LocalVault(), "default", may_open=False))
        if hidden(normal) != normal:
            # Refuse the secret. The stored schedule would contain it in clear text, as the code
            # does.
            raise WorkflowError(
                "HF082",
                f"the schedule of {name} gives a secret",
                help="let a task fetch it, or create the schedule by command, which encrypts it",
            )


def import_module(name: str) -> ModuleType:
    """Import a module. This runs the user's own code, so it may raise any error."""
    try:
        Registry.from_modules([name])
    except CompileErrors:
        raise
    except WorkflowError as error:
        # A decorator refused its arguments, such as the name of a group: the error is at its line.
        raise _placed(error) from None
    except HoldfastError:
        raise
    except Exception as error:  # noqa: BLE001  # a module may raise anything
        raise WorkflowError(
            "HF072",
            f"{_place(error)}module {name} cannot be imported: {type(error).__name__}: {error}",
            help=f"try `{_import_command(name)}`",
        ) from None
    return sys.modules[name]


def outputs_of(folder: Path, compiled: CompiledWorkflow) -> list[Output]:
    return [
        Output(folder / f"{compiled.name}.asl.json", compiled.asl_text),
        Output(folder / f"{compiled.name}.map.json", compiled.map_text),
    ]


def _folder(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return _shown(Path(module.__file__).parent)


def _shown(path: Path) -> Path:
    """Return the path, relative if it is in the current folder."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _import_command(name: str) -> str:
    if all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        return f"python -c 'import {name}'"
    return f"python -c \"import importlib; importlib.import_module('{name}')\""


def _placed(error: WorkflowError) -> WorkflowError:
    """Return the error with the line of the module that raised it."""
    frame = _frame(error)
    line = "" if frame is None or frame.lineno is None else getline(frame.filename, frame.lineno)
    text = line.rstrip()
    if frame is None or frame.lineno is None or not text:
        return error
    written = text.lstrip()
    column = len(text) - len(written) + 1
    place = f"{_shown(Path(frame.filename))}", frame.lineno, column
    refused = Diagnostic(*place, error.code, error.message, error.help, text, len(written))
    return CompileErrors([refused])


def _place(error: Exception) -> str:
    """Return "file:line: " for the line that raised the error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    frame = _frame(error)
    return "" if frame is None else f"{_shown(Path(frame.filename))}:{frame.lineno}: "


def _frame(error: Exception) -> traceback.FrameSummary | None:
    """Return the last line of the author's code that led to the error."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_PACKAGE, "<")) and "importlib" not in frame.filename
    ]
    return frames[-1] if frames else None
