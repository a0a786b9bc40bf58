"""Ids of executions ("runs"), and how they are written as UUIDs, the form of AWS's names. Each form
can be computed from the other, so no table has to map one to the other.

a run            spread, 5 bits (3 used)   time, 45   random, 60 bits   MAC, 20 bits
its UUID         spread, 3                 time, 45   random, 60        MAC, 20
its map runs'    spread, 3                 time, 45   random, 60        entry, 20

The spread says over how many partitions the rows of the execution are spread
(`runtime/storage/spread.py`). The id has it, so an execution keeps its partitions when the stack
gets more of them, and every process that knows the id knows the partitions. Ids of earlier releases
have spread 0: 45 bits hold the time until the year 3084.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import Final

from holdfast.limits import CHILD_DEPTH_MAX

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
TIME_CHARACTERS: Final = 10
#: The first of these characters is the spread, which is not a part of the time.
SPREAD_CHARACTERS: Final = 1
#: The greatest spread. A UUID has three bits for it.
SPREAD_MAX: Final = 4
CHANCE_CHARACTERS: Final = 12
MAC_CHARACTERS: Final = 4

TOO_DEEP: Final = "Holdfast.TooDeep"

_MINTED: Final = re.compile(f"[{ALPHABET}]{{26}}")
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHANCE_RANGE: Final = 32**CHANCE_CHARACTERS
_MAC_RANGE: Final = 32**MAC_CHARACTERS


def digits(value: int, count: int) -> str:
    characters = []
    for _ in range(count):
        value, digit = divmod(value, 32)
        characters.append(ALPHABET[digit])
    return "".join(reversed(characters))


def number(text: str) -> int:
    """Return the value of the digits, in the alphabet of run ids."""
    value = 0
    for character in text:
        value = value * 32 + ALPHABET.index(character)
    return value


def spread_of(run: str) -> int:
    """Return the spread in the id. Text in another form than that of an id has spread 0."""
    is_id = len(run) >= TIME_CHARACTERS + CHANCE_CHARACTERS + MAC_CHARACTERS
    found = ALPHABET.find(run[:SPREAD_CHARACTERS]) if is_id else 0
    return found if 0 <= found <= SPREAD_MAX else 0


def uuid_of(run: str) -> str:
    """Return the id as a UUID. It is the name of an execution that was started without a name."""
    return _uuid(run, number(run[-MAC_CHARACTERS:]))


def run_of_uuid(text: str) -> str | None:
    """Return the execution id in the UUID; None for other text. The MAC in the id proves that the
    id was created here.
    """
    if not _UUID.fullmatch(text):
        return None
    value = int(text.replace("-", ""), 16)
    return _body(value) + digits(value, MAC_CHARACTERS)


def map_run_uuid(run: str, entry: int) -> str:
    """Return the name of the run of a distributed Map, from the execution and the Map's entry
    number.

    It can be converted back only for the Map of a root execution: the id of a child execution is
    longer than a UUID.
    """
    if not _MINTED.fullmatch(run) or entry >= _MAC_RANGE:
        return as_uuid(hashlib.sha256(f"{run}/{entry}".encode()).hexdigest())
    return _uuid(run, entry)


def run_of_map_run(text: str) -> tuple[str, int] | None:
    """Return the execution id without its MAC, and the entry number; None for other text."""
    if not _UUID.fullmatch(text):
        return None
    value = int(text.replace("-", ""), 16)
    return _body(value), value % _MAC_RANGE


def child_run(run: str, entry: int, number: int) -> str:
    """Return the id of a child execution: `number` is its lane in a distributed Map, or the attempt
    of the task that starts it.
    """
    return f"{run}.{entry}.{number}"


def parent_run(run: str) -> str | None:
    """Return the id of the parent execution; None for a root."""
    return run.rsplit(".", 2)[0] if "." in run else None


def child_depth(run: str) -> int:
    """Return the number of parent executions around this one."""
    return run.count(".") // 2


def too_deep(run: str, what: str) -> str | None:
    """Return why no execution with this id may be started; None when it may. `what` names in the
    message what the execution would run.

    The id of an execution holds the ids of all its parents, and its length as a key is limited. No
    worker could store an execution with a longer id, and its parents would wait for its end for
    ever.
    """
    if child_depth(run) <= CHILD_DEPTH_MAX:
        return None
    return f"{what} was called {CHILD_DEPTH_MAX + 1} executions deep: no more may nest"


def child_name(run: str) -> str:
    """Return the name of a child execution: its id, in the characters that a name may have."""
    return run.replace(".", "-")


def as_uuid(hexadecimal: str) -> str:
    """Return the first 32 hexadecimal digits in the groups of a UUID."""
    places = (0, 8, 12, 16, 20, 32)
    return "-".join(hexadecimal[start:end] for start, end in pairwise(places))


def _uuid(run: str, last: int) -> str:
    time = number(run[:TIME_CHARACTERS])
    chance = number(run[TIME_CHARACTERS:-MAC_CHARACTERS])
    return as_uuid(f"{(time * _CHANCE_RANGE + chance) * _MAC_RANGE + last:032x}")


def _body(value: int) -> str:
    time, chance = divmod(value // _MAC_RANGE, _CHANCE_RANGE)
    return digits(time, TIME_CHARACTERS) + digits(chance, CHANCE_CHARACTERS)
