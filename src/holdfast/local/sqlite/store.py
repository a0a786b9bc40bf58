"""The two tables: converts effects to SQL, and rows to items.

A row has the keys in columns, the attributes as JSON, and the bytes of all binary attributes in the
column `data`. In the JSON a binary attribute is a list with its length.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from holdfast import resources
from holdfast.local.sqlite.database import Database
from holdfast.runtime.effects import (
    Condition,
    Delete,
    Extend,
    Get,
    GetMany,
    Item,
    ListPage,
    Put,
    PutIfAbsent,
    Query,
    QueryList,
    Replace,
    TableName,
    Together,
    Unlist,
    Update,
    Updated,
    list_keys,
    list_page,
)
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.items import changed, check_item, holds

LAST_CHARACTER: Final = chr(0x10FFFF)  # a character that sorts after every other one
ROWS: Final = "pk, sk, attributes, data"

_TABLES: Final = {table.name: table for table in resources.TABLES}
_INDEX: Final = resources.EXECUTIONS.index
_SEPARATORS: Final = (",", ":")


class SqliteStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    # -- reads -------------------------------------------------------------------------------------

    def query(self, effect: Query) -> list[Item]:
        conditions = ["pk = ?"]
        values: list[Any] = [effect.pk]
        for test, bound in _bounds(effect):
            conditions.append(test)
            values.append(bound)
        order = "DESC" if effect.reverse else "ASC"
        statement = (
            f"SELECT {ROWS} FROM {effect.table} WHERE {' AND '.join(conditions)} "
            f"ORDER BY sk {order} LIMIT ?"
        )
        values.append(-1 if effect.limit is None else effect.limit)
        return [item_of(row) for row in self._rows(statement, values)]

    def get(self, effect: Get) -> Item | None:
        return self._database.read(
            lambda reader: _found(reader, effect.table, effect.pk, effect.sk)
        )

    def get_many(self, effect: GetMany) -> list[Item]:
        def found(reader: sqlite3.Connection) -> list[Item]:
            items = (_found(reader, effect.table, pk, sk) for pk, sk in effect.keys)
            return [item for item in items if item is not None]

        return self._database.read(found)

    def query_list(self, effect: QueryList) -> ListPage:
        # Read one row more than needed. It shows whether the partition has more rows.
        size = effect.reads if effect.where else effect.limit
        partition, sort = list_keys(effect.table)
        rows = self._rows(
            f"SELECT pk, sk, attributes, NULL FROM {effect.table} "
            f"WHERE {partition} = ? AND {sort} {'IS NOT NULL' if effect.before is None else '< ?'} "
            f"ORDER BY {sort} DESC LIMIT ?",
            [effect.partition, *([] if effect.before is None else [effect.before]), size + 1],
        )
        is_index = effect.table == tables.EXECUTIONS
        read = [_projected(row) if is_index else item_of(row) for row in rows[:size]]
        found = [item for item in read if _fits(item, effect.where)]
        read_to = str(read[-1][sort]) if len(rows) > size else ""
        return list_page(effect, found, read_to)

    def query_together(self, effect: Together) -> list[ListPage]:
        return list(map(self.query_list, effect.queries))

    def _rows(self, statement: str, values: list[Any]) -> list[Any]:
        return self._database.read(lambda reader: reader.execute(statement, values).fetchall())

    # -- writes ------------------------------------------------------------------------------------

    def put_if_absent(self, effect: PutIfAbsent) -> Item | None:
        check_item(_TABLES[effect.table], effect.item)
        row = _row_of(effect.item)

        def put(writer: sqlite3.Connection) -> Item | None:
            statement = f"INSERT OR IGNORE INTO {effect.table} VALUES (?, ?, ?, ?, ?, ?, ?)"
            if writer.execute(statement, row).rowcount:
                return None
            return _found(writer, effect.table, *row[:2])

        return self._database.write(put, is_conditional=True)

    def put(self, effect: Put) -> None:
        check_item(_TABLES[effect.table], effect.item)
        row = _row_of(effect.item)
        self._database.write(lambda writer: _store(writer, effect.table, row))

    def replace(self, effect: Replace) -> bool:
        check_item(_TABLES[effect.table], effect.item)
        row = _row_of(effect.item)

        def replace(writer: sqlite3.Connection) -> bool:
            there = _found(writer, effect.table, *row[:2])
            if there is None or there.get("rv") != effect.seen:
                return False
            _store(writer, effect.table, row)
            return True

        return self._database.write(replace)

    def update(self, effect: Update) -> Updated:
        def update(writer: sqlite3.Connection) -> Updated:
            there = _found(writer, effect.table, effect.pk, effect.sk)
            if not _fits(there or {}, effect.where):
                return Updated(is_done=False, item=there or {})
            item = changed(there or {"pk": effect.pk, "sk": effect.sk}, effect)
            check_item(_TABLES[effect.table], item)
            _store(writer, effect.table, _row_of(item))
            return Updated(is_done=True, item=item)

        return self._database.write(update)

    def delete(self, effect: Delete) -> None:
        statement = f"DELETE FROM {effect.table} WHERE pk = ? AND sk = ?"

        def delete(writer: sqlite3.Connection) -> None:
            there = _found(writer, effect.table, effect.pk, effect.sk) if effect.where else None
            if _fits(there or {}, effect.where):
                writer.execute(statement, (effect.pk, effect.sk))

        self._database.write(delete)

    def unlist(self, effect: Unlist) -> None:
        def unlist(writer: sqlite3.Connection) -> None:
            there = _found(writer, tables.EXECUTIONS, effect.pk, effect.sk)
            if there is not None and resources.LIST_PARTITION in there:
                gone = (resources.LIST_PARTITION, resources.LIST_SORT)
                kept = {name: there[name] for name in there if name not in gone}
                _store(writer, tables.EXECUTIONS, _row_of(kept))

        self._database.write(unlist)

    def extend(self, effect: Extend) -> None:
        def extend(writer: sqlite3.Connection) -> None:
            there = _found(writer, tables.MAIL, effect.pk, effect.sk)
            if there is not None and there.get("run") == effect.run:
                _store(writer, tables.MAIL, _row_of({**there, "ttl": effect.ttl}))

        self._database.write(extend)


def _found(connection: sqlite3.Connection, table: TableName, pk: str, sk: int | str) -> Item | None:
    statement = f"SELECT {ROWS} FROM {table} WHERE pk = ? AND sk = ?"
    row = connection.execute(statement, (pk, sk)).fetchone()
    return None if row is None else item_of(row)


def _store(writer: sqlite3.Connection, table: TableName, row: tuple[Any, ...]) -> None:
    writer.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _row_of(item: Item) -> tuple[Any, ...]:
    attributes = {name: value for name, value in item.items() if name not in ("pk", "sk")}
    data: list[bytes] = []
    for name, value in attributes.items():
        if isinstance(value, bytes):
            data.append(value)
            attributes[name] = [len(value)]  # type: ignore[assignment]  # the mark of bytes
    listed, sort, ttl = (item.get(name) for name in (*_LIST_KEYS, "ttl"))
    text = json.dumps(attributes, separators=_SEPARATORS)
    return item["pk"], item["sk"], listed, sort, ttl, text, b"".join(data) if data else None


_LIST_KEYS: Final = (resources.LIST_PARTITION, resources.LIST_SORT)


def item_of(row: Any) -> Item:
    pk, sk, text, data = row
    item: dict[str, Any] = {"pk": pk, "sk": sk, **json.loads(text)}
    place = 0
    if data is not None:
        for name, value in item.items():
            if isinstance(value, list):
                item[name] = data[place : place + value[0]]
                place += value[0]
    return item


def _projected(row: Any) -> Item:
    assert _INDEX is not None
    kept = {"pk", "sk", _INDEX.partition_key, _INDEX.sort_key, *_INDEX.projected}
    return {name: value for name, value in item_of(row).items() if name in kept}


def _fits(item: Item, conditions: Iterable[Condition]) -> bool:
    return all(holds(item, condition) for condition in conditions)


def _bounds(effect: Query) -> Iterable[tuple[str, Any]]:
    if effect.after is not None:
        yield "sk > ?", effect.after
    if effect.until is not None:
        yield "sk <= ?", effect.until
    if effect.begins_with is not None:
        yield "sk >= ?", effect.begins_with
        yield "sk <= ?", effect.begins_with + LAST_CHARACTER
