"""Changes of a list or dict in place. In a state machine each change assigns a new value to the
name.

`xs.append(v)`, `xs.extend(vs)`, `xs += vs`, `xs[i] = v`, `d[key] = v`. A change is refused when
another name may refer to the list, because Python would show the change there, too (`aliases`).
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.environment import EVERYTHING, Held, path_of
from holdfast.compiler.expressions import operators
from holdfast.compiler.expressions.dict_keys import key_help, with_key, written
from holdfast.compiler.expressions.gathering import gathered
from holdfast.compiler.expressions.lazy import refuse_generator
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Block,
    ComputedEntry,
    Conditional,
    Constant,
    QueryTree,
    Variable,
    failure,
    invoke,
    items_of,
    mapped,
)
from holdfast.compiler.expressions.typed_dicts import is_value_for
from holdfast.compiler.library_calls import is_caught
from holdfast.compiler.rewriting import load
from holdfast.compiler.statements.levels import OWN, SHARED, Adding, Stored
from holdfast.compiler.statements.local_names import bound_names
from holdfast.compiler.statements.named_failures import named_item, named_place
from holdfast.compiler.statements.ownership import (
    chain_of,
    has_parts_that_may_change,
    may_change,
)
from holdfast.compiler.statements.replacements import replacing
from holdfast.compiler.steps.helpers import find_step
from holdfast.compiler.steps.hoisting import has_durable
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    INT,
    WRITTEN_DURATION,
    DictOf,
    ListOf,
    ModelOf,
    SetOf,
    Type,
    TypedDictOf,
    describe,
    is_list,
    is_refused,
    join,
    may_be_list,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

#: The most characters of an expression that a message shows.
_SHOWN_MAX: Final = 40


def lower_change(statements: Statements, node: ast.Expr, call: ast.Call, name: str) -> None:
    """Lower `xs.append(v)` and `xs.extend(vs)`."""
    assert isinstance(call.func, ast.Attribute)
    method = call.func.attr
    if len(call.args) != 1 or call.keywords:
        message = f"{method}() takes one value"
        statements.unit.refuse(call, "HF008", message, f"{name}.{method}(value)")
        return
    if method == "extend":
        _extend(statements, node, call, name, call.args[0])
        return
    before = statements.flow.environment
    value = statements.value(call.args[0])
    current = changeable(statements, call, name)
    if current is None or is_refused(value.type):
        return
    if not isinstance(current.type, ListOf) or current.type.is_tuple:
        message = f"`.append()` on {describe(current.type)} has no JSONata form"
        help_ = f"annotate it: {name}: list[str] = []"
        if isinstance(current.type, ListOf):
            help_ = f"{name} = [*{name}, {statements.unit.text(call.args[0])}]"
        statements.unit.refuse(call, "HF002", message, help_)
        return
    stored = Adding(statements, name, before).value(call.args[0], value.type)
    one = items_of(value.query, is_list=is_list(value.type))
    type_ = ListOf(join(current.type.element, value.type))
    longer = TypedQuery(invoke("append", current.query, one), type_, value.fails)
    give(statements, node, name, longer, stored=stored)


def lower_extension(statements: Statements, node: ast.AugAssign, name: str) -> None:
    """Lower `xs += vs` for a list."""
    _extend(statements, node, node.target, name, node.value)


def _extend(
    statements: Statements, node: ast.stmt, where: ast.AST, name: str, items: ast.expr
) -> None:
    before, given = statements.flow.environment, items
    items = _at_once(statements, name, given)
    more = statements.value(items)
    steps = statements.unit.library.steps
    may_fail = more.fails or any(part in steps for part in ast.walk(items))
    if items is not given and may_fail and statements.flow.protections:
        # Python has put in the items before the one that fails, and a handler could read them.
        assert isinstance(given, ast.GeneratorExp)
        refuse_generator(statements.expressions, given)
        return
    current = changeable(statements, where, name)
    if current is None or is_refused(more.type):
        return
    if not isinstance(current.type, ListOf) or not isinstance(more.type, ListOf):
        message = f"{describe(current.type)} is made longer by a list, not by {describe(more.type)}"
        statements.unit.refuse(where, "HF040", message, f"{name}.append(value)")
        return
    longer = operators.arithmetic(statements.unit, node, ast.Add(), current, more)
    if not is_refused(longer.type):
        give(
            statements,
            node,
            name,
            longer,
            stored=Adding(statements, name, before).items(items, more.type),
        )


def _at_once(statements: Statements, name: str, items: ast.expr) -> ast.expr:
    """Return the list for a generator that `extend` takes, if it makes no difference that Python
    puts each item in before it computes the next one.
    """
    if not isinstance(items, ast.GeneratorExp):
        return items
    # The name of a part that was taken out is its path.
    root = re.split(r"[.\[]", name)[0]
    unit, scope = statements.unit, statements.scope
    for part in ast.walk(items):
        # A local function may read the list.
        is_read = isinstance(part, ast.Name) and (
            part.id == root or not isinstance(statements.entry(part.id), Held | None)
        )
        if is_read or find_step(unit, scope, part) is not None:
            return items
    made = ast.ListComp(items.elt, items.generators)
    return unit.rewritten(items, ast.copy_location(made, items))


def lower_item_assignment(
    statements: Statements, node: ast.AST, target: ast.Subscript, name: str, value: ast.expr
) -> None:
    """Lower `xs[i] = v` and `d[key] = v`: the value is computed first, as in Python."""
    before = statements.flow.environment
    new = statements.value(value)
    key = statements.expressions.inside("an index").lower(target.slice)
    current = changeable(statements, target, name)
    if current is not None and not is_refused(key.type, new.type):
        stored = replacing(statements, target, value, before)
        stored = stored or Adding(statements, name, before).value(value, new.type)
        tested = named_place(statements, target, current, key, new)
        parts = (current, *(tested or (key, new)), stored)
        _assign_item(statements, node, target, name, parts, is_there=tested is not None)


def lower_item_change(
    statements: Statements, node: ast.AugAssign, target: ast.Subscript, name: str
) -> None:
    """Lower `d[key] += v`: as in Python, the item is read before the value is computed."""
    place = statements.expressions.inside("a change of an item")
    read = ast.Subscript(target.value, target.slice, ast.Load())
    old = named_item(statements, target, place.lower(ast.copy_location(read, target)))
    key = place.lower(target.slice)
    if old.type == DECIMAL or is_named_change(statements, node, old.type):
        whole = ast.BinOp(ast.copy_location(read, target), node.op, node.value)
        total = statements.unit.rewritten(target, ast.copy_location(whole, node))
        lower_item_assignment(statements, node, target, name, total)
        return
    if has_durable(statements, node.value) and not is_refused(old.type, key.type):
        # Python reads the item before the steps of the value run.
        old = statements.kept(old, node, "old_value")
        key = statements.kept(key, node, "key_value")
        value = statements.value(node.value)
    else:
        # Not in `place`: a pass that finds a step of the library in the value runs it before.
        value = statements.expressions.lower(node.value)
    current = changeable(statements, target, name)
    if current is None or is_refused(key.type, old.type, value.type):
        return
    if isinstance(old.type, ListOf):
        message = "`+=` would change the inner list in place"
        item = statements.unit.text(target)
        help_ = f"{item} = {item} + {statements.unit.text(node.value)}"
        statements.unit.refuse(node, "HF023", message, help_)
        return
    new = operators.arithmetic(statements.unit, node, node.op, old, value)
    if not is_refused(new.type):
        stored = SHARED if may_change(new.type) else OWN
        # The item was read, so it is there.
        parts = (current, key, new, stored)
        _assign_item(statements, node, target, name, parts, is_there=True)


def is_named_change(statements: Statements, node: ast.AugAssign, old: Type) -> bool:
    """Return True for `n //= k`, or for `when += wait`, in a `try` whose handler names the error of
    a division by zero, or of a moment or a duration. `old`: the type of the value before.
    """
    is_division = isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod)
    if is_division and is_caught(statements.expressions, "ZeroDivisionError"):
        return True
    is_of_time = old in (DATE, DATETIME, DURATION, WRITTEN_DURATION)
    errors = ("OverflowError", "ValueError")
    return is_of_time and any(is_caught(statements.expressions, error) for error in errors)


def _assign_item(
    statements: Statements,
    node: ast.AST,
    target: ast.Subscript,
    name: str,
    parts: tuple[TypedQuery, TypedQuery, TypedQuery, Stored],
    *,
    is_there: bool,
) -> None:
    current, key, new, stored = parts
    fails = fails_of(current, key, new)
    match current.type:
        case DictOf(value) as owner if (
            longer := with_key(owner, key, join(value, new.type))
        ) is not None:
            if isinstance(owner, TypedDictOf):
                name_of_key = str(getattr(key.query, "value", "…"))
                value_node = getattr(node, "value", target)
                if not is_value_for(
                    statements.expressions, value_node, owner, name_of_key, new.type
                ):
                    return
            merged = invoke(
                "merge", ArrayOf((current.query, ComputedEntry(written(key), new.query)))
            )
            type_ = owner if isinstance(owner, TypedDictOf) else longer
            changed = TypedQuery(merged, type_, fails)
            path = path_of(target)
            if path is not None and not isinstance(owner, TypedDictOf):
                with keeping_facts(statements, name, path) as facts:
                    give(statements, node, name, changed, stored=stored)
                    if new.type != type_.value:
                        facts[path] = new.type
                return
        case ListOf(element, False) if key.type == INT:
            text = statements.unit.text(target)
            query = _replaced(current.query, key.query, new.query, join(element, new.type), text)
            fails = fails if is_there else fails | {"IndexError"}
            changed = TypedQuery(query, ListOf(join(element, new.type)), fails)
        case type_:
            message = f"{describe(type_)} has no items by {describe(key.type)} to change"
            help_ = _item_help(name, type_, key.type, statements.unit.text(target.slice))
            statements.unit.refuse(target, "HF020", message, help_)
            return
    give(statements, node, name, changed, stored=stored)


def _item_help(name: str, type_: Type, key: Type, text: str) -> str:
    match type_:
        case DictOf() if name.startswith("= "):
            # The dict of a comprehension with steps has no name of the author.
            return f"{{{key_help(type_, key, text)}: …}}"
        case DictOf():
            return f"{name}[{key_help(type_, key, text)}] = …"
        case ListOf():
            return f"{name}[0] = …, or annotate it: {name}: dict[str, int] = {{}}"
        case _:
            return f"build another value: {name} = …"


def _replaced(
    items: QueryTree, index: QueryTree, new: QueryTree, element: Type, text: str
) -> QueryTree:
    """Return the list with one item replaced; an index below 0 counts from the end."""
    size, wanted, place = invoke("count", items), Variable("_at"), Variable("_place")
    at = Conditional(Binary("<", index, Constant(0)), Binary("+", index, size), index)
    is_inside = Binary("and", Binary(">=", wanted, Constant(0)), Binary("<", wanted, size))
    value, fresh = Variable("_value"), Variable("_new")
    is_here = Binary("=", place, wanted)
    if may_be_list(element):
        one, other = (items_of(part, is_list=is_list(element)) for part in (fresh, value))
        changed = gathered(items, (value, place), Conditional(is_here, one, other))
    else:
        pick = Conditional(is_here, fresh, value)
        changed = mapped(items, (value.name, place.name), pick)
    checked = Conditional(is_inside, changed, failure(f"IndexError: {text}"))
    return Block(fresh.name, new, Block(wanted.name, at, checked))


def changeable(
    statements: Statements, node: ast.AST, name: str, *, is_inside: bool = False
) -> TypedQuery | None:
    """Return the value of `name` when no other name can refer to it. None when the change was
    refused: it would show under the other name in Python, but not in the compiled code, which
    copies. `is_inside`: a part of the value is changed.
    """
    unit, environment = statements.unit, statements.flow.environment
    assert environment is not None
    if name not in statements.scope.local_names:
        unit.refuse(
            node,
            "HF021",
            f"`{name}` belongs to the enclosing workflow and cannot be changed in a branch",
            "return the value from the branch and combine the results afterwards",
        )
        return None
    current = statements.expressions.lower(ast.copy_location(load(name), node))
    entry = environment.entries.get(name)
    if is_refused(current.type) or not isinstance(entry, Held):
        return None
    if name in statements.flow.iterated:
        message = f"`{name}` is changed while the loop goes through it"
        unit.refuse(node, "HF023", message, statements.flow.copying_loops[name])
        return None
    if not entry.owned and isinstance(current.type, ListOf | SetOf | DictOf | ModelOf):
        message = held_elsewhere(statements, name, name)
        # The help names another variable for the copy. The compiler treats the branch that captures
        # the old name as a second holder of its value, so an assignment of the copy to the same
        # name would be refused again.
        is_captured = unit.captured is not None and name in unit.captured.names
        own = f"own_{name}" if is_captured else name
        help_ = f"{own} = {_copy_of(name, current.type)}"
        if is_inside:
            help_ = deep_copy(statements, own, name, node)
        items = statements.flow.items_of.get(name)
        if _is_of_caller(statements, name):
            known = _of_caller(statements, name, current.type, is_inside=is_inside)
            message, help_ = known or (message, help_)
        if isinstance(current.type, ModelOf) and items is not None:
            message = f"`{name}` is an item of `{items}`, which is changed by giving it other items"
            help_ = f"{items} = [{_changed_copy(name, current.type)} for {name} in {items}]"
        unit.refuse(node, "HF023", message, help_)
        return None
    return current


def _is_of_caller(statements: Statements, name: str) -> bool:
    """Return True for a variable of the caller in the body of a helper. Another value for its name
    would not change the value of the caller.
    """
    result, function = statements.result, statements.unit.functions.get(statements.scope)
    if result is None or function is None or name.startswith("= "):
        return False
    if statements.pasted:
        return name not in (result.names or ())
    return any(part.arg == name for part in ast.walk(function.args) if isinstance(part, ast.arg))


def _of_caller(
    statements: Statements, name: str, type_: Type, *, is_inside: bool
) -> tuple[str, str] | None:
    """Return message and help for a change of a variable of the caller that is not its own; None
    when the reason is not known.
    """
    unit = statements.unit
    function = unit.functions[statements.scope]
    holder = unit.holders.get(statements.scope.name(name))
    if holder is not None:
        text = unit.text(holder)
        copied = f"copy.deepcopy({text})" if is_inside else _copy_of(text, type_)
        message = held_elsewhere(statements, name, name)
        return message, f"{copied}, in place of `{text}` in line {holder.lineno}"
    message = f"`{name}` is changed here for the caller of `{function.name}`"
    rebound = [line for line in function.body if name in bound_names(line)]
    inner = [part for part in ast.walk(function) if isinstance(part, ast.Lambda | ast.FunctionDef)]
    if statements.pasted:
        return None
    if rebound:
        message += f", and line {rebound[0].lineno} gives the name another value"
        return message, f"own_{name} = …, and `own_{name}` in the lines behind it"
    if len(inner) > 1:
        line = max(part.lineno for part in inner)
        message += f", and line {line} has a function, which may keep the value"
        return message, f"put the change into a helper without the function of line {line}"
    return None


def held_elsewhere(statements: Statements, name: str, text: str) -> str:
    """Return the message that the value at `text`, a part of that of `name`, has another holder."""
    holder = statements.unit.holders.get(statements.scope.name(name))
    found = "something else"
    if holder is not None:
        found = f"line {holder.lineno}"
        written = statements.unit.text(holder)
        if len(written) <= _SHOWN_MAX and "\n" not in written:
            found = f"`{written}` ({found})"
    return f"`{text}` is changed here, and {found} may hold the same value; copy it"


def deep_copy(statements: Statements, own: str, name: str, path: ast.AST) -> str:
    """Return the line that copies the value of `name`, so that its part at `path` can be
    changed.
    """
    entry, chain = statements.entry(name), chain_of(path)
    assert isinstance(entry, Held)
    depth = 0 if chain is None else len(chain.accesses)
    is_apart = entry.distinct > depth
    line = f"{own} = {_separate_copy(name, entry.type, 0 if is_apart else depth)}"
    is_imported = statements.unit.outside(ast.Name("copy")) is copy
    return line if is_imported else f"{line}, with `import copy` in the module"


#: The names of the items in a line that copies them, by their depth.
_ITEM_NAMES: Final = ("one", "part", "inner", "value")


def _separate_copy(text: str, type_: Type, depth: int, level: int = 0) -> str:
    """Return a copy whose parts down to this depth are objects of their own: `copy.deepcopy` alone
    would give two places that hold one object one copy again.
    """
    if not may_change(type_):
        return text
    one, key = _ITEM_NAMES[level % len(_ITEM_NAMES)], f"key_{level}" if level else "key"
    match type_ if depth else None:
        case ListOf(element, is_tuple=False):
            return f"[{_separate_copy(one, element, depth - 1, level + 1)} for {one} in {text}]"
        case DictOf(value):
            copied = _separate_copy(one, value, depth - 1, level + 1)
            return f"{{{key}: {copied} for {key}, {one} in {text}.items()}}"
        case ModelOf(model):
            fields = (
                f"{name}={_separate_copy(f'{text}.{name}', field.type, depth - 1, level)}"
                for name, field in fields_of(model).items()
            )
            return f"{model.__name__}({', '.join(fields)})"
        case _:
            return f"copy.deepcopy({text})"


@contextmanager
def keeping_facts(statements: Statements, name: str, path: str) -> Iterator[dict[str, Type]]:
    """Change the part of `name` at `path`. The facts about its other parts stay true; the block
    adds the facts about the new part.
    """
    environment = statements.flow.environment
    assert environment is not None
    facts = {
        known: type_
        for known, type_ in environment.facts.items()
        if known.startswith((f"{name}.", f"{name}["))
        and known != path
        and not known.startswith((f"{path}.", f"{path}["))
    }
    yield facts
    for known, type_ in facts.items():
        if statements.flow.environment is not None:
            statements.flow.environment = statements.flow.environment.with_fact(known, type_)


def _copy_of(name: str, type_: Type) -> str:
    match type_:
        case ListOf():
            return f"list({name})"
        case SetOf():
            return f"set({name})"
        case ModelOf(model):
            return f"{name}.model_copy()" if hasattr(model, "model_fields") else f"replace({name})"
        case _:
            return f"dict({name})"


def _changed_copy(name: str, type_: ModelOf) -> str:
    is_pydantic = hasattr(type_.model, "model_fields")
    return f'{name}.model_copy(update={{"…": …}})' if is_pydantic else f"replace({name}, …)"


def give(
    statements: Statements,
    node: ast.AST,
    name: str,
    value: TypedQuery,
    *,
    stored: Stored = OWN,
) -> None:
    """Assign the changed value. `stored`: the levels of the part that was added."""
    entry = statements.entry(name)
    owned, distinct = 0, 1
    if isinstance(entry, Held):
        owned, distinct = min(entry.owned, 1 + stored.owned), min(entry.distinct, 1 + stored.alone)
    if owned and not has_parts_that_may_change(value.type):
        owned = EVERYTHING
    variable = statements.scope.name(name)
    statements.assign(node, (variable, value))
    statements.hold(name, value.type, owned=owned, distinct=distinct)
