"""The row of each box, the links that close a loop, and the boxes on the straight way down (the
spine).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.pictures.graph import Box, Link


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rows of a graph. `rows` has the row of each box. `back` are the positions of links that
    lead upwards or stay in their row. `spine` are the boxes of the straight way down.
    """

    rows: tuple[int, ...]
    back: frozenset[int]
    spine: tuple[int, ...]


def rank(boxes: Sequence[Box], links: Sequence[Link], start: int) -> Ranks:
    outgoing: list[list[int]] = [[] for _ in boxes]
    # Follow the way without errors first. The link that closes a loop is then the one at the end of
    # the loop's body.
    for position in sorted(range(len(links)), key=lambda n: (links[n].is_catch, n)):
        outgoing[links[position].source].append(position)
    back, order = _walk(links, outgoing, [start, *range(len(boxes))])
    rows = [0] * len(boxes)
    for box in order:
        for position in outgoing[box]:
            if position not in back:
                link = links[position]
                # A text box is in a row of its own between the two boxes, so leave one row for it.
                needed = rows[box] + (1 if link.label is None else 2)
                rows[link.target] = max(rows[link.target], needed)
    onwards = [
        [links[n].target for n in leaving if n not in back and not links[n].is_catch]
        for leaving in outgoing
    ]
    return Ranks(tuple(rows), frozenset(back), _spine(boxes, onwards, order, start))


def _walk(
    links: Sequence[Link], outgoing: Sequence[Sequence[int]], roots: Sequence[int]
) -> tuple[set[int], list[int]]:
    """Return the links that close a loop, and the boxes in an order in which all other links lead
    forward.
    """
    back: set[int] = set()
    finished: list[int] = []
    seen: set[int] = set()
    open_boxes: set[int] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        open_boxes.add(root)
        path = [(root, iter(outgoing[root]))]
        while path:
            box, left = path[-1]
            for position in left:
                target = links[position].target
                if target in open_boxes:
                    back.add(position)
                elif target not in seen:
                    seen.add(target)
                    open_boxes.add(target)
                    path.append((target, iter(outgoing[target])))
                    break
            else:
                path.pop()
                open_boxes.discard(box)
                finished.append(box)
    return back, finished[::-1]


def _spine(
    boxes: Sequence[Box], onwards: Sequence[Sequence[int]], order: Sequence[int], start: int
) -> tuple[int, ...]:
    """Return the longest path without an error that ends well. The picture draws it as a straight
    line.
    """
    best: list[tuple[bool, int]] = [(box.is_good_end, 1) for box in boxes]
    on: list[int | None] = [None] * len(boxes)
    for box in reversed(order):
        for target in onwards[box]:
            ends_well, length = best[target]
            is_better = on[box] is None or (ends_well, length + 1) > best[box]
            if is_better and not boxes[target].is_aside:
                best[box] = (ends_well, length + 1)
                on[box] = target
    way: list[int] = []
    box_or_none: int | None = start
    while box_or_none is not None:
        way.append(box_or_none)
        box_or_none = on[box_or_none]
    return tuple(way)
