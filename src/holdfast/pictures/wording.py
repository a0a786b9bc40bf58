"""Parts of a definition as text for people: durations, conditions, resources, retries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.pictures.model import NodeKind

_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_DELIMITERS: Final = re.compile(r"\A\s*\{%\s*(.*?)\s*%\}\s*\Z", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?=[A-Za-z_]\w*\b(?!\())")
_ERROR_IN: Final = re.compile(r'\A\$\w+\.Error in \[("[^"\]]*"(?:\s*,\s*"[^"\]]*")*)\]\Z')
#: The compiler puts tests around a value n, and a picture shows only n. The tests are `(_v := n;
#: …)`, whose `$` was removed before, and `n >= 0 ? n : $error("…")`.
_NAMED: Final = re.compile(r"\A\(\w+ := (.+?); .*\)\Z")
_GUARDED: Final = re.compile(r'\A[^?]+ \? (.+?) : \$error\("[^"]*"\)\Z')
#: Matches a call, a conditional or a definition. A text with one of them is more than names,
#: numbers and arithmetic.
_QUERY: Final = re.compile(r"\$(?![.$])|[?]|:=")
_ATTEMPTS_DEFAULT: Final = 3
TIMES: Final = "\u00d7"
_TIMEOUTS: Final = frozenset({error_names.TIMEOUT, "WaitTimeout"})
#: The comparisons of JSONPath. Their names are without the type and without "Path".
_COMPARISONS: Final[Mapping[str, str]] = {
    "Equals": "=",
    "LessThan": "<",
    "LessThanEquals": "≤",
    "GreaterThan": ">",
    "GreaterThanEquals": "≥",
    "Matches": "matches",
}
_COMPARISON: Final = re.compile(r"(?:String|Numeric|Boolean|Timestamp)([A-Z]\w*?)(?:Path)?\Z")
_KINDS: Final[Mapping[str, NodeKind]] = {
    "Pass": "pass",
    "Succeed": "succeed",
    "Fail": "fail",
    "Wait": "wait",
    "Choice": "choice",
    "Parallel": "parallel",
    "Map": "map",
    "Task": "task",
}


def kind_of(state: Mapping[str, Any]) -> NodeKind | None:
    """Return the kind of the state; None for an unknown type."""
    kind = _KINDS.get(str(state.get("Type")))
    if kind != "task":
        return kind
    resource = str(state.get("Resource", ""))
    match resource.split(":")[:2]:
        case ["holdfast", "pure"]:
            return "pure"
        case ["holdfast", "event.waitForTaskToken"]:
            return "event"
        case ["holdfast", "ask.waitForTaskToken"]:
            return "ask"
        case ["holdfast", "workflow" | "start" | "start_later"]:
            return "child"
    return "child" if ":states:startExecution" in resource else "task"


def duration(seconds: Any) -> str:
    """Return text such as "3 days" for 259200; a simple expression is shown: "wait_days * 86400
    seconds".
    """
    if isinstance(seconds, str):
        inner = unguarded(seconds)
        if is_query(inner):
            return "a computed time"
        return duration(int(inner)) if inner.isdecimal() and len(inner) < 12 else f"{inner} seconds"
    if not isinstance(seconds, int | float):
        return "?"
    for size, unit in _UNITS:
        if seconds >= size and seconds % size == 0:
            number = int(seconds // size)
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{seconds} seconds"


def plain(value: Any) -> str:
    """Return `order.paid` for `{% $order.paid %}`. Calls keep their `$`; other values give their
    text.
    """
    text = value if isinstance(value, str) else str(value)
    found = _DELIMITERS.match(text)
    return " ".join(_VARIABLE.sub("", found[1]).split()) if found else text


def is_query(text: str) -> bool:
    """Return True when a reader would need to know JSONata. The picture then shows the state's
    name, which has the author's own words.
    """
    return _QUERY.search(text) is not None


def amount(value: Any, unit: str = "") -> str:
    """Return text such as "2 failures", "n failures" or "a computed number of failures"."""
    text = unguarded(value)
    if is_query(text):
        return f"a computed number{' of' if unit else ''} {unit}".rstrip()
    return f"{text} {unit[:-1] if text == '1' else unit}".rstrip()


def unguarded(value: Any) -> str:
    """Return the text as `plain` does, without the tests of an expression for invalid values."""
    text = plain(value)
    for guard in (_NAMED, _GUARDED):
        found = guard.match(text)
        text = found[1] if found else text
    return text


def resource(state: Mapping[str, Any]) -> str:
    """Return a short name for a Task's call: "charge", "sqs:sendMessage", the name of a
    function.
    """
    text = str(state.get("Resource", ""))
    parts = text.split(":")
    if text.startswith("holdfast:"):
        return parts[2] if len(parts) > 2 else ""
    if text.startswith("arn:") and len(parts) > 5:
        called = _function(state) if parts[5] == "lambda" else ""
        if parts[2] == "states":
            return called or ":".join(parts[5:])
        return parts[6] if len(parts) > 6 else parts[5]
    return text


def _function(state: Mapping[str, Any]) -> str:
    given = state.get("Arguments", state.get("Parameters"))
    name = given.get("FunctionName") if isinstance(given, Mapping) else None
    if not isinstance(name, str):
        return ""
    return name.split(":")[6] if name.startswith("arn:") and name.count(":") >= 6 else plain(name)


def errors(names: Any) -> str:
    """Return "any error", "a timeout", or the names."""
    listed = [str(name) for name in names] if isinstance(names, Sequence) else []
    if error_names.ALL in listed:
        return "any error"
    if listed and set(listed) <= _TIMEOUTS:
        return "timeout"
    return " or ".join(name for name in listed if name not in _TIMEOUTS) + (
        " or timeout" if _TIMEOUTS & set(listed) else ""
    )


def retries(state: Mapping[str, Any]) -> tuple[str, str]:
    """Return a short text and a sentence about retries; both "" without a retrier."""
    found = [one for one in state.get("Retry") or () if isinstance(one, Mapping)]
    parts = [(one.get("MaxAttempts", _ATTEMPTS_DEFAULT), one.get("ErrorEquals")) for one in found]
    most = [attempts for attempts, _ in parts if isinstance(attempts, int) and attempts > 0]
    if not most:
        return "", ""
    told = "; ".join(f"{errors(names)}: up to {attempts} times" for attempts, names in parts)
    return f"retry {max(most)}{TIMES}", f"Retried on {told}"


def condition(rule: Mapping[str, Any]) -> str:
    """Return one rule of a Choice, of either language, on one line."""
    if "Condition" in rule:
        inner = _DELIMITERS.match(str(rule["Condition"]))
        named = _ERROR_IN.match(inner[1]) if inner else None
        if named:
            return errors([name.strip().strip('"') for name in named[1].split(",")])
        return plain(rule["Condition"])
    return _compared(rule, is_inner=False)


def _compared(rule: Any, *, is_inner: bool) -> str:
    if not isinstance(rule, Mapping):
        return "?"
    for word, joint in (("And", " and "), ("Or", " or ")):
        if isinstance(rule.get(word), list):
            text = joint.join(_compared(part, is_inner=True) for part in rule[word])
            return f"({text})" if is_inner else text
    if "Not" in rule:
        return f"not {_compared(rule['Not'], is_inner=True)}"
    left = str(rule.get("Variable", "?"))
    for field, value in rule.items():
        if field.startswith("Is"):
            words = re.sub(r"(?<!\A)([A-Z])", r" \1", field[2:]).lower()
            return f"{left} is {'' if value else 'not '}{words}"
        found = _COMPARISON.match(field)
        if found:
            sign = _COMPARISONS.get(found[1], found[1])
            return f"{left} {sign} {_literal(value, field)}"
    return left


def _literal(value: Any, field: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    is_text = isinstance(value, str) and not field.endswith("Path") and field.startswith("String")
    return f'"{value}"' if is_text else str(value)
