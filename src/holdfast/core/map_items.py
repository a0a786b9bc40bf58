"""The items of a distributed Map: their fields in the context object, and batches of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from holdfast.asl.program import ItemBatcher, Json
from holdfast.asl.template import Template
from holdfast.core.decision import whole_number
from holdfast.limits import PAYLOAD_BYTES_MAX

#: The value of Map.Item.Source for items that come from the state's input and not from an
#: ItemReader.
STATE_DATA: Final = "STATE_DATA"

#: One item as it is shown in the context object, under `Map.Item`: Index, Value, Source, and Key
#: for the field of an object.
MapItem: TypeAlias = dict[str, Json]


def described(items: list[Json] | dict[str, Json], sources: Iterable[str]) -> list[MapItem]:
    """Return the items as the context object shows them. If the items are the fields of an object,
    each item has the field's name as its Key.
    """
    if isinstance(items, dict):
        fields = enumerate(zip(items.items(), sources, strict=True))
        return [
            {"Index": index, "Key": key, "Value": value, "Source": source}
            for index, ((key, value), source) in fields
        ]
    return [
        {"Index": index, "Value": item, "Source": source}
        for index, (item, source) in enumerate(zip(items, sources, strict=True))
    ]


def default_input(item: MapItem) -> Json:
    """Return the input of a child execution when the Map has no ItemSelector."""
    return {"Key": item["Key"], "Value": item["Value"]} if "Key" in item else item["Value"]


def batched(
    evaluate: Callable[[Template], Json], batcher: ItemBatcher | None, items: Sequence[Json]
) -> tuple[list[Json], list[int]]:
    """Return the inputs of the child executions, and the number of items in each. `evaluate` gives
    the value of a field of the batcher.
    """
    if batcher is None:
        return list(items), [1] * len(items)
    items_max = _bound(evaluate, batcher.items_max, "MaxItemsPerBatch")
    bytes_max = _bound(evaluate, batcher.bytes_max, "MaxInputBytesPerBatch")
    common: Json = None
    if batcher.input is not None:
        common = evaluate(batcher.input)
    around: dict[str, Json] = {} if common is None else {"BatchInput": common}
    # `_split` counts a comma with each item. The first item of a batch has none, so add the size of
    # one comma.
    room = (bytes_max or PAYLOAD_BYTES_MAX) - _bytes({**around, "Items": []}) + len(",")
    batches = list(_split(items, items_max or len(items), room))
    return [{**around, "Items": batch} for batch in batches], [len(batch) for batch in batches]


def _bound(evaluate: Callable[[Template], Json], template: Template | None, where: str) -> int:
    if template is None:
        return 0
    return whole_number(evaluate(template), f"ItemBatcher/{where}")


def _split(items: Iterable[Json], items_max: int, bytes_max: int) -> Iterable[list[Json]]:
    batch: list[Json] = []
    size = 0
    for item in items:
        length = _bytes(item) + len(",")
        if batch and (len(batch) >= items_max or size + length > bytes_max):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield batch


def _bytes(value: Json) -> int:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return len(text.encode(errors="surrogatepass"))
