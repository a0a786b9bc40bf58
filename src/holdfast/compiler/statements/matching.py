"""Lowering of `match`: the cases in order. A later case does not get values that an earlier case
takes.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.environment import EVERYTHING, Environment, Held, join_environments, path_of
from holdfast.compiler.expressions.choices import connect
from holdfast.compiler.expressions.query import Variable
from holdfast.compiler.ir import Assign, If, StatementBlock
from holdfast.compiler.statements.levels import distinct_levels
from holdfast.compiler.statements.moves import moved_levels
from holdfast.compiler.statements.patterns import match_pattern
from holdfast.compiler.statements.subjects import (
    CaseMatch,
    PatternRefused,
    Subject,
    atoms_of,
    without,
)
from holdfast.compiler.types.types import BOOL, REFUSED, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_match(statements: Statements, node: ast.Match) -> None:
    subject = _subject(statements, node)
    _cases(statements, node, subject, 0)


def _subject(statements: Statements, node: ast.Match) -> Subject:
    """Return the subject, evaluated once. A name, or a field of a name, needs no new variable."""
    owned = moved_levels(statements, node.subject, node.subject)
    before = statements.flow.environment
    value = statements.value(node.subject)
    owned = max(owned, statements.owned(node.subject, value.type))
    distinct = distinct_levels(statements, node.subject, value.type, before)
    path = path_of(node.subject)
    root = None if path is None else path.split(".", 1)[0]
    if is_refused(value.type):
        return Subject(value.query, REFUSED, None)
    if root is not None and statements.scope.is_local(root) and not value.fails:
        return Subject(value.query, value.type, path, owned=owned, distinct=distinct)
    if isinstance(value.query, Variable):
        return Subject(value.query, value.type, None, owned=owned, distinct=distinct)
    variable = statements.scope.name("subject", (node, "subject"))
    origin = statements.origin(node.subject)
    statements.emit(Assign(origin, ((variable, value),)))
    return Subject(Variable(variable), value.type, None, owned=owned, distinct=distinct)


def _cases(statements: Statements, node: ast.Match, subject: Subject, number: int) -> None:
    """Lower the cases from this number on. A subject that fits no case continues after the
    `match`.
    """
    if number == len(node.cases):
        return
    case, flow = node.cases[number], statements.flow
    before = flow.environment
    assert before is not None
    found = _found(statements, subject, case)
    if found is None:
        # The subject was refused. Lower the bodies all the same, so that their refusals are
        # reported in the same run.
        statements.block(case.body)
        after = flow.environment
        flow.environment = before
        _cases(statements, node, subject, number + 1)
        flow.environment = join_environments(after, flow.environment)
        return
    left = subject
    if case.guard is None:
        covered = subject.covered | found.covers
        left = replace(subject, type=without(subject.type, covered), covered=covered)
    test = _test(statements, case, subject, found)
    text = f"match {statements.unit.text(node.subject)}"
    origin = statements.origin(case.pattern, text)
    if test is None or not any(atom not in left.covered for atom in atoms_of(subject.type)):
        statements.emit_all(_arm(statements, case, found, subject))
        _refuse_later(statements, node, number)
        return
    body = _arm(statements, case, found, subject)
    after = flow.environment
    flow.environment = _untaken(before, case, left, found)
    orelse = statements.collected(lambda: _cases(statements, node, left, number + 1))
    flow.environment = join_environments(after, flow.environment)
    statements.emit(If(origin, test, body, orelse))


def _found(statements: Statements, subject: Subject, case: ast.match_case) -> CaseMatch | None:
    if subject.type == REFUSED:
        for name in _captured(case.pattern):
            statements.hold(name, REFUSED)
        return None
    try:
        return match_pattern(statements.expressions.inside("a pattern"), subject, case.pattern)
    except PatternRefused:
        for name in _captured(case.pattern):
            statements.hold(name, REFUSED)
        return None


def _captured(pattern: ast.pattern) -> list[str]:
    return [
        part.name
        for part in ast.walk(pattern)
        if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name is not None
    ] + [
        part.rest
        for part in ast.walk(pattern)
        if isinstance(part, ast.MatchMapping) and part.rest is not None
    ]


def _test(
    statements: Statements, case: ast.match_case, subject: Subject, found: CaseMatch
) -> TypedQuery | None:
    """Return the test of the pattern and of the guard, which reads the pattern's names before they
    are assigned.

    After the call the flow is where the case is taken.
    """
    flow = statements.flow
    environment = flow.environment
    assert environment is not None
    if subject.path is not None and found.type != subject.type:
        environment = environment.with_fact(subject.path, found.type)
    for path, type_ in found.facts:
        environment = environment.with_fact(path, type_)
    for name, value in found.bindings:
        environment = environment.with_entry(name, Held(value.query, value.type))
    flow.environment = environment
    test = found.test
    if case.guard is not None:
        guard = statements.expressions.inside("a guard").truth(case.guard)
        narrowed = statements.expressions.narrowed(case.guard, is_true=True)
        flow.environment = narrowed.environment
        test = (
            guard
            if test is None
            else TypedQuery(connect(test, guard, is_and=True), BOOL, fails_of(test, guard))
        )
    if test is None:
        return None
    taken, flow.environment = flow.environment, environment
    test = statements.protected(test, case.pattern, "test")
    flow.environment = taken
    return test


def _arm(
    statements: Statements, case: ast.match_case, found: CaseMatch, subject: Subject
) -> StatementBlock:
    # Two names of a pattern may hold the same value, or one of them a part of the other.
    whole = len(found.bindings) == 1 and found.bindings[0][1].query == subject.query
    owned = subject.owned if whole else 0
    # A name of a pattern may be several levels below the subject.
    distinct = subject.distinct if whole or subject.distinct == EVERYTHING else 1

    def lower() -> None:
        if found.bindings:
            values = tuple(
                (statements.hold(name, value.type, owned=owned, distinct=distinct), value)
                for name, value in found.bindings
            )
            text = f"case {statements.unit.text(case.pattern)}"
            statements.emit(Assign(statements.origin(case.pattern, text), values))
        statements.emit_all(statements.block(case.body))

    return statements.collected(lower)


def _untaken(
    before: Environment, case: ast.match_case, left: Subject, found: CaseMatch
) -> Environment:
    """Return the facts for the next case."""
    environment = before
    if left.path is not None and not is_refused(left.type):
        environment = environment.with_fact(left.path, left.type)
    if case.guard is not None:
        # Python assigns the names of the pattern before it evaluates the guard, so a name has a new
        # value even when the guard is false.
        for name, _ in found.bindings:
            environment = environment.without(name)
    return environment


def _refuse_later(statements: Statements, node: ast.Match, number: int) -> None:
    later = node.cases[number + 1 :]
    # A `case _:` that can never be reached is good style, so it is accepted.
    if later and not isinstance(later[0].pattern, ast.MatchAs):
        message = "this case can never be reached: the ones before it take every value"
        statements.unit.refuse(later[0].pattern, "HF010", message, "remove it")
