"""`~ctl`: the item with the setting that an operator makes for all code of a stack: the format to
write.

A new format is introduced in two steps. First, code is deployed that reads the new format but
writes the old one. When no older code runs, an operator requests the new format; from then on only
code that reads it may run. The number never falls, because stored records are not converted back.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.errors import RequestError
from holdfast.runtime.effects import Clock, Effect, Item, JsonResult, PutIfAbsent, Query, Replace
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, FORMATS, Formats, require_format

LOOK_SECONDS: Final = 60


@dataclass
class Control:
    """The content of the item `~ctl`, as this process last read it. Mutable; lives as long as the
    process.
    """

    formats: Formats = FORMATS
    until_ms: int = 0

    def look(self, now_ms: int) -> Generator[Effect, Any, Formats]:
        """Return the formats to read and to write. Costs one read a minute.

        An outdated value does no harm: no log is ever written in an older format than it has.
        """
        if now_ms >= self.until_ms:
            asked = _asked((yield from _read()), self.formats)
            self.formats = self.formats.asking(asked)
            self.until_ms = now_ms + LOOK_SECONDS * 1_000
        return self.formats


def require_writable(formats: Formats) -> None:
    """Raise HF301 or HF302 when the stack requires a format that this code cannot read."""
    formats.require(formats.asked, "what the stack is to write (`~ctl`)")


def show(formats: Formats) -> JsonResult:
    """Return `format`, the requested format, and `readable`, the formats that this code reads."""
    return _shown(_asked((yield from _read()), formats), formats)


def ask(request: Mapping[str, Any], formats: Formats) -> JsonResult:
    """Request a format from now on: the field `format` of `request`. Raises RequestError HF250,
    HF251.
    """
    wanted = request.get("format")
    if type(wanted) is not int or wanted not in formats:
        raise RequestError(
            "HF250",
            f"format {wanted!r:.20} is none that this code reads: that is {_words(formats)}",
            help="deploy code that reads it, everywhere, before you ask for it",
        )
    while True:
        item = yield from _read()
        asked = _asked(item, formats)
        if wanted < asked:
            raise RequestError(
                "HF251",
                f"the stack writes format {asked}, and may have done so: format {wanted} would "
                "leave its executions to code that cannot read them",
                status=409,
                help="a format is never taken back; keep code that reads it",
            )
        if item is not None and wanted == asked:
            return _shown(wanted, formats)
        if (yield from _put(wanted, item)):
            return _shown(wanted, formats)


def _read() -> Generator[Effect, Any, Item | None]:
    """Return the item. It is read with a query, because the role of every function allows
    queries.
    """
    items = yield Query(tables.MAIL, keys.STACK_CONTROL, limit=1)
    return items[0] if items else None


def _asked(item: Item | None, formats: Formats) -> int:
    """Return the requested format. Without a request it is the oldest one, which every running
    release can read.
    """
    if item is None:
        return formats.oldest
    require_format(item, "~ctl")
    with reading("~ctl"):
        return int(item["format"])


def _put(wanted: int, seen: Item | None) -> Generator[Effect, Any, bool]:
    """Store the item. Return False if another host has stored its value first."""
    version = 0 if seen is None else int(seen["rv"])
    item: Item = {
        "pk": keys.STACK_CONTROL,
        "sk": keys.ONLY,
        FORMAT_FIELD: FORMAT,
        "format": wanted,
        "at": (yield Clock()),
        "rv": version + 1,
    }
    if seen is None:
        return (yield PutIfAbsent(tables.MAIL, item)) is None
    return bool((yield Replace(tables.MAIL, item, version)))


def _shown(asked: int, formats: Formats) -> dict[str, Any]:
    return {"format": asked, "readable": _readable(formats)}


def _words(formats: Formats) -> str:
    return " or ".join(map(str, _readable(formats)))


def _readable(formats: Formats) -> list[int]:
    return list(range(formats.oldest, formats.newest + 1))
