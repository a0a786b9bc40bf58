"""Which stages of a state's data are noted, as recordings show them of each type and language.

    JSONata   Task: afterArguments, result. The others: nothing of their own.
    JSONPath  afterInputPath; Task and Pass: afterParameters; Task: result; Task, Pass, Map and
              Parallel: afterResultSelector, afterResultPath. A Pass with a Result shows it, and
              nothing before it; a Parallel shows nothing before its result.
    Map       items and bounds, see `_trial_map`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from holdfast.asl.jsonata import Moment
from holdfast.asl.program import Json, Map, Parallel, Pass, Task
from holdfast.asl.template import Template
from holdfast.stepfunctions._trial_definition import Tested
from holdfast.stepfunctions._trial_map import MapFields
from holdfast.stepfunctions._trial_request import Trial
from holdfast.stepfunctions._trial_stage import Bindings, Notes, Observe, Scene


def observers_of(tested: Tested, trial: Trial, notes: Notes) -> Mapping[str, Observe]:
    """-> by field of the state, how it is evaluated. `credentials` are noted for the call."""
    return {
        "arguments": _arguments(tested, trial, notes),
        "output": _output(tested, notes),
        "credentials": _credentials(notes),
    }


def _credentials(notes: Notes) -> Observe:
    def observe(template: Template, bindings: Bindings, moment: Moment) -> Json:
        value = template.evaluate(bindings, moment)
        role = value.get("RoleArn") if isinstance(value, dict) else None
        notes.role_arn = role if isinstance(role, str) else None
        return value

    return observe
