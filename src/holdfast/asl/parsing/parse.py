"""The reader of definitions: ASL JSON -> `Program`, in either query language.

The problem
-----------
A definition comes from outside, and AWS accepts many forms of it. If a
misspelt `Retry` were silently ignored, an order could be lost, so an unknown field must be refused.
But a worker reads stored definitions again and again, and these checks must not cost time each
time.

Two parts ---------
    definition ──► validation.validate ──► problems? ──► DefinitionError (HF100), with places
                                             │ none
                                             ▼
                   read_program ──► Program: compiled templates, states in one flat mapping

* `validation` finds every problem of a definition. `parse_definition` calls it first.
* The reader in this file relies on that. It does not check a field again.
* A definition that is stored has passed validation, so a worker calls `read_program` directly. It
  does not import the validator, which would make a cold start slower.
* `parse_definition` refuses only problems that keep a definition from running. A state that is
  never reached is no such problem.
* `parse_state` reads one state that was validated alone, as TestState runs it.

States and machines
-------------------
State names are unique in a definition, so one mapping holds
the states of all levels. A branch of a Parallel, or the item processor of a Map, is identified by
the name of its first state:

    {"StartAt": "Both", "States": {"Both": {"Type": "Parallel", "Branches": [
        {"StartAt": "A", "States": {"A": …}},
        {"StartAt": "B", "States": {"B": …}}]}}}

    -> start_at "Both", states {"Both": ParallelState(branches=("A", "B")), "A": …, "B": …}

Query languages
---------------
A state names its language, or has that of the definition, which is
JSONPath by default. `StateFields` is the interface for the fields of a state. `JsonataFields` and
`PathFields` implement it and return templates. A program therefore does not depend on a query
language. `PathFields` is imported when the first JSONPath state is read, because compiled workflows
have none.

The hash of a program is the sha256 of its compact JSON, with keys in the written order. Two
definitions that differ in the order of their keys have different hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from holdfast.asl.documents import (
    Language,
    StateJson,
    config_of,
    language_of,
    processor_of,
    s3_action,
)
from holdfast.asl.parsing.extensions import (
    read_after,
    read_extensions,
    read_note,
    read_poll,
    read_publish,
    read_quorum,
)
from holdfast.asl.parsing.fields import JsonataFields, StateFields
from holdfast.asl.program import (
    Catcher,
    ChoiceRule,
    ChoiceState,
    DistributedMap,
    FailState,
    ItemBatcher,
    ItemReader,
    Json,
    MapState,
    ParallelState,
    PassState,
    Program,
    ResultWriter,
    Retrier,
    State,
    SucceedState,
    TaskState,
    WaitState,
)
from holdfast.asl.resources import read_resource
from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass

_ATTEMPTS_DEFAULT: Final = 3
_BACKOFF_DEFAULT: Final = 2.0


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a definition. `path` is its place as AWS writes it:
    "/States/A/Catch[0]/Next".
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.message}"


class DefinitionError(WorkflowError):
    """A definition with problems (HF100): all problems that were found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        lines = "; ".join(str(problem) for problem in problems)
        super().__init__("HF100", f"the definition does not validate: {lines}")
        self.problems = problems


def definition_hash(document: Json) -> str:
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(compact.encode(errors="surrogatepass")).hexdigest()


def parse_definition(document: Json) -> Program:
    """Read a definition. Raises `DefinitionError` with the place of every problem."""
    # Imported here for cold starts: a worker reads only definitions that were already validated.
    from holdfast.asl.validation.validate import diagnose_to_run  # noqa: PLC0415

    found = diagnose_to_run(document)
    if found or not isinstance(document, dict):
        problems = (Problem(item.location or "", f"{item.code}: {item.message}") for item in found)
        raise DefinitionError(tuple(problems))
    return read_program(document)


