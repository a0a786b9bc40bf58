"""AWS's sentences about the value of a field that cannot be used.

A field gets its value from a path (`SecondsPath`, in JSONPath states) or from an expression
(`Seconds`, in JSONata states). Recordings of AWS show four rules; sentences that no recording
shows are built by them.

* A Wait or a Task calls its path "the SecondsPath parameter", and writes path and value behind the
  sentence: `$.v == 1.5`. An expression is "the Seconds field"; only the value follows.
* A text in such a value is written without quotes, anything else as JSON: `$.v == 2016-12-05`.
* A Map, its readers and its batches write the value within the sentence, always in double quotes:
  `refers to value "NoNumber"`, `refers to value "{"a":1}"`. The path follows.
* A value out of its range is not written: `ToleratedFailureCount cannot be negative.`

An expression whose value has the wrong JSON type is an error of its own, with JSON of the value
(asl/template.py), and one that gives nothing is "returned nothing (undefined)".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.asl.java_text import json_text, shown
from holdfast.asl.jsonata.values import StrictJson

#: The required type of the field: "integer", "float" or "string".
Kind: TypeAlias = str


@dataclass(frozen=True, slots=True)
class FieldSource:
    """A field by its name without "Path", and the path that it was read from. None: the value of an
    expression.
    """

    field: str
    path: str | None = None

    def unparsable(self, what: str, value: StrictJson) -> str:
        """Return the sentence about a value of a Wait or Task. `what` says why it cannot be used.

        The SecondsPath parameter references a negative value: $.v == -1
        """
        if self.path is None:
            return f"The {self.field} field {what}: {plain_text(value)}"
        return f"The {self.field}Path parameter {what}: {self.path} == {plain_text(value)}"

    def misfit(self, kind: Kind, value: StrictJson) -> str:
        """Return the sentence about a value of another field: a Map's, a reader's, a Fail's.

        The MaxItemsPath field refers to value "many" which is not a valid integer: $.v
        """
        name, suffix = self.field, ""
        if self.path is not None:
            name, suffix = f"{name}Path", f": {self.path}"
        found = f'refers to value "{plain_text(value)}" which is not a valid {kind}'
        return f"The {name} field {found}{suffix}"


def plain_text(value: StrictJson) -> str:
    """Return a text as it is, and any other value as compact JSON."""
    return value if isinstance(value, str) else shown(value, json_text)


def negative(field: str) -> str:
    return f"{field} cannot be negative."


def not_an_array(value: StrictJson) -> str:
    return f"Map state input must be an array but was: {shown(value, json_text)}"


def not_a_role(credentials: StrictJson) -> str:
    return (
        f"The Credentials '{shown(credentials, json_text)}' could not be used to start the Task: "
        "[The value for the field 'RoleArn' must be a STRING]"
    )


def seconds_problem(
    field: str, value: StrictJson, seconds: int | None, *, is_positive: bool
) -> str:
    """Return the sentence about the number of an expression. `seconds` None: it is not whole."""
    if is_positive and (seconds is None or seconds <= 0):
        problem = "cannot be parsed as a positive integer"
    elif seconds is None:
        problem = "cannot be parsed as a long value"
    elif seconds < 0:
        problem = "references a negative value"
    else:
        problem = "references too large a value"
    return FieldSource(field).unparsable(problem, value)


def number_problem(field: str, value: StrictJson, number: int | None) -> str:
    """Return the sentence about the number of an expression. `number` None: it is not whole."""
    if number is None:
        return FieldSource(field).misfit("integer", value)
    return f"{field} must be positive." if number == 0 else negative(field)
