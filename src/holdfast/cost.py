"""The cost of a run at list prices, from counted calls and the sizes of their data.

Sizes and units follow DynamoDB's own rules ("Item sizes and formats", "Capacity unit consumption"):
the size of an item is that of its attribute names plus its values, in UTF-8; a write costs one unit
per started KB of the larger of the old and the new item, even when its condition fails; a strongly
consistent read costs one unit per started 4 KB; an index entry that appears, changes or disappears
is a write of its own.

Prices are us-east-1, on demand, November 2026. The duration of Lambda functions cannot be measured
on a local machine. It is assumed: COMMIT_MS at COMMIT_MEMORY_MB (arm64) for each commit. The
requests of the API and the time of user tasks are listed separately, because they depend on the
user and not on Holdfast. Costs without any run are left out: sweeps that find nothing, and Lambda's
polling of empty queues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final, TypeAlias

from holdfast import limits
from holdfast.lazy_dataclass import dataclass
from holdfast.resources import Table, TableIndex

Attributes: TypeAlias = Mapping[str, str | int | bytes]

READ_UNIT_BYTES: Final = 4_096
BILLED_CHUNK_BYTES: Final = 65_536
# The requests to SQS for one message: receive, delete and one extension of the visibility. The ten
# messages of a batch share each request.
SQS_REQUESTS_PER_DELIVERY: Final = 0.3
# These two are assumed and not measured. The deployed worker has more memory (resources.WORKER),
# for the tasks that it runs. The cost of the commits grows in the same proportion.
COMMIT_MS: Final = 6
COMMIT_MEMORY_MB: Final = 256
COMMIT_GB_SECONDS: Final = COMMIT_MS / 1_000 * COMMIT_MEMORY_MB / 1_024


def number_bytes(value: int) -> int:
    """Return the size of a number: one byte for two significant digits, one more, and one for a
    minus sign.
    """
    digits = str(abs(value)).strip("0")
    return (len(digits) + 1) // 2 + 1 + (value < 0)


def value_bytes(value: str | int | bytes) -> int:
    if isinstance(value, int):
        return number_bytes(value)
    return text_bytes(value) if isinstance(value, str) else len(value)


def text_bytes(text: str) -> int:
    # For ASCII text the length is the number of bytes, so the slower `encode` is not needed.
    return len(text) if text.isascii() else len(text.encode())


def item_bytes(item: Attributes) -> int:
    """Return the size of an item, as DynamoDB bills it and as its limit of 400 KB counts it."""
    # This runs for each record, so names and texts are measured together.
    texts, size = list(item), 0
    for value in item.values():
        if isinstance(value, str):
            texts.append(value)
        else:
            size += number_bytes(value) if isinstance(value, int) else len(value)
    return size + text_bytes("".join(texts))


def write_units(size_bytes: int) -> int:
    return max(1, -(-size_bytes // limits.WRITE_UNIT_BYTES))


def read_units(size_bytes: int, *, is_strong: bool = True) -> float:
    """Return the units of one Get, or of one page of a Query. An empty response costs a unit,
    too.
    """
    units = max(1, -(-size_bytes // READ_UNIT_BYTES))
    return float(units) if is_strong else units / 2


def billed_chunks(payload_bytes: int) -> int:
    """Return the billed requests of an SQS call, or events of an EventBridge entry: one for each 64
    KB.
    """
    return max(1, -(-payload_bytes // BILLED_CHUNK_BYTES))


def put_units(table: Table, before: Attributes | None, after: Attributes | None) -> int:
    """Return the units of a write that turns `before` into `after`; of a delete when `after` is
    None.

    A refused conditional write costs `refused_units` instead: it never reaches the index.
    """
    units = refused_units(before, after)
    if table.index is not None:
        units += _index_units(table, table.index, before, after)
    return units


def refused_units(before: Attributes | None, after: Attributes | None) -> int:
    return write_units(max(item_bytes(before or {}), item_bytes(after or {})))


def _index_units(
    table: Table, index: TableIndex, before: Attributes | None, after: Attributes | None
) -> int:
    old, new = index_entry(table, index, before), index_entry(table, index, after)
    if old == new:
        return 0
    if old and new and all(old[k] == new[k] for k in (index.partition_key, index.sort_key)):
        return write_units(max(item_bytes(old), item_bytes(new)))
    return sum(write_units(item_bytes(entry)) for entry in (old, new) if entry)


def index_entry(table: Table, index: TableIndex, item: Attributes | None) -> Attributes:
    """Return the index's copy of `item`; {} when the item is not in the index."""
    if item is None or index.partition_key not in item or index.sort_key not in item:
        return {}
    keys = (table.partition_key, table.sort_key, index.partition_key, index.sort_key)
    return {name: item[name] for name in (*keys, *index.projected) if name in item}


