"""The patterns of `case`: for each a test, the names that it assigns, and the values that it
takes.
"""

from __future__ import annotations

import ast
from dataclasses import is_dataclass, replace
from enum import Enum
from typing import Any, Final

from holdfast.compiler.context import NOTHING, TypedQuery, fails_of
from holdfast.compiler.environment import Held
from holdfast.compiler.expressions.choices import connect
from holdfast.compiler.expressions.comparisons import compare
from holdfast.compiler.expressions.dict_keys import sought
from holdfast.compiler.expressions.error_values import error_in
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.fields import known_fields
from holdfast.compiler.expressions.kinds import told_apart
from holdfast.compiler.expressions.query import (
    TRUE,
    Binary,
    Constant,
    FieldOf,
    ItemOf,
    invoke,
)
from holdfast.compiler.rewriting import load, located
from holdfast.compiler.statements.subjects import (
    CaseMatch,
    PatternRefused,
    Subject,
    atom_of,
    atoms_of,
    without,
)
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    DictOf,
    ListOf,
    ModelOf,
    ResultOf,
    TextOf,
    TupleOf,
    Type,
    TypedDictOf,
    describe,
    is_refused,
    join_all,
    members_of,
)


def match_pattern(expressions: Expressions, subject: Subject, node: ast.pattern) -> CaseMatch:
    """Return the test and the bindings of a pattern. Raises PatternRefused."""
    match node:
        case ast.MatchValue(value=value):
            return _value(expressions, subject, node, value)
        case ast.MatchSingleton(value=value):
            return _singleton(expressions, subject, node, value)
        case ast.MatchAs(pattern=None, name=name):
            bindings = () if name is None else ((name, TypedQuery(subject.query, subject.type)),)
            return CaseMatch(None, subject.type, frozenset(atoms_of(subject.type)), bindings)
        case ast.MatchAs(pattern=ast.pattern() as inner, name=str(name)):
            found = match_pattern(expressions, subject, inner)
            whole = (name, TypedQuery(subject.query, found.type))
            return replace(found, bindings=(*found.bindings, whole))
        case ast.MatchOr(patterns=patterns):
            return _or(expressions, subject, node, patterns)
        case ast.MatchClass():
            return _class(expressions, subject, node)
        case ast.MatchSequence(patterns=patterns):
            return _sequence(expressions, subject, node, patterns)
        case ast.MatchMapping():
            return _mapping(expressions, subject, node)
        case _:
            # Python itself allows a star only inside of a sequence.
            raise AssertionError(ast.dump(node))


def _refuse(expressions: Expressions, node: ast.AST, message: str, help_: str) -> PatternRefused:
    expressions.unit.refuse(node, "HF035", message, help_)
    return PatternRefused()


def _never(expressions: Expressions, node: ast.AST, type_: Type) -> PatternRefused:
    message = f"this pattern never fits {describe(type_)}"
    return _refuse(expressions, node, message, "remove this case, or annotate the type")


# Constants.


def _value(
    expressions: Expressions, subject: Subject, node: ast.MatchValue, value: ast.expr
) -> CaseMatch:
    wanted = expressions.lower(value)
    test = compare(
        expressions.unit, value, ast.Eq(), TypedQuery(subject.query, subject.type), wanted
    )
    if is_refused(test.type):
        raise PatternRefused
    if not isinstance(wanted.query, Constant):
        help_ = f"case found if found == {expressions.unit.text(value)}:"
        raise _refuse(expressions, node, "a pattern compares with a constant", help_)
    covers = frozenset((atom_of(wanted.query.value),))
    texts = [one for one in members_of(subject.type) if isinstance(one, TextOf)]
    type_ = without(subject.type, frozenset((atom_of(None),)))
    if texts and isinstance(wanted.query.value, str):
        type_ = TextOf((wanted.query.value,))
    return CaseMatch(test, type_, covers)


def _singleton(
    expressions: Expressions, subject: Subject, node: ast.MatchSingleton, value: object
) -> CaseMatch:
    if atom_of(value) not in atoms_of(subject.type) and UNKNOWN not in members_of(subject.type):
        raise _never(expressions, node, subject.type)
    wanted = Constant(None) if value is None else Constant(bool(value))
    test = TypedQuery(Binary("=", subject.query, wanted), BOOL)
    return CaseMatch(test, NONE if value is None else BOOL, frozenset((atom_of(value),)))


