"""Log records and snapshots as DynamoDB items, and back. Format: docs/reference/log.md.

Rules of this file:
* A value of more than 64 bytes is written once. Later places refer to it by (sequence, number): the
  number of the record, and the number of the value in it. A list or object refers to the values
  inside it. The encoder recognises a value first by object identity, else by its content.
* A snapshot contains every value that the state needs, so a load reads nothing older.
* A value that is too large for an item is stored in S3 under its own hash, before the record.

The payload of a record is lines: one value a line, the events on the last line. A value is JSON, or
`s3:<sha256>`; JSON text contains no raw newline. A reference is {"@": [sequence, number]}. A list
that continues a stored list is {"@": [sequence, number, [more items]]}. If a user's object has one
key that consists only of @ signs, the key gets one more @ when written and loses it when read.
Without that, it would be read as a reference.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from json.encoder import encode_basestring
from typing import Any, Final

from holdfast import resources
from holdfast.asl.jsonata.growing import ITEMS_MIN
from holdfast.asl.program import Json
from holdfast.core.apply.apply import fold
from holdfast.core.events import OWN_EVENTS, Event
from holdfast.core.state import Execution
from holdfast.core.state_json import UnknownState, from_json, to_json
from holdfast.cost import item_bytes, write_units
from holdfast.errors import HoldfastBug, SnapshotError
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    LIST_PREFIX_ITEMS_MIN,
    RECORD_BYTES_MAX,
    VALUE_INLINE_BYTES_MAX,
    VALUE_INTERN_BYTES_MIN,
    WRITE_UNIT_BYTES,
)
from holdfast.runtime.effects import Item
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.event_columns import Row, columns_text, rows_of, with_previous
from holdfast.runtime.storage.formats import (
    COLUMNS_FORMAT,
    FORMAT_FIELD,
    FORMATS,
    LIST_PREFIX_FORMAT,
    Formats,
    compress,
    compress_well,
    inflate,
    require_format,
)
from holdfast.runtime.storage.value_book import REFERENCE, Place, ValueBook, reference
from holdfast.runtime.wait_text import UNLISTED, IndexedWaits

#: The attribute with the compressed value of an item that is not a record.
_PACKED_VALUE: Final = "vz"
#: Only shorter texts of items are kept for the next snapshot.
_ITEM_CHARACTERS_MAX: Final = 1_024


class Packer:
    """Writes the values of one record: a new value becomes a line, a known value becomes a
    reference. `older` is the book with the texts of the snapshot before this one; None: this is no
    snapshot.
    """

    def __init__(
        self,
        book: ValueBook,
        header: Header,
        first_number: int = 0,
        older: ValueBook | None = None,
    ) -> None:
        self._book = book
        self._older = older
        self._sequence = header.sequence
        self._format = header.format
        self._first = first_number
        self.lines: list[str] = []
        self.blobs: list[bytes] = []
        self.new_blob_bytes = 0
        self.needs_format = header.format

    def pack(self, value: Json) -> str:
        """Return JSON text in which every value over the size limit is a reference."""
        # Most values are texts, ids and times. An integer is written without `json.dumps`, which
        # takes ten times as long.
        if isinstance(value, str):
            text = encode_basestring(value)
            return text if len(text) <= VALUE_INTERN_BYTES_MIN else self._numbered(value, text)
        if type(value) is int:
            return str(value)
        if not isinstance(value, (dict, list)):
            return json.dumps(value)
        known = self._book.known.get(id(value))
        if known is not None:
            return known[1]
        if isinstance(value, list) and len(value) > LIST_PREFIX_ITEMS_MIN:
            place = self._book.beginning_of(value)
            if place is not None and self._format >= LIST_PREFIX_FORMAT:
                return self._continued(value, place)
            if place is not None:
                self.needs_format = LIST_PREFIX_FORMAT
        return self._interned(value, self._container(value))

    def _continued(self, value: list[Json], place: Place) -> str:
        """Write only the items that the list has beyond the stored one. The line gets a number even
        when it is short, because the next list may continue this one.
        """
        known = self._book.list_at(place)
        items = ",".join([self.pack(item) for item in value[len(known) :]])
        text = f"{REFERENCE}{place[0]},{place[1]},[{items}]]}}"
        return self._numbered(value, text)

    def _container(self, value: dict[str, Any] | list[Any]) -> str:
        if isinstance(value, list):
            if self._older is not None and len(value) >= ITEMS_MIN:
                return self._long_list(value, self._older.items)
            return "[" + ",".join([self.pack(item) for item in value]) + "]"
        if len(value) == 1:
            ((key, item),) = value.items()
            if key and not key.strip("@"):
                return f'{{"{key}@":{self.pack(item)}}}'
        return self.pack_object(value)

    def _long_list(self, value: list[Json], older: Mapping[int, tuple[Json, str]]) -> str:
        """Return the text of a long list in a snapshot. The text of the list, or of an object in
        it, is written once, and not again for each snapshot that contains it.
        """
        found = older.get(id(value))
        text = "[" + ",".join(self._items(value, older)) + "]" if found is None else found[1]
        # A reference has another number in the next snapshot.
        if REFERENCE not in text:
            self._book.items[id(value)] = (value, text)
        return text

    def _items(self, value: list[Json], older: Mapping[int, tuple[Json, str]]) -> Iterator[str]:
        kept = self._book.items
        for item in value:
            if type(item) is int:
                yield str(item)
                continue
            found = older.get(id(item))
            if found is None:
                yield self._new_item(item, older)
                continue
            kept[id(item)] = found
            text = found[1]
            yield text if len(text) <= VALUE_INTERN_BYTES_MIN else self._numbered(item, text)

    def _new_item(self, value: Json, older: Mapping[int, tuple[Json, str]]) -> str:
        if id(value) in self._book.known:
            return self.pack(value)
        if isinstance(value, dict):
            text = self._container(value)
        elif isinstance(value, list) and len(value) < LIST_PREFIX_ITEMS_MIN:
            # The result of a lane, with its number.
            text = "[" + ",".join(self._items(value, older)) + "]"
        else:
            return self.pack(value)
        # A reference has another number in the next snapshot.
        if len(text) <= _ITEM_CHARACTERS_MAX and REFERENCE not in text:
            self._book.items[id(value)] = (value, text)
        return self._interned(value, text)

    def pack_object(self, fields: Mapping[str, Any]) -> str:
        """Return the text of an object whose values are packed. The object itself gets no
        number.
        """
        pack, key_text = self.pack, encode_basestring
        return "{" + ",".join([f"{key_text(key)}:{pack(fields[key])}" for key in fields]) + "}"

    def pack_fields(self, fields: Mapping[str, Any]) -> str:
        """Return the text of the details of an event, or of its `holdfast` fields."""
        texts = [f"{encode_basestring(key)}:{self.pack_field(key, fields[key])}" for key in fields]
        return "{" + ",".join(texts) + "}"

    def pack_field(self, name: str, value: Any) -> str:
        """Return the text of a field of an event. Assigned variables are packed one by one: each
        may be repeated in later events, but rarely all of them together.
        """
        return self.pack_object(value) if name == "assignedVariables" else self.pack(value)

    def _interned(self, value: Json, text: str) -> str:
        if len(text) <= VALUE_INTERN_BYTES_MIN:
            return text
        return self._numbered(value, text)

    def _numbered(self, value: Json, text: str) -> str:
        known = self._book.written.get(text)
        if known is None:
            number = self._first + len(self.lines)
            self.lines.append(self._line(text))
            self._book.learn(self._sequence, number, value, text)
            return reference(self._sequence, number)
        if isinstance(value, dict | list):
            self._book.known[id(value)] = (value, known)
        return known

    def _line(self, text: str) -> str:
        if len(text) <= VALUE_INLINE_BYTES_MAX:
            return text
        compressed = compress(text, self._format)
        if len(compressed) <= VALUE_INLINE_BYTES_MAX:
            return text
        self.blobs.append(compressed)
        if self._older is None or text not in self._older.written:
            self.new_blob_bytes += len(compressed)
        return f"s3:{_digest(compressed)}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- writing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Header:
    """The fields of a record besides its events. `partition` is the key of the execution's log.
    `listing` has the attributes of its list entry. `indexed` is what the index of waits contains.
    """

    format: int
    tenant: str
    run: str
    partition: str
    sequence: int
    nonce: str
    message: str
    at_ms: int
    ttl: int | None
    newest_snapshot: int
    listing: Item
    indexed: IndexedWaits = UNLISTED


@dataclass(frozen=True, slots=True)
class Encoded:
    """One encoded record, and the blobs to store before it.

    `book` is valid only when the record is stored. `size` is in bytes, as DynamoDB counts.
    `needs_format` is the format in which the record would be shorter. `snapshot_bytes` is what the
    snapshot stores anew: itself, and its values that are blobs and were none before.
    """

    item: Item
    blobs: Mapping[str, bytes]
    book: ValueBook
    size: int
    needs_format: int
    snapshot_bytes: int = 0


def encode_record(header: Header, events: Sequence[Event], status: str, book: ValueBook) -> Encoded:
    """Return the encoded record. This changes the book: if another worker commits first, drop the
    book together with the state.
    """
    packer = Packer(book, header)
    last = _events_text(events, header, packer)
    text = "\n".join([*packer.lines, last])
    blobs = _blobs(header, packer.blobs)
    fields: dict[str, str | int | bytes] = {
        "pk": header.partition,
        "sk": header.sequence,
        FORMAT_FIELD: header.format,
        "w": header.nonce,
        "m": header.message,
        "at": header.at_ms,
        "st": status,
        "sn": header.newest_snapshot,
        **({} if header.ttl is None else {"ttl": header.ttl}),
        **header.listing,
        **header.indexed.attributes(),
    }
    item, size = _with_payload(fields, text, header, blobs)
    return Encoded(item, blobs, book, size, packer.needs_format)


def with_snapshot(encoded: Encoded, header: Header, state: Execution) -> Encoded:
    """Return the record with the state after it as a snapshot. The values of the snapshot get the
    numbers after those of the record.
    """
    sequence = header.sequence
    first = 1 + max((number for at, number in encoded.book.places() if at == sequence), default=-1)
    book = ValueBook()
    packer = Packer(book, header, first, encoded.book)
    last = packer.pack(to_json(state))
    data = compress("\n".join([*packer.lines, last]), header.format)
    blobs = {**encoded.blobs, **_blobs(header, packer.blobs)}
    fields = {**encoded.item, "sn": sequence, "so": first}
    if len(data) > VALUE_INLINE_BYTES_MAX:
        fields["sb"] = _digest(data)
        blobs |= _blobs(header, [data])
    else:
        fields["ss"] = data
    item, size = _fitting({**fields, **_blob_names(blobs)}, header, blobs)
    anew = len(data) + packer.new_blob_bytes
    return Encoded(item, blobs, book, size, header.format, anew)


def _events_text(events: Sequence[Event], header: Header, packer: Packer) -> str:
    if header.format >= COLUMNS_FORMAT:
        return columns_text(events, header.at_ms, packer.pack_field)
    return "[" + ",".join([_event_text(event, header.at_ms, packer) for event in events]) + "]"


def _event_text(event: Event, at_ms: int, packer: Packer) -> str:
    details, own = packer.pack_fields(event.details), packer.pack_fields(event.holdfast)
    return f'["{event.type}",{event.previous},{event.at_ms - at_ms},{details},{own}]'


def _with_payload(
    item: dict[str, str | int | bytes], text: str, header: Header, blobs: dict[str, bytes]
) -> tuple[Item, int]:
    """Return the item with the text of its events, and its size."""
    plain = {**item, "ev": text, **_blob_names(blobs)}
    size = item_bytes(plain)
    if size <= WRITE_UNIT_BYTES:
        return plain, size
    compressed: Item = {**plain, "ev": compress_well(text, header.format)}
    saves_a_unit = write_units(item_bytes(compressed)) < write_units(size)
    return _fitting(compressed if saves_a_unit else plain, header, blobs)


def _fitting(item: Item, header: Header, blobs: dict[str, bytes]) -> tuple[Item, int]:
    """Move the events of an item that would be too large for the table into a blob. Adding a
    snapshot, or the names of its blobs, can make an item too large that was not before. Return the
    item and its size.
    """
    size = item_bytes(item)
    if "ev" not in item or size <= RECORD_BYTES_MAX:
        return item, size
    events = item["ev"]
    data = events if isinstance(events, bytes) else compress(str(events), header.format)
    blobs |= _blobs(header, [data])
    kept = {key: value for key, value in item.items() if key != "ev"}
    kept = {**kept, "eb": _digest(data), **_blob_names(blobs)}
    return kept, item_bytes(kept)


def _blobs(header: Header, contents: Iterable[bytes]) -> dict[str, bytes]:
    return {keys.blob(header.tenant, header.run, _digest(data)): data for data in contents}


def with_packed_value(item: Item, number: int) -> Item:
    """Return the item with its value `v` compressed, if it then takes fewer write units. It then
    has the format `number`.
    """
    if "v" not in item:
        return item
    packed: Item = {
        **{name: value for name, value in item.items() if name != "v"},
        FORMAT_FIELD: number,
        _PACKED_VALUE: zlib.compress(str(item["v"]).encode(), 9),
    }
    saves_a_unit = write_units(item_bytes(packed)) < write_units(item_bytes(item))
    return packed if saves_a_unit else item


def with_plain_value(item: Item) -> Item:
    """Return the item with the value `v` that `with_packed_value` has compressed, if it has."""
    data = item.get(_PACKED_VALUE)
    return {**item, "v": zlib.decompress(data).decode()} if isinstance(data, bytes) else item


def _blob_names(blobs: Mapping[str, bytes]) -> dict[str, str]:
    if not blobs:
        return {}
    return {"bl": ",".join(key.rpartition("/")[2] for key in blobs)}


# -- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the log, as read. `is_folded`: its events are part of a snapshot and were not
    read. `is_listed`: it had an entry in the list when it was read.
    """

    sequence: int
    nonce: str
    message: str
    at_ms: int
    events: tuple[Event, ...]
    is_folded: bool = False
    is_listed: bool = False


