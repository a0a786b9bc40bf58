"""The result of a distributed Map, made from the results of its child executions.

    NONE     a record for each child: DescribeExecution, in PascalCase
    COMPACT  the children's outputs
    FLATTEN  the same, and an output that is a list is replaced by its items

A child that did not succeed gives its record in each of these forms. Source: AWS docs,
"ResultWriter (Map)".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from holdfast.asl.program import Json
from holdfast.core.decision import iso_time
from holdfast.lazy_dataclass import dataclass

Transformation: TypeAlias = Literal["NONE", "COMPACT", "FLATTEN"]

PENDING: Final = "PENDING"
_INCLUDED: Final = {"Included": True}


@dataclass(frozen=True, slots=True)
class MapChild:
    """One child execution of the Map. `result` is a `state.ChildResult`.

    It is None for a child that was aborted before it started: only its status is known.
    `is_express` decides which redrives are possible.
    """

    name: str
    map_run_arn: str
    is_express: bool
    input: Json
    result: Mapping[str, Any] | None

    @property
    def status(self) -> str:
        return PENDING if self.result is None else str(self.result["status"])


def transformed(children: Iterable[MapChild], transformation: Transformation) -> list[Json]:
    return list(_transformed(children, transformation))


def as_lines(values: Iterable[Json]) -> str:
    """Return the values as JSON Lines."""
    return "".join(_text(value) + "\n" for value in values)


def record(child: MapChild) -> dict[str, Json]:
    """Return the child execution as a result file shows it, with its fields in alphabetical
    order.
    """
    found = {
        "ExecutionArn": _arn(child, "execution", f":{child.name}"),
        "Input": _text(child.input),
        "InputDetails": _INCLUDED,
        "Name": child.name,
        "OutputDetails": _INCLUDED,
        "RedriveCount": 0,
        **_redrive(child),
        "StateMachineArn": _arn(child, "stateMachine", ""),
        "Status": child.status,
        **_outcome(child.result or {}),
    }
    return dict(sorted(found.items()))


def _transformed(children: Iterable[MapChild], transformation: Transformation) -> Iterator[Json]:
    for child in children:
        if transformation == "NONE" or child.status != "SUCCEEDED":
            yield record(child)
            continue
        output = None if child.result is None else child.result.get("output")
        if transformation == "FLATTEN" and isinstance(output, list):
            yield from output
        else:
            yield output


def _outcome(result: Mapping[str, Any]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if result.get("status") == "SUCCEEDED":
        found["Output"] = _text(result.get("output"))
    texts = {"Error": result.get("error"), "Cause": result.get("cause")}
    dates = {"StartDate": result.get("started_ms"), "StopDate": result.get("stopped_ms")}
    found |= {name: text for name, text in texts.items() if text is not None}
    return found | {name: iso_time(at_ms) for name, at_ms in dates.items() if at_ms is not None}


def _redrive(child: MapChild) -> dict[str, Json]:
    if child.status in {"SUCCEEDED", PENDING}:
        return {
            "RedriveStatus": "NOT_REDRIVABLE",
            "RedriveStatusReason": f"Execution is {child.status} and cannot be redriven",
        }
    return {"RedriveStatus": "REDRIVABLE_BY_MAP_RUN" if child.is_express else "REDRIVABLE"}


def _arn(child: MapChild, kind: str, ending: str) -> str:
    """Return the ARN of another kind. For example, mapRun:NAME/LABEL:UUID gives
    execution:NAME/LABEL:CHILD or stateMachine:NAME/LABEL.
    """
    labelled = child.map_run_arn.rpartition(":")[0]
    return labelled.replace(":mapRun:", f":{kind}:") + ending


def _text(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
