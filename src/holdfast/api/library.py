"""Functions of Python's library that a workflow may call: pure steps that need no declaration.

    whole = math.ceil(order.weight)         log.info("order %s is paid", order.id)

Each is a step like a call of a `@pure` function, with the name of its module and function. The list
has functions that give the same result for the same arguments, and that take and return JSON
values. So `re.match`, which returns an object, and `random.random` are not in it.

`holdfast.log` writes one line of a logger. The history has its arguments.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast.api.tasks import Pure

#: For each function, its parameters with their types, and the type of its result. `=` marks an
#: optional parameter, and `*` a keyword-only one.
_SIGNATURES: Final[Mapping[str, tuple[tuple[str, ...], Any]]] = MappingProxyType(
    {
        **dict.fromkeys(
            [f"math.{name}" for name in ("ceil", "floor", "trunc")], (("x: float",), int)
        ),
        **dict.fromkeys(
            [
                f"math.{name}"
                for name in ("sqrt", "exp", "log10", "log2", "fabs", "sin", "cos", "tan")
            ],
            (("x: float",), float),
        ),
        "math.log": (("x: float", "base: float ="), float),
        "math.pow": (("x: float", "y: float"), float),
        "math.gcd": (("a: int", "b: int"), int),
        "math.isqrt": (("n: int",), int),
        "math.comb": (("n: int", "k: int"), int),
        **dict.fromkeys(
            [f"statistics.{name}" for name in ("mean", "fmean", "median", "stdev", "pstdev")],
            (("data: list[float]",), float),
        ),
        "textwrap.shorten": (("text: str", "width: int", "*placeholder: str ="), str),
        "textwrap.fill": (("text: str", "width: int ="), str),
        "textwrap.wrap": (("text: str", "width: int ="), list[str]),
        "textwrap.dedent": (("text: str",), str),
        "textwrap.indent": (("text: str", "prefix: str"), str),
        "re.sub": (("pattern: str", "repl: str", "string: str"), str),
        "re.findall": (("pattern: str", "string: str"), list[str]),
        "re.split": (("pattern: str", "string: str"), list[str]),
        "re.escape": (("pattern: str",), str),
        "json.dumps": (
            ("obj: Any", "*indent: int =", "*sort_keys: bool =", "*ensure_ascii: bool ="),
            str,
        ),
        "json.loads": (("s: str",), Any),
        "urllib.parse.quote": (("string: str", "safe: str ="), str),
        "urllib.parse.quote_plus": (("string: str", "safe: str ="), str),
        "urllib.parse.unquote": (("string: str",), str),
        "urllib.parse.unquote_plus": (("string: str",), str),
        "urllib.parse.urlencode": (("query: dict[str, Any]",), str),
        "urllib.parse.urljoin": (("base: str", "url: str"), str),
        "html.escape": (("s: str",), str),
        "html.unescape": (("s: str",), str),
        "unicodedata.normalize": (("form: str", "unistr: str"), str),
        "string.capwords": (("s: str",), str),
        "difflib.get_close_matches": (("word: str", "possibilities: list[str]"), list[str]),
    }
)
_TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "Any": Any,
        "bool": bool,
        "dict[str, Any]": dict[str, Any],
        "float": float,
        "int": int,
        "list[float]": list[float],
        "list[str]": list[str],
        "str": str,
    }
)
LOG: Final = "holdfast.log"
LEVELS: Final = ("debug", "info", "warning", "error", "critical", "exception")


@functools.cache
def library_task(name: str) -> Pure[..., Any] | None:
    """Return the step with this name; None when the list does not have it."""
    if name == LOG:
        step: Pure[..., Any] = Pure(_log, name=LOG)
        return step
    known = _SIGNATURES.get(name)
    return None if known is None else Pure(_calling(name, *known), name=name)


def task_of(function: object) -> Pure[..., Any] | None:
    """Return the step that calls a function of the library; None when the list does not have it."""
    if not callable(function) or isinstance(function, type):
        return None
    name = _name_of(function)
    return library_task(name) if name in _SIGNATURES and _found(name) is function else None


def _name_of(function: Any) -> str:
    module = getattr(function, "__module__", None)
    return f"{module}.{getattr(function, '__name__', '')}"


def _found(name: str) -> Callable[..., Any]:
    module, _, attribute = name.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


def _calling(name: str, parameters: tuple[str, ...], result: Any) -> Callable[..., Any]:
    signature = inspect.Signature([_parameter(text) for text in parameters])
    by_name = {text[1:].partition(":")[0] for text in parameters if text.startswith("*")}

    def call(**values: Any) -> Any:
        by_place = [value for key, value in values.items() if key not in by_name]
        return _found(name)(*by_place, **{key: values[key] for key in values if key in by_name})

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    call.__annotations__["return"] = result
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _parameter(text: str) -> inspect.Parameter:
    name, _, type_ = text.removeprefix("*").removesuffix(" =").partition(": ")
    kinds = inspect.Parameter
    return inspect.Parameter(
        name,
        kinds.KEYWORD_ONLY if text.startswith("*") else kinds.POSITIONAL_OR_KEYWORD,
        annotation=_TYPES[type_],
        default=None if text.endswith(" =") else kinds.empty,
    )


def _log(logger: str, level: str, message: str) -> None:
    logging = importlib.import_module("logging")
    logging.getLogger(logger).log(getattr(logging, level.upper()), "%s", message)
