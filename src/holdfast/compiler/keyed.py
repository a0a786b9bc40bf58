"""The checks of a keyed workflow: its business key is text, and its first event can start it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from holdfast.api.keyed import Keyed
from holdfast.api.surface import Workflow
from holdfast.compiler.checks import ReportProblem
from holdfast.compiler.expressions.query import Variable
from holdfast.compiler.ir import SourcePlace, Statement, StepStatement, WaitForEvent
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.types.types import STR, describe_exactly
from holdfast.limits import REQUEST_SUFFIX


def check_key(
    place: SourcePlace,
    workflow: Workflow[..., Any],
    statements: Iterable[Statement],
    report: ReportProblem,
    *,
    has_refusals: bool,
) -> Keyed:
    """Return the key in the form that is stored, with the event that starts the workflow.

    Refuse a key that is not a text. Refuse `starts_on` with an event for which the workflow does
    not wait with its key: the event would start an execution that never reads it.

    With `has_refusals` that wait may be a refused step, which `statements` does not contain.
    """
    keyed = workflow.keyed
    assert keyed is not None
    type_ = signature_of(workflow.function).parameters[keyed.parameter]
    if type_ != STR:
        message = f"the key `{keyed.parameter}` is a text, and this is {describe_exactly(type_)}"
        report(place, "HF156", message, f"{keyed.parameter}: str")
    if keyed.starts_on is None:
        return keyed
    names = (keyed.starts_on, keyed.starts_on + REQUEST_SUFFIX)
    key, taken = Variable(keyed.parameter), None
    for statement in statements:
        match statement:
            case StepStatement(origin, WaitForEvent(name, kept=False)) if name in names:
                message = f"`{name}` starts the execution, so it is stored before the start"
                help_ = 'without kept=False; unread="drop" drops what the execution before left'
                report(origin, "HF156", message, help_)
                return keyed
            case StepStatement(_, WaitForEvent(name, _, by)) if name in names and by.query == key:
                taken = taken or name
            case _:
                pass
    if taken is not None:
        return replace(keyed, starts_on=taken)
    if has_refusals:
        return keyed
    message = f"no wait takes the event `{keyed.starts_on}` by the key `{keyed.parameter}`"
    help_ = f'wait_for_event("{keyed.starts_on}", Message, key={keyed.parameter})'
    report(place, "HF156", message, help_)
    return keyed