def _or(
    expressions: Expressions, subject: Subject, node: ast.MatchOr, patterns: list[ast.pattern]
) -> CaseMatch:
    found = [match_pattern(expressions, subject, pattern) for pattern in patterns]
    if any(one.bindings for one in found):
        message = "alternatives that bind names have no exact form"
        raise _refuse(expressions, node, message, "write one `case` for each alternative")
    type_ = join_all(one.type for one in found)
    covers = frozenset().union(*(one.covers for one in found))
    tests = [one.test for one in found if one.test is not None]
    if len(tests) < len(found):
        return CaseMatch(None, type_, covers)
    whole = tests[-1]
    for test in reversed(tests[:-1]):
        whole = TypedQuery(connect(test, whole, is_and=False), BOOL, fails_of(test, whole))
    return CaseMatch(whole, type_, covers)


# Classes.


def _class(expressions: Expressions, subject: Subject, node: ast.MatchClass) -> CaseMatch:
    cls = expressions.unit.outside(node.cls)
    if cls is NOTHING and expressions.is_outside(node.cls):
        name = expressions.unit.text(node.cls)
        help_ = f"import `{name}` at the top of the module"
        expressions.unit.refuse(node.cls, "HF004", f"`{name}` is not defined", help_)
        raise PatternRefused
    if not isinstance(cls, type) or issubclass(cls, Enum):
        help_ = "case Payment(status=…):, or a member of an enum: case Status.PAID:"
        raise _refuse(expressions, node.cls, "a class pattern names a model", help_)
    members = members_of(subject.type)
    if issubclass(cls, Exception):
        return _error(expressions, subject, node)
    if cls in _VALUE_KINDS and (UNKNOWN in members or node.patterns):
        return _kind(expressions, subject, node, _VALUE_KINDS[cls])
    if UNKNOWN in members:
        message = "the class of a value of unknown type"
        raise _refuse(expressions, node, message, "annotate the type of what is matched")
    chosen = [member for member in members if _is_instance(member, cls)]
    if not chosen:
        raise _never(expressions, node, subject.type)
    others = [member for member in members if member not in chosen]
    test = _class_test(expressions, subject, node, chosen, others)
    if node.patterns:
        node = _with_names(expressions, node, cls, chosen)
    narrowed = Subject(subject.query, join_all(chosen), subject.path)
    parts = _fields(expressions, narrowed, node)
    return _with_parts(narrowed, test, parts)


def _with_names(
    expressions: Expressions, node: ast.MatchClass, cls: type[Any], chosen: list[Type]
) -> ast.MatchClass:
    """Return `case Point(x=a, y=b)` for `case Point(a, b)`. A dataclass has an order of its
    fields.
    """
    names = tuple(vars(cls).get("__match_args__", ()))[: len(node.patterns)]
    is_whole = len(names) == len(node.patterns) and not {*names} & {*node.kwd_attrs}
    has_order = is_dataclass(cls) and all(isinstance(one, ModelOf) for one in chosen)
    if not (has_order and is_whole):
        message = "a class pattern names the fields that it looks at"
        raise _refuse(expressions, node, message, f"case {cls.__name__}(status=…):")
    attributes, patterns = [*names, *node.kwd_attrs], [*node.patterns, *node.kwd_patterns]
    return ast.copy_location(ast.MatchClass(node.cls, [], attributes, patterns), node)


def _is_instance(member: Type, cls: type[Any]) -> bool:
    match member:
        case ModelOf(model):
            return issubclass(model, cls)
        case TextOf():
            return cls is str
        case _:
            kinds = {STR: (str,), BOOL: (bool, int), INT: (int,), FLOAT: (float,)}
            return member in kinds and cls in kinds[member]


