"""Built-in functions as closures call them. In doubtful cases they raise `Declined`.

A function that creates a sequence returns `Many`; the closures convert it to the form that JSONata
shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from holdfast.asl.jsonata import costs, values
from holdfast.asl.jsonata.growing import NEWEST
from holdfast.asl.jsonata.native_texts import TEXTS
from holdfast.asl.jsonata.runtime import (
    Declined,
    EvaluationRun,
    Lambda,
    Many,
    Native,
    as_array,
    as_item,
    as_verdict,
    is_number,
    items_of,
    require,
    text,
    truth,
)
from holdfast.asl.jsonata.values import UNDEFINED, JsonataError, tidy_number


def _numbers(value: Any) -> list[Any] | None:
    numbers = as_array(value)
    require(numbers is None or all(map(is_number, numbers)))
    return numbers


def _total(numbers: list[Any]) -> Any:
    total: float = 0
    # Do not use `sum()`, because it rounds differently; see functions.py.
    for number in numbers:
        total = values.arithmetic("+", total, number)
    require(math.isfinite(total))
    return total


def _sum(_: EvaluationRun, value: Any) -> Any:
    numbers = _numbers(value)
    return UNDEFINED if numbers is None else _total(numbers)


def _average(_: EvaluationRun, value: Any) -> Any:
    numbers = _numbers(value)
    if not numbers:
        return UNDEFINED
    return values.arithmetic("/", _total(numbers), len(numbers))


def _extreme(pick: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def extreme(_: EvaluationRun, value: Any) -> Any:
        numbers = _numbers(value)
        if not numbers:
            return UNDEFINED
        return tidy_number(pick(numbers))

    return extreme


def _of_number(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def of_number(_: EvaluationRun, number: Any) -> Any:
        if number is UNDEFINED:
            return UNDEFINED
        require(is_number(number))
        return tidy_number(function(number))

    return of_number


def _whole(rounding: Callable[[float], int]) -> Callable[..., Any]:
    return _of_number(lambda number: number if type(number) is int else float(rounding(number)))


def _round(_: EvaluationRun, number: Any, places: Any = 0) -> Any:
    require(type(places) is int)
    if number is UNDEFINED:
        return UNDEFINED
    require(is_number(number))
    return values.round_half_even(number, places)


def _number(_: EvaluationRun, value: Any) -> Any:
    if value is UNDEFINED or type(value) is int:
        return value
    if type(value) is bool:
        return int(value)
    number = values.parse_number(value) if type(value) is str else value
    if number is None or not is_number(number):
        raise Declined
    return tidy_number(number)


def _string(run: EvaluationRun, value: Any) -> Any:
    return UNDEFINED if value is UNDEFINED else text(value, run)


def _distinct(run: EvaluationRun, value: Any) -> Any:
    if type(value) is not list or len(value) <= 1:
        return value
    run.charge(costs.distinct_items(value))
    found = values.distinct(value)
    # Decline a result of one item. jsonata-python returns the item itself for a sequence, but keeps
    # an array.
    require(len(found) > 1)
    return found


def _count(_: EvaluationRun, value: Any) -> int:
    return len(items_of(value))


def _append(run: EvaluationRun, left: Any, right: Any) -> Any:
    if left is UNDEFINED:
        return right
    if right is UNDEFINED:
        return left
    joined = items_of(left) + items_of(right)
    run.charge(len(joined))
    if type(left) is list:
        NEWEST.note_appended(joined, left)
    return joined


def _merge(run: EvaluationRun, objects: Any) -> Any:
    parts = as_array(objects)
    if parts is None:
        return UNDEFINED
    merged: dict[str, Any] = {}
    for part in parts:
        require(type(part) is dict)
        run.charge(costs.merging_items(part))
        merged.update(part)
    return merged


def _keys(_: EvaluationRun, value: Any) -> Any:
    require(type(value) is not list)
    return Many(list(value) if type(value) is dict else [])


def _lookup(_: EvaluationRun, value: Any, key: Any) -> Any:
    require(type(key) is str, type(value) is not list)
    return value.get(key, UNDEFINED) if type(value) is dict else UNDEFINED


_TYPES: Final = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "number",
    list: "array",
    str: "string",
    type(None): "null",
}


def _type(_: EvaluationRun, value: Any) -> Any:
    return UNDEFINED if value is UNDEFINED else _TYPES[type(value)]


def _boolean(run: EvaluationRun, value: Any) -> Any:
    return UNDEFINED if value is UNDEFINED else truth(value, run)


def _not(run: EvaluationRun, value: Any) -> Any:
    return UNDEFINED if value is UNDEFINED else not truth(value, run)


def _error(_: EvaluationRun, message: Any) -> Any:
    require(type(message) is str)
    raise JsonataError("D3137", message)


def _sort(run: EvaluationRun, value: Any, goes_after: Lambda | None = None) -> Any:
    items = as_array(value)
    if items is None:
        return UNDEFINED
    if len(items) <= 1:
        return items
    if goes_after is not None:
        return values.merge_sort(
            items, lambda left, right: as_verdict(goes_after(left, right), run)
        )
    require(all(map(is_number, items)) or all(type(item) is str for item in items))
    run.charge(costs.sorting_items(items))
    return sorted(items)


def _reverse(_: EvaluationRun, value: Any) -> Any:
    items = as_array(value)
    if items is None:
        return UNDEFINED
    return items if len(items) <= 1 else items[::-1]


def _zip(run: EvaluationRun, *arrays: Any) -> Any:
    columns = [as_array(array) for array in arrays]
    require(None not in columns)
    rows = [list(row) for row in zip(*(column or [] for column in columns), strict=False)]
    run.charge(len(rows) * len(columns))
    return rows


def _map(_: EvaluationRun, value: Any, function: Lambda) -> Any:
    items = as_array(value)
    if items is None:
        return UNDEFINED
    results = function.each(items)
    return Many([as_item(result) for result in results if result is not UNDEFINED])


def _filter(run: EvaluationRun, value: Any, function: Lambda) -> Any:
    items = as_array(value)
    if items is None:
        return UNDEFINED
    verdicts = zip(items, function.each(items), strict=True)
    return Many([item for item, verdict in verdicts if as_verdict(verdict, run)])


def _reduce(_: EvaluationRun, value: Any, function: Lambda, start: Any = UNDEFINED) -> Any:
    items = as_array(value)
    arity = len(function.parameters)
    require(2 <= arity <= 4)
    if items is None:
        return UNDEFINED
    result, first = start, 0
    if start is UNDEFINED and items:
        result, first = items[0], 1
    for index in range(first, len(items)):
        result = as_item(function(*(result, items[index], index, items)[:arity]))
    return tidy_number(result)


NATIVES: Final[dict[str, Native]] = {
    **TEXTS,
    "abs": Native(_of_number(abs), (1,)),
    "append": Native(_append, (2,)),
    "average": Native(_average, (1,)),
    "boolean": Native(_boolean, (1,)),
    "ceil": Native(_whole(math.ceil), (1,)),
    "count": Native(_count, (1,)),
    "distinct": Native(_distinct, (1,)),
    "error": Native(_error, (1,)),
    "exists": Native(lambda _, value: value is not UNDEFINED, (1,)),
    "filter": Native(_filter, (2,), function_at=1),
    "floor": Native(_whole(math.floor), (1,)),
    "keys": Native(_keys, (1,)),
    "lookup": Native(_lookup, (2,)),
    "map": Native(_map, (2,), function_at=1),
    "max": Native(_extreme(max), (1,)),
    "merge": Native(_merge, (1,)),
    "min": Native(_extreme(min), (1,)),
    "not": Native(_not, (1,)),
    "number": Native(_number, (1,)),
    "reduce": Native(_reduce, (2, 3), function_at=1),
    "reverse": Native(_reverse, (1,)),
    "round": Native(_round, (1, 2)),
    "sort": Native(_sort, (1, 2), function_at=1),
    "string": Native(_string, (1,)),
    "sum": Native(_sum, (1,)),
    "type": Native(_type, (1,)),
    "zip": Native(_zip, (2, 3, 4)),
}
