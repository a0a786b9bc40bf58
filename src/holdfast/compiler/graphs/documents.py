"""Graphs as JSON documents.

{"workflow_id": "nightly", "steps": [
    {"id": "extract", "type": "extract_rows"},
    {"id": "clean", "type": "clean_rows", "depends_on": ["extract"],
     "arguments": {"rows": {"$step": "extract"}, "day": {"$input": "day"}, "limit": 10},
     "timeout_seconds": 60, "retry": {"max_attempts": 5}}
]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from holdfast.api.graph_model import (
    FromInput,
    FromStep,
    GraphModel,
    InJson,
    Step,
    parameters_of,
)
from holdfast.api.retries import Retry
from holdfast.api.services import ServiceCall
from holdfast.api.step_types import (
    APPROVAL_TIMEOUT,
    COMPENSATION,
    HUMAN_APPROVAL,
    NAMED_BY_ID,
    HumanApproval,
    StepType,
)
from holdfast.api.surface import role
from holdfast.api.tasks import Task
from holdfast.asl.json_text import JsonDepthError, JsonTextError, read_json
from holdfast.compiler.diagnostics import CompileErrors, Diagnostic
from holdfast.compiler.graphs.checks import check_dag
from holdfast.compiler.graphs.places import DocumentPath, spot_of
from holdfast.compiler.graphs.services import request_of, service_named
from holdfast.errors import WorkflowError, nearest

_FILE: Final = "<document>"
_DAG: Final = ("workflow_id", "steps", "timeout_seconds")
_STEP: Final = ("id", "type", "depends_on", "arguments", "timeout_seconds", "retry")
_APPROVAL: Final = (
    *("id", "type", "depends_on", "assignee_role", "title", "notification", "timeout_seconds"),
)
#: The fields of a retry. The value is True when the field is a duration.
_RETRY: Final[Mapping[str, bool]] = {
    "max_attempts": False,
    "interval_seconds": True,
    "backoff": False,
    "max_delay_seconds": True,
}
_MISSING: Final = object()
#: The longest timeout that AWS accepts.
_SECONDS_MAX: Final = 99_999_999


def read_graph(
    document: str | Mapping[str, Any],
    tasks: Iterable[Task[..., Any] | StepType],
    file: str,
    module: str,
) -> GraphModel:
    """Return the graph of a JSON document. Raises CompileErrors with all errors, of the document
    and of the graph.
    """
    text = document if isinstance(document, str) else json.dumps(document, indent=2)
    root = InJson(module, file or _FILE, text, "")
    given = tuple(tasks)
    kinds = {one.name: one for one in given if isinstance(one, StepType)}
    reading = _Reading(root, {one.name: one for one in given if isinstance(one, Task)}, kinds)
    graph = reading.graph(_parsed(text, root.file))
    if reading.refused or graph is None:
        raise CompileErrors(reading.refused)
    check_dag(graph)
    return graph


def _parsed(text: str, file: str) -> Any:
    try:
        return read_json(text)
    except JsonTextError as error:
        message = f"{file} is no JSON: {error.problem}"
        where = error.place.partition("line: ")[2].rstrip("]").replace(", column: ", ":")
        raise WorkflowError("HF057", f"{message}, at {where}", help="mend the text") from None
    except JsonDepthError:
        message = f"{file} is nested too deeply"
        raise WorkflowError("HF057", message, help="a graph is a list of steps") from None


@dataclass(slots=True)
class _Reading:
    """Reads one document. Errors are collected, and reading continues."""

    root: InJson
    tasks: Mapping[str, Task[..., Any]]
    kinds: Mapping[str, StepType]
    refused: list[Diagnostic] = field(default_factory=list)

    def refuse(self, path: DocumentPath, code: str, message: str, help_: str) -> None:
        self.refused.append(spot_of(self.root, path).refusal(code, message, help_))

    def graph(self, found: Any) -> GraphModel | None:
        if not self._is(dict, found, (), "an object", '{"workflow_id": "nightly", "steps": []}'):
            return None
        self._known_fields(found, (), _DAG)
        name = self._text(found, (), "workflow_id", '"workflow_id": "nightly"')
        timeout = self._seconds(found.get("timeout_seconds"), ("timeout_seconds",))
        rows = found.get("steps", _MISSING)
        help_ = '"steps": [{"id": "extract", "type": "extract"}]'
        if not self._is(list, rows, ("steps",), "a list of steps", help_):
            return None
        read = [self._step(row, ("steps", number)) for number, row in enumerate(rows)]
        steps = [step for step in read if step is not None]
        return GraphModel(name, steps, timeout, self.root) if len(steps) == len(rows) else None

    def _step(self, row: Any, path: DocumentPath) -> Step | None:
        if not self._is(dict, row, path, "an object", '{"id": "extract", "type": "extract"}'):
            return None
        kind = str(row.get("type"))
        # Do not check the fields of a kind that the project has registered, because such a kind may
        # have fields of its own.
        if kind not in self.kinds:
            service = ("service",) if kind in NAMED_BY_ID else ()
            known = _APPROVAL if kind == HUMAN_APPROVAL else (*_STEP, *service)
            self._known_fields(row, path, known)
        id_ = self._text(row, path, "id", '"id": "extract"')
        awaited = self._awaited(row.get("depends_on", []), (*path, "depends_on"))
        arguments = self._arguments(row.get("arguments", {}), (*path, "arguments"))
        task = self._task_of(row, id_, path)
        if kind in self.kinds and task is not None and "step" in parameters_of(task):
            arguments = {"step": row, **arguments}
        if isinstance(task, ServiceCall):
            arguments = request_of(task, arguments)
        written = InJson(self.root.module, self.root.file, self.root.text, _location(path))
        is_undo = kind == COMPENSATION and kind not in self.tasks
        return None if task is None else Step(id_, task, awaited, arguments, written, is_undo)

    def _task_of(self, row: dict[str, Any], id_: str, path: DocumentPath) -> Task[..., Any] | None:
        kind = self._text(row, path, "type", f'"type": "{next(iter(self.tasks), "extract")}"')
        if kind in self.kinds:
            return self._with_settings(self.kinds[kind].task, row, path)
        if kind in self.tasks:
            return self._with_settings(self.tasks[kind], row, path)
        if kind in NAMED_BY_ID and "service" in row:
            call = self._service(row, path)
            return None if call is None else self._with_settings(call, row, path)
        if kind in NAMED_BY_ID:
            task = self._task(id_, (*path, "id"), '"id"')
            return None if task is None else self._with_settings(task, row, path)
        if kind == HUMAN_APPROVAL:
            return self._approval(row, id_, path)
        return self._task(kind, (*path, "type"), '"type"') if kind else None

    def _task(self, name: str, path: DocumentPath, field: str) -> Task[..., Any] | None:
        task = self.tasks.get(name)
        if task is None and name:
            known = ", ".join(sorted({*self.tasks, *self.kinds})) or "none"
            message = f'"{name}" is none of the tasks: {known}'
            meant = nearest(name, self.tasks)
            if field == '"type"':
                built_in = (*NAMED_BY_ID, HUMAN_APPROVAL)
                message += f"; nor a kind of step: {', '.join(built_in)}"
                meant = nearest(name, (*self.tasks, *self.kinds, *built_in))
            meant = meant or next(iter(self.tasks), "extract")
            self.refuse(path, "HF056", message, f'{field}: "{meant}"')
        return task

    def _service(self, row: dict[str, Any], path: DocumentPath) -> ServiceCall | None:
        example = '"service": "aws.s3.put_object"'
        name = self._text(row, path, "service", example)
        found = service_named(name)
        if found is None and name:
            message = f'"{name}" is no call of a service: aws.SERVICE.ACTION or http.METHOD'
            self.refuse((*path, "service"), "HF180", message, example)
        return found

    def _approval(self, row: dict[str, Any], id_: str, path: DocumentPath) -> HumanApproval | None:
        """Return a question to a role, open for 48 hours by default. `notification` names a task
        that runs before it.
        """
        asked = self._text(row, path, "assignee_role", '"assignee_role": "manager"')
        title = row.get("title", f"Approve {id_}?")
        self._is(str, title, (*path, "title"), "a text", '"title": "Approve the loan?"')
        seconds = self._seconds(row.get("timeout_seconds"), (*path, "timeout_seconds"))
        notify = None
        if "notification" in row:
            name = self._text(row, path, "notification", '"notification": "tell_manager"')
            notify = self._task(name, (*path, "notification"), '"notification"')
            if notify is not None and parameters_of(notify):
                message = f"the notification {name} has parameters, and a question gives it none"
                help_ = f'make it a step of its own: {{"id": "{name}", "type": "notification"}}'
                self.refuse((*path, "notification"), "HF057", message, help_)
        timeout = seconds or APPROVAL_TIMEOUT
        return HumanApproval(id_, title, role(asked), timeout=timeout, notify=notify)

    def _with_settings(
        self, task: Task[..., Any], row: dict[str, Any], path: DocumentPath
    ) -> Task[..., Any]:
        timeout = self._seconds(row.get("timeout_seconds"), (*path, "timeout_seconds"))
        return task.options(timeout=timeout, retry=self._retry(row.get("retry"), (*path, "retry")))

    def _awaited(self, found: Any, path: DocumentPath) -> tuple[str, ...]:
        if not self._is(list, found, path, "a list of ids", '"depends_on": ["extract"]'):
            return ()
        for number, id_ in enumerate(found):
            self._is(str, id_, (*path, number), "the id of a step", '"extract"')
        return tuple(found)

    def _arguments(self, found: Any, path: DocumentPath) -> dict[str, Any]:
        if not self._is(dict, found, path, "an object", '"arguments": {"limit": 10}'):
            return {}
        return {name: self._tree(value, (*path, name)) for name, value in found.items()}

    def _tree(self, value: Any, path: DocumentPath) -> Any:
        match value:
            case {"$step": str(id_), **rest} if not rest:
                return FromStep(id_)
            case {"$input": str(name), **rest} if not rest:
                return FromInput(name)
            case dict():
                for key in value:
                    if key.startswith("$"):
                        message = f'"{key}" is no reference: {{"$step": id}} or {{"$input": field}}'
                        self.refuse((*path, key), "HF057", message, '{"$input": "day"}')
                return {key: self._tree(item, (*path, key)) for key, item in value.items()}
            case list():
                return [self._tree(item, (*path, number)) for number, item in enumerate(value)]
            case _:
                return value

    def _retry(self, found: Any, path: DocumentPath) -> Retry | None:
        help_ = '"retry": {"max_attempts": 3}'
        if found is None or not self._is(dict, found, path, "an object", help_):
            return None
        self._known_fields(found, path, tuple(_RETRY))
        settings: dict[str, Any] = {}
        for name, value in found.items():
            if _is_number(value) and name in _RETRY:
                is_duration = _RETRY[name]
                key = name.removesuffix("_seconds")
                settings[key] = timedelta(seconds=value) if is_duration else value
            elif name in _RETRY:
                shown = json.dumps(value)
                message = f'"{name}" is {shown}, expected a number up to {_SECONDS_MAX}'
                self.refuse((*path, name), "HF061", message, f'"{name}": 3')
        if not isinstance(settings.get("max_attempts", 1), int):
            message = '"max_attempts" is not a whole number'
            self.refuse((*path, "max_attempts"), "HF061", message, '"max_attempts": 3')
            return None
        try:
            return Retry(**settings)
        except WorkflowError as error:
            self.refuse(path, error.code, error.message, error.help)
            return None

    # Shapes.

    def _is(self, kind: type, found: Any, path: DocumentPath, expected: str, help_: str) -> bool:
        if isinstance(found, kind):
            return True
        what = _named(path)
        message = (
            f"{what} is missing"
            if found is _MISSING
            else f"{what} is {_kind(found)}, expected {expected}"
        )
        self.refuse(path, "HF057", message, help_)
        return False

    def _known_fields(
        self, found: dict[str, Any], path: DocumentPath, known: tuple[str, ...]
    ) -> None:
        for name in found:
            if name not in known:
                message = f'"{name}" is no field here: {", ".join(known)}'
                meant = nearest(name, known)
                help_ = f'"{meant}"' if meant else f'remove "{name}"'
                self.refuse((*path, name), "HF057", message, help_)

    def _text(self, found: dict[str, Any], path: DocumentPath, name: str, help_: str) -> str:
        value = found.get(name, _MISSING)
        return value if self._is(str, value, (*path, name), "a text", help_) else ""

    def _seconds(self, found: Any, path: DocumentPath) -> timedelta | None:
        if found is None:
            return None
        if type(found) is not int or not 1 <= found <= _SECONDS_MAX:
            expected = f"whole seconds from 1 to {_SECONDS_MAX}"
            message = f"{_named(path)} is {json.dumps(found)}, expected {expected}"
            self.refuse(path, "HF052", message, '"timeout_seconds": 60')
            return None
        return timedelta(seconds=found)


def _location(path: DocumentPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f"/{part}" for part in path)


def _named(path: DocumentPath) -> str:
    return f'"{_location(path).removeprefix("/")}"' if path else "the document"


def _is_number(found: Any) -> bool:
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return is_number and abs(found) <= _SECONDS_MAX


def _kind(found: Any) -> str:
    match found:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