def _class_test(
    expressions: Expressions,
    subject: Subject,
    node: ast.MatchClass,
    chosen: list[Type],
    others: list[Type],
) -> TypedQuery | None:
    if not others:
        return None
    if others == [NONE]:
        return TypedQuery(Binary("!=", subject.query, Constant(None)), BOOL)
    test = told_apart(subject.query, join_all(chosen), join_all(others))
    if test is not None:
        return TypedQuery(test, BOOL)
    message = f"nothing in the JSON tells {describe(join_all(chosen))} from the other classes"
    help_ = 'give each model a field like kind: Literal["card"] = "card"'
    raise _refuse(expressions, node, message, help_)


def _fields(
    expressions: Expressions, subject: Subject, node: ast.MatchClass
) -> list[tuple[Subject, CaseMatch]]:
    found = []
    for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
        types = [
            fields_of(member.model)[name].type
            for member in members_of(subject.type)
            if isinstance(member, ModelOf) and name in fields_of(member.model)
        ]
        if len(types) < len(members_of(subject.type)):
            message = f"{describe(subject.type)} has no field `{name}`"
            help_ = "name a field of the model"
            if isinstance(subject.type, ModelOf):
                before = f"case {expressions.unit.text(node.cls)}("
                help_ = known_fields(subject.type.model, name, before, "=…)")
            expressions.unit.refuse(pattern, "HF044", message, help_)
            raise PatternRefused
        path = None if subject.path is None else f"{subject.path}.{name}"
        part = Subject(FieldOf(subject.query, name), join_all(types), path)
        found.append((part, match_pattern(expressions, part, pattern)))
    return found


def _error(expressions: Expressions, subject: Subject, node: ast.MatchClass) -> CaseMatch:
    """Match `CardDeclined()`. Its fields are no patterns: Python asks whether the error has them,
    and only the text of its cause would show that.
    """
    error = error_in(subject.type)
    if error is None:
        raise _never(expressions, node, subject.type)
    if node.patterns or node.kwd_attrs:
        name = expressions.unit.text(node.cls)
        message = "the fields of an error are read in the case, not in its pattern"
        raise _refuse(expressions, node, message, f"case {name}() as error:")
    seen = _with_subject(expressions, subject, node)
    asked = ast.Call(load("isinstance"), [_subject_of(node), node.cls], [])
    test = _truth(seen, asked, node)
    narrowed = seen.narrowed(asked, is_true=True).lower(_subject_of(node)).type
    is_every = expressions.unit.outside(node.cls) is Exception
    covers = frozenset(atoms_of(error)) if is_every else frozenset()
    return CaseMatch(None if test.query == TRUE else test, narrowed, covers)


# Kinds of values, and dicts.

#: The classes of Python's own whose pattern takes the whole value: `case str(text):`.
_VALUE_KINDS: Final[dict[type, Type]] = {
    str: STR,
    bool: BOOL,
    int: INT,
    float: FLOAT,
    dict: DictOf(UNKNOWN),
    list: ListOf(UNKNOWN),
}
#: Stands for the subject in an expression that is lowered for it. No author can write this name.
_SUBJECT: Final = "match subject"


def _kind(
    expressions: Expressions, subject: Subject, node: ast.MatchClass, type_: Type
) -> CaseMatch:
    """Match `str()`, or `str(text)`, whose inner pattern gets the whole value."""
    if len(node.patterns) > 1 or node.kwd_attrs:
        name = expressions.unit.text(node.cls)
        raise _refuse(expressions, node, "such a value has no fields", f"case {name}():")
    seen = _with_subject(expressions, subject, node)
    test: TypedQuery | None = None
    narrowed = subject.type
    if subject.type != type_:
        asked = ast.Call(load("isinstance"), [_subject_of(node), node.cls], [])
        test = _truth(seen, asked, node)
        inner = seen.narrowed(asked, is_true=True).lower(_subject_of(node)).type
        narrowed = type_ if inner == UNKNOWN else inner
    part = Subject(subject.query, narrowed, None)
    covers = frozenset() if test is not None else frozenset(atoms_of(subject.type))
    whole = CaseMatch(test, narrowed, covers)
    if not node.patterns:
        return whole
    found = match_pattern(expressions, part, node.patterns[0])
    both = test if found.test is None else found.test
    if test is not None and found.test is not None:
        both = _both(test, found.test)
    kept = covers if found.test is None else frozenset()
    return replace(whole, test=both, covers=kept, bindings=found.bindings)


