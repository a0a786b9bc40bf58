"""The form of the rules for methods: what each is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from holdfast.dsl.context import Expression
from holdfast.dsl.expressions.query import Query
from holdfast.dsl.types.types import Type

#: The result, its type, and the Python errors that computing it may raise.
Found: TypeAlias = tuple[Query, Type, frozenset[str]]
#: From the value, its type and the arguments to the result; None when there is no exact form.
Rule: TypeAlias = Callable[[Query, Type, tuple[Expression, ...]], Found | None]

CANNOT_FAIL: Final[frozenset[str]] = frozenset()
