"""The type of the rules for methods: their arguments and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import QueryTree
from holdfast.compiler.types.types import Type

#: The query for the result, its type, and the Python errors that computing it may raise.
MethodResult: TypeAlias = tuple[QueryTree, Type, frozenset[str]]
#: From the value, its type and the arguments to the result; None when there is no exact form.
MethodRule: TypeAlias = Callable[[QueryTree, Type, tuple[TypedQuery, ...]], MethodResult | None]

CANNOT_FAIL: Final[frozenset[str]] = frozenset()