def _mapping(expressions: Expressions, subject: Subject, node: ast.MatchMapping) -> CaseMatch:
    """Match `{"kind": "card", **rest}`. Other keys of the dict do not matter."""
    members = members_of(subject.type)
    chosen = [one for one in members if isinstance(one, DictOf)]
    if UNKNOWN in members:
        chosen = [DictOf(UNKNOWN)]
    if len(chosen) != 1:
        message = f"a pattern for a dict does not fit {describe(subject.type)}"
        raise _refuse(expressions, node, message, "annotate it as a dict, or as Any")
    tests: list[TypedQuery] = []
    if members != (chosen[0],):
        kind = ast.Call(
            load("isinstance"),
            [_subject_of(node), load("dict")],
            [],
        )
        tests.append(_truth(_with_subject(expressions, subject, node), kind, node))
    here = Subject(subject.query, chosen[0], None)
    seen = _with_subject(expressions, here, node)
    bindings: list[tuple[str, TypedQuery]] = []
    names: list[ast.expr] = []
    for key, pattern in zip(node.keys, node.patterns, strict=True):
        text = _text_of_key(expressions, here.type, key)
        if text is None:
            message = f"the keys of this pattern are {describe(_key_of(chosen[0]))}, written out"
            raise _refuse(expressions, key, message, 'case {"kind": "card"}:')
        names.append(key)
        tests.append(_truth(seen, ast.Compare(key, [ast.In()], [_subject_of(node)]), node))
        part = Subject(FieldOf(subject.query, text), _value_type(here.type, text), None)
        found = match_pattern(expressions, part, pattern)
        tests += [] if found.test is None else [found.test]
        bindings += found.bindings
    if node.rest is not None:
        bindings.append((node.rest, seen.lower(_rest(node, names))))
    whole = None if not tests else tests[0]
    for test in tests[1:]:
        assert whole is not None
        whole = _both(whole, test)
    covers = frozenset(atoms_of(chosen[0])) if not node.keys else frozenset()
    return CaseMatch(whole, chosen[0], covers, tuple(bindings))


def _key_of(type_: DictOf) -> Type:
    return STR if type_.key == NEVER else type_.key


def _text_of_key(expressions: Expressions, type_: Type, key: ast.expr) -> str | None:
    """Return the text of the key of a pattern; None for a key that the dict cannot have."""
    assert isinstance(type_, DictOf)
    text = sought(type_, expressions.lower(key))
    is_known = isinstance(text, Constant) and isinstance(text.value, str)
    return str(text.value) if is_known and isinstance(text, Constant) else None


def _value_type(type_: Type, key: str) -> Type:
    if isinstance(type_, TypedDictOf | ResultOf):
        return type_.fields().get(key, UNKNOWN)
    assert isinstance(type_, DictOf)
    return type_.value


def _rest(node: ast.MatchMapping, names: list[ast.expr]) -> ast.expr:
    """Return `{k: v for k, v in subject.items() if k not in ("kind",)}`."""
    made = ast.parse("{k: v for k, v in subject.items() if k not in ()}", mode="eval").body
    for part in ast.walk(made):
        if isinstance(part, ast.Tuple) and isinstance(part.ctx, ast.Load):
            part.elts = list(names)
    return _about_subject(made, node)


def _about_subject(made: ast.expr, node: ast.pattern) -> ast.expr:
    """Return the expression about the name `subject` as one about the subject of the match."""
    for part in ast.walk(made):
        ast.copy_location(part, node)
        if isinstance(part, ast.Name) and part.id == "subject":
            part.id = _SUBJECT
    return made


def _with_subject(expressions: Expressions, subject: Subject, node: ast.pattern) -> Expressions:
    """Return the expressions in which the name `_SUBJECT` is the subject."""
    scope = expressions.unit.scope(expressions.scope, node, [_SUBJECT], is_inlined=True)
    held = Held(subject.query, subject.type)
    environment = expressions.environment.with_entry(_SUBJECT, held)
    return replace(expressions, scope=scope, environment=environment)


