"""ASL JSON -> `Program`. Every problem of a document is reported at once, each with its path.

The vocabulary is JSONata ASL. A field that is not known is refused, because a misspelt `Retry`
that is silently ignored costs an order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from holdfast.asl.jsonata import JsonataError
from holdfast.asl.program import (
    Catcher,
    Choice,
    Fail,
    Json,
    Map,
    Parallel,
    Pass,
    Program,
    Retrier,
    Rule,
    State,
    Succeed,
    Task,
    TaskKind,
    Wait,
)
from holdfast.asl.template import Template, compile_template
from holdfast.errors import WorkflowError
from holdfast.limits import NAME_CHARACTERS_MAX

T = TypeVar("T")

_COMMON: Final = frozenset({"Type", "Comment", "QueryLanguage"})
_FLOW: Final = _COMMON | {"Next", "End", "Assign", "Output"}
_GUARDED: Final = _FLOW | {"Retry", "Catch", "Arguments"}
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "Pass": _FLOW,
    "Succeed": _COMMON | {"Output"},
    "Fail": _COMMON | {"Error", "Cause"},
    "Wait": _FLOW | {"Seconds", "Timestamp"},
    "Choice": _COMMON | {"Choices", "Default", "Assign", "Output"},
    "Task": _GUARDED | {"Resource", "TimeoutSeconds", "HeartbeatSeconds"},
    "Parallel": _GUARDED | {"Branches"},
    "Map": (_GUARDED - {"Arguments"})
    | {"Items", "ItemSelector", "ItemProcessor", "MaxConcurrency"},
}
_MACHINE: Final = frozenset(
    {"Comment", "QueryLanguage", "StartAt", "States", "TimeoutSeconds", "Version"}
)
_LEVEL: Final = frozenset({"Comment", "QueryLanguage", "StartAt", "States", "ProcessorConfig"})
_INLINE: Final = {"Mode": "INLINE"}
_RETRIER: Final = frozenset(
    {"ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds"}
    | {"JitterStrategy", "Comment"}
)
_RESOURCES: Final[Mapping[str, TaskKind]] = {
    "holdfast:event.waitForTaskToken": "event",
    "holdfast:ask.waitForTaskToken": "ask",
    "holdfast:token.waitForTaskToken": "token",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """`path` is a JSON pointer into the definition."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.message}"


