"""The states of a definition in the form that AWS Step Functions can run.

* A task becomes `lambda:invoke`: the event of the function has the task's arguments and nothing
  else. The identity of the caller is in its client context.
* An event or a question becomes `lambda:invoke.waitForTaskToken`; a sent event `lambda:invoke`; a
  start `startExecution`.
* A child workflow becomes `startExecution.sync:2` with a Choice after it, because AWS reports every
  failure of a child as States.TaskFailed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from holdfast.asl import error_names
from holdfast.asl.documents import StateJson
from holdfast.compiler.targets.queries import (
    ERROR,
    RESULT,
    caller,
    error_of_child,
    error_of_function,
    expression,
    inside,
    replaced,
)
from holdfast.limits import NAME_CHARACTERS_MAX

TargetKind: TypeAlias = Literal["task", "pure", "event", "ask", "send", "workflow"]

INVOKE: Final = "arn:aws:states:::lambda:invoke"
_STOP: Final = "arn:aws:states:::aws-sdk:sfn:stopExecution"
START: Final = "arn:aws:states:::states:startExecution"
#: The errors of the Lambda service itself, and not of the function's code. The best practices of
#: AWS say that they should be retried.
SERVICE_ERRORS: Final = (
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
)
_SERVICE_RETRY: Final[StateJson] = {
    "ErrorEquals": list(SERVICE_ERRORS),
    "IntervalSeconds": 1,
    "MaxAttempts": 3,
    "BackoffRate": 2,
    "JitterStrategy": "FULL",
}
_BEFORE_RETRY: Final = ("Type", "Resource", "Arguments", "TimeoutSeconds")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The value that replaces a name between `${` and `}`.

    `name` is that of the task or workflow. One function serves all events, and one all questions.
    """

    kind: TargetKind
    name: str

    def to_json(self) -> dict[str, str]:
        name = {"name": self.name} if self.name else {}
        return {"kind": self.kind, **name, "is": self.need}

    @property
    def need(self) -> str:
        match self.kind:
            case "task" | "pure":
                return f"the ARN of a Lambda function whose handler is lambda_handler({self.name})"
            case "event":
                return "the ARN of a Lambda function that keeps the token of who awaits an event"
            case "ask":
                return "the ARN of a Lambda function that puts a question to a person"
            case "send":
                return "the ARN of a Lambda function that answers the tokens of who awaits an event"
            case "workflow":
                return f"the ARN of the state machine of the workflow {self.name}"


