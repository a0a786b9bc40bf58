"""Functions of Python's library that a workflow may call: pure steps that need no declaration.

    whole = math.ceil(order.weight)         log.info("order %s is paid", order.id)

Each is a step like a call of a `@pure` function, with the name of its module and function. The list
has functions that take and return JSON values. So `re.match`, which returns an object, is not in
it. The result of a step is recorded, so `random.random` and `uuid.uuid4` are in it: a workflow has
each number once.

`holdfast.log` writes one line of a logger. The history has its arguments.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Final

from holdfast.api.tasks import Pure

LOG: Final = "holdfast.log"
#: `datetime.now(timezone.utc)`
NOW: Final = "holdfast.now"
#: `datetime.fromtimestamp(seconds, tz=timezone.utc)`
FROM_TIMESTAMP: Final = "holdfast.from_timestamp"
#: `hashlib.sha256(text.encode()).hexdigest()` is the step `holdfast.digest.sha256`.
DIGEST: Final = "holdfast.digest."
#: `if re.match(pattern, text):` is the step `holdfast.has.match`.
HAS_MATCH: Final = "holdfast.has."
#: `match = re.match(pattern, text)` whose groups are read is the step `holdfast.groups.match`.
GROUPS: Final = "holdfast.groups."
#: `str(value)` of a list, tuple or dict whose members have other types than those of JSON.
SHOWN: Final = "holdfast.shown"
LEVELS: Final = ("debug", "info", "warning", "error", "critical", "exception")


def library_task(name: str) -> Pure[..., Any] | None:
    """Return the step with this name; None when there is none."""
    found = _listed_task(name)
    if found is None and name.startswith("holdfast."):
        # Imported here, because most deployments have no such step, and each import slows a start.
        from holdfast.api.library_models import model_step  # noqa: PLC0415

        found = model_step(name)
    return found


@functools.cache
def _listed_task(name: str) -> Pure[..., Any] | None:
    if name == LOG:
        step: Pure[..., Any] = Pure(_log, name=LOG)
        return step
    known = _listed().SIGNATURES.get(name)
    return None if known is None else Pure(_calling(name, *known), name=name)


def _listed() -> Any:
    """Return the module of the signatures. A worker imports it only for a step of the library."""
    return importlib.import_module("holdfast.api.library_signatures")


def task_of(function: object) -> Pure[..., Any] | None:
    """Return the step that calls a function of the library; None when the list does not have it."""
    if not callable(function) or isinstance(function, type):
        return None
    name = _name_of(function)
    return library_task(name) if name in _listed().FUNCTIONS and _found(name) == function else None


def _name_of(function: Any) -> str:
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    if type(owner).__module__ == "random":
        # `random.random` is a method of the generator that the module keeps. That of `secrets` is a
        # SystemRandom.
        return f"{'secrets' if type(owner).__name__ == 'SystemRandom' else 'random'}.{name}"
    if isinstance(owner, type):
        # A method of a class, such as `datetime.fromisoformat`, has no module of its own.
        return f"{owner.__module__}.{owner.__qualname__}.{name}"
    return f"{module}.{name}"


def _found(name: str) -> Callable[..., Any]:
    """Return the function: `str.title` of the builtins, `urllib.parse.quote` of a module."""
    if name == NOW:
        clock = importlib.import_module("datetime")
        return functools.partial(clock.datetime.now, clock.timezone.utc)
    if name == FROM_TIMESTAMP:
        clock = importlib.import_module("datetime")
        return functools.partial(clock.datetime.fromtimestamp, tz=clock.timezone.utc)
    if name.startswith(DIGEST):
        return functools.partial(_digest, name.removeprefix(DIGEST))
    if name.startswith(HAS_MATCH):
        return functools.partial(_has_match, name.removeprefix(HAS_MATCH))
    if name == SHOWN:
        return _shown
    if name.startswith(GROUPS):
        return functools.partial(_groups, name.removeprefix(GROUPS))
    module, _, attribute = name.rpartition(".")
    owner = getattr(builtins, module, None)
    if owner is None:
        package, _, last = module.rpartition(".")
        is_class = package and not hasattr(importlib.import_module(package), "__path__")
        owner = getattr(importlib.import_module(package), last) if is_class else None
    found: Callable[..., Any] = getattr(owner or importlib.import_module(module), attribute)
    return found


def _digest(algorithm: str, text: str) -> str:
    found: str = importlib.import_module("hashlib").new(algorithm, text.encode()).hexdigest()
    return found


def _has_match(function: str, pattern: str, text: str) -> bool:
    return getattr(importlib.import_module("re"), function)(pattern, text) is not None


def _groups(function: str, pattern: str, text: str, flags: int, repl: str = "") -> Any:
    compiled = importlib.import_module("re").compile(pattern, flags)
    found = getattr(compiled, function)(*((repl, text) if function == "sub" else (text,)))
    is_match = function in ("match", "search", "fullmatch")
    return [found[0], *found.groups()] if is_match and found is not None else found


def _shown(value: Any, kind: str) -> str:
    """Return the text of the value that this JSON is of the type `kind`, such as `list[float]`."""
    parsed = importlib.import_module("ast").parse(kind, mode="eval")
    adapter = importlib.import_module("pydantic").TypeAdapter(_annotation(parsed.body))
    return str(adapter.validate_python(value))


#: The modules of the types that are not builtins.
_MODULES: Final = {"date": "datetime", "Decimal": "decimal", "UUID": "uuid"}
_BUILTINS: Final = {one.__name__: one for one in (bool, dict, float, int, list, str, tuple)}


def _annotation(node: Any) -> Any:
    match type(node).__name__:
        case "Name" if node.id in _MODULES:
            return getattr(importlib.import_module(_MODULES[node.id]), node.id)
        case "Name":
            return _BUILTINS[node.id]
        case "Constant" if node.value in (None, ...):
            return node.value
        case "BinOp":
            return _annotation(node.left) | _annotation(node.right)
        case "Subscript":
            parts = getattr(node.slice, "elts", [node.slice])
            return _annotation(node.value)[tuple(_annotation(part) for part in parts)]
        case other:
            raise TypeError(other)


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
        annotation=_listed().TYPES[type_],
        default=None if text.endswith(" =") else kinds.empty,
    )


def _log(logger: str, level: str, message: str) -> None:
    logging = importlib.import_module("logging")
    logging.getLogger(logger).log(getattr(logging, level.upper()), "%s", message)
