"""Refusals of constructs that AWS Step Functions lacks, with the lines of the source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.resources import POOL, is_later, runs_in_container
from holdfast.asl.validation.validate import diagnose
from holdfast.compiler.compile import CompiledWorkflow
from holdfast.compiler.diagnostics import Diagnostic
from holdfast.compiler.source import Source
from holdfast.limits import DEFINITION_BYTES_MAX

_EXTENSION: Final = "HF064"
_LIMIT: Final = "HF065"
#: The extensions of a state that the export leaves out without a refusal, because the result of the
#: workflow does not depend on them.
_SHOWN: Final = frozenset({"Publish", "Note"})

_FIRST: Final = "parallel(lambda: …, lambda: …)  # all of them are awaited"
_TOLERATED: Final = "each(items, f, return_exceptions=True)  # and count the errors in the result"
_RETURNED: Final = (
    "each(items, f, return_exceptions=True)  # without tolerate and at_least: all of them end"
)
_DEADLINE: Final = "charge.options(timeout=minutes(5))(…)  # each step has a timeout of its own"
_SECRET: Final = "let the task that needs it read it itself: boto3.client('secretsmanager')"  # noqa: S105
_REQUEST: Final = "send(…) and wait_for_event(…) of the reply; or `--target holdfast`"
_REPLY: Final = "wait_for_event(…), and a task that tells the caller; or `--target holdfast`"
_ON_LAMBDA: Final = "@task(runs_on=Lambda(…)), an existing function; or `--target holdfast`"
_NEXT: Final = "start(flow, …)  # another execution, with a name and a history of its own"
_LATER: Final = "start(remind, minutes(5), …)  # a workflow that sleeps first: sleep(when)"
_IN_BRANCH: Final = "move the `with` or `try` out of the branch, around the whole parallel or each"
_TIMEOUT: Final = (
    "@workflow  # without timeout=; give the steps their own: charge.options(timeout=…)"
)
_RETRY: Final = "retry=Retry(max_attempts=3)  # of every error: without on= and not_on="
_DELAYS: Final = "Retry(interval=seconds(2), backoff=4.0)  # each is `backoff` times the last"
_MAXIMUM: Final = re.compile(r"Maximum value is (\d+)")


@dataclass(frozen=True, slots=True)
class Note:
    """A note about something that the export omits. It does not change the result of the
    workflow.
    """

    file: str
    line: int
    message: str
    source_line: str

    def render(self) -> str:
        margin = f"{self.line:5} | "
        return f"{self.file}:{self.line}: note: {self.message}\n{margin}{self.source_line}"


@dataclass(frozen=True, slots=True)
class StatePlaces:
    """The places of a compiled workflow's states in its source."""

    compiled: CompiledWorkflow
    source: Source

    def refusal(self, state: str | None, code: str, message: str, help_: str) -> Diagnostic:
        """Return the refusal of a state; with `state` None, of the workflow itself."""
        file, line, column, text = self._place(state)
        width = max(len(text.split("#", 1)[0].rstrip()) - column + 1, 1)
        return Diagnostic(file, line, column, code, message, help_, text, width)

    def note(self, state: str, message: str) -> Note:
        file, line, _, text = self._place(state)
        return Note(file, line, message, text)

    def _place(self, state: str | None) -> tuple[str, int, int, str]:
        """Return file, line, column and the text of the line."""
        if state is not None:
            row: Any = self.compiled.sources[state]
            file, line, column = row["file"], row["line"], row["column"]
            if file == self.source.file:
                return file, line, column, self.source.lines[line - 1]
            # A step of a graph may be written in another file than the graph, so only its own text
            # is known.
            return file, line, column, " " * (column - 1) + row["text"]
        name = self.compiled.function.partition(":")[2]
        lines = [node.lineno for node in self.source.functions.values() if node.name == name]
        if lines:
            return self.source.file, lines[0], 1, self.source.lines[lines[0] - 1]
        # A graph has no function to point to, so use the place of its first state.
        return self._place(next(iter(self.compiled.sources)))


def find_refusals(
    places: StatePlaces, definition: Mapping[str, Any], exported: Mapping[str, Any]
) -> tuple[Diagnostic, ...]:
    """Return at most one refusal for each place. `definition` is for Holdfast's engine, `exported`
    is the same for AWS.
    """
    found: dict[tuple[int, int], Diagnostic] = {}
    for refusal in (*_extensions(places, definition), *_limits(places, exported)):
        found.setdefault((refusal.line, refusal.column), refusal)
    return tuple(found.values())


def find_notes(places: StatePlaces, definition: Mapping[str, Any]) -> tuple[Note, ...]:
    """Return notes about what differs on AWS when an execution is stopped."""
    extension = definition.get("Holdfast", {})
    undone = "StopExecution ends an execution on Step Functions without running this"
    cut = "StopExecution ends an execution on Step Functions inside of this, too"
    notes = [places.note(undo["Begin"], undone) for undo in extension.get("Undo", ())]
    notes += [places.note(states[0], cut) for states in _shielded_by_author(extension)]
    unread = "there is no place on Step Functions where this value could be read"
    for _, name, state in _states(definition, ""):
        if _SHOWN & state.get("Holdfast", {}).keys():
            notes.append(places.note(name, unread))
    for waiting, other in places.compiled.false_waits:
        notes.append(
            places.note(waiting, f"{waiting} waits for {other}, which it does not depend on")
        )
    return tuple(dict.fromkeys(notes))


# Extensions.


