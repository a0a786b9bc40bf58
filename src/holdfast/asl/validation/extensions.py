"""The fields with the name `Holdfast`, which AWS does not know: see
docs/reference/extensions.md.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.asl.program import ATTRIBUTE_KINDS, CUTS_STEPS
from holdfast.asl.resources import is_polled
from holdfast.asl.validation import paths, values
from holdfast.asl.validation.report import FieldRule, ObjectShape, RuleScope, expected
from holdfast.limits import RETRY_DELAY_SECONDS_MAX

_TEXT: Final = FieldRule(values.text)
_NAMES: Final = values.list_of(values.text)


def _assign_with_error(scope: RuleScope, value: Any, location: str) -> None:
    paths.assign(scope.with_states("errorOutput"), value, location)


_ASSIGN: Final = FieldRule(_assign_with_error)
_UNDO: Final = ObjectShape(
    {"States": FieldRule(_NAMES), "Begin": _TEXT, "End": _TEXT, "Assign": _ASSIGN},
    required=("States", "Begin", "End"),
)
_DEADLINE: Final = ObjectShape(
    {
        "Begin": _TEXT,
        "Seconds": FieldRule(values.integer(1, jsonata=True)),
        # The list may be empty. A block without states still sets its deadline, whose seconds are
        # evaluated and checked.
        "States": FieldRule(values.list_of(values.text, may_be_empty=True)),
        "Next": _TEXT,
        "Assign": _ASSIGN,
        "Cuts": FieldRule(values.one_of(CUTS_STEPS)),
    },
    required=("Begin", "Seconds", "States"),
)
#: The fields of the extension that a whole machine has.
MACHINE: Final = ObjectShape(
    {
        "Undo": FieldRule(values.list_of(_UNDO.check)),
        "Shielded": FieldRule(values.list_of(_NAMES)),
        "Deadlines": FieldRule(values.list_of(_DEADLINE.check)),
    }
)

_NEEDED: Final = FieldRule(values.integer(1, jsonata=True))
_TOLERATED: Final = FieldRule(values.integer(0, jsonata=True))
_QUORUM: Final = {
    "Needed": _NEEDED,
    "Tolerated": _TOLERATED,
    "ReturnErrors": FieldRule(values.boolean),
}
MAP: Final = ObjectShape(_QUORUM)


def _after(scope: RuleScope, value: Any, location: str) -> None:
    """Check `After`: for each branch the numbers of earlier branches. If a branch waited for a
    later one, it might never start.
    """
    if not isinstance(value, list):
        return expected(scope, location, "ARRAY")
    for number, earlier in enumerate(value):
        known = isinstance(earlier, list) and all(
            type(other) is int and 0 <= other < number for other in earlier
        )
        if not known:
            message = f"Expected the numbers of branches before branch {number}"
            scope.refuse(f"{location}[{number}]", message)
    return None


PARALLEL: Final = ObjectShape({**_QUORUM, "After": FieldRule(_after)})


def _published(scope: RuleScope, value: Any, location: str) -> None:
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    return values.template(scope, value, location)


def _noted(scope: RuleScope, value: Any, location: str) -> None:
    """Check the search attributes: each has one type and one value, `{"total": {"int": 5}}`."""
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    for name, typed in value.items():
        if (
            not isinstance(typed, dict)
            or len(typed) != 1
            or not typed.keys() <= set(ATTRIBUTE_KINDS)
        ):
            kinds = ", ".join(ATTRIBUTE_KINDS)
            scope.refuse(f"{location}/{name}", f"Expected an object with one of {kinds}")
    return values.template(scope, value, location)


PASS: Final = ObjectShape(
    {"Publish": FieldRule(_published, "JSONata"), "Note": FieldRule(_noted, "JSONata")}
)


_POLL: Final = ObjectShape(
    {
        "Seconds": FieldRule(values.integer(1)),
        "Backoff": FieldRule(values.number(1)),
        "SecondsMax": FieldRule(values.integer(1)),
    },
    required=("Seconds", "Backoff", "SecondsMax"),
)
TASK: Final = ObjectShape({"Poll": FieldRule(_POLL.check), "AtMostOnce": FieldRule(values.boolean)})

_DELAYS: Final = values.list_of(values.integer(0, RETRY_DELAY_SECONDS_MAX))
RETRIER: Final = ObjectShape({"Delays": FieldRule(_DELAYS)}, required=("Delays",))


def check_poll(scope: RuleScope, state: dict[str, Any], location: str) -> None:
    """Check that each polled task has a rule for its next call, and that no other task has one.
    `AtMostOnce` is for tasks that a worker runs itself.
    """
    resource, extension = state.get("Resource"), state.get("Holdfast", {})
    if isinstance(extension, dict) and "AtMostOnce" in extension:
        if not (isinstance(resource, str) and resource.startswith("holdfast:task:")):
            scope.refuse(location, "Expected 'AtMostOnce' for holdfast:task:NAME, and for no other")
        return
    is_called_again = isinstance(resource, str) and is_polled(resource)
    if is_called_again != ("Holdfast" in state):
        message = "Expected 'Holdfast' with 'Poll' for a resource that is polled, and for no other"
        scope.refuse(location, message)


def check_lanes(scope: RuleScope, state: dict[str, Any], location: str) -> None:
    """Check fields of a Parallel or Map that depend on each other."""
    extension = state.get("Holdfast")
    if not isinstance(extension, dict):
        return
    after, branches = extension.get("After"), state.get("Branches")
    if isinstance(after, list) and isinstance(branches, list) and len(after) != len(branches):
        message = f"Expected one list for each of {len(branches)} branches, found {len(after)}"
        scope.refuse(f"{location}/Holdfast/After", message)
    needed = extension.get("Needed")
    if type(needed) is int and isinstance(branches, list) and needed > len(branches):
        message = f"Expected at most {len(branches)}, the number of branches, found {needed}"
        scope.refuse(f"{location}/Holdfast/Needed", message)
    processor = state.get("ItemProcessor")
    config = processor.get("ProcessorConfig") if isinstance(processor, dict) else None
    if isinstance(config, dict) and config.get("Mode") == "DISTRIBUTED":
        message = "A distributed Map has ToleratedFailureCount; 'Holdfast' is for an inline one"
        scope.refuse(f"{location}/Holdfast", message)
