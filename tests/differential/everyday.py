"""More expressions: bools as numbers, unknown types, keys of an enum, sets, floats and texts of the
library.
"""

from __future__ import annotations

from typing import Any, Final

#: More parameters of the generated workflows, and their values.
PARAMETERS: Final = {
    "thing": "Any",
    "bag": "dict[str, Any]",
    "stock": "dict[Size, int]",
    "ratio": "float",
    "weights": "list[float]",
}
INPUTS: Final[dict[str, list[Any]]] = {
    "thing": [1, True, "a", None, [], {"a": 1}, 0, 2.5, "", [0], {}, False],
    "bag": [{"k": 1, "a": "x"}, {}, {"k": True, "a": 7, "": None}],
    "stock": [{"s": 1}, {}, {"l": 2, "s": 0}],
    "ratio": [2.675, 0.125, -1.005, 1e-7, 12345.678, -3, 0.1, 0.30000000000000004],
    "weights": [[0.1, 0.2, 0.3], [], [1e16, 1.0, -1e16], [2.5, -0.75, 7]],
}
PATTERNS: Final = {
    "int": [
        "(<int> + <bool>)",
        "(<bool> * <int.>)",
        "(-<bool> - <bool>)",
        "(<int.> % (<bool> + 1))",
        "((<bool> if <bool> else <int>) + 1)",
        "stock[<Size>]",
        "stock.get(<Size>, <int.>)",
        "sum(<int.> + one for one in set(<list[int]>))",
        "len({<int>, <int.>} | set(<list[int]>))",
        "sorted({<int>, 1})[0]",
        "(2 ** (<int.> % 9))",
        "int(ratio // 0.25)",
        "int(round(ratio % 7, 2) * 100)",
        "round(sum(weights) * 3)",
        "len(<str>.rpartition('a')[0])",
        "<str>.rfind('a')",
    ],
    "bool": [
        "(<bool> == <int.>)",
        "(<int> != <bool>)",
        "(<bool> < <bool>)",
        "(<bool> <= <int.>)",
        "(thing == <int.>)",
        "(thing != <bool>)",
        "(thing == <str.>)",
        "(thing < <int.>)",
        "(<str.> >= thing)",
        "bool(thing)",
        "(not bag.get(<str.>))",
        "(bag.get(<str.>, 0) == <int.>)",
        "(bag['k'] == <int.>)",
        "(<Size> in stock)",
        "(<str> in {<str>, 'a'})",
        "({<int>, 1} == set(<list[int]>))",
        "({<int.>} <= set(<list[int]>))",
        "(round(ratio, 1) < round(<int.> / 8, 2))",
        "(sum(weights, 0.5) > ratio)",
        "<str>.isalpha()",
        "(<bool> or <str>.isdigit())",
        "(str(ratio) != f'{ratio}')",
    ],
    "str": [
        "('%s-%d' % (<str>, <int>))",
        "('100%% %s' % <str>)",
        "'{} is {:>4}'.format(<str>, <int>)",
        "'{0}{1}{0}'.format(<int>, <str>)",
        "','.join(sorted(stock))",
        "','.join(sorted({<str>, 'k'}))",
        "f'{ratio:.2f}{ratio:,.1f}|{ratio:+.3f}|{ratio:09.2f}'",
        "f'{ratio:.0%} {<int!> / 7:.1%} {<int!>:.2f}'",
        "f'{ratio} {ratio * 3!r}'",
        "','.join(f'{w:.1f}' for w in weights)",
        "f'{<int!>:+d}{<str!>:^7}{<int!>:x}{<str!>!r}'",
        "f'{<list[int]!>}{<dict[str, int]!>}'",
        "str(sum(weights) / 3)",
        "(<str>.title() if <bool> else <str>)",
        "<str>.partition('a')[2].capitalize()",
        "<str>.replace(<str.>, 'z')",
        "f'{at} {at.isoformat()} {at:%d %b %Y}'",
        "f'{at.replace(minute=7):%H:%M} {day:%j}'",
        "str(grace)",
    ],
    "list[int]": [
        "sorted(set(<list[int]>) - {<int>})",
        "[v for k, v in stock.items() if k == <Size>]",
    ],
}
