"""Conditions on search attributes: `customer=C-17`, `total>100`, `due<=2027-01-15T08:00Z`.

A condition names an attribute that a deployed workflow declares, so the type of its value is known.
Texts and booleans are only compared for equality; numbers and times have an order.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from holdfast.asl.program import AttributeKind
from holdfast.core.attributes import TEXT_CHARACTERS_MAX, instant_ms
from holdfast.core.state import Attribute
from holdfast.errors import RequestError
from holdfast.runtime.search_rows import encoded

CONDITIONS_MAX: Final = 8
_FORM: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(>=|<=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_EXAMPLE: Final = "customer=C-17, total>100"
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "=": operator.eq,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)
_ORDERED: Final = frozenset({"int", "datetime"})
_BOOLS: Final[Mapping[str, bool]] = MappingProxyType({"true": True, "false": False})
#: This text sorts after every key. As the upper limit of a query it includes all of them.
_LAST: Final = "~"


@dataclass(frozen=True, slots=True)
class AttributeCondition:
    """One condition: the attribute, one of = < <= > >=, and the value to compare with."""

    name: str
    test: str
    kind: AttributeKind
    value: str | int | bool

    @property
    def is_equality(self) -> bool:
        return self.test == "="

    @property
    def rank(self) -> int:
        """Return the condition's place in the choice of the one for the query: the most selective
        comes first.
        """
        if not self.is_equality:
            return 2
        return 1 if self.kind == "bool" else 0

    def bounds(self) -> tuple[str, str]:
        """Return two texts between which the sort keys of all matching rows lie."""
        place = encoded(self.kind, self.value)
        lowest, highest = place[0], f"{place[0]}{_LAST}"
        match self.test:
            case ">":
                return f"{place}#{_LAST}", highest
            case ">=":
                return f"{place}#", highest
            case "<":
                return lowest, f"{place}#"
            case "<=":
                return lowest, f"{place}#{_LAST}"
            case _:
                return f"{place}#", f"{place}#{_LAST}"

    def fits(self, attributes: Mapping[str, Attribute]) -> bool:
        found = attributes.get(self.name)
        if found is None or found.kind != self.kind:
            return False
        compare = _COMPARE[self.test]
        if self.kind == "datetime":
            return compare(instant_ms(str(found.value)), instant_ms(str(self.value)))
        return compare(found.value, self.value)


def is_ordered_by_value(conditions: Sequence[AttributeCondition]) -> bool:
    """Return True when a list selected by these conditions is in the order of a value, and not of
    time.
    """
    return bool(conditions) and not conditions[0].is_equality


def read_conditions(
    given: Any, declared: Iterable[tuple[str, Mapping[str, str]]]
) -> tuple[AttributeCondition, ...]:
    """Return the conditions. The first one is the best for the query. `declared` holds the
    attributes of each deployed workflow. Raises RequestError HF480, HF481.
    """
    texts = [given] if isinstance(given, str) else given
    is_list = isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)
    if not is_list or not 1 <= len(texts) <= CONDITIONS_MAX:
        raise _bad(f"where is {given!r:.90}", f"1 to {CONDITIONS_MAX} conditions")
    kinds: dict[str, dict[str, str]] = {}
    for workflow, attributes in declared:
        for name, kind in attributes.items():
            kinds.setdefault(name, {})[workflow] = kind
    return tuple(sorted((_condition(text, kinds) for text in texts), key=lambda one: one.rank))


def _condition(text: str, kinds: Mapping[str, Mapping[str, str]]) -> AttributeCondition:
    matched = _FORM.fullmatch(text)
    if matched is None:
        raise _bad(f"where is {text!r:.90}", "an attribute, one of = < <= > >=, and a value")
    name, test, value = matched.groups()
    kind = _kind(name, kinds)
    if test != "=" and kind not in _ORDERED:
        raise _bad(f"{name} is a {kind}, which has no order: {text!r:.90}", f"{name}={value:.60}")
    return AttributeCondition(name, test, kind, _value(name, kind, value))


def _kind(name: str, kinds: Mapping[str, Mapping[str, str]]) -> AttributeKind:
    found = kinds.get(name)
    if found is None:
        raise RequestError(
            "HF481",
            f"no deployed workflow declares a search attribute {name!r:.60}",
            help=f"declared: {', '.join(sorted(kinds)) or 'none'}",
        )
    if len(set(found.values())) > 1:
        several = ", ".join(f"{kind} in {workflow}" for workflow, kind in sorted(found.items()))
        raise RequestError(
            "HF481", f"{name} has several types: {several:.200}", help="choose one with `workflow`"
        )
    kind: Any = next(iter(found.values()))
    return kind  # type: ignore[no-any-return]


def _value(name: str, kind: AttributeKind, text: str) -> str | int | bool:
    match kind:
        case "str":
            return text[:TEXT_CHARACTERS_MAX]
        case "int" if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
            return int(text)
        case "bool" if text in _BOOLS:
            return _BOOLS[text]
        case "datetime" if instant_ms(text) is not None:
            return text
        case _:
            expected = {"int": "a whole number", "bool": "true or false"}
            time = "a time, such as 2027-01-15T08:00:00Z"
            raise _bad(f"{name}={text:.60} is not of type {kind}", expected.get(kind, time))


def _bad(found: str, expected: str) -> RequestError:
    return RequestError("HF480", found, help=f"expected: {expected}; for example {_EXAMPLE}")
