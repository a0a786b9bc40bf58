"""`re.match`, `re.search` and `re.fullmatch` where only the truth of their match counts.

A match is an object that JSON does not have. `if re.match(pattern, name):` and
`re.search(pattern, name) is None` read no more of it than whether there is one, which a step of the
library can say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from holdfast.api.library import HAS_MATCH
from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery
from holdfast.compiler.expressions.query import invoke
from holdfast.compiler.library_calls import as_library_step
from holdfast.compiler.types.types import is_refused, is_text

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_NAMES: Final[Mapping[object, str]] = MappingProxyType(
    {re.match: "match", re.search: "search", re.fullmatch: "fullmatch"}
)


def truth_of_match(expressions: Expressions, node: ast.expr) -> TypedQuery | None:
    """Lower the truth of `re.match(pattern, text)`; None for any other expression."""
    name = _name_of(expressions, node)
    if name is None or node in expressions.hoisted:
        return None
    assert isinstance(node, ast.Call)
    given = [expressions.lower(argument) for argument in node.args]
    if is_refused(*(one.type for one in given)):
        return REFUSED_EXPRESSION
    if not all(is_text(one.type) for one in given):
        return None
    return as_library_step(expressions, node, HAS_MATCH + name, node.args)


def compared_match(expressions: Expressions, node: ast.Compare) -> TypedQuery | None:
    """Lower `re.match(pattern, text) is None` and `is not None`; None for any other comparison."""
    match node:
        case ast.Compare(
            left=call, ops=[ast.Is() | ast.IsNot() as operator], comparators=[ast.Constant(None)]
        ) if _name_of(expressions, call) is not None:
            found = expressions.hoisted.get(call) or truth_of_match(expressions, call)
        case _:
            return None
    if found is None or is_refused(found.type) or isinstance(operator, ast.IsNot):
        return found
    return found._replace(query=invoke("not", found.query))


def _name_of(expressions: Expressions, node: ast.expr) -> str | None:
    match node:
        case ast.Call(func=function, args=[_, _], keywords=[]) if expressions.is_outside(function):
            found = expressions.unit.outside(function)
            return _NAMES.get(found) if isinstance(found, Hashable) else None
        case _:
            return None
