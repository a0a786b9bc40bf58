"""The common part of tasks and workflows: a named function whose parameters and result are JSON."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from holdfast.api.boundary import Boundary

P = ParamSpec("P")
R = TypeVar("R")


class Declared(Generic[P, R]):
    """A named function, with the JSON form of its parameters and result, which is computed at the
    first use.
    """

    #: True for a task that calls a service. It has no function, so it accepts any arguments by
    #: name.
    is_service = False

    def __init__(self, function: Callable[P, R], name: str | None) -> None:
        functools.update_wrapper(cast(Any, self), function)
        self.function = function
        self.name = name if name is not None else function.__name__

    @functools.cached_property
    def boundary(self) -> Boundary:
        return Boundary(self.function)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"

    def __deepcopy__(self, _memo: object) -> Self:
        """Return the same object, as for a function: the arguments of `undo(start, ship, …)` are
        copied when they are registered.
        """
        return self

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Return the arguments of a call by name, with the defaults of those left out."""
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def changed(self, **settings: Any) -> Self:
        """Return a copy with those of the settings that are not None."""
        changed = copy.copy(self)
        for name, value in settings.items():
            if value is not None:
                setattr(changed, name, value)
        return changed
