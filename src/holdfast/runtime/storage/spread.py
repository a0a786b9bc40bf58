"""Over how many partitions the rows of executions are spread, and how their number grows.

DynamoDB takes 1,000 write units a second in one partition. Some partitions are shared by many
executions: those of the list, of due rows, of starts. Each kind has several shards. Their number
grows with the *spread*. Each step of it doubles the starts a second for which there are partitions:

    spread   starts a second   list: open   list: done   due rows   rows of starts
    0        1,000             4            2            16         16
    1        2,000             8            4            16         16
    2        4,000             16           8            32         32
    3        8,000             32           16           64         64
    4        16,000            64           32           128        128

**Growth.** The first character of an execution's id is its spread. The shard is a function of the
id, so the rows of an execution stay where they are when the stack grows. Only new ids get the new
spread. A reader reads the shards of the greatest spread that any id may have, and the shards of a
smaller spread are among them. So neither more partitions nor fewer lose a row:

    10:00:00  a deployment sets the spread to 4; the sweeper stores in `~ctl`: read 4, mint 0
    10:01:00  each process has read that: it sweeps and lists the shards of spread 4
    10:02:00  the API gives spread 4 to new ids
    later     a deployment sets the spread to 2; new ids get 2, and readers still read 4

The two minutes are needed because a process reads `~ctl` once a minute: an execution must not get
rows in a shard that some process does not read yet.
"""

from __future__ import annotations

import zlib
from typing import Final

from holdfast.core.run_ids import SPREAD_MAX, spread_of
from holdfast.lazy_dataclass import dataclass

#: The starts a second of spread 0.
STARTS_PER_SECOND: Final = 1_000
STARTS_PER_SECOND_MAX: Final = STARTS_PER_SECOND << SPREAD_MAX


@dataclass(frozen=True, slots=True)
class Shards:
    """How many shards one kind of partition has: `least`, and at least `each` for each 1,000 starts
    a second. With `each` no shard takes more than 500 write units a second.
    """

    least: int
    each: int

    def count(self, spread: int) -> int:
        return max(self.least, self.each << spread)

    def of(self, run: str) -> int:
        """Return the shard of an execution."""
        return zlib.crc32(run.encode()) % self.count(spread_of(run))


#: Due rows and rows of the archive. A wait of three days writes four: two rows, and their ends.
DUE: Final = Shards(16, 8)
#: The rows with which the sweeper finds lost starts. A start writes one, but a check of each costs
#: a read, and one worker checks the rows of a shard.
STARTS: Final = Shards(16, 8)
#: The entries of open executions and the rows of their waits: each is put and removed. The number
#: must divide that of `DUE` at each spread, because the doctor reads a shard of the list together
#: with the watchdog rows of the same executions.
LIST_OPEN: Final = Shards(4, 4)
#: The entries of executions that have succeeded; those of executions that have failed.
LIST_ENDED: Final = Shards(2, 2)
#: The rows of started executions of one state machine.
MACHINE_STARTS: Final = Shards(8, 2)
#: The inbox of people: the row of each question is put and deleted.
QUESTIONS: Final = Shards(4, 4)
#: The rows of one search attribute.
SEARCH: Final = Shards(4, 2)


@dataclass
class Spread:
    """The spread as this process knows it. Mutable; lives as long as the process.

    `minted`: new ids get it. `read`: the greatest that any id may have.
    """

    minted: int = 0
    read: int = 0


def share_of(limit: int, spread: Spread) -> int:
    """Return how many rows a reader of `limit` rows reads in each shard of a list.

    It is less when there are more shards, so the reader reads as many rows in all.
    """
    return -(-limit >> spread.read)


def spread_for(starts_per_second: int) -> int:
    """Return the least spread for this rate."""
    return max(0, (-(-starts_per_second // STARTS_PER_SECOND) - 1).bit_length())
