"""A distributed Map: its items are read, each item or batch runs as a child execution, and the
results are written.

    MapStateStarted, MapRunStarted ─► items (read by an attempt, when there is an ItemReader)
        ─► selected, batched ─► children, as many at once as may be ─► notices of their ends
        ─► results (written by an attempt, when a ResultWriter exports them) ─► MapRunSucceeded …

Each child has its own history. The history of the parent holds the children's inputs, and how each
child ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.program import DistributedMap, ItemReader, Json, MapState, ResultWriter
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.core import facts
from holdfast.core.decision import Decision, whole_number
from holdfast.core.flow import OWN_REGION, Failure, fail_state, handle_failure, leave
from holdfast.core.map_bounds import bounds_of, change, changed_while_reading
from holdfast.core.map_items import STATE_DATA, MapItem, batched, default_input, described
from holdfast.core.map_results import MapChild, as_lines, transformed
from holdfast.core.run_ids import TOO_DEEP, child_name, child_run, map_run_uuid, too_deep
from holdfast.core.state import Attempt, ChildExecutions, Frame

#: The numbers of a Map's two attempts: the first reads the items, and the second writes the
#: results.
READING: Final = 1
WRITING: Final = 2
_MAX_ITEMS: Final = "ItemReader/ReaderConfig/MaxItems"


def begin(decision: Decision, frame: Frame, state: MapState) -> None:
    try:
        _begin(decision, frame, state)
    except StateError as error:
        fail_state(decision, decision.frame(frame.id), error)


def _begin(decision: Decision, frame: Frame, state: MapState) -> None:
    run = _run_of(state)
    _require_depth(decision, frame)
    items = None if run.reader is not None else _items(decision, frame, state)
    entry = decision.state.next_entry
    started = decision.emit(
        "MapStateStarted",
        frame=frame.id,
        previous=frame.previous,
        details={"length": 0 if items is None else len(items)},
        entry=entry,
    )
    bounds = bounds_of(decision, frame, state).fields()
    wanted = None if run.reader is None else _wanted(decision, frame, run.reader)
    details = {"mapRunArn": _arn(decision, run, entry)}
    decision.emit(
        "MapRunStarted", frame=frame.id, previous=started, details=details, entry=entry, **bounds
    )
    if run.reader is not None:
        decision.emit(
            "ItemsAsked",
            frame=frame.id,
            entry=entry,
            attempt=READING,
            target=run.reader.target,
            arguments=wanted,
            **_claim(decision),
        )
    else:
        assert items is not None
        _start_children(decision, frame.id, entry, items)


def _require_depth(decision: Decision, frame: Frame) -> None:
    """Fail a Map whose children would be nested too deeply. This happens before the first child
    starts: an execution id holds the ids of all its parents, and its length is limited.
    """
    lane = child_run(decision.state.run, decision.state.next_entry, 0)
    cause = too_deep(lane, frame.position)
    if cause is not None:
        raise StateError(TOO_DEEP, cause)


def _run_of(state: MapState) -> DistributedMap:
    assert state.run is not None
    return state.run


def _arn(decision: Decision, run: DistributedMap, entry: int) -> str:
    """Return the ARN of the map run. It is made of data in the log, so each worker computes the
    same one.
    """
    origin = decision.state.origin
    # The ARN of the map run, which each child has, is made from the ARN of a state machine. A
    # Python workflow has no such ARN, so make one from its name.
    own = f"arn:holdfast:states:{OWN_REGION}::stateMachine:{decision.state.workflow}"
    machine = own if origin is None else origin["state_machine_arn"]
    number = map_run_uuid(decision.state.run, entry)
    return f"{machine.replace(':stateMachine:', ':mapRun:')}/{run.label}:{number}"


# -- items -----------------------------------------------------------------------------------------


def _items(decision: Decision, frame: Frame, state: MapState) -> list[MapItem]:
    items = frame.input if state.items is None else decision.evaluate(state.items, frame)
    if not isinstance(items, list | dict):
        from holdfast.asl.field_errors import not_an_array  # noqa: PLC0415  # for cold starts

        raise EvaluationError("", not_an_array(items))
    return described(items, repeat(STATE_DATA, len(items)))


def _wanted(decision: Decision, frame: Frame, reader: ItemReader) -> Json:
    parameters = _evaluated(decision, frame, reader.arguments, {})
    config = _evaluated(decision, frame, reader.config, {})
    assert isinstance(config, dict)
    return {"parameters": parameters, "config": with_whole_number(config)}


def with_whole_number(config: dict[str, Json]) -> dict[str, Json]:
    """Return the ReaderConfig with its MaxItems as an int. Raises EvaluationError.

    A negative number is left to the reader, which has its own sentence for it.
    """
    if "MaxItems" not in config:
        return config
    return {**config, "MaxItems": whole_number(config["MaxItems"], _MAX_ITEMS, least=None)}


def _evaluated(decision: Decision, frame: Frame, template: Template | None, default: Json) -> Json:
    return default if template is None else decision.evaluate(template, frame)


def _claim(decision: Decision) -> dict[str, Any]:
    return {} if decision.state.paused is not None else decision.claim(None)


def _items_read(decision: Decision, frame: Frame, output: Json) -> None:
    """Start the children. `output` is {"items": list or object, "sources": [[URI, how many items],
    …]}.
    """
    assert isinstance(frame.waiting, Attempt)
    assert isinstance(output, dict)
    sources = (uri for uri, count in output["sources"] for _ in range(count))
    items = described(output["items"], sources)
    try:
        _start_children(decision, frame.id, frame.waiting.entry, items)
    except StateError as error:
        fail_state(decision, decision.frame(frame.id), error)


# -- children --------------------------------------------------------------------------------------


def _start_children(
    decision: Decision, frame_id: str, entry: int, items: Sequence[MapItem]
) -> None:
    frame = decision.frame(frame_id)
    state = decision.state_of(frame)
    assert isinstance(state, MapState)
    run = _run_of(state)
    selected = [_select(decision, frame, state, item) for item in items]
    inputs, counts = batched(
        lambda template: decision.evaluate(template, frame), run.batcher, selected
    )
    bounds = bounds_of(decision, frame, state).changed(changed_while_reading(frame))
    own: dict[str, Any] = {
        "entry": entry,
        "arn": _arn(decision, run, entry),
        "inputs": inputs,
        "items": counts,
        "concurrency": bounds.at_once,
        "failures_max": bounds.failures_max(len(selected)),
        **bounds.tolerated(),
    }
    decision.emit("ChildrenStarted", frame=frame_id, **own)
    if not inputs:
        _finish(decision, frame_id)


def child_ended(decision: Decision, fact: facts.ChildEnded) -> None:
    frame = decision.state.frame_of(fact.entry)
    if frame is None or not isinstance(frame.waiting, ChildExecutions):
        return
    if not frame.waiting.is_open(fact.lane):
        return
    decision.emit("ChildEnded", frame=frame.id, lane=fact.lane, result=fact.result)
    children = decision.frame(frame.id).waiting
    assert isinstance(children, ChildExecutions)
    # Only a failure can exceed the threshold. Without this test, each success would look at the
    # results of all children before it.
    if fact.result["status"] != "SUCCEEDED" and _is_over_threshold(children):
        _exceeded(decision, frame.id, frame.waiting.started)
    elif len(children.results) == len(children.inputs):
        _finish(decision, frame.id)


def bounds_requested(decision: Decision, fact: facts.BoundsRequested) -> None:
    """Change the bounds of a map run. A run that has more failures than now allowed fails at
    once.
    """
    frame = change(decision, fact)
    if frame is None or not isinstance(frame.waiting, ChildExecutions):
        return
    if _is_over_threshold(frame.waiting):
        _exceeded(decision, frame.id, frame.waiting.started)


def go_on(decision: Decision, frame_id: str) -> None:
    """Record the redrive of a map run. If each of its children had succeeded, and only its results
    were not written, they are written now.
    """
    frame = decision.state.frames.get(frame_id)
    if frame is None or not isinstance(frame.waiting, ChildExecutions):
        return
    children = frame.waiting
    details = {"mapRunArn": children.map_run_arn, "redriveCount": children.redrives}
    decision.emit("MapRunRedriven", frame=frame.id, previous=frame.previous, details=details)
    if len(children.results) == len(children.inputs):
        _finish(decision, frame_id)


def _select(decision: Decision, frame: Frame, state: MapState, item: MapItem) -> Json:
    if state.item_selector is None:
        return default_input(item)
    return decision.evaluate(state.item_selector, frame, item=item)


# -- the end ---------------------------------------------------------------------------------------


def _is_over_threshold(children: ChildExecutions) -> bool:
    failed = sum(
        children.items[lane]
        for lane, result in children.results.items()
        if result["status"] != "SUCCEEDED"
    )
    return failed > children.failures_max


def _finish(decision: Decision, frame_id: str) -> None:
    """Finish the Map when every child has ended and not too many have failed."""
    frame = decision.frame(frame_id)
    state, children = decision.state_of(frame), frame.waiting
    assert isinstance(state, MapState)
    assert isinstance(children, ChildExecutions)
    writer = _run_of(state).writer
    try:
        if _exports(writer):
            _ask_to_write(decision, frame, state, children, None)
        else:
            _succeed(decision, frame, state, _formatted(decision, state, children, writer))
    except StateError as error:
        fail_state(decision, frame, error)


def _exceeded(decision: Decision, frame_id: str, started: int) -> None:
    """Fail the Map because too many children failed. If it has a ResultWriter, the results are
    written first.

    `started` does not count the child that may start because the last failed one has ended.
    """
    frame = decision.frame(frame_id)
    state, children = decision.state_of(frame), frame.waiting
    assert isinstance(state, MapState)
    assert isinstance(children, ChildExecutions)
    cause = "The specified tolerated failure threshold was exceeded"
    if not _exports(_run_of(state).writer):
        fail_run(decision, frame, Failure(error_names.EXCEED_TOLERATED_FAILURE_THRESHOLD, cause))
        return
    try:
        stopped = replace(children, started=started)
        _ask_to_write(
            decision, frame, state, stopped, [error_names.EXCEED_TOLERATED_FAILURE_THRESHOLD, cause]
        )
    except StateError as error:
        fail_state(decision, frame, error)


def _exports(writer: ResultWriter | None) -> bool:
    """Return True when the writer writes files. A writer without arguments only formats the output
    of the state.
    """
    return writer is not None and writer.arguments is not None


def _formatted(
    decision: Decision, state: MapState, children: ChildExecutions, writer: ResultWriter | None
) -> Json:
    config: Mapping[str, Any] = {} if writer is None else writer.config
    is_express = _run_of(state).execution_type == "EXPRESS"
    ended = (
        MapChild(
            child_name(f"{decision.state.run}.{children.entry}.{lane}"),
            children.map_run_arn,
            is_express,
            data,
            children.results[lane],
        )
        for lane, data in enumerate(children.inputs)
    )
    results = transformed(ended, config.get("Transformation", "COMPACT"))
    return as_lines(results) if config.get("OutputType") == "JSONL" else results


def _ask_to_write(
    decision: Decision,
    frame: Frame,
    state: MapState,
    children: ChildExecutions,
    failure: list[Json] | None,
) -> None:
    """Request the writing of results. `failure`: the error and cause with which the map run fails
    after the writing.
    """
    writer = _run_of(state).writer
    assert writer is not None
    arguments = {
        "parameters": _evaluated(decision, frame, writer.arguments, {}),
        "config": dict(writer.config),
        "map_run_arn": children.map_run_arn,
        "is_express": _run_of(state).execution_type == "EXPRESS",
        "inputs": children.inputs,
        "results": [_result(children, lane) for lane in range(len(children.inputs))],
        "failure": failure,
    }
    decision.emit(
        "ResultsAsked",
        frame=frame.id,
        entry=children.entry,
        attempt=WRITING,
        target=writer.target,
        arguments=arguments,
        **_claim(decision),
    )


def _result(children: ChildExecutions, lane: int) -> Json:
    """Return the child's result: ABORTED for a child that still runs, None for a child that was
    never started.
    """
    ended = children.results.get(lane)
    if ended is not None:
        return dict(ended)
    return {"status": "ABORTED"} if lane < children.started else None


def attempt_succeeded(decision: Decision, frame: Frame, state: MapState, output: Json) -> None:
    """Continue with the items from the reader, or with the report of the writer."""
    attempt = frame.waiting
    assert isinstance(attempt, Attempt)
    if attempt.kind == "read":
        _items_read(decision, frame, output)
        return
    assert isinstance(attempt.arguments, dict)
    failure = attempt.arguments["failure"]
    if failure is None:
        _succeed(decision, frame, state, output)
    else:
        assert isinstance(failure, list)
        fail_run(decision, frame, Failure(str(failure[0]), str(failure[1])))


def _succeed(decision: Decision, frame: Frame, state: MapState, results: Json) -> None:
    previous = frame.previous
    succeeded = decision.emit("MapRunSucceeded", frame=frame.id, previous=previous)
    decision.emit("MapStateSucceeded", frame=frame.id, previous=succeeded)
    leave(
        decision,
        decision.frame(frame.id),
        state.next,
        (state.assign, state.output),
        default=results,
        extra={"result": results},
        # In AWS's histories the exit has the same previous event as the success of the map run.
        previous=previous,
    )


def fail_run(decision: Decision, frame: Frame, failure: Failure) -> None:
    details = failure.details()
    decision.emit("MapRunFailed", frame=frame.id, previous=frame.previous, details=details)
    handle_failure(decision, frame.id, failure)