def head(item: Item) -> Record:
    """Return a record without its events, which a load does not need: the record has a snapshot, or
    is older than one.
    """
    return replace(_as_record(item, ()), is_folded=True)


def _as_record(item: Item, events: tuple[Event, ...]) -> Record:
    sequence, at_ms = int(item["sk"]), int(item["at"])
    is_listed = resources.LIST_PARTITION in item
    return Record(sequence, str(item["w"]), str(item["m"]), at_ms, events, is_listed=is_listed)


#: The errors that Python raises when this code reads damaged bytes.
_DAMAGE: Final = (
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    zlib.error,
)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn every error that damaged data causes into a HoldfastBug. So no damaged value is used."""
    try:
        yield
    except _DAMAGE as error:
        raise HoldfastBug(f"{what} cannot be read: {type(error).__name__}") from error


def blobs_named_by(item: Item) -> list[str]:
    """Return the hashes of the blobs that are needed to read the item."""
    return [digest for digest in str(item.get("bl", "")).split(",") if digest]


class _OlderValueError(LookupError):
    """The referenced value is in an older record, which was not read."""


class Reader:
    """Reads records in order, oldest first. It updates the book and the state with each record."""

    def __init__(self, blobs: Mapping[str, bytes], formats: Formats = FORMATS) -> None:
        self.book = ValueBook()
        self.state: Execution | None = None
        self._blobs = blobs
        self._formats = formats
        # The format of the item that is being read.
        self._format = formats.oldest
        self._next_sequence = 0

    def from_snapshot(self, item: Item) -> None:
        """Begin at a record with a snapshot. The events of the record are already part of it.

        Raises SnapshotError when the state has fields that this code does not know.
        """
        with reading(f"the snapshot in {_what(item)}"):
            try:
                self.state = from_json(self._parse(self._values_of(item)))
            except UnknownState as unknown:
                raise SnapshotError(_what(item), str(unknown)) from None
            self._next_sequence = int(item["sk"]) + 1

    def resume(self, state: Execution, book: ValueBook, sequence: int) -> None:
        """Begin after the record `sequence`, with the state and the values after that record."""
        self.state, self.book, self._next_sequence = state, book, sequence + 1

    def _values_of(self, item: Item) -> str:
        """Add the values of a snapshot to the book. Return the text of the state."""
        self._format = require_format(item, _what(item), self._formats)
        data = item["ss"] if "ss" in item else self._blob(str(item["sb"]))
        self.book = ValueBook()
        assert isinstance(data, bytes)
        return self._read_lines(self._inflated(data), int(item["sk"]), int(item["so"]))

    def base(self, item: Item) -> Record:
        """Return the record whose snapshot was the beginning. It has no events if they refer to
        values of older records, which were not read.
        """
        assert self.state is not None
        with reading(_what(item)):
            payload = self._payload(item)
            try:
                rows = self._rows(self._read_lines(payload, int(item["sk"]), 0))
            except _OlderValueError:
                return head(item)
            numbered = sum(row[0] not in OWN_EVENTS for row in rows)
            first_id = self.state.last_event - numbered + 1
            return _as_record(item, self._events(rows, int(item["at"]), first_id))

    def record(self, item: Item) -> Record:
        """Return the record, and apply its events to `state`."""
        self._format = require_format(item, _what(item), self._formats)
        with reading(_what(item)):
            return self._record(item)

    def _record(self, item: Item) -> Record:
        sequence, at_ms = int(item["sk"]), int(item["at"])
        if sequence != self._next_sequence:
            raise HoldfastBug(f"{_what(item)} stands where record {self._next_sequence} has to")
        self._next_sequence += 1
        last = self._read_lines(self._payload(item), sequence, 0)
        first_id = 1 if self.state is None else self.state.last_event + 1
        events = self._events(self._rows(last), at_ms, first_id)
        self.state = fold(events, self.state)
        if "so" in item:
            # Add the values of the snapshot to the book, because later records refer to them and
            # not to older values.
            self._values_of(item)
        return _as_record(item, events)

    def _rows(self, text: str) -> list[Row]:
        """Return the parts of each event in the last line of a payload."""
        found = self._parse(text)
        if type(found) is not list:
            raise TypeError("a record's events")
        return rows_of(found) if self._format >= COLUMNS_FORMAT else found

    def _events(self, rows: list[Row], at_ms: int, next_id: int) -> tuple[Event, ...]:
        is_relative = self._format >= COLUMNS_FORMAT
        return _events(with_previous(rows, next_id) if is_relative else rows, at_ms, next_id)

    def _payload(self, item: Item) -> str:
        payload = item["ev"] if "ev" in item else self._blob(str(item["eb"]))
        return payload if isinstance(payload, str) else self._inflated(payload)  # type: ignore[arg-type]

    def _inflated(self, data: bytes) -> str:
        return inflate(data, self._format)

    def _read_lines(self, text: str, sequence: int, first_number: int) -> str:
        """Add the value of each line to the book. Return the last line, which is not a value."""
        *lines, last = text.split("\n")
        for number, line in enumerate(lines, first_number):
            value_text = line
            if line.startswith("s3:"):
                value_text = self._inflated(self._blob(line.removeprefix("s3:")))
            self._learn(sequence, number, self._parse(value_text), value_text)
        return last

    def _learn(self, sequence: int, number: int, value: Json, text: str) -> None:
        self.book.learn(sequence, number, value, text)

    def _blob(self, digest: str) -> bytes:
        data = self._blobs[digest]
        if _digest(data) != digest:
            raise HoldfastBug(f"the stored value {digest} has another hash")
        return data

    def _parse(self, text: str) -> Any:
        # A reference, and a user's key that looks like one, begin so. Without them, no object of
        # the text needs the hook.
        if '"@' not in text:
            return json.loads(text)
        return json.loads(text, object_hook=self._resolved)

    def _resolved(self, found: dict[str, Any]) -> Any:
        if len(found) != 1:
            return found
        ((key, value),) = found.items()
        if not key or key.strip("@"):
            return found
        if key == "@":
            known = value[0], value[1]
            try:
                if len(value) == 2:
                    return self.book.at(known)
                return [*self.book.list_at(known), *value[2]]
            except KeyError:
                raise _OlderValueError(known) from None
        return {key[:-1]: value}


def _events(rows: Iterable[Row], at_ms: int, next_id: int) -> tuple[Event, ...]:
    events = []
    for event_type, previous, delta, details, own in rows:
        # Check these fields although the fold ignores them, because the history would otherwise
        # show damaged values.
        if (
            type(previous) is not int
            or type(delta) is not int
            or type(details) is not dict
            or type(own) is not dict
        ):
            raise TypeError("an event's parts")
        event_id = 0
        if event_type not in OWN_EVENTS:
            event_id, next_id = next_id, next_id + 1
        events.append(Event(event_type, event_id, previous, at_ms + delta, details, own))
    return tuple(events)


def _what(item: Item) -> str:
    return f"record {item.get('sk')!r} of execution {str(item.get('pk')).rpartition('#')[2]}"