def read_program(document: dict[str, Any]) -> Program:
    """Return the program of a definition that was validated before it was stored."""
    parser = _Parser(language_of(document, "JSONPath"))
    start_at = parser.machine(document, "")
    undos, deadlines, shielded = read_extensions(document, parser.states)
    return Program(
        hash=definition_hash(document),
        comment=str(document.get("Comment", "")),
        start_at=start_at,
        states=parser.states,
        # AWS accepts a 0 and runs such a machine without a time-out.
        timeout_seconds=document.get("TimeoutSeconds") or None,
        undos=undos,
        deadlines=deadlines,
        shielded=shielded,
    )


def parse_state(name: str, state: StateJson) -> State:
    """Parse one state that was validated alone, as TestState runs it."""
    return _Parser("JSONPath").state(name, state, f"/States/{name}")


@dataclass(frozen=True, slots=True)
class _Parser:
    """Reads a machine and the machines inside of it into one flat mapping."""

    language: Language
    states: dict[str, State] = field(default_factory=dict)

    def machine(self, document: StateJson, path: str) -> str:
        """Return the name of the first state of this level."""
        for name, state in document["States"].items():
            self.states[name] = self.state(name, state, f"{path}/States/{name}")
        return str(document["StartAt"])

    def state(self, name: str, state: StateJson, where: str) -> State:
        read = _fields(state, where, language_of(state, self.language))
        match state["Type"]:
            case "Pass":
                return PassState(
                    name,
                    state.get("Next"),
                    read.assign(),
                    read.output(),
                    read.pass_result(),
                    read_publish(state, where),
                    read_note(state, where),
                )
            case "Succeed":
                return SucceedState(name, read.output())
            case "Fail":
                return FailState(name, read.value("Error"), read.value("Cause"))
            case "Wait":
                return _wait(name, state, read)
            case "Choice":
                return _choice(name, state, read, where)
            case "Task":
                return _task(name, state, read, where)
            case "Parallel":
                return self._parallel(name, state, read, where)
            # Only a Map is left, because the validation has refused every other type.
            case _:
                return self._map(name, state, read, where)

    def _parallel(
        self, name: str, state: StateJson, read: StateFields, where: str
    ) -> ParallelState:
        starts = [
            self.machine(branch, f"{where}/Branches[{number}]")
            for number, branch in enumerate(state["Branches"])
        ]
        return ParallelState(
            name,
            state.get("Next"),
            read.assign(),
            read.output(),
            arguments=read.arguments(),
            branches=tuple(starts),
            retry=_retriers(state),
            catch=_catchers(state, read, where),
            quorum=read_quorum(state, where),
            after=read_after(state),
        )

    def _map(self, name: str, state: StateJson, read: StateFields, where: str) -> MapState:
        key = "ItemProcessor" if "ItemProcessor" in state else "Iterator"
        return MapState(
            name,
            state.get("Next"),
            read.assign(),
            read.output(),
            items=read.items(),
            item_selector=read.item_selector(),
            concurrency_max=read.value("MaxConcurrency"),
            run=_map_run(name, state, read, where),
            processor=self.machine(processor_of(state), f"{where}/{key}"),
            retry=_retriers(state),
            catch=_catchers(state, read, where),
            quorum=read_quorum(state, where),
        )


def _fields(state: StateJson, where: str, language: Language) -> StateFields:
    if language == "JSONata":
        return JsonataFields(state, where)
    from holdfast.asl.parsing.jsonpath_fields import PathFields  # noqa: PLC0415  # workflows never need it

    return PathFields(state)


# -- states without inner states -------------------------------------------------------------------


def _wait(name: str, state: StateJson, read: StateFields) -> WaitState:
    return WaitState(
        name,
        state.get("Next"),
        read.assign(),
        read.output(),
        seconds=read.value("Seconds"),
        timestamp=read.value("Timestamp"),
    )


def _choice(name: str, state: StateJson, read: StateFields, where: str) -> ChoiceState:
    rules = []
    for number, rule in enumerate(state["Choices"]):
        place = f"{where}/Choices/{number}"
        condition = read.condition(rule, place)
        rules.append(ChoiceRule(condition, rule["Next"], *read.rule_results(rule, place)))
    return ChoiceState(name, tuple(rules), state.get("Default"), read.assign(), read.output())


