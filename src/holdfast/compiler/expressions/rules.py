"""The type of the rules for methods: their arguments and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import QueryTree
from holdfast.compiler.types.types import Type

#: The query that computes the result, the type of the result, and the Python errors that the
#: computation may raise.
MethodResult: TypeAlias = tuple[QueryTree, Type, frozenset[str]]
#: A rule gets the value, its type and the arguments of the method, and gives the result, or None
#: when JSONata has no exact form for it.
MethodRule: TypeAlias = Callable[[QueryTree, Type, tuple[TypedQuery, ...]], MethodResult | None]

CANNOT_FAIL: Final[frozenset[str]] = frozenset()
