"""The index of search attributes: one row for each value of each execution.

Users search for the orders of one customer. A filter over the whole list would read every execution
for that. So an execution that enters the list writes one *value row* for each of its attributes, in
the table `mail`:

    T#at#customer#2 · s9f86d081884c7d65#001767225600000#<run>      values: all attributes
      the partition: attribute, shard of the execution
      the sort key: the encoded value, then the key of the list

A value row does not contain the status. A reader finds the execution's entry in the list by the key
at the end of the row's sort key (`searching.py`). So the row does not change when the execution
ends.

**Changes.** A workflow may change an attribute while it runs (`note`). The execution then writes a
value row for the new value, and one row with all present values:

    T#atn#<run> · -            the present values; `seq` counts the changes

A reader uses the values of this row instead of those in a value row. So a value row of an old value
finds nothing, even if a worker that was suspended has written it again.

Rules of this file:
* Rows are written after the commit of their record. After a crash between the two, a recovery or
  the sweeper's next check writes them.
* A condition on `seq` prevents that a worker that was suspended replaces the rows of a later
  change.
* An execution without attributes costs nothing. One with k attributes costs k writes when it enters
  the list: when it first waits, or when it ends without a wait.
* The rows live for 180 days. An open execution writes them again when its list entry moves because
  of its age (`Log.is_aging`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.asl.program import AttributeKind
from holdfast.core.attributes import instant_ms
from holdfast.core.state import Attribute, Execution
from holdfast.limits import SEARCH_RETENTION_SECONDS
from holdfast.runtime.effects import Clock, Condition, Effect, Get, Item, Update
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log

Writes = Generator[Effect, Any, None]

VALUES: Final = "values"
WORKFLOW: Final = "wf"
SEQUENCE: Final = "seq"
#: Whole numbers that are larger than this one are sorted as if they were equal to it.
_NUMBER_MAX: Final = 10**18
_DIGITS: Final = 19
_HASH_CHARACTERS: Final = 16


# -- writing ---------------------------------------------------------------------------------------


def put_new(log: Log, before: Execution | None, now_ms: int, *, is_listed: bool) -> Writes:
    """Write the rows that the newest record requires. `is_listed`: the record has a list entry.

    `before` is the state whose rows exist; None when all rows are to be written.
    """
    assert log.state is not None
    after = log.state
    if not (after.attributes or after.notes) or not (is_listed or after.is_opened):
        return
    was_listed = before is not None and before.is_opened
    known = before.attributes if was_listed and before is not None else {}
    if known == after.attributes:
        return
    yield from _put_values(log, known, now_ms)
    if after.notes:
        yield from _put_changes(log, after, now_ms)
    if was_listed:
        yield from _expire_old_values(log, known, now_ms)


def repair(log: Log) -> Writes:
    """Write the rows that a crashed worker did not write. Costs one read, if the execution has
    attributes.
    """
    state = log.state
    if state is None or not (state.attributes or state.notes):
        return
    if not (state.is_opened or state.is_ended):
        return
    if state.notes:
        # Of all rows, the row with the present values is written last. If it exists, no other row
        # is missing.
        found = yield Get(tables.MAIL, keys.search_changes(log.tenant, log.run), keys.ONLY)
        is_complete = found is not None and int(found[SEQUENCE]) >= state.notes
    else:
        name, attribute = list(state.attributes.items())[-1]
        found = yield Get(tables.MAIL, *_value_key(log, state, name, attribute))
        is_complete = found is not None
    if is_complete:
        return
    now_ms = yield Clock()
    yield from _put_values(log, {}, now_ms)
    if state.notes:
        yield from _put_changes(log, state, now_ms)


def _put_values(log: Log, known: Mapping[str, Attribute], now_ms: int) -> Writes:
    assert log.state is not None
    state = log.state
    for name, attribute in state.attributes.items():
        if known.get(name) != attribute:
            fields = {**_fields(state, now_ms), WORKFLOW: state.workflow}
            place = _value_key(log, state, name, attribute)
            yield _update(place, fields, "<=", state.notes)


def _put_changes(log: Log, state: Execution, now_ms: int) -> Writes:
    place = keys.search_changes(log.tenant, log.run), keys.ONLY
    yield _update(place, _fields(state, now_ms), "<=", state.notes)


def _expire_old_values(log: Log, known: Mapping[str, Attribute], now_ms: int) -> Writes:
    """Let TTL delete the rows of replaced values. A worker that was suspended may overwrite the row
    of a later change here, so the update has a condition on `seq`.
    """
    assert log.state is not None
    state = log.state
    for name, attribute in known.items():
        if state.attributes.get(name) != attribute:
            place = _value_key(log, state, name, attribute)
            yield _update(place, {"ttl": now_ms // 1_000}, "<", state.notes, or_absent=False)


def _update(
    place: tuple[str, str],
    fields: Mapping[str, str | int],
    test: Any,
    sequence: int,
    *,
    or_absent: bool = True,
) -> Update:
    where = (Condition(SEQUENCE, test, sequence, or_absent=or_absent),)
    return Update(tables.MAIL, *place, put=fields, where=where)


def _fields(state: Execution, now_ms: int) -> dict[str, str | int]:
    return {
        FORMAT_FIELD: FORMAT,
        SEQUENCE: state.notes,
        VALUES: text_of(state.attributes),
        "ttl": now_ms // 1_000 + SEARCH_RETENTION_SECONDS,
    }


def _value_key(log: Log, state: Execution, name: str, attribute: Attribute) -> tuple[str, str]:
    place = keys.list_sort(state.started_ms, log.run)
    return keys.search_values(log.tenant, name, log.run), f"{encoded(*attribute)}#{place}"


# -- values ----------------------------------------------------------------------------------------


def encoded(kind: AttributeKind, value: str | int | bool) -> str:
    """Return the text by which the rows of this value are sorted. Numbers and times keep their
    order.
    """
    match kind:
        case "str":
            return f"s{hashlib.sha256(str(value).encode()).hexdigest()[:_HASH_CHARACTERS]}"
        case "bool":
            return f"b{int(value)}"
        case "int":
            return f"i{_number(int(value))}"
        case "datetime":
            return f"t{_number(instant_ms(str(value)) or 0)}"


def _number(value: int) -> str:
    bounded = max(-_NUMBER_MAX, min(_NUMBER_MAX, value))
    return f"{bounded + _NUMBER_MAX:0{_DIGITS}d}"


def text_of(attributes: Mapping[str, Attribute]) -> str:
    return json.dumps(attributes, separators=(",", ":"))


def read_values(row: Item) -> dict[str, Attribute]:
    return {name: Attribute(*one) for name, one in json.loads(str(row[VALUES])).items()}