@dataclass(slots=True)
class Rewriting:
    """Rewrites one definition. `placeholders` are those in its states."""

    definition: StateJson
    placeholders: dict[str, Placeholder] = field(default_factory=dict)
    _text: str = ""
    _variables: set[str] = field(default_factory=set)
    _state_names: set[str] = field(default_factory=set)

    def machine(self) -> dict[str, Any]:
        """Return the whole definition, rewritten."""
        self._text = json.dumps(self.definition, ensure_ascii=False)
        for holder in _objects(self.definition):
            self._variables |= set(holder.get("Assign") or {})
            self._state_names |= set(holder.get("States") or {})
        return self._machine(self.definition, ())

    def _machine(self, machine: StateJson, lanes: tuple[str, ...]) -> dict[str, Any]:
        """Return a rewritten machine. `lanes` are expressions that identify the iterations around
        it.
        """
        states: dict[str, Any] = {}
        for name, state in machine["States"].items():
            states |= self._state(name, state, lanes)
        kept = {key: value for key, value in machine.items() if key != "Holdfast"}
        return {**kept, "States": _reached(states, machine["StartAt"])}

    def _state(self, name: str, state: StateJson, lanes: tuple[str, ...]) -> dict[str, Any]:
        """Return the rewritten state, and the states that AWS needs after it."""
        kept = {key: value for key, value in state.items() if key != "Holdfast"}
        match kept["Type"]:
            case "Task" if kept["Resource"].startswith("holdfast:workflow:"):
                return self._child(name, kept)
            case "Task":
                kept = self._task(name, kept, lanes)
            case "Parallel":
                kept["Branches"] = [self._machine(branch, lanes) for branch in kept["Branches"]]
            case "Map":
                kept["ItemProcessor"] = self._processor(kept["ItemProcessor"], lanes)
        if "Output" in kept:
            kept["Output"] = _output(kept["Output"])
        return {name: _with_texts_of_errors(kept)}

    def _processor(self, processor: StateJson, lanes: tuple[str, ...]) -> dict[str, Any]:
        """Store the index of an outer Map in a variable: inside of a nested Map the context object
        has only the inner index.
        """
        if not any(inner.get("Type") == "Map" for inner in _objects(processor["States"])):
            return self._machine(processor, (*lanes, "$states.context.Map.Item.Index"))
        variable = _unused("iteration", self._variables)
        machine = self._machine(processor, (*lanes, f"${variable}"))
        name = _unused("iteration", self._state_names)
        index = {variable: expression("$states.context.Map.Item.Index")}
        first = {name: {"Type": "Pass", "Assign": index, "Next": machine["StartAt"]}}
        return {**machine, "StartAt": name, "States": {**first, **machine["States"]}}

    def _task(self, name: str, state: dict[str, Any], lanes: tuple[str, ...]) -> dict[str, Any]:
        kind, _, target = state["Resource"].removeprefix("holdfast:").partition(":")
        match kind:
            case "task" | "pure":
                called = expression(caller(name, lanes))
                arguments = {
                    "FunctionName": self._placeholder(kind, target, target),
                    "Payload": state["Arguments"],
                    "ClientContext": called,
                }
                invoked = {**state, "Resource": INVOKE, "Arguments": arguments}
                # Lambda detects a crash of the function, and the function sends no heartbeats. So
                # the state must not have a heartbeat time-out.
                invoked.pop("HeartbeatSeconds", None)
                return _retried(_with_result(invoked, "Payload"))
            case "send":
                sent = {
                    "FunctionName": self._placeholder("send", "", "send_event"),
                    "Payload": state["Arguments"],
                }
                return _retried(
                    _with_result({**state, "Resource": INVOKE, "Arguments": sent}, "Payload")
                )
            case "arn":
                # The state calls a service and is already in the form that AWS uses.
                return state
            case "again" | "reply" | "request.waitForTaskToken" | "pool" | "container":
                # AWS cannot run this task, and `refusals` reports that.
                return state
            case "send_later" | "start_later":
                # AWS cannot run this task, and `refusals` reports that.
                return state
            case "stop":
                stopped = {"ExecutionArn": state["Arguments"]["execution"]}
                return {**state, "Resource": _STOP, "Arguments": stopped}
            case "start":
                machine = self._placeholder("workflow", target, target)
                given = {"StateMachineArn": machine, "Input": state["Arguments"]}
                started = {**state, "Resource": START, "Arguments": given}
                return _with_result(started, "ExecutionArn")
            case "event.waitForTaskToken":
                function = self._placeholder("event", "", "wait_for_event")
            case "ask.waitForTaskToken":
                function = self._placeholder("ask", "", "ask")
            case _:
                raise AssertionError(state["Resource"])
        token = expression("$states.context.Task.Token")
        payload = _with_token(state["Arguments"], token)
        arguments = {"FunctionName": function, "Payload": payload}
        return _retried({**state, "Resource": f"{INVOKE}.waitForTaskToken", "Arguments": arguments})

    def _child(self, name: str, state: dict[str, Any]) -> dict[str, Any]:
        target = state["Resource"].removeprefix("holdfast:workflow:")
        machine = self._placeholder("workflow", target, target)
        called = {
            **state,
            "Resource": "arn:aws:states:::states:startExecution.sync:2",
            "Arguments": {"StateMachineArn": machine, "Input": state["Arguments"]},
        }
        variable = _unused("child_failure", self._variables)
        handlers = called.get("Catch", [])
        chosen = _unused(_short("which error?", name), self._state_names)
        child_failed = {
            "ErrorEquals": [error_names.TASK_FAILED],
            "Assign": {variable: expression(error_of_child())},
            "Next": chosen,
        }
        called["Catch"] = [child_failed, *_with_texts_of_errors({"Catch": handlers})["Catch"]]
        behind = self._dispatch(name, chosen, f"${variable}", handlers)
        return {name: _with_result(called, "Output"), **behind}

    def _dispatch(
        self, name: str, chosen: str, error: str, handlers: list[StateJson]
    ) -> dict[str, Any]:
        """Send the error of a child to the handler of its own name, or fail with it."""
        rules = [
            _rule(handler, error)
            for handler in handlers
            if error_names.ALL not in handler["ErrorEquals"]
        ]
        total = [handler for handler in handlers if error_names.ALL in handler["ErrorEquals"]]
        last = _unused(_short("raise", name), self._state_names)
        if total:
            rest = _rule(total[0], error)
            del rest["Condition"]
            state = {"Type": "Pass", **rest}
        else:
            cause = expression(f"{error}.Cause")
            state = {"Type": "Fail", "Error": expression(f"{error}.Error"), "Cause": cause}
        if not rules:
            return {chosen: state}
        return {chosen: {"Type": "Choice", "Choices": rules, "Default": last}, last: state}

    def _placeholder(self, kind: TargetKind, name: str, wanted: str) -> str:
        placeholder = Placeholder(kind, name)
        for known, other in self.placeholders.items():
            if other == placeholder:
                return f"${{{known}}}"
        # A text of the workflow may look like a placeholder. Do not choose its name for a
        # placeholder, because the deployment would replace the text, too.
        taken = {*self.placeholders, *re.findall(r"\$\{(\w+)\}", self._text)}
        chosen = _unused(re.sub(r"\W", "_", wanted, flags=re.ASCII), taken)
        self.placeholders[chosen] = placeholder
        return f"${{{chosen}}}"


