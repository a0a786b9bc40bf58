"""Helpers whose result is new: neither the result nor a part of it belongs to an argument.

    def free(self) -> list[str]:
        return [name for name, job in self.nodes.items() if job is None]

    free = state.free()
    state.nodes[free[0]] = "job"      # allowed: `free` holds no part of `state`

Only the form of each `return` and the declared type decide. So a result counts as new when it is a
new list, dict, set or model, and its type has no parts that can be changed in place.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection

from holdfast.compiler.context import Helper, Unit
from holdfast.compiler.expressions.declared import annotated_type, returned_type
from holdfast.compiler.statements.aliases import KEEPING_FUNCTIONS
from holdfast.compiler.statements.local_names import bound_names, local_names
from holdfast.compiler.statements.ownership import has_parts_that_may_change, may_change
from holdfast.compiler.steps.helpers import (
    helper_called,
    is_step,
    keeps_parameters,
    own_parts,
)
from holdfast.compiler.types.annotations import is_model
from holdfast.compiler.variable_names import VariableScopeNames


def gives_new_value(helper: Helper, around: tuple[ast.FunctionDef, ...] = ()) -> bool:
    """Return True when the result of a helper that is an expression shares nothing with its
    arguments.
    """
    declared = returned_type(helper.unit, helper.node)
    if declared is None or helper.node in around or keeps_parameters(helper):
        return False
    if not may_change(declared):
        return True
    if has_parts_that_may_change(declared):
        return False
    form = _Form(helper, (*around, helper.node))
    returned = [part for part in own_parts(helper.node) if isinstance(part, ast.Return)]
    return all(part.value is None or form.is_new(part.value) for part in returned)


def gives_closed_value(helper: Helper) -> bool:
    """Return True when the body is one `return` of new lists, dicts and models in which no object
    stands twice, and which hold no value from outside.
    """
    given = [part for part in ast.walk(helper.node.args) if isinstance(part, ast.arg)]
    flat = {part.arg for part in given if not _may_change(helper, part)}
    match helper.node.body:
        case [ast.Return(value=ast.expr() as value)]:
            return _is_closed_value(helper, value, flat)
        case [ast.Expr(value=ast.Constant()), ast.Return(value=ast.expr() as value)]:
            return _is_closed_value(helper, value, flat)
        case _:
            return False


def _is_closed_value(helper: Helper, node: ast.expr, flat: Collection[str]) -> bool:
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            pass
        case ast.Dict(keys=keys, values=values):
            parts = [*values, *(key for key in keys if key is not None)]
            if None in keys:
                return False
        case ast.Call(func=ast.Name() as cls) if is_model(helper.unit.outside(cls)):
            parts = [*node.args, *(word.value for word in node.keywords)]
        case ast.Call(func=ast.Name("list" | "dict" | "set"), args=[], keywords=[]):
            return True
        case _:
            return all(_is_flat(part, flat) for part in ast.walk(node))
    return all(_is_closed_value(helper, part, flat) for part in parts)


def _is_flat(node: ast.AST, flat: Collection[str]) -> bool:
    """Return True for a part of an expression of texts and numbers alone."""
    match node:
        case ast.Name(id=name):
            return name in flat
        case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.IfExp():
            return True
        case ast.JoinedStr() | ast.FormattedValue():
            return True
        case _:
            return isinstance(node, ast.operator | ast.unaryop | ast.cmpop | ast.expr_context)


def _may_change(helper: Helper, parameter: ast.arg) -> bool:
    if parameter.annotation is None:
        return True
    return may_change(annotated_type(helper.unit, parameter.annotation))


def parameters_of(function: ast.FunctionDef) -> set[str]:
    return {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}


def _binds(node: ast.AST, name: str) -> bool:
    """Return True for a statement that assigns the name: all bindings in a body that is an
    expression are assignments.
    """
    return isinstance(node, ast.Assign | ast.AnnAssign) and name in bound_names(node)


class _Form:
    """Decides by the form of an expression in the body of a helper."""

    def __init__(self, helper: Helper, around: tuple[ast.FunctionDef, ...]) -> None:
        self.helper = helper
        self.around = around
        self.scope = VariableScopeNames(None, local_names(helper.node), helper.sees)

    @property
    def unit(self) -> Unit:
        return self.helper.unit

    def is_new(self, node: ast.expr) -> bool:
        match node:
            case ast.List() | ast.ListComp() | ast.Dict() | ast.DictComp() | ast.BinOp():
                return True
            case ast.Set() | ast.SetComp() | ast.Constant() | ast.Subscript(slice=ast.Slice()):
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_new(body) and self.is_new(orelse)
            case ast.Name(id=name):
                return self._is_new_name(name)
            case ast.Call():
                return self._is_new_call(node)
            case _:
                return False

    def _is_new_name(self, name: str) -> bool:
        """Return True for a name that the body gives only new values."""
        if name not in self.scope.local_names:
            return False
        bound = [part for part in own_parts(self.helper.node) if _binds(part, name)]
        values = [getattr(part, "value", None) for part in bound]
        is_parameter = name in parameters_of(self.helper.node)
        return not is_parameter and all(one is not None and self.is_new(one) for one in values)

    def _is_new_call(self, call: ast.Call) -> bool:
        if is_step(self.unit, self.scope, call):
            return True
        if not isinstance(call.func, ast.Name):
            return False
        helper = helper_called(self.unit, self.scope, call.func, self.around)
        if helper is not None:
            return helper.is_expression and gives_new_value(helper, self.around)
        if self.scope.is_local(call.func.id):
            return False
        found = self.unit.outside(call.func)
        is_builtin = found is getattr(builtins, call.func.id, None) or is_model(found)
        return is_builtin and call.func.id not in KEEPING_FUNCTIONS