def _extensions(places: StatePlaces, definition: Mapping[str, Any]) -> Iterator[Diagnostic]:
    extension = definition.get("Holdfast", {})
    outermost = definition["States"].keys()

    def refuse(state: str | None, message: str, help_: str) -> Diagnostic:
        return places.refusal(state, _EXTENSION, message, help_)

    if places.compiled.secrets:
        message = f"Step Functions would keep a secret in clear: {places.compiled.secrets[0]}"
        yield refuse(None, message, _SECRET)
    for deadline in extension.get("Deadlines", ()):
        message = "a block with a timeout cannot be interrupted on Step Functions"
        yield refuse(deadline["Begin"], message, _DEADLINE)
    undos = [undo["Begin"] for undo in extension.get("Undo", ())]
    shielded = [states[0] for states in _shielded_by_author(extension)]
    for state in undos:
        if state not in outermost:
            message = "what a branch has done is not undone on Step Functions when another fails"
            yield refuse(state, message, _IN_BRANCH)
    for state in shielded:
        if state not in outermost:
            message = "a branch is not protected on Step Functions when another fails"
            yield refuse(state, message, _IN_BRANCH)
    if "TimeoutSeconds" in definition and (undos or shielded):
        message = "the workflow's own timeout ends it on Step Functions at once, and undoes nothing"
        yield refuse(None, message, _TIMEOUT)
    for _, name, state in _states(definition, ""):
        if state.get("Resource") == "holdfast:again":
            yield refuse(name, "an execution of Step Functions cannot go on as new", _NEXT)
        if state.get("Resource") == "holdfast:reply":
            yield refuse(name, "an execution of Step Functions cannot reply to a request", _REPLY)
        if state.get("Resource") == "holdfast:request.waitForTaskToken":
            yield refuse(name, "an execution of Step Functions cannot send a request", _REQUEST)
        resource = str(state.get("Resource", ""))
        if is_later(resource.removeprefix("holdfast:")):
            yield refuse(name, "Step Functions has no later start, and no later event", _LATER)
        if resource.startswith(POOL):
            yield refuse(name, "Step Functions has no pools of workers", _ON_LAMBDA)
        if runs_in_container(resource):
            message = "a container fetches its attempt from Holdfast, not from Step Functions"
            yield refuse(name, message, _ON_LAMBDA)
        if resource.startswith("holdfast:workflow:") and not _retries_alike(state):
            message = "Step Functions retries a child workflow after every error or after none"
            yield refuse(name, message, _RETRY)
        if any("Holdfast" in retrier for retrier in state.get("Retry", ())):
            message = "Step Functions has no list of delays, and no interval and backoff give these"
            yield refuse(name, message, _DELAYS)
        for word in state.get("Holdfast", {}):
            if word not in _SHOWN:
                yield refuse(name, *_LANES[word])


def _retries_alike(state: Mapping[str, Any]) -> bool:
    """Return True when the retries do not depend on the error of the child, which AWS reports as
    States.TaskFailed.
    """
    return all(retrier["ErrorEquals"] == [error_names.ALL] for retrier in state.get("Retry", ()))


def _shielded_by_author(extension: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """Yield the shielded parts that the author has written. Undo steps and `finally` bodies are
    shielded, too, but without the author's request.
    """
    begun = {undo["Begin"] for undo in extension.get("Undo", ())}
    for states in extension.get("Shielded", ()):
        if begun.isdisjoint(states):
            yield states


#: The fields of a state that AWS Step Functions does not have. Each has the message and the help
#: for the author.
_LANES: Final[Mapping[str, tuple[str, str]]] = {
    "AtMostOnce": (
        "Step Functions does not tell whether a function has run when its answer is lost",
        "@task  # without at_most_once=; its idempotency_key keeps a second run harmless",
    ),
    "Needed": ("branches cannot end before all of them are over on Step Functions", _FIRST),
    "Tolerated": ("one failed branch fails them all on Step Functions", _TOLERATED),
    "ReturnErrors": ("branches cannot be cancelled before they end on Step Functions", _RETURNED),
    "After": (
        "branches cannot wait for each other on Step Functions",
        "parallel(…)  # what does not depend on the others; what does, on the lines after it",
    ),
    "Poll": (
        "Step Functions calls no task again until it has a value",
        "while (found := check(order)) is None: sleep(minutes(5))",
    ),
}


# Limits.


def _limits(places: StatePlaces, exported: Mapping[str, Any]) -> Iterator[Diagnostic]:
    at = {place: name for place, name, _ in _states(exported, "")}
    for found in diagnose(exported):
        if found.severity == "ERROR":
            inside = [place for place in at if f"{found.location}/".startswith(f"{place}/")]
            name = at[max(inside, key=len)] if inside else None
            known = name if name in places.compiled.sources else None
            message = f"Step Functions refuses this: {found.message}"
            yield places.refusal(known, _LIMIT, message, _help_for(found.message))
    size = len(json.dumps(exported, ensure_ascii=False, indent=2).encode())
    if size > DEFINITION_BYTES_MAX:
        message = f"the definition has {size:,} bytes, and AWS takes {DEFINITION_BYTES_MAX:,}"
        yield places.refusal(None, _LIMIT, message, "call part of it as a workflow of its own")


def _help_for(message: str) -> str:
    maximum = _MAXIMUM.search(message)
    if maximum is None:
        return "write it in another way, or run it with `--target holdfast`"
    return f"timedelta(seconds={int(maximum[1]):_})  # at most"


def _states(machine: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield (its location, its name, the state) for every state, including those in branches."""
    for name, state in machine["States"].items():
        here = f"{place}/States/{name}"
        yield here, name, state
        for number, branch in enumerate(state.get("Branches", ())):
            yield from _states(branch, f"{here}/Branches[{number}]")
        if "ItemProcessor" in state:
            yield from _states(state["ItemProcessor"], f"{here}/ItemProcessor")
