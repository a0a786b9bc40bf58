"""The variables that each state of a definition reads: `variableReferences` in a description."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.asl.program import Json

#: The fields that contain inner states. These states are examined separately.
_NESTED: Final = ("Branches", "ItemProcessor", "Iterator")
#: The fields that AWS does not evaluate, whatever they contain.
_STATIC: Final = ("Comment", "Result")
#: The payload templates. Only names that end with `.$` have a path there; any other field is data.
_PAYLOADS: Final = frozenset(
    {"Parameters", "ResultSelector", "ItemSelector", "BatchInput", "Credentials", "Assign"}
)
_TEXT_IN_QUOTES: Final = re.compile(r"'(?:[^'\\]|\\.)*'")
_JSONPATH_VARIABLE: Final = re.compile(r"(?<!\$)\$([^\W\d]\w*)")
# The attributes that contain no child nodes: the parser's own data, and links back into the tree.
_NO_CHILDREN: Final = frozenset({"_outer_instance", "ancestor", "environment", "seeking_parent"})
_EXPRESSION: Final = re.compile(r"\{%(.*)%\}", re.DOTALL)


def variable_references(definition: Json) -> dict[str, list[str]]:
    """Return the names of variables by the name of the state, in the order of the text. States that
    read none are absent.

    The definition is valid. `$states` and names that an expression itself binds do not count.
    """
    found: dict[str, list[str]] = {}
    if isinstance(definition, dict):
        _collect(definition, str(definition.get("QueryLanguage", "JSONPath")), found)
    return found


def _collect(machine: Mapping[str, Any], language: str, found: dict[str, list[str]]) -> None:
    for name, state in machine.get("States", {}).items():
        spoken = str(state.get("QueryLanguage", language))
        own = {name: value for name, value in state.items() if name not in (*_NESTED, *_STATIC)}
        read = _jsonata(own) if spoken == "JSONata" else _jsonpath(own)
        if names := sorted(set(read)):
            found[name] = names
        for part in _machines_in(state):
            _collect(part, language, found)


def _machines_in(state: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from state.get("Branches", ())
    for field in ("ItemProcessor", "Iterator"):
        if field in state:
            yield state[field]


def _jsonpath(value: Any, field: str = "", *, is_payload: bool = False) -> Iterator[str]:
    """Yield the variables in a field. Only some fields contain paths: `….$` in a payload template,
    and elsewhere `…Path` and a Choice's Variable.
    """
    match value:
        case str() if _has_path(field, is_payload=is_payload):
            yield from _JSONPATH_VARIABLE.findall(_TEXT_IN_QUOTES.sub("", value))
        case dict():
            for name, member in value.items():
                within = is_payload or name in _PAYLOADS
                yield from _jsonpath(member, name, is_payload=within)
        case list():
            for item in value:
                yield from _jsonpath(item, is_payload=is_payload)


def _has_path(field: str, *, is_payload: bool) -> bool:
    if is_payload:
        return field.endswith(".$")
    return field.endswith("Path") or field == "Variable"


def _jsonata(value: Any) -> Iterator[str]:
    match value:
        case str():
            expression = _EXPRESSION.fullmatch(value)
            if expression is not None:
                yield from free_variables(expression[1])
        case dict():
            for member in value.values():
                yield from _jsonata(member)
        case list():
            for item in value:
                yield from _jsonata(item)


def free_variables(expression: str) -> set[str]:
    """Return the variables that a JSONata expression reads and does not bind itself."""
    from holdfast.asl.jsonata.fallback import FUNCTION_NAMES, parse  # noqa: PLC0415  # slow

    nodes = list(_nodes(parse(expression)))
    read = {str(node.value) for node in nodes if node.type == "variable"}
    bound = {str(node.lhs.value) for node in nodes if node.type == "bind"}
    for node in nodes:
        # The steps `@$name` and `#$name` of a path bind a name, too.
        bound |= {str(name) for name in (node.focus, node.index) if name is not None}
        if node.type == "lambda":
            bound |= {str(parameter.value) for parameter in node.arguments}
    return read - bound - FUNCTION_NAMES - {"", "$", "states"}


def _nodes(tree: Any) -> Iterator[Any]:
    """Yield the node and all nodes below it, under any attribute."""
    pending, seen = [tree], set[int]()
    while pending:
        value = pending.pop()
        if isinstance(value, list | tuple):
            pending += value
        elif hasattr(value, "type") and id(value) not in seen:
            seen.add(id(value))
            yield value
            pending += [child for name, child in vars(value).items() if name not in _NO_CHILDREN]