@dataclass(slots=True)
class Usage:
    """Counters of billed usage. They are increased when calls happen."""

    write_units: float = 0
    read_units: float = 0
    sqs_send_requests: float = 0
    sqs_deliveries: float = 0
    s3_puts: float = 0
    s3_gets: float = 0
    bus_events: float = 0
    lambda_requests: float = 0
    commits: float = 0
    api_requests: float = 0

    def minus(self, earlier: Usage) -> Usage:
        """Return the usage since `earlier` was copied."""
        names = [field.name for field in fields(self)]
        return Usage(**{name: getattr(self, name) - getattr(earlier, name) for name in names})

    def copy(self) -> Usage:
        return self.minus(Usage())


@dataclass(frozen=True, slots=True)
class Price:
    """A list price: `usd_per_million` units of `Usage.<usage>`, times `factor`."""

    service: str
    what: str
    usage: str
    usd_per_million: float
    source: str
    factor: float = 1.0


_DYNAMODB: Final = "aws.amazon.com/dynamodb/pricing/on-demand (halved November 2024)"
_SQS: Final = "aws.amazon.com/sqs/pricing"
_LAMBDA: Final = "aws.amazon.com/lambda/pricing (arm64)"
_S3: Final = "aws.amazon.com/s3/pricing (Standard)"

PRICES: Final = (
    Price("DynamoDB", "write units", "write_units", 0.625, _DYNAMODB),
    Price("DynamoDB", "read units", "read_units", 0.125, _DYNAMODB),
    Price("SQS", "send requests", "sqs_send_requests", 0.40, _SQS),
    Price("SQS", "delivery requests", "sqs_deliveries", 0.40, _SQS, SQS_REQUESTS_PER_DELIVERY),
    Price("S3", "puts", "s3_puts", 5.0, _S3),
    Price("S3", "gets", "s3_gets", 0.40, _S3),
    Price("EventBridge", "events", "bus_events", 1.0, "aws.amazon.com/eventbridge/pricing"),
    Price("Lambda", "requests", "lambda_requests", 0.20, _LAMBDA),
    Price("Lambda", "GB-seconds", "commits", 13.3334, _LAMBDA, COMMIT_GB_SECONDS),
)
API_PRICE: Final = Price(
    "API Gateway", "HTTP API requests", "api_requests", 1.0, "aws.amazon.com/api-gateway/pricing"
)
STEP_FUNCTIONS_USD_PER_MILLION_TRANSITIONS: Final = 25.0  # aws.amazon.com/step-functions/pricing


@dataclass(frozen=True, slots=True)
class CostLine:
    service: str
    what: str
    count: float
    usd_per_million: float
    usd: float


@dataclass(frozen=True, slots=True)
class Receipt:
    """The cost of a run. `total_usd` is the sum of `lines`. It does not include `apart`, the API's
    own requests.
    """

    lines: tuple[CostLine, ...]
    total_usd: float
    apart: tuple[CostLine, ...]

    def usd_per_million(self, durable_steps: int) -> float:
        return self.total_usd / durable_steps * 1e6 if durable_steps else 0.0


def receipt(usage: Usage) -> Receipt:
    lines = tuple(line for price in PRICES if (line := _line(price, usage)).count)
    apart = tuple(line for line in (_line(API_PRICE, usage),) if line.count)
    return Receipt(lines=lines, total_usd=sum(line.usd for line in lines), apart=apart)


def step_functions_usd(transitions: int) -> float:
    """Return the price of the same run on Step Functions Standard: its transitions, without its
    Lambda tasks.
    """
    return transitions * STEP_FUNCTIONS_USD_PER_MILLION_TRANSITIONS / 1e6


def _line(price: Price, usage: Usage) -> CostLine:
    count = getattr(usage, price.usage) * price.factor
    return CostLine(
        service=price.service,
        what=price.what,
        count=count,
        usd_per_million=price.usd_per_million,
        usd=count * price.usd_per_million / 1e6,
    )
