"""The functions and methods of Python's library that are steps, with the types of their parameters.

Every type has a JSON form from which pydantic makes the same Python value again. A method is listed
with its class, and `self` is its first parameter: the step `str.title` calls `str.title(self)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, TypeAlias

#: The parameters of a function with their types, and the type of its result. `=` marks an optional
#: parameter, and `*` a keyword-only one.
Signature: TypeAlias = tuple[tuple[str, ...], Any]


def _same(
    owner: str, names: Iterable[str], parameters: tuple[str, ...], result: Any
) -> dict[str, Signature]:
    return {f"{owner}.{name}": (parameters, result) for name in names}


_TEXT: Final = ("self: str",)
_FILLED: Final = ("self: str", "width: int", "fillchar: str =")
_SPLIT: Final = ("self: str", "*sep: str =", "*maxsplit: int =")
_CLOCK: Final = ("*hour: int =", "*minute: int =", "*second: int =", "*microsecond: int =")
_CALENDAR: Final = ("*year: int =", "*month: int =", "*day: int =")
_DAY: Final = ("year: int", "month: int", "day: int")
_TIME: Final = ("hour: int =", "minute: int =", "second: int =", "microsecond: int =")
_PATTERN: Final = ("pattern: str", "string: str", "flags: int")
_TWO_DECIMALS: Final = ("self: Decimal", "other: Decimal")

#: The functions that an author may call by their names.
FUNCTIONS: Final[Mapping[str, Signature]] = {
    **_same("math", ("ceil", "floor", "trunc"), ("x: float",), int),
    **_same(
        "math",
        (
            *("sqrt", "exp", "expm1", "log10", "log1p", "log2", "fabs"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "radians", "degrees"),
        ),
        ("x: float",),
        float,
    ),
    "math.log": (("x: float", "base: float ="), float),
    **_same("math", ("pow", "atan2", "hypot", "fmod", "copysign"), ("x: float", "y: float"), float),
    **_same("math", ("gcd", "lcm"), ("a: int", "b: int"), int),
    "math.isqrt": (("n: int",), int),
    "math.factorial": (("n: int",), int),
    **_same("math", ("comb", "perm"), ("n: int", "k: int"), int),
    "math.fsum": (("seq: list[float]",), float),
    "math.isclose": (("a: float", "b: float", "*rel_tol: float =", "*abs_tol: float ="), bool),
    **_same(
        "statistics",
        (
            *("mean", "fmean", "geometric_mean", "harmonic_mean", "median"),
            *("stdev", "pstdev", "variance", "pvariance"),
        ),
        ("data: list[float]",),
        float,
    ),
    "statistics.quantiles": (("data: list[float]", "*n: int ="), list[float]),
    "textwrap.shorten": (("text: str", "width: int", "*placeholder: str ="), str),
    "textwrap.fill": (("text: str", "width: int ="), str),
    "textwrap.wrap": (("text: str", "width: int ="), list[str]),
    "textwrap.dedent": (("text: str",), str),
    "textwrap.indent": (("text: str", "prefix: str"), str),
    "re.sub": (("pattern: str", "repl: str", "string: str", "*count: int =", "*flags: int ="), str),
    "re.findall": (("pattern: str", "string: str", "*flags: int ="), list[str]),
    "re.split": (
        ("pattern: str", "string: str", "*maxsplit: int =", "*flags: int ="),
        list[str],
    ),
    "re.escape": (("pattern: str",), str),
    "json.dumps": (
        ("obj: Any", "*indent: int =", "*sort_keys: bool =", "*ensure_ascii: bool ="),
        str,
    ),
    "json.loads": (("s: str",), Any),
    **_same("urllib.parse", ("quote", "quote_plus"), ("string: str", "safe: str ="), str),
    **_same("urllib.parse", ("unquote", "unquote_plus"), ("string: str",), str),
    "urllib.parse.urlencode": (("query: dict[str, Any]",), str),
    "urllib.parse.urljoin": (("base: str", "url: str"), str),
    **_same("html", ("escape", "unescape"), ("s: str",), str),
    "unicodedata.normalize": (("form: str", "unistr: str"), str),
    "string.capwords": (("s: str",), str),
    "shlex.quote": (("s: str",), str),
    "shlex.split": (("s: str",), list[str]),
    "fnmatch.fnmatchcase": (("name: str", "pat: str"), bool),
    "calendar.isleap": (("year: int",), bool),
    "calendar.monthrange": (("year: int", "month: int"), tuple[int, int]),
    "difflib.get_close_matches": (("word: str", "possibilities: list[str]"), list[str]),
    "uuid.uuid4": ((), importlib.import_module("uuid").UUID),
    "random.random": ((), float),
    "random.uniform": (("a: float", "b: float"), float),
    **_same("random", ("gauss", "normalvariate"), ("mu: float", "sigma: float"), float),
    "random.expovariate": (("lambd: float",), float),
    "random.triangular": (("low: float", "high: float", "mode: float"), float),
    "random.randint": (("a: int", "b: int"), int),
    "random.randrange": (("start: int", "stop: int ="), int),
    "random.choice": (("seq: list[Any]",), Any),
    "random.sample": (("population: list[Any]", "k: int"), list[Any]),
    "random.choices": (("population: list[Any]", "*k: int ="), list[Any]),
    **_same("secrets", ("token_hex", "token_urlsafe"), ("nbytes: int =",), str),
    "secrets.randbelow": (("exclusive_upper_bound: int",), int),
    "secrets.choice": (("seq: list[Any]",), Any),
    "time.time": ((), float),
    "datetime.datetime.now": ((), datetime),
    "datetime.datetime.utcnow": ((), datetime),
    "datetime.date.today": ((), date),
    "posixpath.basename": (("p: str",), str),
    "posixpath.dirname": (("p: str",), str),
    "posixpath.splitext": (("p: str",), tuple[str, str]),
    "builtins.ord": (("c: str",), int),
    "builtins.chr": (("i: int",), str),
    "builtins.hex": (("number: int",), str),
    "builtins.bin": (("number: int",), str),
    "datetime.datetime.fromisoformat": (("text: str",), datetime),
    "datetime.datetime.strptime": (("text: str", "format: str"), datetime),
    "datetime.date.fromisoformat": (("text: str",), date),
    "datetime.time.fromisoformat": (("text: str",), time),
}
#: The compiler calls these where an expression has no exact form in JSONata.
_METHODS: Final[Mapping[str, Signature]] = {
    "decimal.Decimal": (("value: str",), Decimal),
    "datetime.date": (_DAY, date),
    "datetime.datetime": ((*_DAY, *_TIME), datetime),
    "builtins.pow": (("base: float", "exp: float"), float),
    "builtins.float": (("x: Any",), float),
    "builtins.int": (("x: Any",), int),
    **_same(
        "str",
        ("isdigit", "isalpha", "isalnum", "isnumeric", "isdecimal", "isidentifier", "isascii"),
        _TEXT,
        bool,
    ),
    **_same("str", ("isupper", "islower", "isspace", "istitle", "isprintable"), _TEXT, bool),
    **_same("str", ("title", "capitalize", "swapcase", "casefold"), _TEXT, str),
    **_same("str", ("strip", "lstrip", "rstrip"), ("self: str", "chars: str ="), str),
    **_same("str", ("center", "ljust", "rjust"), _FILLED, str),
    "str.zfill": (("self: str", "width: int"), str),
    "str.expandtabs": (("self: str", "tabsize: int ="), str),
    **_same("str", ("split", "rsplit"), _SPLIT, list[str]),
    **_same("str", ("partition", "rpartition"), ("self: str", "sep: str"), tuple[str, str, str]),
    "str.replace": (("self: str", "old: str", "new: str", "count: int ="), str),
    **_same(
        "str",
        ("find", "rfind", "index", "rindex", "count"),
        ("self: str", "sub: str", "start: int =", "end: int ="),
        int,
    ),
    "str.__format__": (("self: str", "spec: str"), str),
    "str.__repr__": (_TEXT, str),
    "int.__format__": (("self: int", "spec: str"), str),
    "float.__format__": (("self: float", "spec: str"), str),
    "float.__round__": (("self: float", "ndigits: int"), float),
    "float.__str__": (("self: float",), str),
    "holdfast.now": ((), datetime),
    **_same(
        "holdfast.has", ("match", "search", "fullmatch"), ("pattern: str", "string: str"), bool
    ),
    **_same("holdfast.groups", ("match", "search", "fullmatch"), _PATTERN, list[str | None] | None),
    "holdfast.shown": (("value: Any", "kind: str"), str),
    "holdfast.groups.findall": (_PATTERN, list[Any]),
    "holdfast.groups.split": (_PATTERN, list[str | None]),
    "holdfast.groups.sub": ((*_PATTERN, "repl: str"), str),
    "holdfast.from_timestamp": (("timestamp: float",), datetime),
    **_same("holdfast.digest", ("md5", "sha1", "sha256", "sha512"), ("text: str",), str),
    "builtins.str": (("object: Any",), str),
    "builtins.repr": (("object: Any",), str),
    "builtins.format": (("value: Any", "spec: str"), str),
    **_same(
        "datetime.datetime", ("strftime", "__format__"), ("self: datetime", "format: str"), str
    ),
    **_same("datetime.datetime", ("__str__", "ctime"), ("self: datetime",), str),
    "datetime.datetime.isoformat": (("self: datetime", "*sep: str =", "*timespec: str ="), str),
    "datetime.datetime.timestamp": (("self: datetime",), float),
    "datetime.datetime.replace": (("self: datetime", *_CALENDAR, *_CLOCK), datetime),
    **_same("datetime.date", ("strftime", "__format__"), ("self: date", "format: str"), str),
    "datetime.date.replace": (("self: date", *_CALENDAR), date),
    "datetime.date.toordinal": (("self: date",), int),
    **_same("datetime.time", ("strftime", "__format__"), ("self: time", "format: str"), str),
    "datetime.time.isoformat": (("self: time",), str),
    "datetime.timedelta.__str__": (("self: timedelta",), str),
    **_same(
        "decimal.Decimal",
        ("__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__"),
        _TWO_DECIMALS,
        Decimal,
    ),
    **_same("decimal.Decimal", ("__lt__", "__le__", "__gt__", "__ge__"), _TWO_DECIMALS, bool),
    **_same("decimal.Decimal", ("__eq__", "__ne__"), _TWO_DECIMALS, bool),
    "decimal.Decimal.__bool__": (("self: Decimal",), bool),
    **_same("decimal.Decimal", ("__neg__", "__abs__"), ("self: Decimal",), Decimal),
    "decimal.Decimal.__format__": (("self: Decimal", "spec: str"), str),
    "decimal.Decimal.__float__": (("self: Decimal",), float),
    "decimal.Decimal.__int__": (("self: Decimal",), int),
    "decimal.Decimal.__round__": (("self: Decimal", "ndigits: int"), Decimal),
    "decimal.Decimal.quantize": (("self: Decimal", "exp: Decimal", "rounding: str ="), Decimal),
}
#: The functions that read the clock.
CLOCKS: Final = frozenset(
    {
        "holdfast.now",
        "time.time",
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
        "datetime.date.today",
    }
)
#: The functions whose results differ at each call. A step has its result once, so a workflow may
#: call them. The test kit cannot compare a workflow that does with its Python.
VOLATILE: Final = CLOCKS | {
    name for name in FUNCTIONS if name.partition(".")[0] in ("random", "secrets", "uuid")
}
SIGNATURES: Final[Mapping[str, Signature]] = MappingProxyType({**FUNCTIONS, **_METHODS})
TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "Any": Any,
        "bool": bool,
        "date": date,
        "datetime": datetime,
        "Decimal": Decimal,
        "dict[str, Any]": dict[str, Any],
        "float": float,
        "int": int,
        "list[Any]": list[Any],
        "list[float]": list[float],
        "list[str]": list[str],
        "str": str,
        "time": time,
        "timedelta": timedelta,
    }
)
