"""Typed expressions for each type. `<int>` is an expression of that type, `<int.>` a name or a
literal, `<int!>` a name.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from tests.differential import everyday, values
from tests.differential.choices import Choices

#: Type -> literals; the first one is the simplest.
LITERALS: Final = {
    "int": ["0", "1", "2", "-3", "7"],
    "bool": ["True", "False"],
    "str": ['""', '"a"', '"k"', '"{% 1 %}"', '"ä"'],
    "str | None": ["None", '"a"'],
    "list[int]": ["[]", "[1]", "[3, 1]"],
    "list[str]": ["[]", '["a"]', '["k", ""]'],
    "list[list[int]]": ["[]", "[[]]", "[[1]]", "[[1, 2], []]"],
    "dict[str, int]": ["{}", '{"a": 1}', '{"k": 0, "a": 2}'],
    "dict[int, int]": ["{}", "{1: 1}", "{7: 0, -3: 2}"],
    "Line": ['Line(sku="z")', 'Line(sku="a", qty=0, tags=["t"])'],
    "list[Line]": ["[]", '[Line(sku="q", qty=3)]'],
    "Colour": ["Colour.RED", "Colour.BLUE"],
    "Size": ["Size.S", "Size.L"],
    "Level": ["Level.LOW", "Level.HIGH"],
    "timedelta": ["minutes(5)", "seconds(90)", "timedelta(hours=2)"],
}
PARAMETERS: Final = {
    "n": "int",
    "m": "int",
    "b": "bool",
    "s": "str",
    "o": "str | None",
    "xs": "list[int]",
    "ss": "list[str]",
    "xss": "list[list[int]]",
    "d": "dict[str, int]",
    "line": "Line",
    "lines": "list[Line]",
    "order": "Order",
    "colour": "Colour",
    "size": "Size",
    "level": "Level",
    "at": "datetime",
    "price": "Decimal",
    "uid": "UUID",
    "day": "date",
    "grace": "timedelta",
    "pay": "Card | Transfer",
    "mixed": "Line | Transfer | str | None",
    **everyday.PARAMETERS,
}
ELEMENTS: Final = {
    "list[int]": "int",
    "list[str]": "str",
    "list[list[int]]": "list[int]",
    "list[Line]": "Line",
}
PATTERNS: Final = {
    "int": [
        "int(<timedelta>.total_seconds())",
        "len(set(<list[int]>))",
        "len({x % 2 for x in <list[int]>})",
        "sum({x % 3 for x in <list[int]>})",
        "<list[int]>.index(<int.>)",
        "pow(<int.>, 2)",
        "summed(<int>, <int.>, *<list[int]>, scale=<int.>, a=<int>)",
        "summed(*<list[int]>)",
        "(pay.cents if isinstance(pay, Transfer) else 0)",
        "(mixed.qty if isinstance(mixed, Line) else 1 if mixed is None else 2)",
        "max(<list[Line]>, key=lambda one: one.qty, default=line).qty",
        "<list[str]>.count(<str>)",
        "<str>.find('a')",
        "(<int.> % 5) ** 2",
        "divmod(<int>, <int!>)[1]",
        "round(<int.> / 4)",
        "sum(a * c for a, c in zip(<list[int]>, <list[int]>))",
        "sum(a + c for a in <list[int]> for c in <list[int]> if a < c)",
        "(<int> + <int>)",
        "(<int> - <int>)",
        "(<int.> * <int.>)",
        "(<int> // <int.>)",
        "(<int> % <int.>)",
        "len(<str>)",
        "len(<list[int]>)",
        "len(<dict[str, int]>)",
        "len(<list[Line]>)",
        "sum(<list[int]>)",
        "<list[int]>[<int.>]",
        "<list[int]>[-1]",
        "<dict[str, int]>.get(<str>, <int.>)",
        "<dict[str, int]>[<str.>]",
        "(<int> if <bool> else <int>)",
        "(<int> and <int>)",
        "(<int> or <int>)",
        "<Line>.qty",
        "max(<int>, <int>)",
        "min(<list[int]>, default=<int.>)",
        "-<int>",
        "abs(<int>)",
        "int(<bool>)",
        "order.lines[<int.>].qty",
        "sum(<list[Line]::int>)",
        "sum(<list[int]::int>)",
    ],
    "bool": [
        "(<timedelta> < <timedelta>)",
        "(<timedelta> == <timedelta>)",
        "(day <= <date>)",
        "(pay.kind == 'card')",
        "<str>.startswith(('a', 'k'))",
        "<str>.endswith('a')",
        "any(a == c for a in <list[int]> for c in <list[int]>)",
        "(<int.> in {1, 2, 3})",
        "(uid == order.id)",
        "isinstance(<str | None>, str)",
        "(<int> in <list[int]>)",
        "(<Level>.value > 1)",
        "(<int> < <int>)",
        "(<int> >= <int>)",
        "(<int> == <int>)",
        "(<str> != <str>)",
        "(<list[int]> == <list[int]>)",
        "(<bool> and <bool>)",
        "(<bool> or <bool>)",
        "(not <bool>)",
        "(not <list[int]>)",
        "(not <str>)",
        "(<str> in <list[str]>)",
        "(<int.> in (1, 2, 3))",
        "(<str> not in <dict[str, int]>)",
        "(<str | None> is None)",
        "(<str> < <str>)",
        "(<int.> < <int.> <= <int.>)",
        "<str>.startswith(<str>)",
        "(<Colour> == <Colour>)",
        "(<Size> == <Size>)",
        "(<Level> == Level.HIGH)",
        "(order.kind == 'a')",
        "(order.due is None)",
        "(order.coupon is not None)",
        "bool(<list[Line]>)",
        "any(<list[int]::bool>)",
        "all(<list[Line]::bool>)",
    ],
    "str": [
        "day.isoformat()",
        "str(uid)",
        "str(price)",
        "(pay.digits if pay.kind == 'card' else pay.iban)",
        "<str>.lstrip('a')",
        "<str>.rstrip()",
        "<str>.zfill(3)",
        "<str>.ljust(3)",
        "(<str> * 2)",
        "f'{<int!>:05d}|{<int!>:,}|{<str!>:>4}'",
        "<str>.strip()",
        "<str>.removeprefix('a')",
        "<Colour>.name",
        "<str>.lower()",
        "<str>[-1:]",
        "(<str> + <str>)",
        "str(<int>)",
        "f'{<int!>}-{<str!>}'",
        "<str>.upper()",
        "(<str | None> or <str>)",
        "','.join(<list[str]>)",
        "<Line>.sku",
        "str(<bool>)",
        "<str>[<int.>:]",
        "<str>[:2]",
        "<list[str]>[<int.>]",
        "(<str> if <bool> else <str>)",
        "<Colour>.value",
        "<str>.replace('a', 'b')",
        "order.kind",
        "order.notes.get(<str.>, <str.>)",
        "label_of(<Line>)",
        "label_of(<Line>, least=<int>)",
    ],
    "str | None": [
        "(<str> if <bool> else None)",
        "order.coupon",
        "(<str | None> and <str>)",
    ],
    "list[int]": [
        "sorted(set(<list[int]>))",
        "sorted({<list[int]::int>})",
        "sorted(<list[int]>, key=lambda x: (-x, x))",
        "[*<list[int]>, *<list[int]>]",
        "list(range(9, <int.>, -3))",
        "<list[int]>.copy()",
        "[x for xs_ in <list[list[int]]> for x in xs_]",
        "[x.qty * k for x in <list[Line]> for k in range(2)]",
        "list(reversed(<list[int]>))",
        "(<list[int].> * 2)",
        "[*<list[int]>, <int>]",
        "[i * x for i, x in enumerate(<list[int]>, start=1)]",
        "[a + c for a in <list[int]> for c in <list[int]> if a < c]",
        "sorted(<list[int]>, reverse=True)",
        "[<int>, <int>]",
        "(<list[int]> + <list[int]>)",
        "sorted(<list[int]>)",
        "<list[int]>[<int.>:<int.>]",
        "(<list[int]> or <list[int]>)",
        "<list[list[int]]>[<int.>]",
        "[<list[int]::int>]",
        "[bounded(x) for x in <list[int]>]",
        "doubled(<list[int]>)",
        "[<list[Line]::int>]",
        "[<list[list[int]]::int>]",
        "list(<dict[str, int]>.values())",
        "[i + x for i, x in enumerate(<list[int]>) if i < x]",
        "[x - y for x, y in zip(<list[int]>, <list[int]>)]",
        "list(range(<int.> % 4))",
    ],
    "list[str]": [
        "sorted(<list[str]>, key=lambda text: len(text))",
        "sorted(set(<list[str]>))",
        "<str>.split()",
        "<str>.splitlines()",
        "[t for x in <list[Line]> for t in x.tags]",
        "list(<dict[str, int]>)",
        "[<str>]",
        "sorted(<list[str]>)",
        "sorted(<dict[str, int]>)",
        "[<list[Line]::str>]",
        "[<list[str]::str>]",
        "<Line>.tags",
        "'a,b'.split(',')",
    ],
    "list[list[int]]": [
        "[<list[int]>]",
        "[<list[int]>, <list[int]>]",
        "(<list[list[int]]> + [<list[int]>])",
        "[<list[int]::list[int]>]",
        "[<list[list[int]]::list[int]>]",
    ],
    "dict[str, int]": [
        "(<dict[str, int]> | {'z': <int>})",
        "dict(<dict[str, int]>)",
        "{<str>: <int>}",
        "{**<dict[str, int]>, <str.>: <int>}",
        "{k: v + 1 for k, v in <dict[str, int]>.items()}",
        "{x.sku: x.qty for x in <list[Line]>}",
        "dict(<dict[str, int]>, tea=<int>)",
        "<dict[str, int]>.copy()",
        "{t: x.qty for x in <list[Line]> for t in x.tags}",
    ],
    "dict[int, int]": ["table", "(<dict[int, int]> if <bool> else table)"],
    "Line": [
        "Line(sku=<str>, qty=<int>)",
        "Line(sku=<str>, tags=<list[str]>)",
        "Line.of(<str>, <str>, *<list[str]>, a=<int>)",
        "<Line!>.of(<str>)",
        "<list[Line]>[<int.>]",
        "<Line>.model_copy(update={'qty': <int>})",
        "<Line>.model_copy(update={'sku': <str>, 'tags': <list[str]>})",
    ],
    "list[Line]": [
        "sorted(<list[Line]>, key=lambda one: one.qty, reverse=True)",
        "sorted(<list[Line]>, key=lambda one: (one.sku, -one.qty))",
        "[<Line>]",
        "<list[Line]>[<int.>:]",
        "[<list[int]::Line>]",
        "[<list[Line]::Line>]",
        "order.lines",
    ],
    "Colour": ["order.colour", "(<Colour> if <bool> else <Colour>)"],
    "Size": ["(<Size> if <bool> else <Size>)"],
    "Level": ["order.level"],
    "timedelta": [
        "(<timedelta> + <timedelta>)",
        "(<timedelta> - <timedelta>)",
        "(<timedelta.> * <int.>)",
        "seconds(<int>)",
        "order.grace",
        "(<timedelta> if <bool> else <timedelta>)",
    ],
    "date": ["(order.due if order.due is not None else day)"],
    "datetime": [
        "order.placed",
        "(<datetime> if <bool> else at)",
        "max(<datetime>, order.placed)",
        "sorted([at, <datetime>])[0]",
    ],
    "Order": [
        "order.model_copy(update={'coupon': <str | None>})",
        "order.model_copy(update={'lines': <list[Line]>, 'grace': <timedelta>})",
        "order.model_copy()",
    ],
}
for _patterns in (everyday.PATTERNS, values.PATTERNS):
    for _type, _more in _patterns.items():
        PATTERNS[_type] += _more
TYPES: Final = list(LITERALS)
#: `<type>`, `<type.>`, and `<source::body>`: the rest of a comprehension over a list.
_TYPE: Final = r"[A-Za-z]\w*(?:\[[\w\[\], ]+\])?(?: \| None)?"
_HOLE: Final = re.compile(rf"<({_TYPE})(\.|!|::({_TYPE}))?>")
_ATOMS_ONLY: Final = 0


class Expressions:
    """Draws expressions over the variables at hand."""

    def __init__(self, choices: Choices, counts: Counter[str]) -> None:
        self.choices = choices
        self.counts = counts
        self.variables: dict[str, str] = dict(PARAMETERS)
        self._names = 0

    def new_name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def names_of(self, type_: str) -> list[str]:
        return [name for name, known in self.variables.items() if known == type_]

    def name(self, type_: str) -> str:
        """A variable: where literals would need other quotes."""
        return self.choices.pick(self.names_of(type_))

    def draw(self, type_: str, depth: int = 2) -> str:
        names = self.names_of(type_)
        is_atom = depth <= _ATOMS_ONLY or type_ not in PATTERNS or not self.choices.chance(60)
        if is_atom:
            if names and (type_ not in LITERALS or self.choices.chance(70)):
                return self.choices.pick(names)
            return self.choices.pick(LITERALS[type_])
        pattern = self.choices.pick(PATTERNS[type_])
        self.counts[f"{type_} {pattern}"] += 1
        return self.filled(pattern, depth - 1)

    def filled(self, pattern: str, depth: int) -> str:
        return _HOLE.sub(lambda hole: self._fill(hole, depth), pattern)

    def _fill(self, hole: re.Match[str], depth: int) -> str:
        type_, suffix, body = hole.group(1), hole.group(2), hole.group(3)
        if suffix is None:
            return self.draw(type_, depth)
        if suffix == "!":
            return self.name(type_)
        if suffix == ".":
            return self.draw(type_, _ATOMS_ONLY)
        return self._comprehension(type_, body, depth)

    def _comprehension(self, source: str, body: str, depth: int) -> str:
        items = self.draw(source, depth)
        name = self.new_name()
        kept = dict(self.variables)
        self.variables[name] = ELEMENTS[source]
        value = self.draw(body, depth)
        test = f" if {self.draw('bool', depth)}" if self.choices.chance(40) else ""
        self.variables = kept
        return f"{value} for {name} in {items}{test}"
