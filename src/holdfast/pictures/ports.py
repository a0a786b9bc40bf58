"""The points at which lines meet boxes, and the height of each horizontal line between two rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.pictures.columns import nearest
from holdfast.pictures.graph import Link
from holdfast.pictures.rows import Pin, Rows, Side

PORT_GAP: Final = 14.0
WORD_GAP: Final = 12.0
_MARGIN: Final = 22.0
#: How far a word may extend beyond the last port of its box. It is the margin and a part of the gap
#: to the next box.
_OVERHANG: Final = 26.0
#: Two lines whose distance is less than this look like one line.
_NEAR: Final = 5.0
_ALIGNED: Final = 1.0


def place_ports(rows: Rows, links: Sequence[Link], middles: Sequence[float]) -> Mapping[Pin, float]:
    """Return x of every pin (the end of a line). At a box, pins are in the order of the places to
    which their lines lead.
    """
    places = {pin: middles[pin.item] for way in rows.ways for pin in way}
    words = _words(rows, links)
    ends = [way[:2] for way in rows.ways], [way[:-3:-1] for way in rows.ways]
    for pairs in ends:
        _place(pairs, rows, (middles, words), places)
    # Place the other ends a second time. All points of arrival are known now, so a single line that
    # leaves a box can be straight.
    alone = Counter((pin.item, pin.side) for pin in {way[0] for way in rows.ways})
    single = [way for way in ends[0] if alone[way[0].item, way[0].side] == 1]
    _place(single, rows, (middles, words), places)
    return places


def _words(rows: Rows, links: Sequence[Link]) -> Mapping[Pin, float]:
    """Return, by pin, the width of the word beside it."""
    words: dict[Pin, float] = defaultdict(float)
    for position, way in enumerate(rows.ways):
        if rows.items[way[1].item].link != position:
            words[way[0]] = max(words[way[0]], links[position].exit_width)
    return words


def _place(
    pairs: Sequence[Sequence[Pin]],
    rows: Rows,
    known: tuple[Sequence[float], Mapping[Pin, float]],
    places: dict[Pin, float],
) -> None:
    """Place pins. `pairs`: pins of boxes, each with the pin at the other end of its line."""
    middles, words = known
    wishes: dict[Pin, list[float]] = defaultdict(list)
    for pin, other in pairs:
        wishes[pin].append(places[other])
    at_side: dict[tuple[int, Side], list[Pin]] = defaultdict(list)
    for pin in wishes:
        at_side[pin.item, pin.side].append(pin)
    for (item, _), pins in at_side.items():
        box = rows.items[item]
        middle = middles[item]
        half = max(box.width / 2 - _MARGIN, 0.0)
        # If several lines begin at one pin, the line that can be straight decides its place.
        wished = {pin: min(wishes[pin], key=lambda x: (abs(x - middle), x)) for pin in pins}
        pins.sort(key=lambda pin: (wished[pin], pin.port))
        wanted = [(pin, wished[pin], words.get(pin, 0.0)) for pin in pins]
        places.update(_spread(wanted, (middle - half, middle + half)))


def _spread(
    wanted: Sequence[tuple[Pin, float, float]], room: tuple[float, float]
) -> Mapping[Pin, float]:
    """Return places for pins. `wanted` has the pins from the left, the best place of each, and the
    width of its word.
    """
    low, high = room
    middle = (low + high) / 2
    # Limit each place, so that a word at the right end does not extend into the next box.
    ends = [max(high - max(word - _OVERHANG, 0.0), low) for _, _, word in wanted]
    wishes = [min(max(wish, low), end) for (_, wish, _), end in zip(wanted, ends, strict=True)]
    apart = [max(PORT_GAP, word + WORD_GAP) for _, _, word in wanted[:-1]]
    total = sum(apart)
    if total > ends[-1] - low:
        apart = [gap * (ends[-1] - low) / total for gap in apart]
    weights = [100.0 if abs(wish - middle) < _ALIGNED else 1.0 for wish in wishes]
    found = nearest(wishes, weights, apart)
    kept = _within(found, apart, low, ends[-1])
    return {pin: place for (pin, _, _), place in zip(wanted, kept, strict=True)}


def _within(
    places: Sequence[float], apart: Sequence[float], low: float, high: float
) -> Sequence[float]:
    """Return the places, moved between both bounds as little as necessary."""
    kept = list(places)
    kept[-1] = min(kept[-1], high)
    for number in range(len(kept) - 2, -1, -1):
        kept[number] = min(kept[number], kept[number + 1] - apart[number])
    kept[0] = max(kept[0], low)
    for number in range(1, len(kept)):
        kept[number] = max(kept[number], kept[number - 1] + apart[number - 1])
    return kept


# -- tracks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Net:
    """The lines of one gap that come together: where they meet the row above and the row below."""

    key: int
    upper: tuple[float, ...]
    lower: tuple[float, ...]

    @property
    def is_straight(self) -> bool:
        every = self.upper + self.lower
        return max(every) - min(every) < 0.5

    @property
    def span(self) -> tuple[float, float]:
        every = self.upper + self.lower
        return min(every), max(every)


def tracks_of(nets: Sequence[Net]) -> Mapping[int, int]:
    """Return the track (the position from the top) of each net's horizontal line, by key. A
    straight net has none.
    """
    bent = sorted((net for net in nets if not net.is_straight), key=_preference)
    over = _constraints(bent)
    tracks: dict[int, int] = {}
    used: list[list[tuple[float, float]]] = []
    waiting = list(bent)
    while waiting:
        free = [net for net in waiting if all(other in tracks for other in over[net.key])]
        # If lines form a circle, each of them has to be above the next, which is impossible. Then
        # choose one of them.
        net = (free or waiting)[0]
        waiting.remove(net)
        lowest = max((tracks[other] + 1 for other in over[net.key] if other in tracks), default=0)
        tracks[net.key] = _first_free(used, lowest, net.span)
    return tracks


def _preference(net: Net) -> tuple[float, int]:
    """Return the order of lines to one side: that of their starting points, so that they do not
    cross.
    """
    upper, lower = net.upper or net.lower, net.lower or net.upper
    is_rightwards = sum(lower) / len(lower) >= sum(upper) / len(upper)
    return (-max(upper) if is_rightwards else min(upper)), net.key


def _constraints(nets: Sequence[Net]) -> Mapping[int, set[int]]:
    """Return for each net those that must be above it: otherwise the end of one line would hide the
    beginning of another.
    """
    ends = sorted((x, net.key) for net in nets for x in net.lower)
    over: dict[int, set[int]] = {net.key: set() for net in nets}
    for net in nets:
        for x in net.upper:
            for place, key in ends:
                if abs(place - x) < _NEAR and key != net.key:
                    over[key].add(net.key)
    return over


def _first_free(
    used: list[list[tuple[float, float]]], lowest: int, span: tuple[float, float]
) -> int:
    track = lowest
    while True:
        while len(used) <= track:
            used.append([])
        if all(
            span[1] + 2 * _NEAR < low or high + 2 * _NEAR < span[0] for low, high in used[track]
        ):
            used[track].append(span)
            return track
        track += 1