def _subject_of(node: ast.AST) -> ast.Name:
    return ast.copy_location(load(_SUBJECT), node)


def _truth(expressions: Expressions, asked: ast.expr, node: ast.AST) -> TypedQuery:
    found = expressions.truth(located(asked, node))
    if is_refused(found.type):
        raise PatternRefused
    return found


# Lists and tuples.


def _sequence(
    expressions: Expressions,
    subject: Subject,
    node: ast.MatchSequence,
    patterns: list[ast.pattern],
) -> CaseMatch:
    chosen = [one for one in members_of(subject.type) if isinstance(one, ListOf | TupleOf)]
    others = [one for one in members_of(subject.type) if one not in chosen]
    if len(chosen) != 1 or any(other != NONE for other in others):
        message = f"a pattern for a list does not fit {describe(subject.type)}"
        raise _refuse(expressions, node, message, "annotate it as a list or a tuple")
    starred = [place for place, one in enumerate(patterns) if isinstance(one, ast.MatchStar)]
    count = len(patterns) - len(starred)
    if starred and starred[0] != count:
        message = "`*` stands last in a pattern"
        help_ = f"case [{', '.join(['first', *['second'][: count - 1]])}, *others]:"
        raise _refuse(expressions, node, message, help_)
    narrowed = Subject(subject.query, chosen[0], None)
    test = _length_test(expressions, narrowed, node, count, is_open=bool(starred))
    if others:
        present = TypedQuery(Binary("!=", subject.query, Constant(None)), BOOL)
        test = present if test is None else _both(present, test)
    parts = []
    for place, pattern in enumerate(patterns[:count]):
        type_ = chosen[0].elements[place] if isinstance(chosen[0], TupleOf) else chosen[0].element
        part = Subject(ItemOf(subject.query, Constant(place)), type_, None)
        parts.append((part, match_pattern(expressions, part, pattern)))
    found = _with_parts(narrowed, test, parts)
    rest = getattr(patterns[-1], "name", None) if starred else None
    if rest is None:
        return found
    value = _with_subject(expressions, narrowed, node).lower(_items_from(node, count))
    if is_refused(value.type):
        raise PatternRefused
    return replace(found, bindings=(*found.bindings, (rest, value)))


def _items_from(node: ast.MatchSequence, count: int) -> ast.expr:
    """Return `list(subject[1:])`: the items that `*others` takes are a list."""
    made = ast.parse(f"list(subject[{count}:])", mode="eval").body
    return _about_subject(made, node)


def _length_test(
    expressions: Expressions, subject: Subject, node: ast.AST, count: int, *, is_open: bool
) -> TypedQuery | None:
    if isinstance(subject.type, TupleOf):
        size = len(subject.type.elements)
        if count > size or (count < size and not is_open):
            raise _never(expressions, node, subject.type)
        return None
    if is_open and count == 0:
        return None
    length = invoke("count", subject.query)
    return TypedQuery(Binary(">=" if is_open else "=", length, Constant(count)), BOOL)


# Parts.


def _with_parts(
    subject: Subject, test: TypedQuery | None, parts: list[tuple[Subject, CaseMatch]]
) -> CaseMatch:
    """Return the match of a whole pattern: it matches when all parts do. Its values are excluded
    from later cases only if the parts always match.
    """
    whole = test
    bindings: list[tuple[str, TypedQuery]] = []
    facts: list[tuple[str, Type]] = []
    for part, found in parts:
        if found.test is not None:
            whole = found.test if whole is None else _both(whole, found.test)
        if part.path is not None and found.type != part.type:
            facts.append((part.path, found.type))
        bindings += found.bindings
        facts += found.facts
    is_sure = all(found.test is None for _, found in parts)
    is_sized = isinstance(subject.type, ListOf) and test is not None
    covers = frozenset(atoms_of(subject.type)) if is_sure and not is_sized else frozenset()
    return CaseMatch(whole, subject.type, covers, tuple(bindings), tuple(facts))


def _both(left: TypedQuery, right: TypedQuery) -> TypedQuery:
    return TypedQuery(connect(left, right, is_and=True), BOOL, fails_of(left, right))
