"""`~ctl`: the item with the settings for all code of a stack: the format to write, and the spread.

A new format is introduced in two steps. First, code is deployed that reads the new format but
writes the old one. When no older code runs, an operator requests the new format; from then on only
code that reads it may run. The number never falls, because stored records are not converted back.

The sweeper stores the spread that its deployment sets (`spread.py` says what that is). A new one
counts for new ids after `SPREAD_MINTED_MS`, and for readers at once. The greatest one is kept for
readers. So the functions of a deployment may be updated in any order, and a deployment may be
rolled back.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from holdfast.errors import RequestError
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Item,
    JsonResult,
    NoResult,
    PutIfAbsent,
    Query,
    Replace,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, FORMATS, Formats, require_format
from holdfast.runtime.storage.spread import Spread

LOOK_SECONDS: Final = 60
#: New ids get a new spread after this time. By then every process has read the item again.
SPREAD_MINTED_MS: Final = 2 * LOOK_SECONDS * 1_000


@dataclass
class Control:
    """The content of the item `~ctl`, as this process last read it. Mutable; lives as long as the
    process.
    """

    formats: Formats = FORMATS
    spread: Spread = field(default_factory=Spread)
    until_ms: int = 0

    def look(self, now_ms: int) -> Generator[Effect, Any, Formats]:
        """Return the formats to read and to write, and update the spread. Costs one read a minute.

        An outdated format does no harm: no log is ever written in an older format than it has.
        """
        if now_ms >= self.until_ms:
            self._take((yield from _read()), now_ms)
        return self.formats

    def grow(self, wanted: int) -> NoResult:
        """Store the spread that the deployment of this process sets, if another one is stored."""
        while True:
            item, now_ms = (yield from _read()), (yield Clock())
            if _spreads(item).wanted == wanted:
                self._take(item, now_ms)
                return
            yield from _put(_with_spread(item, wanted, now_ms), item, self.formats)

    def _take(self, item: Item | None, now_ms: int) -> None:
        self.formats = self.formats.asking(_asked(item, self.formats))
        self.spread.minted = _minted(item, now_ms)
        self.spread.read = _spreads(item).most
        self.until_ms = now_ms + LOOK_SECONDS * 1_000


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
        if (yield from _put({"format": wanted}, item, formats)):
            return _shown(wanted, formats)


def _read() -> Generator[Effect, Any, Item | None]:
    """Return the item. It is read with a query, because the role of every function allows
    queries.
    """
    items = yield Query(tables.MAIL, keys.STACK_CONTROL, limit=1)
    return items[0] if items else None


def _asked(item: Item | None, formats: Formats) -> int:
    """Return the requested format. Without a request it is the one that every release can read."""
    if item is None:
        return formats.asked
    require_format(item, "~ctl")
    with reading("~ctl"):
        return int(item["format"])


class _Spreads(NamedTuple):
    """The spread that is set, the one that new ids had before, the time of the change, and the
    greatest spread that was ever set.
    """

    wanted: int
    before: int
    since_ms: int
    most: int


def _spreads(item: Item | None) -> _Spreads:
    found = {} if item is None else item
    names = ("spread", "spread_before", "spread_at", "spread_most")
    with reading("~ctl"):
        return _Spreads(*(int(found.get(name, 0)) for name in names))


def _minted(item: Item | None, now_ms: int) -> int:
    """Return the spread that new ids get at this time."""
    found = _spreads(item)
    return found.wanted if now_ms - found.since_ms >= SPREAD_MINTED_MS else found.before


def _with_spread(item: Item | None, wanted: int, now_ms: int) -> dict[str, int]:
    """Return the fields of the item after the change to another spread."""
    return {
        "spread": wanted,
        "spread_before": _minted(item, now_ms),
        "spread_at": now_ms,
        "spread_most": max(_spreads(item).most, wanted),
    }


def _put(
    changes: Mapping[str, int], seen: Item | None, formats: Formats
) -> Generator[Effect, Any, bool]:
    """Store the item with changes. Return False if another host has stored its value first."""
    version = 0 if seen is None else int(seen["rv"])
    item: Item = {
        **(seen or {"format": formats.asked}),
        **changes,
        "pk": keys.STACK_CONTROL,
        "sk": keys.ONLY,
        FORMAT_FIELD: FORMAT,
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
