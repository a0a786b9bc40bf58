"""DynamoDB's rules for an item (conditions, updates, sizes), for stores that replace DynamoDB in
tests and on a local machine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

from holdfast import cost, limits
from holdfast.errors import ServiceFault
from holdfast.resources import Table
from holdfast.runtime.effects import Condition, Item, Update

# A quota of DynamoDB, like the next constant.
PARTITION_KEY_BYTES_MAX: Final = 2_048
SORT_KEY_BYTES_MAX: Final = 1_024


def holds(item: Item, condition: Condition) -> bool:
    """Return True when DynamoDB would accept the condition for the item."""
    found = item.get(condition.attribute)
    match condition.test:
        case "absent":
            return found is None
        case "present":
            return found is not None
        case "=" | "<" | "<=" | ">":
            if found is None:
                return condition.or_absent
            # DynamoDB accepts no comparison of values of different types.
            return type(found) is type(condition.value) and _COMPARE[condition.test](
                found, condition.value
            )
        case "begins with":
            return isinstance(found, str) and found.startswith(str(condition.value))
        case "contains":
            return isinstance(found, str) and str(condition.value) in found
        case _:
            assert_never(condition.test)


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
}


def changed(item: Item, effect: Update) -> dict[str, str | int | bytes]:
    """Return the item after the update."""
    after = {name: value for name, value in item.items() if name not in effect.remove}
    added = {name: int(after.get(name, 0)) + more for name, more in effect.add.items()}
    return {**after, **effect.put, **added}


def check_item(table: Table, item: Item) -> None:
    """Raise the error with which DynamoDB refuses an invalid item."""
    if not _VALUE_TYPES.issuperset(map(type, item.values())):
        name, value = next(one for one in item.items() if type(one[1]) not in _VALUE_TYPES)
        raise refused(f"attribute {name} is {type(value).__name__}")
    if type(item.get("sk")) is not (int if table.sort_key_type == "N" else str):
        raise refused(f"sk of table {table.name} is {type(item.get('sk')).__name__}")
    _check_key_size(item, "pk", PARTITION_KEY_BYTES_MAX)
    _check_key_size(item, "sk", SORT_KEY_BYTES_MAX)
    if table.index is not None:
        _check_key_size(item, table.index.partition_key, PARTITION_KEY_BYTES_MAX)
        _check_key_size(item, table.index.sort_key, SORT_KEY_BYTES_MAX)
    size = cost.item_bytes(item)
    if size > limits.DYNAMODB_ITEM_BYTES_MAX:
        raise refused(f"an item of {size} bytes; {limits.DYNAMODB_ITEM_BYTES_MAX} are allowed")


_VALUE_TYPES: Final = frozenset({str, int, bytes})


def _check_key_size(item: Item, name: str, bytes_max: int) -> None:
    if name in item and not 0 < (size := cost.value_bytes(item[name])) <= bytes_max:
        raise refused(f"key attribute {name} has {size} bytes; 1 to {bytes_max} are allowed")


def refused(found: str) -> ServiceFault:
    return ServiceFault("HF323", f"the request was refused: {found}", retry="never")