class DefinitionError(WorkflowError):
    """A definition that does not validate (HF100), with every problem found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        lines = "; ".join(str(problem) for problem in problems)
        super().__init__("HF100", f"the definition does not validate: {lines}")
        self.problems = problems


def definition_hash(document: Json) -> str:
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(compact.encode()).hexdigest()


def parse_definition(document: Json) -> Program:
    """Raises `DefinitionError` naming the place of every problem."""
    parser = _Parser()
    program = parser.program(document)
    if parser.problems or program is None:
        raise DefinitionError(tuple(parser.problems))
    return program


@dataclass
class _Parser:
    problems: list[Problem] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)

    def program(self, document: Json) -> Program | None:
        if not isinstance(document, dict):
            self.refuse("", f"expected an object, found {_kind(document)}")
            return None
        if document.get("QueryLanguage") != "JSONata":
            self.refuse("/QueryLanguage", 'expected "JSONata"')
        start_at = self.machine(document, "")
        timeout = document.get("TimeoutSeconds")
        if timeout is not None and not _is_count(timeout, 1):
            self.refuse("/TimeoutSeconds", "expected a whole number of seconds above 0")
        return Program(
            hash=definition_hash(document),
            comment=str(document.get("Comment", "")),
            start_at=start_at,
            states=self.states,
            timeout_seconds=timeout,
        )

    def machine(self, document: dict[str, Any], path: str) -> str:
        """Reads one level of states into the flat mapping; -> the name it starts at."""
        self._only(document, _MACHINE if not path else _LEVEL, path)
        states = self._take(document, "States", dict, path) or {}
        for name, state in states.items():
            self.state(name, state, f"{path}/States/{name}")
        start_at = self._take(document, "StartAt", str, path) or ""
        if states and start_at not in states:
            self.refuse(f"{path}/StartAt", f"there is no state {start_at!r} on this level")
        self._check_targets(states, path)
        return start_at

    def state(self, name: str, state: Any, path: str) -> None:
        if not isinstance(state, dict):
            return self.refuse(path, f"expected an object, found {_kind(state)}")
        if len(name) > NAME_CHARACTERS_MAX:
            self.refuse(path, f"the name has {len(name)} characters; {NAME_CHARACTERS_MAX} fit")
        if name in self.states:
            self.refuse(path, "the name is used twice in this definition")
        kind = state.get("Type")
        read: Callable[[str, dict[str, Any], str], State] | None = {
            "Pass": self._pass,
            "Succeed": self._succeed,
            "Fail": self._fail,
            "Wait": self._wait,
            "Choice": self._choice,
            "Task": self._task,
            "Parallel": self._parallel,
            "Map": self._map,
        }.get(str(kind))
        if read is None:
            return self.refuse(f"{path}/Type", f"expected a state type, found {kind!r}")
        self._only(state, _FIELDS[str(kind)], path)
        if state.get("QueryLanguage", "JSONata") != "JSONata":
            self.refuse(f"{path}/QueryLanguage", 'expected "JSONata"')
        self.states[name] = read(name, state, path)
        return None

    # -- the eight types ---------------------------------------------------------------------------

    def _pass(self, name: str, state: dict[str, Any], path: str) -> State:
        return Pass(name, self._next(state, path), *self._results(state, path))

    def _succeed(self, name: str, state: dict[str, Any], path: str) -> State:
        return Succeed(name, self._template(state, "Output", path))

    def _fail(self, name: str, state: dict[str, Any], path: str) -> State:
        return Fail(
            name, self._template(state, "Error", path), self._template(state, "Cause", path)
        )

    def _wait(self, name: str, state: dict[str, Any], path: str) -> State:
        if ("Seconds" in state) == ("Timestamp" in state):
            self.refuse(path, "a Wait needs exactly one of Seconds and Timestamp")
        return Wait(
            name,
            self._next(state, path),
            *self._results(state, path),
            seconds=self._template(state, "Seconds", path),
            timestamp=self._template(state, "Timestamp", path),
        )

    def _choice(self, name: str, state: dict[str, Any], path: str) -> State:
        rules = []
        for number, rule in enumerate(self._take(state, "Choices", list, path) or []):
            where = f"{path}/Choices/{number}"
            if not isinstance(rule, dict) or "Condition" not in rule:
                self.refuse(where, "a rule needs a Condition")
                continue
            self._only(rule, frozenset({"Condition", "Next", "Assign", "Output", "Comment"}), where)
            condition = self._template(rule, "Condition", where)
            target = self._take(rule, "Next", str, where) or ""
            if condition is not None:
                rules.append(Rule(condition, target, *self._results(rule, where)))
        return Choice(name, tuple(rules), state.get("Default"), *self._results(state, path))

    def _task(self, name: str, state: dict[str, Any], path: str) -> State:
        resource = self._take(state, "Resource", str, path) or ""
        kind, target = _resource(resource)
        if kind is None:
            self.refuse(f"{path}/Resource", f"{resource!r} is not a resource that is known here")
        return Task(
            name,
            self._next(state, path),
            *self._results(state, path),
            resource=resource,
            kind=kind or "task",
            target=target,
            arguments=self._template(state, "Arguments", path),
            credentials=None,
            timeout_seconds=self._template(state, "TimeoutSeconds", path),
            heartbeat_seconds=self._template(state, "HeartbeatSeconds", path),
            retry=self._retriers(state, path),
            catch=self._catchers(state, path),
        )

    def _parallel(self, name: str, state: dict[str, Any], path: str) -> State:
        branches = self._take(state, "Branches", list, path) or []
        if not branches:
            self.refuse(f"{path}/Branches", "a Parallel needs at least one branch")
        starts = [
            self.machine(branch, f"{path}/Branches/{number}")
            if isinstance(branch, dict)
            else self._no_machine(f"{path}/Branches/{number}")
            for number, branch in enumerate(branches)
        ]
        return Parallel(
            name,
            self._next(state, path),
            *self._results(state, path),
            arguments=self._template(state, "Arguments", path),
            branches=tuple(starts),
            retry=self._retriers(state, path),
            catch=self._catchers(state, path),
        )

    def _map(self, name: str, state: dict[str, Any], path: str) -> State:
        processor = self._take(state, "ItemProcessor", dict, path) or {}
        if processor.get("ProcessorConfig", _INLINE) not in ({}, _INLINE):
            self.refuse(f"{path}/ItemProcessor/ProcessorConfig", f"only {_INLINE} is known here")
        return Map(
            name,
            self._next(state, path),
            *self._results(state, path),
            items=self._template(state, "Items", path),
            item_selector=self._template(state, "ItemSelector", path),
            concurrency_max=self._template(state, "MaxConcurrency", path),
            run=None,
            processor=self.machine(processor, f"{path}/ItemProcessor"),
            retry=self._retriers(state, path),
            catch=self._catchers(state, path),
        )

    # -- shared fields -----------------------------------------------------------------------------

    def _results(self, state: dict[str, Any], path: str) -> tuple[Template | None, Template | None]:
        assign = state.get("Assign")
        if assign is not None and not isinstance(assign, dict):
            self.refuse(f"{path}/Assign", f"expected an object, found {_kind(assign)}")
            return None, None
        return self._template(state, "Assign", path), self._template(state, "Output", path)

    def _next(self, state: dict[str, Any], path: str) -> str | None:
        if ("Next" in state) == (state.get("End") is True):
            self.refuse(path, 'expected either "Next" or "End": true')
        return state.get("Next")

    def _retriers(self, state: dict[str, Any], path: str) -> tuple[Retrier, ...]:
        found = self._handlers(state, "Retry", path)
        return tuple(self._retrier(item, where) for item, where in found)

    def _retrier(self, item: dict[str, Any], path: str) -> Retrier:
        self._only(item, _RETRIER, path)
        interval = self._number(item, "IntervalSeconds", 1, 1, path)
        attempts = self._number(item, "MaxAttempts", 3, 0, path)
        rate = item.get("BackoffRate", 2.0)
        if not isinstance(rate, int | float) or isinstance(rate, bool) or not rate >= 1:
            self.refuse(f"{path}/BackoffRate", f"expected a number of at least 1, found {rate!r}")
            rate = 1.0
        cap = self._number(item, "MaxDelaySeconds", 1, 1, path)
        jitter = item.get("JitterStrategy", "NONE")
        if jitter not in ("NONE", "FULL"):
            self.refuse(f"{path}/JitterStrategy", f'expected "NONE" or "FULL", found {jitter!r}')
        return Retrier(
            errors=self._errors(item, path),
            interval_seconds=interval,
            attempts_max=attempts,
            backoff_rate=float(rate),
            delay_seconds_max=cap if "MaxDelaySeconds" in item else None,
            has_full_jitter=jitter == "FULL",
        )

    def _catchers(self, state: dict[str, Any], path: str) -> tuple[Catcher, ...]:
        found = []
        for item, where in self._handlers(state, "Catch", path):
            self._only(
                item, frozenset({"ErrorEquals", "Next", "Assign", "Output", "Comment"}), where
            )
            target = self._take(item, "Next", str, where) or ""
            found.append(Catcher(self._errors(item, where), target, *self._results(item, where)))
        return tuple(found)

    def _handlers(
        self, state: dict[str, Any], key: str, path: str
    ) -> list[tuple[dict[str, Any], str]]:
        items = state.get(key, [])
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            self.refuse(f"{path}/{key}", "expected a list of objects")
            return []
        last = len(items) - 1
        for number, item in enumerate(items):
            errors = item.get("ErrorEquals")
            is_catch_all = isinstance(errors, list) and "States.ALL" in errors
            if is_catch_all and (number != last or len(item["ErrorEquals"]) != 1):
                self.refuse(f"{path}/{key}/{number}", "States.ALL must stand alone and last")
        return [(item, f"{path}/{key}/{number}") for number, item in enumerate(items)]

    def _errors(self, item: dict[str, Any], path: str) -> tuple[str, ...]:
        errors = self._take(item, "ErrorEquals", list, path) or []
        if not errors or not all(isinstance(error, str) for error in errors):
            self.refuse(f"{path}/ErrorEquals", "expected a list of error names")
        return tuple(errors)

    def _check_targets(self, states: dict[str, Any], path: str) -> None:
        for name, state in states.items():
            if not isinstance(state, dict):
                continue
            where = f"{path}/States/{name}"
            targets = [
                (f"{where}/{key}", state[key]) for key in ("Next", "Default") if key in state
            ]
            for key in ("Choices", "Catch"):
                handlers = state.get(key)
                for number, item in enumerate(handlers if isinstance(handlers, list) else []):
                    if isinstance(item, dict) and "Next" in item:
                        targets.append((f"{where}/{key}/{number}/Next", item["Next"]))
            for place, target in targets:
                if not isinstance(target, str) or target not in states:
                    self.refuse(place, f"there is no state {target!r:.90} on this level")

    # -- leaves ------------------------------------------------------------------------------------

    def _no_machine(self, path: str) -> str:
        self.refuse(path, "expected an object")
        return ""

    def refuse(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _only(self, item: dict[str, Any], known: frozenset[str], path: str) -> None:
        for key in item:
            if key not in known:
                self.refuse(f"{path}/{key}", "this field is not known here")

    def _take(self, item: dict[str, Any], key: str, kind: type[T], path: str) -> T | None:
        value = item.get(key)
        if isinstance(value, kind):
            return value
        self.refuse(f"{path}/{key}", f"expected {kind.__name__}, found {_kind(value)}")
        return None

    def _number(self, item: dict[str, Any], key: str, default: int, least: int, path: str) -> int:
        value = item.get(key, default)
        if not _is_count(value, least):
            self.refuse(f"{path}/{key}", f"expected a whole number from {least}, found {value!r}")
            return default
        return int(value)

    def _template(self, state: dict[str, Any], key: str, path: str) -> Template | None:
        if key not in state:
            return None
        try:
            return compile_template(state[key], f"{path}/{key}")
        except JsonataError as error:
            self.refuse(f"{path}/{key}", f"{error.code} {error.message}")
            return None


def _resource(resource: str) -> tuple[TaskKind | None, str]:
    if resource in _RESOURCES:
        return _RESOURCES[resource], ""
    prefix, _, target = resource.rpartition(":")
    match prefix:
        case "holdfast:task" if target:
            return "task", target
        case "holdfast:pure" if target:
            return "pure", target
        case _:
            return None, ""


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
