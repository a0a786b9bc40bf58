"""More expressions: bools as numbers, unknown types, texts by `%`, keys of an enum, sets."""

from __future__ import annotations

from typing import Any, Final

#: More parameters of the generated workflows, and their values.
PARAMETERS: Final = {"thing": "Any", "bag": "dict[str, Any]", "stock": "dict[Size, int]"}
INPUTS: Final[dict[str, list[Any]]] = {
    "thing": [1, True, "a", None, [], {"a": 1}, 0, 2.5, "", [0], {}, False],
    "bag": [{"k": 1, "a": "x"}, {}, {"k": True, "a": 7, "": None}],
    "stock": [{"s": 1}, {}, {"l": 2, "s": 0}],
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
    ],
    "str": [
        "('%s-%d' % (<str>, <int>))",
        "('100%% %s' % <str>)",
        "'{} is {:>4}'.format(<str>, <int>)",
        "'{0}{1}{0}'.format(<int>, <str>)",
        "','.join(sorted(stock))",
        "','.join(sorted({<str>, 'k'}))",
    ],
    "list[int]": [
        "sorted(set(<list[int]>) - {<int>})",
        "[v for k, v in stock.items() if k == <Size>]",
    ],
}
