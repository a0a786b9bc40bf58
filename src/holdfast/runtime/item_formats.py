"""The files from which a distributed Map's items are read: CSV, JSON, JSON Lines, compressed or
not.

Sources: AWS docs, "ItemReader (Map)"; recordings for malformed rows.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast.errors import RequestError
from holdfast.limits import READER_BYTES_MAX, READER_ITEM_BYTES_MAX, READER_ITEMS_MAX
from holdfast.runtime.storage.json_values import require_plain

#: The items of one file: a sequence of items, or an object whose fields are the items.
Items: TypeAlias = Iterable[Any] | Mapping[str, Any]

_GZIP: Final = b"\x1f\x8b"
_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
_DELIMITERS: Final = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}


class UnreadableItems(Exception):  # noqa: N818
    """The items cannot be read; the text is the cause of States.ItemReaderFailed."""


def items_of(data: bytes, config: Mapping[str, Any]) -> Items:
    """Return the items of one file, by the InputType of the ReaderConfig. Raises UnreadableItems.

    Rows are read on demand, so a caller that needs only the first rows reads only these.
    """
    kind = config.get("InputType", "JSON")
    read = _READERS.get(kind)
    if read is None:
        raise UnreadableItems(f"The input type {kind} cannot be read.")
    return read(_text(decompressed(data)), config)


def items_max(config: Mapping[str, Any]) -> int:
    """Return how many items to read. Without a number, or with 0, this is one more than the
    maximum, so that too many items are noticed. Raises UnreadableItems.
    """
    value = config.get("MaxItems", 0)
    try:
        wanted = int(value)
    except (TypeError, ValueError):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        raise UnreadableItems(f"The value {text} of MaxItems is not a valid integer") from None
    if wanted < 0:
        raise UnreadableItems("field MaxItems must be positive")
    return min(wanted or READER_ITEMS_MAX + 1, READER_ITEMS_MAX + 1)


def decompressed(data: bytes) -> bytes:
    """Return the content. GZIP is recognised by its first bytes, whatever the file's name. Raises
    UnreadableItems.
    """
    if data.startswith(_ZSTANDARD):
        raise UnreadableItems("The object is compressed with ZSTD, which cannot be read. Use GZIP.")
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            found = file.read(READER_BYTES_MAX + 1)
    except (OSError, EOFError) as error:
        raise UnreadableItems(f"The object cannot be decompressed: {error}") from None
    return require_size(found)


def require_size(data: bytes) -> bytes:
    if len(data) > READER_BYTES_MAX:
        raise UnreadableItems(f"The object is larger than {READER_BYTES_MAX} bytes.")
    return data


def rows_of(data: bytes, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file without a header."""
    return _named(_rows(_text(decompressed(data)), ","), names)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableItems("The object is not encoded in UTF-8.") from None


# -- CSV -------------------------------------------------------------------------------------------


def _csv(text: str, config: Mapping[str, Any]) -> Items:
    rows = _rows(text, _DELIMITERS.get(config.get("CSVDelimiter", "COMMA"), ","))
    is_given = config.get("CSVHeaderLocation") == "GIVEN"
    names = config.get("CSVHeaders", []) if is_given else next(rows, [])
    if len(set(names)) < len(names):
        raise UnreadableItems("CSV headers cannot contain duplicates.")
    return _named(rows, names)


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows. A backslash escapes the next character, quoted fields may contain delimiters
    and line feeds, and empty lines are skipped. Source: AWS docs, "How Step Functions parses input
    CSV files".
    """
    csv.field_size_limit(READER_ITEM_BYTES_MAX)
    lines = _with_escaped_quotes(io.StringIO(text, newline=""), delimiter)
    reader = csv.reader(lines, delimiter=delimiter, escapechar="\\")
    try:
        yield from filter(None, reader)
    except csv.Error as error:
        raise UnreadableItems(
            f"Line {reader.line_num} of the object cannot be read: {error}"
        ) from None


def _with_escaped_quotes(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    """Yield the lines with a backslash and one quotation mark for each two outside of quoted
    fields. Both stand for one mark, but Python's reader reads two as one in quoted fields only.
    """
    # Python's reader takes a backslash right after a closing mark for itself.
    field = r'(?:[^"\\]++|""|\\.)*+(?P<end>"\\?)?'
    closing = re.compile(field, re.DOTALL)
    quoted = rf'(?P<quoted>(?:^|{re.escape(delimiter)})"{field})'
    tokens = re.compile(rf'{quoted}|(?P<pair>"")|\\.', re.DOTALL)
    is_open = False  # a quoted field goes on in the next line
    for line in lines:
        copied, parts = 0, list[str]()
        if is_open and (rest := closing.match(line)):
            copied, is_open = rest.end(), not rest["end"]
            parts.append(line[:copied])
        for found in tokens.finditer(line, copied) if '"' in line else ():
            if found["pair"]:
                parts += (line[copied : found.start()], '\\"')
                copied = found.end()
            is_open = bool(found["quoted"]) and not found["end"]
        yield "".join((*parts, line[copied:]))


def _named(rows: Iterable[Sequence[str]], names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the rows as objects. A short row is filled with empty texts; a long row is cut."""
    for row in rows:
        yield dict(zip(names, itertools.chain(row, itertools.repeat("")), strict=False))


# -- JSON ------------------------------------------------------------------------------------------


def _json(text: str, config: Mapping[str, Any]) -> Items:
    pointer = config.get("ItemsPointer", "")
    found = _pointed(_parsed(text), pointer)
    # AWS refuses a file with one object unless there is a pointer, as a recording shows.
    if isinstance(found, list) or (isinstance(found, dict) and pointer):
        return found
    raise UnreadableItems("Attempting to map over non-iterable node.")


def _parsed(text: str) -> Any:
    try:
        value = json.loads(text)
        require_plain(value, "the object")
    except (ValueError, RecursionError) as error:
        raise UnreadableItems(f"The object is not valid JSON: {error}") from None
    except RequestError as error:
        raise UnreadableItems(f"The object cannot be kept: {error.message}") from None
    return value


def _pointed(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer (RFC 6901); None when nothing is there."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        match value:
            case dict():
                value = value.get(name)
            case list() if name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            case _:
                return None
    return value


def _json_lines(text: str, _config: Mapping[str, Any]) -> Items:
    return (_parsed(line) for line in text.split("\n") if line.strip())


_READERS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Items]]] = {
    "CSV": _csv,
    "JSON": _json,
    "JSONL": _json_lines,
}
#: The InputTypes of a file that has items itself.
READ_TYPES: Final = frozenset(_READERS)
