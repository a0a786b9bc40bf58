"""The report to which every rule of the validator adds problems, and sentences that several rules
use.

The texts are AWS's: from recordings of CreateStateMachine and ValidateStateMachineDefinition, from
AWS's documents, and from published reports of its responses. If no source has a text, it is written
in the same style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from holdfast.asl.documents import Language

SCHEMA: Final = "SCHEMA_VALIDATION_FAILED"

MachineType: TypeAlias = Literal["STANDARD", "EXPRESS"]
LANGUAGES: Final[tuple[Language, ...]] = ("JSONPath", "JSONata")


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    """One problem, in the form of ValidateStateMachineDefinition. `location` is
    "/States/X/Catch[0]/Next"; "/" is the machine itself; None means the whole text, or no place.
    """

    severity: Literal["ERROR", "WARNING"]
    code: str
    message: str
    location: str | None


@dataclass(frozen=True, slots=True)
class RuleScope:
    """The context of a rule: the language and the type of the machine, the fields of `$states`, and
    whether warnings are wanted.
    """

    found: list[DefinitionProblem] = field(repr=False)
    language: Language
    machine_language: Language
    machine_type: MachineType
    states_fields: frozenset[str] = frozenset({"input", "context"})
    warns: bool = False

    @property
    def is_jsonata(self) -> bool:
        return self.language == "JSONata"

    def refuse(self, location: str | None, message: str, code: str = SCHEMA) -> None:
        place = None if location is None else location or "/"
        self.found.append(DefinitionProblem("ERROR", code, message, place))

    def warn(self, location: str, message: str, code: str) -> None:
        if self.warns:
            self.found.append(DefinitionProblem("WARNING", code, message, location))

    def with_states(self, *names: str) -> RuleScope:
        return replace(self, states_fields=self.states_fields | frozenset(names))

    def inside(self, language: Language) -> RuleScope:
        return replace(self, language=language)


#: A function that checks one value. Its arguments are the scope, the value, and the location of the
#: value.
FieldCheck: TypeAlias = Callable[[RuleScope, Any, str], None]


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One field of an object. `language` is the only query language that has this field."""

    check: FieldCheck
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """The fields of an object.

    `one_of`: exactly one field of each group must be present. `at_most_one`: at most one of each
    group.
    """

    fields: Mapping[str, FieldRule]
    required: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    at_most_one: tuple[tuple[str, ...], ...] = ()

    def check(self, scope: RuleScope, value: Any, location: str) -> None:
        if not isinstance(value, dict):
            return expected(scope, location, "OBJECT")
        self.check_names(scope, value, location)
        self.check_values(scope, value, location)
        return None

    def check_names(self, scope: RuleScope, value: Mapping[str, Any], location: str) -> None:
        foreign = [name for name in value if self._is_foreign(scope, name)]
        for name in foreign:
            refuse_language(scope, name, location)
        for name in value:
            if name not in self.fields:
                scope.refuse(location, f"Field '{name}' is not supported")
        missing = [name for name in self.required if name not in value]
        if missing:
            scope.refuse(location, f"These fields are required: {listed(missing)}")
        for group in (*self.one_of, *self.at_most_one):
            given = [name for name in group if name in value]
            if len(given) > 1:
                refuse_several(scope, group, location)
            elif not given and group in self.one_of:
                possible = [name for name in group if not self._is_foreign(scope, name)]
                refuse_none(scope, possible, location)

    def check_values(self, scope: RuleScope, value: Mapping[str, Any], location: str) -> None:
        for name, item in value.items():
            known = self.fields.get(name)
            if known is not None and not self._is_foreign(scope, name):
                known.check(scope, item, f"{location}/{name}")

    def _is_foreign(self, scope: RuleScope, name: str) -> bool:
        known = self.fields.get(name)
        return known is not None and known.language not in (None, scope.language)


def listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def expected(scope: RuleScope, location: str, *kinds: str) -> None:
    """Report a value that has another JSON type: STRING, NUMBER, BOOLEAN, OBJECT, ARRAY, NULL."""
    scope.refuse(location, f"Expected value of type {listed(kinds)}")


def refuse_language(scope: RuleScope, name: str, location: str) -> None:
    other = LANGUAGES[scope.language == "JSONPath"]
    scope.refuse(
        location,
        f"The QueryLanguage is set to '{scope.language}', but field '{name}' is only supported "
        f"for the '{other}' QueryLanguage",
    )


def refuse_several(scope: RuleScope, group: Iterable[str], location: str) -> None:
    scope.refuse(location, f"There should only be one of the following fields: {listed(group)}")


def refuse_none(scope: RuleScope, group: Iterable[str], location: str) -> None:
    scope.refuse(
        location, f"This object should have only one of the following fields: {listed(group)}"
    )


def json_kind(value: Any) -> str:
    """Return AWS's name of the JSON type of a value that is no text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int() | float():
            return "NUMBER"
        case list():
            return "ARRAY"
        case _:
            return "OBJECT"
