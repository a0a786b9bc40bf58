"""Compiles syntax trees to closures: `$order.total > 100` -> a function of frame and context.

The one rule that keeps it right: a node is compiled only when every attribute that it carries is
known here. Anything else raises `Refused`, and the whole expression runs on jsonata-python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.asl import _jsonata_paths as paths
from holdfast.asl import _jsonata_values as values
from holdfast.asl._jsonata_natives import NATIVES
from holdfast.asl._jsonata_operators import BINARY
from holdfast.asl._jsonata_runtime import (
    BULK_MIN,
    Declined,
    Frame,
    Lambda,
    Node,
    Run,
    negate,
    truth,
)
from holdfast.asl._jsonata_tree import Refused, checked, walk
from holdfast.asl._jsonata_values import UNDEFINED, Json, JsonataError, Undefined, tidy_number

_ABSENT: Final = object()
_GROWING: Final = frozenset({"reduce"})  # can make a small value that is endless when written


class Compiled:
    """An expression as closures. `evaluate` raises Declined when jsonata-python has to do it."""

    def __init__(self, tree: Any, functions: frozenset[str]) -> None:
        compiler = _Compiler(tree, functions)
        self._node = compiler.node(tree)
        self._called = frozenset(compiler.called)
        self._grows = compiler.grows

    def evaluate(self, bindings: Mapping[str, Json]) -> Json | Undefined:
        if not self._called.isdisjoint(bindings):
            raise Declined  # a variable hides a function
        document = bindings.get("$", UNDEFINED)
        if type(document) is list:
            raise Declined
        result = self._node(Frame({}, None, Run(bindings)), document)
        if type(result) is float:
            return tidy_number(result)
        if self._grows:
            values.node_count(result)
        return result  # type: ignore[no-any-return]
