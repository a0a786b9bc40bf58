"""The groups of a match of a regular expression, as a tuple; see `compiler/match_groups.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.library import GROUPS
from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery
from holdfast.compiler.library_calls import as_library_step
from holdfast.compiler.match_groups import GroupsOf, GroupsStep
from holdfast.compiler.types.models import conversion
from holdfast.compiler.types.types import (
    NONE,
    STR,
    ListOf,
    TupleOf,
    Type,
    describe,
    is_refused,
    is_text,
    join,
    join_all,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def lower_groups_of(expressions: Expressions, node: GroupsOf) -> TypedQuery:
    step = node.args[0]
    found = expressions.lower(step)
    if is_refused(found.type):
        return REFUSED_EXPRESSION
    assert isinstance(step, GroupsStep)
    return found._replace(type=_result(step.function, node.sure))


def _result(function: str, sure: tuple[bool, ...]) -> Type:
    parts = tuple(STR if is_sure else join(STR, NONE) for is_sure in sure)
    match function:
        case "findall":
            # A group that is not a part of a match is the empty text here.
            return ListOf(TupleOf((STR,) * (len(sure) - 1)) if len(sure) > 2 else STR)
        case "split":
            return ListOf(join_all(parts))
        case _:
            return join(TupleOf(parts), NONE)


def lower_groups_step(expressions: Expressions, node: GroupsStep) -> TypedQuery:
    text = expressions.lower(node.args[1])
    if is_refused(text.type):
        return REFUSED_EXPRESSION
    step = None
    if is_text(text.type):
        step = as_library_step(expressions, node, GROUPS + node.function, node.args)
    if step is not None:
        return step
    message = f"`re.{node.function}()` takes a text, and this is {describe(text.type)}"
    help_ = conversion(expressions.unit.text(node.args[1]), text.type, STR)
    help_ = help_ or "search in a text: annotate the type where it is unknown"
    return expressions.unit.refused(node, "HF040", message, help_)
