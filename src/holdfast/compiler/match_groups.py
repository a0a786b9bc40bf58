"""`match = re.match(pattern, text)`: a match in a local variable, as the tuple of its groups.

A match is an object that JSON does not have. But its groups are texts, and a workflow mostly reads
no more than these. So the functions of a module are rewritten before the compiler reads them, as
in `default_dicts`:

    match = re.match(r"(\\w+)-(?P<year>\\d+)", text)         match = <its groups, or None>
    if match:                                              if match:
        name = match.group(1)                                  name = match[1]
        year = int(match["year"])                              year = int(match[2])

The pattern is a constant, so it is known which groups there are, and which of them are part of
each match. The others may be None. The name is rewritten only if each of its uses is known.

Calls whose results have the form that the groups of the pattern give are rewritten, too:
`re.findall(r"(\\w)=(\\d)", text)` is a list of tuples. So are the methods of a compiled pattern.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from re import _parser  # type: ignore[attr-defined]  # the structure of a pattern
from types import MappingProxyType, ModuleType
from typing import Any, Final

from holdfast.compiler.default_dict_uses import outside, own_nodes
from holdfast.compiler.rewriting import load, located, replace_nodes

_FUNCTIONS: Final[Mapping[object, str]] = MappingProxyType(
    {re.match: "match", re.search: "search", re.fullmatch: "fullmatch"}
)


class GroupsStep(ast.Call):
    """The step that returns the groups of a match, or None. Its arguments: the pattern, the text
    and the flags. `function`: the function of `re`.
    """

    function: str


class GroupsOf(ast.Call):
    """The result of its only argument, a `GroupsStep`. `sure`: for each group, whether each match
    has it.
    """

    sure: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _Match:
    """One call of `re.match` with a constant pattern."""

    function: str
    pattern: re.Pattern[str]
    text: ast.expr

    @property
    def names(self) -> Mapping[str, int]:
        return self.pattern.groupindex


def write_match_groups(function: ast.AST, module: ModuleType) -> None:
    """Rewrite the variables of a function whose values are all matches, and calls whose results
    depend on the groups of a constant pattern.
    """
    names = vars(module)
    found: dict[str, list[_Match]] = {}
    bound: set[ast.AST] = set()
    for node in own_nodes(function):
        target, value = _binding(node)
        match = None if value is None else _match_of(value, names)
        if target is not None and match is not None:
            found.setdefault(target.id, []).append(match)
            bound.add(target)
    for name, matches in found.items():
        variable = _Variable(function, name, matches, bound)
        if variable.knows_all_uses():
            replace_nodes(function, _Writer(variable, names).rule)
    replace_nodes(function, _Calls(function, names).rule)


def _binding(node: ast.AST) -> tuple[ast.Name | None, ast.expr | None]:
    match node:
        case (
            ast.Assign(targets=[ast.Name() as target], value=value)
            | ast.NamedExpr(target=ast.Name() as target, value=value)
        ):
            return target, value
        case _:
            return None, None


def _match_of(node: ast.expr, names: Mapping[str, Any]) -> _Match | None:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=owner), attr=function), args=[text], keywords=[]
        ) if isinstance(names.get(owner), re.Pattern) and function in _FUNCTIONS.values():
            pattern = names[owner]
            is_text = isinstance(pattern.pattern, str)
            return _Match(function, pattern, text) if is_text else None
        case ast.Call(func=called, args=[pattern, text, *rest], keywords=[]) if len(rest) < 2:
            found = outside(called, names)
            known = _FUNCTIONS.get(found) if isinstance(found, Hashable) else None
            compiled = _compiled(pattern, rest, names)
            return None if known is None or compiled is None else _Match(known, compiled, text)
        case _:
            return None


def _compiled(
    pattern: ast.expr, flags: list[ast.expr], names: Mapping[str, Any]
) -> re.Pattern[str] | None:
    text = pattern.value if isinstance(pattern, ast.Constant) else outside(pattern, names)
    flag = _flags(flags[0], names) if flags else 0
    if not isinstance(text, str) or flag is None:
        return None
    try:
        return re.compile(text, flag)
    except re.error:
        return None


def _flags(node: ast.expr, names: Mapping[str, Any]) -> int | None:
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = _flags(left, names), _flags(right, names)
            return None if sides[0] is None or sides[1] is None else sides[0] | sides[1]
        case _:
            found = outside(node, names)
            return int(found) if isinstance(found, re.RegexFlag) else None


def sure_groups(pattern: re.Pattern[str]) -> tuple[bool, ...]:
    """Return for each group, from 0, whether it is part of each match."""
    sure = {0, *_sure(_parser.parse(pattern.pattern, pattern.flags))}
    return tuple(number in sure for number in range(pattern.groups + 1))


def _sure(parsed: Any) -> Iterator[int]:
    for operator, argument in parsed:
        match str(operator):
            case "SUBPATTERN":
                if argument[0] is not None:
                    yield argument[0]
                yield from _sure(argument[-1])
            case "ATOMIC_GROUP":
                yield from _sure(argument)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if argument[0] > 0:
                yield from _sure(argument[-1])


class _Variable:
    """One variable of one function, and its uses."""

    def __init__(
        self, function: ast.AST, name: str, matches: list[_Match], bound: set[ast.AST]
    ) -> None:
        self.function = function
        self.name = name
        self.matches = matches
        self.bound = bound
        self.parents = {
            child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)
        }

    def knows_all_uses(self) -> bool:
        for node in ast.walk(self.function):
            match node:
                case ast.Name(id=self.name) if not self._is_known(node):
                    return False
                case ast.arg(arg=self.name):
                    return False
                case ast.Nonlocal(names=names) | ast.Global(names=names) if self.name in names:
                    return False
        return True

    def _is_known(self, use: ast.Name) -> bool:
        parent = self.parents[use]
        if isinstance(use.ctx, ast.Store):
            return use in self.bound
        match parent:
            case ast.Subscript(value=owner, ctx=ast.Load()) if owner is use:
                return self.place_of(parent.slice) is not None
            case ast.Attribute(value=owner) if owner is use:
                call = self.parents[parent]
                return isinstance(call, ast.Call) and self.read(call, parent) is not None
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return True
            case ast.BoolOp(op=ast.And(), values=values) if values[-1] is not use:
                return True
            case _:
                return self._is_test(use)

    def _is_test(self, use: ast.expr) -> bool:
        """Return True where only the truth of the match counts."""
        node: ast.AST = use
        parent = self.parents[node]
        while isinstance(parent, ast.BoolOp):
            node, parent = parent, self.parents[parent]
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        if isinstance(parent, ast.comprehension):
            return node in parent.ifs
        return getattr(parent, "test", None) is node

    def read(self, call: ast.Call, function: ast.Attribute) -> ast.expr | None:
        """Return the code that reads the same of the tuple; None when there is none."""
        if call.func is not function or call.keywords:
            return None
        match function.attr, call.args:
            case "group", []:
                return self._at(0)
            case "group", [one]:
                place = self.place_of(one)
                return None if place is None else self._at(place)
            case "group", [*some]:
                places = [self.place_of(one) for one in some]
                known = [self._at(place) for place in places if place is not None]
                return ast.Tuple(known, ast.Load()) if len(known) == len(some) else None
            case "groups", [] if self._has_same_groups():
                count = self.matches[0].pattern.groups
                return ast.Tuple([self._at(place + 1) for place in range(count)], ast.Load())
            case "groupdict", [] if self._has_same_groups():
                names = self.matches[0].names
                keys: list[ast.expr | None] = [ast.Constant(name) for name in names]
                return ast.Dict(keys, [self._at(place) for place in names.values()])
            case _:
                return None

    def _has_same_groups(self) -> bool:
        forms = [(one.pattern.groups, dict(one.names)) for one in self.matches]
        return all(form == forms[0] for form in forms)

    def place_of(self, key: ast.expr) -> int | None:
        """Return the number of a group; None for a key that is not constant, or that some match
        lacks.
        """
        if not isinstance(key, ast.Constant) or isinstance(key.value, bool):
            return None
        if isinstance(key.value, int):
            is_group = all(key.value <= one.pattern.groups for one in self.matches)
            return key.value if is_group else None
        places = {one.names.get(str(key.value)) for one in self.matches}
        return places.pop() if len(places) == 1 else None

    def _at(self, place: int) -> ast.expr:
        return ast.Subscript(load(self.name), ast.Constant(place), ast.Load())


class _Writer:
    """The rule that rewrites the values and the uses of one variable."""

    def __init__(self, variable: _Variable, names: Mapping[str, Any]) -> None:
        self.variable = variable
        self.names = names

    def rule(self, node: ast.AST) -> ast.AST:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=self.variable.name)])
                | ast.NamedExpr(target=ast.Name(id=self.variable.name))
            ) if (match := _match_of(node.value, self.names)) is not None:
                node.value = _groups_of(match, node.value)
            case ast.Subscript(value=ast.Name(id=self.variable.name), slice=ast.Constant(str())):
                place = self.variable.place_of(node.slice)
                node.slice = ast.copy_location(ast.Constant(place), node.slice)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=self.variable.name)) as function
            ) if (made := self.variable.read(node, function)) is not None:
                return located(made, node)
        return node


def _groups_of(match: _Match, node: ast.expr) -> ast.expr:
    step = _step_of(match, node)
    found = GroupsOf(step.func, [step], [])
    found.sure = sure_groups(match.pattern)
    return located(found, node)


def _step_of(match: _Match, node: ast.expr, *more: ast.expr) -> GroupsStep:
    # A step of the library must not be found for it by its function.
    function = ast.copy_location(ast.Constant(f"re.{match.function}"), node)
    flags = int(match.pattern.flags) & ~int(re.UNICODE)
    given = [ast.Constant(match.pattern.pattern), match.text, ast.Constant(flags), *more]
    step = GroupsStep(function, given, [])
    step.function = match.function
    return step


class _Calls:
    """The rule that rewrites the calls of `re.findall` and `re.split` with a constant pattern that
    has groups, and the methods of a compiled pattern.
    """

    def __init__(self, function: ast.AST, names: Mapping[str, Any]) -> None:
        self.names = names
        self.parents = {
            child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)
        }

    def rule(self, node: ast.AST) -> ast.AST:
        match node:
            case GroupsOf() | GroupsStep():
                return node
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr=method), args=args, keywords=[]
            ) if isinstance(pattern := self.names.get(owner), re.Pattern):
                return self._of_pattern(node, pattern, method, args)
            case ast.Call(func=called, args=[pattern_, text], keywords=[]):
                found = outside(called, self.names)
                method = "findall" if found is re.findall else "split"
                pattern = _compiled(pattern_, [], self.names)
                is_known = found is re.findall or found is re.split
                # With fewer groups the results are texts, and the library has steps for these.
                least = 2 if found is re.findall else 1
                if is_known and pattern is not None and pattern.groups >= least:
                    return _groups_of(_Match(method, pattern, text), node)
        return node

    def _of_pattern(
        self, node: ast.Call, pattern: re.Pattern[Any], method: str, args: list[ast.expr]
    ) -> ast.AST:
        if not isinstance(pattern.pattern, str):
            return node
        match method, args:
            case "sub", [text, string] if isinstance(text, ast.Constant):
                step = _step_of(_Match(method, pattern, string), node, text)
                return located(step, node)
            case "findall" | "split", [text]:
                return _groups_of(_Match(method, pattern, text), node)
            case "match" | "search" | "fullmatch", [text] if self._is_test(node):
                return _groups_of(_Match(method, pattern, text), node)
            case _:
                return node

    def _is_test(self, node: ast.AST) -> bool:
        parent = self.parents.get(node)
        while isinstance(parent, ast.BoolOp):
            node, parent = parent, self.parents.get(parent)
        match parent:
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.comprehension(ifs=tests):
                return node in tests
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return True
            case _:
                return getattr(parent, "test", None) is node
