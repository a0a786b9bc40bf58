"""Data from outside (inputs, events and answers), and the types that workflows declare for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from holdfast.asl.program import Json
from holdfast.errors import GoneTypeError, RequestError
from holdfast.runtime.commands.fields import hash_of
from holdfast.runtime.storage.definitions import Definition
from holdfast.sealed import hidden

#: The module in the name of a type, such as `shop:` in `list[shop:Payment]`. It is removed before a
#: comparison, because the list of secrets has type names without modules.
_MODULE: Final = re.compile(r"[\w.]+:")


class Types(Protocol):
    """The user's types, by their names in the source map that the compiler writes."""

    def normalise_input(self, tenant: str, workflow: str, value: Json, /) -> Json:
        """Return the input with every field present and its secrets encrypted.

        Raises RequestError HF210, VaultFault.
        """

    def normalise_payload(self, tenant: str, reference: str, value: Json, what: str, /) -> Json:
        """Return the payload converted to its type. `reference` is the name of the type in the
        source map; `what` names the data in errors.

        Raises RequestError HF211, GoneTypeError, VaultFault.
        """

    def schema_of(self, reference: str, /) -> dict[str, Any]:
        """Return the JSON schema of the type. Raises GoneTypeError."""

    def normalise_result(self, tenant: str, name: str, value: Json, is_workflow: bool, /) -> Json:
        """Return the value converted to the result type of a task or, with `is_workflow`, a
        workflow.

        Raises RequestError HF211, GoneTypeError, VaultFault.
        """

    def convert(self, tenant: str, function: str, values: Mapping[str, Json], /) -> Json:
        """Return what a migration function computes of an execution's variables. `function`: its
        reference in the compiler's map.

        Raises RequestError HF373 when it fails, or when the deployed code lacks it.
        """


class Graphs(Protocol):
    """The compiler of graphs that are registered at run time, with the tasks of the deployed
    code.
    """

    def compile(self, text: str, /) -> tuple[str, Definition]:
        """Return the name and the definition of the graph in a document.

        Raises RequestError HF440 with everything that is wrong.
        """

    def normalise_input(self, tenant: str, text: str, value: Json, /) -> Json:
        """Return the input of the graph in the form of its type, with its secrets sealed.

        Raises RequestError HF210; HF444 when the deployed code no longer fits the document;
        VaultFault.
        """


class NoGraphs:
    """The `Graphs` of a host without tasks: every document names a task that it lacks."""

    def compile(self, _text: str) -> tuple[str, Definition]:
        raise RequestError("HF440", "this host has no tasks for the steps of a graph")

    def normalise_input(self, _tenant: str, text: str, _value: Json) -> Json:
        return self.compile(text)[0]


@dataclass(frozen=True, slots=True)
class Payload:
    """The type of an event or an answer. `reference` is its name in the source map, None when no
    type is declared. `is_secret`: the type is a secret or contains one.
    """

    reference: str | None
    is_secret: bool

    @classmethod
    def of_event(cls, definition: Definition, name: str) -> Payload:
        reference = definition.source_map.get("events", {}).get(name)
        return cls(reference, f"event {name}" in _secrets(definition))

    @classmethod
    def of_answer(cls, definition: Definition, position: str) -> Payload:
        reference = definition.source_map.get("answers", {}).get(position)
        found = cls(reference, is_secret=False)
        return replace(found, is_secret=f"answer {found.type_name or ''}" in _secrets(definition))

    @property
    def type_name(self) -> str | None:
        """Return the type's name without its module; None when no type is declared."""
        return None if self.reference is None else _MODULE.sub("", self.reference)


def _secrets(definition: Definition) -> Collection[str]:
    found: list[str] = definition.source_map.get("secrets", [])
    return found


def normalised(types: Types, tenant: str, wanted: Payload, value: Json, what: str) -> Json:
    """Return the value converted to its type, or unchanged when no type is declared or deployed.

    A value is also accepted when its type was removed from the code, because an execution waits for
    it. Raises RequestError HF211; HF215 when such a value may be a secret.
    """
    if wanted.reference is None:
        return value
    try:
        return types.normalise_payload(tenant, wanted.reference, value, what)
    except GoneTypeError:
        if wanted.is_secret:
            raise _never_sealed(what, wanted.reference) from None
        return value


def require_no_secrets(definition: Definition, what: str, reference: str) -> None:
    """Raise RequestError HF215 when a value may be a secret, but its type was removed from the
    code.
    """
    if _secrets(definition):
        raise _never_sealed(what, reference)


def _never_sealed(what: str, reference: str) -> RequestError:
    return RequestError(
        "HF215",
        f"the {what} is a secret or holds one, and the deployed code has no type {reference}, "
        "without which it would be stored in clear",
        status=409,
        help="deploy a type of that name in that module again",
    )


# -- comparing data with secrets -------------------------------------------------------------------


def mark_of_secrets(data: Json) -> dict[str, str]:
    """Return {"sh": digest of everything but the secrets} for data with secrets, else {}.

    Encryption is randomised, so two requests with the same secret differ in bytes. The second one
    must still succeed.
    """
    shown = hidden(data)
    return {} if shown == data else {"sh": hash_of(shown)}


def is_same(found: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Return True when two stored values are equal apart from their secrets, which are not
    compared.
    """
    return found == given or ("sh" in given and found.get("sh") == given["sh"])
