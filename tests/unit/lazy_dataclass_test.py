"""Classes whose methods are compiled at their first use behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from holdfast import lazy_dataclass

Value = TypeVar("Value")


def family(dataclass: Callable[..., Any]) -> list[Any]:
    @dataclass(frozen=True, slots=True)
    class Base:
        """A base."""

        count: ClassVar[int] = 3
        name: str
        size: int = 1

        def doubled(self) -> int:
            return 2 * self.size

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        tags: list[str] = field(default_factory=list)
        length: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.name))

    @dataclass(frozen=True, slots=True)
    class Custom(Generic[Value]):  # noqa: PLW1641
        value: Value
        hidden: int = field(default=0, repr=False, compare=False)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Custom)

    return [Base, Derived, Custom]


LAZY, PLAIN = family(lazy_dataclass.dataclass), family(dataclasses.dataclass)
MAKE: list[Callable[[list[Any]], Any]] = [
    lambda of: of[0]("a"),
    lambda of: of[0](name="a", size=2),
    lambda of: of[1]("abc", 2, ["x"]),
    lambda of: of[1]("abc"),
    lambda of: of[2]([1], 2),
]
ASK: list[Callable[[Any], Any]] = [
    repr,
    lambda one: one == copy.copy(one),
    lambda one: one != 3,
    dataclasses.asdict,
    lambda one: [(each.name, str(each.type)) for each in dataclasses.fields(one)],
    lambda one: repr(dataclasses.replace(one, **{first_of(one): "other"})),
    lambda one: type(one).__match_args__,
    lambda one: (type(one).__slots__, type(one).__qualname__, hasattr(one, "__dict__")),
    lambda one: str(inspect.signature(type(one))),
    lambda one: getattr(one, "__dataclass_params__").frozen,  # noqa: B009
    lambda one: error_of(lambda: hash(one)),
    lambda one: error_of(lambda: setattr(one, first_of(one), "b")),
    lambda one: error_of(lambda: delattr(one, first_of(one))),
    lambda one: error_of(type(one)),
    lambda one: getattr(one, "count", None),
]


def first_of(one: Any) -> str:
    return dataclasses.fields(one)[0].name


def error_of(action: Callable[[], Any]) -> str:
    try:
        action()
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return "none"


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("ask", ASK)
def test_a_lazy_class_answers_as_one_of_the_standard_library(
    make: Callable[[list[Any]], Any], ask: Callable[[Any], Any]
) -> None:
    """Each class is new, so each question is the first use of it."""
    lazy, plain = family(lazy_dataclass.dataclass), family(dataclasses.dataclass)
    assert ask(make(lazy)) == ask(make(plain))


def test_equal_values_have_equal_hashes() -> None:
    base = LAZY[0]
    assert hash(base("a", 2)) == hash(base("a", 2))
    assert len({base("a"), base("a"), base("b")}) == 2
    assert base("a") != LAZY[1]("a")


def test_a_pattern_takes_the_fields_of_the_constructor_in_order() -> None:
    match LAZY[1]("abc", 2, []):
        case LAZY_DERIVED(name, size, tags):
            assert (name, size, tags) == ("abc", 2, [])
        case _:
            raise AssertionError


LAZY_DERIVED = LAZY[1]


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Stored:
    one: int
    two: str = ""


def test_a_value_can_be_pickled_and_copied() -> None:
    stored = Stored(1, "b")
    assert pickle.loads(pickle.dumps(stored)) == stored
    assert copy.deepcopy([stored]) == [stored]


def test_a_method_is_compiled_at_its_first_use() -> None:
    base = family(lazy_dataclass.dataclass)[0]

    def is_compiled(name: str) -> bool:
        return inspect.isfunction(vars(base)[name])

    assert not is_compiled("__init__")
    value = base("a")
    assert is_compiled("__init__")
    assert not is_compiled("__eq__")
    assert value == base("a")
    assert is_compiled("__eq__")
    assert not is_compiled("__repr__")


def test_other_options_are_those_of_the_standard_library() -> None:
    @lazy_dataclass.dataclass
    class Mutable:
        count: int = 0

    changed = Mutable()
    changed.count += 1
    assert changed == Mutable(1)
