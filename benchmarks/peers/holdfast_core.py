"""Holdfast: an execution of an express machine in memory, history and all, as its core runs it.

The program is parsed once per definition, as the worker and the API do.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from workloads import serve

from holdfast.asl.parsing.parse import parse_definition
from holdfast.asl.program import Program
from holdfast.core import facts
from holdfast.core.advance import advance
from holdfast.core.facts import DecisionInputs
from holdfast.core.state import MachineOrigin

NOW_MS = 1_767_225_600_000
ORIGIN = MachineOrigin(
    execution_arn="arn:aws:states:us-east-1:123456789012:express:machine:execution:1",
    execution_name="execution",
    state_machine_arn="arn:aws:states:us-east-1:123456789012:stateMachine:machine",
    state_machine_name="machine",
    role_arn="arn:aws:iam::123456789012:role/machine",
    type="EXPRESS",
)


@functools.cache
def _program(definition: str) -> Program:
    return parse_definition(json.loads(definition))


def run(definition: str, data: Any) -> Any:
    program = _program(definition)
    moment = DecisionInputs(NOW_MS, lambda: 0.5, claim=lambda _: None, clock_error_ms=0)
    started = facts.Started("run", None, "machine", data, NOW_MS, ORIGIN)
    state = advance(program, None, [started], moment).state
    while not state.is_ended:
        state = advance(program, state, [facts.Tick()], moment).state
    if state.status != "SUCCEEDED":
        raise RuntimeError(f"{state.error}: {state.cause}")
    return state.output


if __name__ == "__main__":
    serve(run)