def _task(name: str, state: StateJson, read: StateFields, where: str) -> TaskState:
    resource = read_resource(state["Resource"])
    assert resource is not None, "validated"
    return TaskState(
        name,
        state.get("Next"),
        read.assign(),
        read.output(),
        resource=state["Resource"],
        kind=resource.kind,
        target=resource.target,
        arguments=read.arguments(),
        credentials=read.credentials(),
        timeout_seconds=read.value("TimeoutSeconds"),
        heartbeat_seconds=read.value("HeartbeatSeconds"),
        retry=_retriers(state),
        catch=_catchers(state, read, where),
        poll=read_poll(state),
        is_at_most_once=state.get("Holdfast", {}).get("AtMostOnce", False),
    )


# -- a distributed Map -----------------------------------------------------------------------------


def _map_run(name: str, state: StateJson, read: StateFields, where: str) -> DistributedMap | None:
    config = config_of(state)
    if config.get("Mode") != "DISTRIBUTED":
        return None
    return DistributedMap(
        label=state.get("Label", name),
        execution_type=config["ExecutionType"],
        reader=_reader(state, read, f"{where}/ItemReader"),
        batcher=_batcher(state, read, f"{where}/ItemBatcher"),
        writer=_writer(state, read, f"{where}/ResultWriter"),
        tolerated_count=read.value("ToleratedFailureCount"),
        tolerated_percentage=read.value("ToleratedFailurePercentage"),
    )


def _reader(state: StateJson, read: StateFields, where: str) -> ItemReader | None:
    reader = state.get("ItemReader")
    if reader is None:
        return None
    config: Mapping[str, Any] | None = reader.get("ReaderConfig")
    return ItemReader(
        target=_s3_target(reader),
        arguments=read.inner_arguments(reader, where),
        config=None if config is None else read.reader_config(config, f"{where}/ReaderConfig"),
    )


def _batcher(state: StateJson, read: StateFields, where: str) -> ItemBatcher | None:
    batcher = state.get("ItemBatcher")
    if batcher is None:
        return None
    return ItemBatcher(
        items_max=read.inner_value(batcher, "MaxItemsPerBatch", where),
        bytes_max=read.inner_value(batcher, "MaxInputBytesPerBatch", where),
        input=read.batch_input(batcher, where),
    )


def _writer(state: StateJson, read: StateFields, where: str) -> ResultWriter | None:
    writer = state.get("ResultWriter")
    if writer is None:
        return None
    return ResultWriter(
        target=_s3_target(writer),
        arguments=read.inner_arguments(writer, where),
        config=writer.get("WriterConfig", {}),
    )


def _s3_target(holder: StateJson) -> str:
    return s3_action(holder.get("Resource", "")) or ""


# -- retriers and catchers -------------------------------------------------------------------------


def _retriers(state: StateJson) -> tuple[Retrier, ...]:
    return tuple(
        Retrier(
            errors=tuple(item["ErrorEquals"]),
            interval_seconds=item.get("IntervalSeconds", 1),
            attempts_max=item.get("MaxAttempts", _ATTEMPTS_DEFAULT),
            backoff_rate=float(item.get("BackoffRate", _BACKOFF_DEFAULT)),
            delay_seconds_max=item.get("MaxDelaySeconds"),
            has_full_jitter=item.get("JitterStrategy") == "FULL",
            delays=tuple(item.get("Holdfast", {}).get("Delays", ())),
        )
        for item in state.get("Retry", ())
    )


def _catchers(state: StateJson, read: StateFields, where: str) -> tuple[Catcher, ...]:
    found = []
    for number, item in enumerate(state.get("Catch", ())):
        results = read.catcher_results(item, f"{where}/Catch/{number}")
        found.append(Catcher(tuple(item["ErrorEquals"]), item["Next"], *results))
    return tuple(found)
