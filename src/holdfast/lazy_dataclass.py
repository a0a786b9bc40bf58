"""`dataclass` as in the standard library, except that its methods are compiled at their first use.

The standard library writes six methods for each frozen class as text and compiles them when the
class is made. A worker imports 200 such classes and uses a quarter of them in its first call. With
Python 3.11 the methods took a third of its cold start.

    the class is made     slots; a placeholder for each method
    Attempt(...)          `__init__` is compiled, and replaces its placeholder
    attempt == other      `__eq__` is compiled

Type checkers see the decorator of the standard library, which compiles the methods here, too. Only
classes with exactly `frozen=True, slots=True` are made like this. All others go to the standard
library at once.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, NoReturn

__all__ = ["dataclass"]

#: The attributes that are made at their first use, with the options that make them.
_OPTIONS: Final = {
    "__init__": {"init": True},
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"eq": True},
    "__dataclass_fields__": {},
    "__dataclass_params__": {"init": True, "repr": True, "eq": True},
}
_NOTHING: Final = {"init": False, "repr": False, "eq": False}
_OF_INSTANCES: Final = ("__dict__", "__weakref__")


class _Placeholder:
    """Stands for an attribute of the class `made`. `source` is the class as it was written."""

    __slots__ = ("_made", "_name", "_source")

    def __init__(self, name: str, source: type, made: type) -> None:
        self._name, self._source, self._made = name, source, made

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        options: dict[str, bool] = {**_NOTHING, **_OPTIONS[self._name]}
        source = _copy(self._source, without=_OF_INSTANCES)
        attribute = vars(dataclasses.dataclass(frozen=True, **options)(source))[self._name]
        setattr(self._made, self._name, attribute)
        bind = getattr(attribute, "__get__", None)
        return attribute if bind is None else bind(instance, owner)


def _copy(source: type, *, without: tuple[str, ...], **changed: Any) -> Any:
    # Without a docstring the standard library writes one: the signature, which takes as long as the
    # methods.
    own = {**vars(source), "__doc__": source.__doc__ or source.__name__}
    kept = {name: value for name, value in own.items() if name not in without}
    names = {"__qualname__": source.__qualname__}
    return type(source)(source.__name__, source.__bases__, {**kept, **names, **changed})


def _lazy(source: type) -> Any:
    own = vars(source)
    fields = [name for name, kind in source.__annotations__.items() if not _is_of_class(kind)]
    bases = [vars(base).get("__slots__", ()) for base in source.__mro__[1:]]
    in_init = [name for name in fields if _is_in_init(own.get(name))]
    made = _copy(
        source,
        without=(*_OF_INSTANCES, *fields),
        __slots__=tuple(name for name in fields if not any(name in slots for slots in bases)),
        __match_args__=tuple(dict.fromkeys([*getattr(source, "__match_args__", ()), *in_init])),
        __setattr__=_refuse_to_set,
        __delattr__=_refuse_to_delete,
        __getstate__=_state,
        __setstate__=_restore,
    )
    for name in _OPTIONS:
        # A class that defines `__eq__` has None as its hash.
        if own.get(name) is None:
            setattr(made, name, _Placeholder(name, source, made))
    return made


def _is_of_class(annotation: Any) -> bool:
    return str(annotation).startswith(("ClassVar", "typing.ClassVar"))


def _is_in_init(default: Any) -> bool:
    return not isinstance(default, dataclasses.Field) or default.init


def _refuse_to_set(_: Any, name: str, value: Any) -> NoReturn:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in dataclasses.fields(value)]


def _restore(value: Any, state: list[Any]) -> None:
    for field, each in zip(dataclasses.fields(value), state, strict=True):
        object.__setattr__(value, field.name, each)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        is_later = cls is None and options == {"frozen": True, "slots": True}
        return _lazy if is_later else dataclasses.dataclass(cls, **options)
