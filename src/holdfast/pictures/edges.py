"""The edges from state to state, and their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.pictures.model import DrawnEdge, DrawnSource, EdgeKind
from holdfast.pictures.roles import Extension
from holdfast.pictures.wording import condition, errors

#: The words with which a compiled statement begins that has two exits. Each of the exits gets a
#: label.
_QUESTION: Final = re.compile(r"\A(?:if|elif|while|assert|case)\b")
_LOOP: Final = re.compile(r"\A(?:start: )?for\b")


def edges_of(
    states: Mapping[str, Any], sources: Mapping[str, DrawnSource], extension: Extension
) -> Iterator[DrawnEdge]:
    for name, state in states.items():
        found: dict[tuple[str, EdgeKind], list[str]] = {}
        ways = [*_ways(name, state, sources), *_deadlines(name, extension)]
        for target, kind, label in ways:
            found.setdefault((target, kind), []).append(label)
        for (target, kind), labels in found.items():
            said = [label for label in dict.fromkeys(labels) if label]
            yield DrawnEdge(name, target, kind, " or ".join(said))


def _ways(
    name: str, state: Mapping[str, Any], sources: Mapping[str, DrawnSource]
) -> Iterator[tuple[str, EdgeKind, str]]:
    rules = [rule for rule in state.get("Choices", ()) if "Next" in rule]
    yes, no = _words(name, len(rules), name in sources)
    for rule in rules:
        yield rule["Next"], "next", yes or _rule(rule)
    if "Default" in state:
        yield state["Default"], "next", no if rules else ""
    if "Next" in state:
        yield state["Next"], "next", ""
    for catcher in state.get("Catch", ()):
        if "Next" in catcher:
            yield catcher["Next"], "catch", errors(catcher.get("ErrorEquals"))


def _deadlines(name: str, extension: Extension) -> Iterator[tuple[str, EdgeKind, str]]:
    for deadline in extension.deadlines:
        if deadline.begin == name and deadline.next:
            yield deadline.next, "deadline", f"after {deadline.after}"


def _words(name: str, rules: int, is_compiled: bool) -> tuple[str, str]:
    """Return the label of the only rule ("": its condition), and the label of the default."""
    if not is_compiled or rules != 1:
        return "", "otherwise"
    if _LOOP.search(name):
        return "next", "done"
    return ("yes", "no") if _QUESTION.search(name) else ("", "otherwise")


def _rule(rule: Mapping[str, Any]) -> str:
    """Return the label of a rule. A step of `undo in reverse order` is named after its task,
    because its condition only compares positions in a list.
    """
    if str(rule["Next"]).startswith("undo: ") and "Condition" in rule:
        return str(rule["Next"]).removeprefix("undo: ")
    return condition(rule)
