"""A mutant planted into a running program: every module that imported the changed functions gets
it.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from tests.mutation.mutants import Module, Mutant

PACKAGE: Final = "holdfast.core"


class NotImportable(Exception):  # noqa: N818
    """A module cannot run with the mutant in it: any import would have failed."""


def plant(module: Module, mutant: Mutant) -> None:
    """Plant the mutant for the rest of this process.

    The module is run a second time, beside itself, and the differences are carried over into the
    first: code, default values, constants. Code that runs once, when a module is imported, may have
    set constants in other modules.

    Raises NotImportable; any other error is a fault of this file, and the mutant is not in place.
    """
    mutant.plant()
    _put_in_place(module, is_felt_by_importers=not mutant.lines)


def plant_nothing(module: Module) -> None:
    """Do the same as `plant` with the unchanged module. A test that then fails finds no mutant."""
    _put_in_place(module, is_felt_by_importers=True)


def _put_in_place(module: Module, *, is_felt_by_importers: bool) -> None:
    live = sys.modules[f"{PACKAGE}.{module.name.removesuffix('.py').replace('/', '.')}"]
    is_constant = _run_again(live, module.tree)
    if is_constant or is_felt_by_importers:
        for other in _importers(live):
            _run_again(other, ast.parse(Path(str(other.__file__)).read_text(encoding="utf-8")))
    _forget_cached()


def _importers(live: ModuleType) -> Iterator[ModuleType]:
    name = live.__name__.rpartition(".")[2]
    for other in _ours():
        if other is not live and other.__name__.startswith(f"{PACKAGE}."):
            held = vars(other).values()
            is_importer = any(value is live or _is_of(value, live) for value in held)
            if is_importer or f"import {name}" in Path(str(other.__file__)).read_text("utf-8"):
                yield other


def _run_again(live: ModuleType, tree: ast.Module) -> bool:
    """Return whether a constant has become another, too."""
    is_changed = False
    namespace: dict[str, Any] = {"__name__": live.__name__, "__file__": live.__file__}
    try:
        exec(compile(tree, str(live.__file__), "exec"), namespace)
    except Exception as error:
        raise NotImportable(f"{live.__name__}: {error!r}") from error
    made = {id(value): name for name, value in namespace.items() if _is_of(value, live)}

    def own(value: Any) -> Any:
        """Return the same, made of the functions and classes that are in use."""
        match value:
            case dict():
                return {own(key): own(inner) for key, inner in value.items()}
            case list() | tuple() | set() | frozenset() if type(value).__module__ == "builtins":
                return type(value)(own(inner) for inner in value)
            case _:
                return vars(live)[made[id(value)]] if id(value) in made else value

    for name, new in namespace.items():
        old = vars(live).get(name)
        if id(new) in made:
            _carry_over(new, old)
        elif not name.startswith("__") and not isinstance(new, ModuleType):
            is_changed |= _replace(name, old, own(new))
    return is_changed


def _is_of(value: Any, live: ModuleType) -> bool:
    return getattr(value, "__module__", "") == live.__name__ and hasattr(value, "__qualname__")


def _carry_over(new: Any, old: Any) -> None:
    if isinstance(new, type):
        for name, member in vars(new).items():
            _carry_over_member(old, name, member)
    else:
        _carry_over_function(_function(new), _function(old))


def _carry_over_member(old: type, name: str, member: Any) -> None:
    function, former = _function(member), vars(old).get(name)
    if function is not None:
        _carry_over_function(function, _function(former))
    elif isinstance(member, str | int | float | tuple) and member != former:
        with contextlib.suppress(AttributeError, TypeError):
            setattr(old, name, member)


def _function(value: Any) -> FunctionType | None:
    """Return the code object of a function, a method, a property or a cached one."""
    for name in ("fget", "func", "__func__", "__wrapped__"):
        value = getattr(value, name, None) or value
    return value if isinstance(value, FunctionType) else None


def _carry_over_function(new: FunctionType | None, old: FunctionType | None) -> None:
    if new is None or old is None:
        return
    if new.__code__ != old.__code__:
        _carry_over_inner(old.__code__, new.__code__)
        old.__code__ = new.__code__
    old.__defaults__ = new.__defaults__
    old.__kwdefaults__ = new.__kwdefaults__


def _carry_over_inner(old: CodeType, new: CodeType) -> None:
    """Carry over inner code. Functions that a function made earlier, for a table, get its new inner
    code. Code with other closure variables does not fit them: the tables are built again for it.
    """
    before = {code.co_qualname: code for code in old.co_consts if isinstance(code, CodeType)}
    for code in new.co_consts:
        former = before.get(code.co_qualname) if isinstance(code, CodeType) else None
        if former is None or former == code:
            continue
        if former.co_freevars == code.co_freevars:
            for held in gc.get_referrers(former):
                if isinstance(held, FunctionType):
                    held.__code__ = code


def _replace(name: str, old: Any, new: Any) -> bool:
    """Replace a value. A table may have another name elsewhere; an equal number or text could
    belong to other code.
    """
    if old == new:
        return False
    is_table = bool(old) and isinstance(old, dict | list | tuple | set | frozenset)
    for module in _ours():
        for held, value in list(vars(module).items()):
            if value is old and (is_table or held == name):
                setattr(module, held, new)
    return True


def _forget_cached() -> None:
    for module in _ours():
        for value in vars(module).values():
            forget: Callable[[], None] | None = getattr(value, "cache_clear", None)
            if forget is not None:
                forget()


def _ours() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith("holdfast.")]