# States.


def _reached(states: dict[str, Any], start: str) -> dict[str, Any]:
    """Return the states without those that only an extension reaches: AWS refuses unreachable
    states.
    """
    found: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _following(states[name])
    return {name: state for name, state in states.items() if name in found}


def _following(state: StateJson) -> Iterator[str]:
    for holder in (state, *state.get("Choices", ()), *state.get("Catch", ())):
        yield from (holder[edge] for edge in ("Next", "Default") if edge in holder)


# Fields.


def _retried(state: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = {name: state[name] for name in _BEFORE_RETRY if name in state}
    retry = [dict(_SERVICE_RETRY), *state.get("Retry", [])]
    return first | {"Retry": retry} | state | {"Retry": retry}


def _with_token(arguments: Any, token: str) -> Any:
    """Return the arguments of a wait with the token added: they are an object, or an expression for
    one.
    """
    if isinstance(arguments, dict):
        return {"token": token, **arguments}
    made = inside(arguments)
    return expression(f'$merge([{{"token": {inside(token)}}}, {made}])')


def _with_result(state: dict[str, Any], part: str) -> dict[str, Any]:
    """Replace `$states.result` by one field of it: AWS's integration returns the result inside an
    object.
    """
    result = f"{RESULT}.{part}"
    changed = dict(state)
    for name in ("Assign", "Output"):
        if name in state:
            changed[name] = replaced(state[name], RESULT, lambda text: text, result)
    if state.get("End") is True and "Output" not in state:
        del changed["End"]
        changed |= {"Output": expression(result), "End": True}
    return changed


def _output(value: Any) -> Any:
    """Return an Output. AWS accepts any JSON here, but linters expect an object or an
    expression.
    """
    is_expression = isinstance(value, str) and value.startswith("{%")
    if isinstance(value, dict) or is_expression or '"{%' in json.dumps(value):
        return value
    return expression(json.dumps(value, ensure_ascii=False))


def _with_texts_of_errors(state: dict[str, Any]) -> dict[str, Any]:
    """Give handlers the text of an error: Lambda has it inside of JSON in the cause."""
    if "Catch" not in state:
        return state

    def bound(text: str) -> str:
        return f"($error_output := {error_of_function()}; {text})"

    handlers = [
        {**handler, "Assign": replaced(handler["Assign"], ERROR, bound, "$error_output")}
        if "Assign" in handler
        else handler
        for handler in state["Catch"]
    ]
    return {**state, "Catch": handlers}


def _rule(handler: StateJson, error: str) -> dict[str, Any]:
    """Return a Catch as a rule of a Choice that tests the variable `error`."""
    names = json.dumps(handler["ErrorEquals"], ensure_ascii=False)
    rule: dict[str, Any] = {"Condition": expression(f"{error}.Error in {names}")}
    if "Assign" in handler:
        rule["Assign"] = replaced(handler["Assign"], ERROR, lambda text: text, error)
    return {**rule, "Next": handler["Next"]}


# Names.


def _unused(wanted: str, taken: set[str]) -> str:
    """Return a free name similar to `wanted`, and mark it as taken."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        end = f"_{number}" if wanted.isidentifier() else f" ({number})"
        name = wanted[: NAME_CHARACTERS_MAX - len(end)] + end
    taken.add(name)
    return name


def _short(what: str, name: str) -> str:
    text = f"{what} {name}"
    return text if len(text) <= NAME_CHARACTERS_MAX else f"{text[: NAME_CHARACTERS_MAX - 1]}…"


def _objects(value: Any) -> Iterator[StateJson]:
    """Yield every JSON object in `value`, itself included."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)
