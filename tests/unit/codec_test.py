"""Records and snapshots as items: values written once, values in S3, refused values."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.results import Results
from holdfast.core.state import Execution
from holdfast.cost import item_bytes
from holdfast.errors import HoldfastBug, HoldfastError, NewerFormatError
from holdfast.limits import RECORD_BYTES_MAX, VALUE_INLINE_BYTES_MAX, WRITE_UNIT_BYTES
from holdfast.runtime.effects import Item, RunTask, TaskSucceeded
from holdfast.runtime.storage.codec import (
    Encoded,
    Header,
    Packer,
    Reader,
    blobs_named_by,
    encode_record,
    with_snapshot,
)
from holdfast.runtime.storage.formats import FORMATS, inflate
from holdfast.runtime.storage.value_book import ValueBook
from holdfast_simulator.invariants import check
from tests.builders import Shop, call, machine
from tests.thorough import examples
from tests.unit.core_kit import START_MS, Case, one


def header(sequence: int = 0, newest_snapshot: int = -1) -> Header:
    return Header(
        format=FORMATS.newest,
        tenant="default",
        run="r1",
        partition="default#r1",
        sequence=sequence,
        nonce=f"w.{sequence}",
        message="m",
        at_ms=START_MS,
        ttl=1,
        newest_snapshot=newest_snapshot,
        listing={},
    )


def noise(length: int, seed: int = 0) -> str:
    """Text that no compression makes smaller than about three quarters."""
    drawn = random.Random(seed).randbytes(length * 3 // 4 + 3)
    return base64.b64encode(drawn, b"xy").decode()[:length]


class Tape:
    """Records written one after the other, as a worker does; read back as another would."""

    def __init__(self) -> None:
        self.book = ValueBook()
        self.items: list[Item] = []
        self.blobs: dict[str, bytes] = {}
        self._written = 0

    def write(self, case: Case, *, snapshot: bool = False) -> Item:
        newest = next((int(item["sn"]) for item in reversed(self.items)), -1)
        head = header(len(self.items), newest)
        encoded = encode_record(head, case.events[self._written :], case.status, self.book)
        if snapshot:
            encoded = with_snapshot(encoded, head, case.state)
        self._written = len(case.events)
        self.book = encoded.book
        self.items.append(encoded.item)
        self.blobs |= {key.rpartition("/")[2]: data for key, data in encoded.blobs.items()}
        return encoded.item

    def read(self) -> Execution | None:
        reader = Reader(self.blobs)
        for item in self.items:
            reader.record(item)
        return reader.state


def units(item: Item) -> int:
    return -(-item_bytes(item) // WRITE_UNIT_BYTES)


def stored(data: Any) -> Encoded:
    case = Case(one(call("ship"))).start(data)
    return encode_record(header(), case.events, case.status, ValueBook())


def read_back(encoded: Encoded) -> Any:
    reader = Reader({key.rpartition("/")[2]: blob for key, blob in encoded.blobs.items()})
    reader.record(encoded.item)
    assert reader.state is not None
    return reader.state.input


# -- values ----------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), max_size=90)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(TEXT | st.sampled_from(["@", "@@", "@@@"]), below, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(150), deadline=None, database=None, derandomize=True)
@given(JSON)
def test_any_json_comes_back_as_it_was(value: Any) -> None:
    found = read_back(stored(value))

    assert found == value
    assert json.dumps(found) == json.dumps(value)  # 1 is not 1.0, and keys keep their order


@pytest.mark.parametrize(
    "value",
    [
        {"@": [0, 0]},
        {"@@": {"@": "x"}},
        {"": 1},
        {"@": 1, "b": 2},
        "s3:" + "0" * 64,
        "line\nbreak\u2028 \x00",
        ["\U0001f600" * 40],
        1e300,
        -0.0,
        10**40,
    ],
)
def test_values_that_look_like_the_format_itself_come_back_as_they_were(value: Any) -> None:
    nested = {"value": value, "again": [value, value]}

    assert json.dumps(read_back(stored(nested))) == json.dumps(nested)


def test_an_order_that_goes_through_ten_states_is_written_once() -> None:
    order = {"id": "o1", "lines": [{"sku": f"s{n}", "text": noise(80, n)} for n in range(100)]}
    states = {
        f"step {n}": call("look", f"step {n + 1}" if n < 9 else None, Output="{% $states.input %}")
        for n in range(10)
    }
    tape, case = Tape(), Case(machine(states)).start(order)
    tape.write(case)
    while not case.state.is_ended:
        case.succeed("seen")
        tape.write(case)
    first, *others = [item_bytes(item) for item in tape.items]

    assert first > 6_000
    assert sum(others) < 10 * WRITE_UNIT_BYTES
    assert tape.read() == case.state


def growing(lists: list[list[Any]], snapshots: set[int]) -> tuple[Tape, Case]:
    """Each list is a state's output, and goes into a record of its own."""
    states = {f"s{n}": call("look", f"s{n + 1}") for n in range(len(lists))}
    tape, case = Tape(), Case(machine({**states, f"s{len(lists)}": {"Type": "Succeed"}})).start()
    for number, output in enumerate(lists):
        case.succeed(output)
        tape.write(case, snapshot=number in snapshots)
    return tape, case


@pytest.mark.parametrize("seed", range(6))
def test_lists_that_grow_side_by_side_come_back_as_they_were(seed: int) -> None:
    draws = random.Random(seed)
    items = [1, True, 1.0, None, "x", "x" * 70, {"@": [0, 0]}, {"a": {"@": 1}}, [], [[1, 2, 3]]]
    kinds: list[list[Any]] = [[], [items[4]], [[0]]]
    lists = []
    for _ in range(60):
        number = draws.randrange(len(kinds))
        more = [draws.choice(items) for _ in range(draws.randrange(4))]
        kinds[number] = [*kinds[number], *more]
        if draws.random() < 0.1:  # one that begins alike and goes on otherwise
            kinds[number] = [*kinds[number][:-1], {"other": seed}]
        if draws.random() < 0.2:  # one that is equal for Python, and not as JSON
            swapped = [1, True]
            kinds[number] = [
                swapped[type(item) is int] if type(item) in (int, bool) and item == 1 else item
                for item in kinds[number]
            ]
        lists.append(kinds[number])
    tape, case = growing(lists, {number for number in range(60) if draws.random() < 0.1})

    reader = Reader(tape.blobs)
    read = [event for item in tape.items for event in reader.record(item).events]
    outputs = [event.details["output"] for event in read if event.type == "TaskSucceeded"]
    assert [json.dumps(output) for output in outputs] == [json.dumps(one) for one in lists]
    assert reader.state == case.state


def test_a_list_that_grows_by_one_item_costs_that_item() -> None:
    items = [{"order": f"{number:06d}", "state": "paid", "sum": 12} for number in range(120)]
    tape, _ = growing([items[: size + 1] for size in range(120)], {60})

    late = [item_bytes(item) for item in tape.items[110:]]
    assert max(late) <= max(item_bytes(item) for item in tape.items[10:20]) + 20


def test_a_value_is_found_again_by_its_content_not_only_by_identity() -> None:
    text = noise(5_000)
    tape, case = Tape(), Case(machine({"a": call("x", "b"), "b": call("y")})).start({"text": text})
    tape.write(case)
    case.succeed(json.loads(json.dumps({"text": text})))

    assert item_bytes(tape.write(case)) < WRITE_UNIT_BYTES
    assert tape.read() == case.state


def test_a_later_record_refers_to_values_of_any_earlier_one() -> None:
    big = {"text": noise(3_000)}
    states = {f"s{n}": call("x", f"s{n + 1}" if n < 3 else None) for n in range(4)}
    tape, case = Tape(), Case(machine(states)).start(1)
    tape.write(case)
    for output in (big, 2, {"again": big}):
        case.succeed(output)
        tape.write(case)

    assert item_bytes(tape.items[1]) > 2_000
    assert item_bytes(tape.items[3]) < WRITE_UNIT_BYTES
    assert tape.read() == case.state


#: The compressed events of one execution, as each format has stored them.
FROZEN = {
    1: "eLuW4zCKpZLBDsIgDIbvewzOmMDGoHsYDsyCEo0z28xOvLuAmzNxJksspCWkNO3/QZj7b5GCoAIrDaC0zqKSViCv"
    "ohkwEsCqmjUtSCcq5OIoWlBY161olBSlEipuUkQZvj8Ho4nsWy2PK3CmQwhJqkcanfEUKZm6/uKu3RSvcqAErfM3"
    "P2aFlrdcB7rQ6Hq0/YGToOkWtVcHc64fP9ltdLMWWWmWucJ+osPZ33dR3VJjJs1+oI5T0OiGwZziiVMOLJtMTget"
    "n6gBoPs=",
    2: "eLsBB85ypZfBDoMgDIbvPgZnl4DWtj6L4aArZp62uF159yHqmAlLTFYIvUBT+pHmR+nxv6EKJcQOexZ0oxNCB2Lq"
    "YD33yOyo0e3AOEItBq4wMEnTDNASQkVAYaqi6zKPI/agVK1F5+7AtfU+dv5NQi7+oB2jO+rH/ayx/iM477O4+WJU"
    "UNU5amsG297p9c0uk00KkmhWMcJ5os/b9DhFNVeNjbT+gTrcIv1cSlMa1tFwWay39g2oAaD7",
    3: "eLtBp/E9U2I0NrJW4oJS1Cp0BzyHwhIdlIYnHLDPQbGBFBe14GA1BHkNxAJ7DCmEIHGilF+UklqkawhWklmihNMg"
    "zFRWnJFZoIQuhVUzLIKilcBhBZs1AUW9hQEYmIGI2NhYAAxdht8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8P"
    "Dw8PD9eOao1u/tduTRMzOopojnUJuG9D0UxLh9VbSXZCdHdHXeMSkw==",
}


@pytest.mark.parametrize("number", FROZEN)
def test_a_record_of_each_format_is_read_for_ever(number: int) -> None:
    case = Case(one(call("ship"))).start({"id": "0f" * 32})
    item = {**stored(1).item, "f": number, "ev": base64.b64decode(FROZEN[number])}
    reader = Reader({})

    assert reader.record(item).events == tuple(case.events)
    assert reader.state == case.state


def test_an_item_of_a_map_costs_few_bytes_for_its_events_repeat_those_of_the_item_before() -> None:
    def size(count: int) -> int:
        pack = {"StartAt": "pack", "States": {"pack": call("pack")}}
        items = {"Type": "Map", "ItemProcessor": pack}
        case = Case(one(items)).start(list(range(count)))
        return item_bytes(encode_record(header(), case.events, "RUNNING", ValueBook()).item)

    assert size(40) - size(20) < 20 * 16


# -- sizes -----------------------------------------------------------------------------------------


def test_a_small_record_is_readable_text_and_a_large_one_is_compressed() -> None:
    assert isinstance(stored({"a": 1}).item["ev"], str)
    assert isinstance(stored({"a": "word " * 1_000}).item["ev"], bytes)


def test_a_value_that_compression_does_not_make_a_unit_smaller_stays_readable() -> None:
    kinds = set()
    for size in range(300, 2_000, 20):
        item = stored({"a": noise(size)}).item
        kinds.add(type(item["ev"]))
        if isinstance(item["ev"], bytes):
            plain = {**item, "ev": inflate(item["ev"], FORMATS.newest)}
            assert units(item) < units(plain)

    assert kinds == {str, bytes}


def test_a_value_over_sixteen_kilobytes_goes_to_a_blob_that_the_record_names() -> None:
    value = {"text": noise(3 * VALUE_INLINE_BYTES_MAX)}
    encoded = stored(value)

    assert item_bytes(encoded.item) <= WRITE_UNIT_BYTES
    assert blobs_named_by(encoded.item) == [key.rpartition("/")[2] for key in encoded.blobs]
    assert read_back(encoded) == value


def test_a_record_too_large_for_an_item_goes_to_a_blob_whole() -> None:
    value = {"texts": [noise(9_000, seed) for seed in range(60)]}
    encoded = stored(value)

    assert "eb" in encoded.item
    assert item_bytes(encoded.item) < RECORD_BYTES_MAX
    assert read_back(encoded) == value


def test_a_megabyte_passes_through_an_execution_unchanged() -> None:
    text = noise(1_000_000)
    states = {
        "a": call("double", "b", Arguments="{% $states.input %}"),
        "b": call("double", Arguments="{% $states.input %}"),
    }

    def swap(effect: RunTask) -> TaskSucceeded:
        return TaskSucceeded({"text": effect.arguments["text"][::-1]})

    shop = Shop(machine(states), tasks=swap)
    history = shop.run({"text": text})

    assert history.state.output == {"text": text}
    assert check(shop.world) == []
    assert max(map(item_bytes, shop.world.services.items("executions"))) <= 3 * WRITE_UNIT_BYTES
    assert shop.world.services.usage.s3_puts > 0


# -- snapshots -------------------------------------------------------------------------------------


def test_a_record_that_is_too_large_with_its_snapshot_has_its_events_in_a_blob() -> None:
    value = {"texts": [noise(9_000, seed) for seed in range(51)]}
    encoded = stored(value)
    assert "ev" in encoded.item
    state = Case(one(call("ship"))).start({"text": noise(20_000)}).state
    whole = with_snapshot(encoded, header(), state)

    assert {"eb", "ss"} <= whole.item.keys()
    assert item_bytes(whole.item) < RECORD_BYTES_MAX
    assert blobs_named_by(whole.item) == [key.rpartition("/")[2] for key in whole.blobs]
    reader = Reader({key.rpartition("/")[2]: blob for key, blob in whole.blobs.items()})
    assert reader.record(whole.item).events[0].details["input"] == value


@pytest.mark.parametrize("size", [10, 5_000, 60_000])
def test_a_snapshot_stands_alone(size: int) -> None:
    states = {
        f"s{n}": call("x", f"s{n + 1}" if n < 4 else None, Assign={f"v{n}": "{% $states.result %}"})
        for n in range(5)
    }
    tape, case = Tape(), Case(machine(states)).start({"text": noise(size)})
    for number in range(4):
        tape.write(case, snapshot=number == 2)
        if number == 2:
            at_snapshot = case.state
        case.succeed({"n": number, "text": noise(size, number % 2)})
    reader = Reader(tape.blobs)
    reader.from_snapshot(tape.items[2])
    assert reader.state == at_snapshot
    reader.record(tape.items[3])

    assert reader.state == tape.read()


def test_a_snapshot_too_large_for_its_item_goes_to_a_blob_whole() -> None:
    case = Case(one(call("x"))).start({"texts": [noise(9_000, seed) for seed in range(6)]})
    tape = Tape()
    item = tape.write(case, snapshot=True)
    reader = Reader(tape.blobs)
    reader.from_snapshot(item)

    assert "sb" in item
    assert reader.state == case.state


def test_records_after_a_snapshot_refer_to_its_values_only() -> None:
    order = {"text": noise(2_000)}
    tape, case = Tape(), Case(machine({"a": call("x", "b"), "b": call("y")})).start(order)
    tape.write(case)
    case.succeed(order)
    tape.write(case, snapshot=True)
    case.succeed(order)

    assert item_bytes(tape.write(case)) < WRITE_UNIT_BYTES
    reader = Reader({})
    reader.from_snapshot(tape.items[1])
    reader.record(tape.items[2])
    assert reader.state == case.state


def test_the_events_beside_a_snapshot_are_read_unless_they_refer_to_values_before_it() -> None:
    order = {"text": noise(2_000)}
    tape, case = Tape(), Case(machine({"a": call("x", "b"), "b": call("y")})).start(order)
    tape.write(case)
    case.succeed(order)
    tape.write(case, snapshot=True)
    case.succeed({"text": noise(2_000, 7)})
    tape.write(case, snapshot=True)
    whole = [Reader({})]
    written = [whole[0].record(item).events for item in tape.items]
    assert all(written)

    for item, expected in ((tape.items[1], ()), (tape.items[2], written[2])):
        reader = Reader({})
        reader.from_snapshot(item)
        assert reader.base(item).events == expected


def test_events_are_left_out_whose_values_hold_an_older_one() -> None:
    order = {"text": noise(2_000)}
    tape, case = Tape(), Case(machine({"a": call("x", "b"), "b": call("y")})).start(order)
    tape.write(case)
    case.succeed({"order": order, "more": noise(50)})
    tape.write(case, snapshot=True)
    case.succeed("done")
    tape.write(case)
    reader = Reader(tape.blobs)
    reader.from_snapshot(tape.items[1])

    assert reader.base(tape.items[1]).events == ()
    assert reader.record(tape.items[2]).events
    assert reader.state == case.state


# -- refusals --------------------------------------------------------------------------------------


def test_a_newer_format_is_refused_with_its_code() -> None:
    item = {**stored(1).item, "f": FORMATS.newest + 1}

    with pytest.raises(NewerFormatError, match="HF301"):
        Reader({}).record(item)


def test_a_blob_with_other_bytes_is_refused() -> None:
    encoded = stored({"text": noise(50_000)})
    changed = {key.rpartition("/")[2]: data + b"!" for key, data in encoded.blobs.items()}

    with pytest.raises(HoldfastBug, match="another hash"):
        Reader(changed).record(encoded.item)


@pytest.mark.parametrize(
    "events",
    [
        '{"Opened": 1}',
        '[["ExecutionStarted", "0", 0, {}, {}]]',
        '[["ExecutionStarted", 0, 0.5, {}, {}]]',
        '[["ExecutionStarted", 0, 0, [], {}]]',
        '[["ExecutionStarted", 0, 0, {}, null]]',
        '[["ExecutionStarted", 0, 0, {}]]',
    ],
)
def test_events_of_another_shape_are_refused_by_a_code_of_ours(events: str) -> None:
    with pytest.raises(HoldfastBug, match="cannot be read"):
        Reader({}).record({**stored(1).item, "f": 2, "ev": events})


@pytest.mark.parametrize(
    "events",
    [
        '{"Opened": 1}',
        "[]",
        '[[["ExecutionStarted", 0]], [0], ["0"], [0]]',
        '[[["ExecutionStarted", 0]], [0], [0], [0.5]]',
        '[[["ExecutionStarted", 0]], [1], [0], [0]]',
        '[[["ExecutionStarted", 0]], [0], [0], [0, 0]]',
        '[[["ExecutionStarted"]], [0], [0], [0]]',
        '[[["ExecutionStarted", "input"]], [0], [0], [0], [1]]',
        '[[["ExecutionStarted", "input", 0]], [0], [0], [0]]',
        '[[["ExecutionStarted", "input", 0]], [0], [0], [0], []]',
        '[[["ExecutionStarted", "input", 0]], [0], [0], [0], [1, 2]]',
        '[[["ExecutionStarted", 0]], [0], [0], [0], [1]]',
        '[[["ExecutionStarted", "input", 0]], [0], [0], [0], {"0": 1}]',
    ],
)
def test_columns_of_another_shape_are_refused_by_a_code_of_ours(events: str) -> None:
    with pytest.raises(HoldfastBug, match="cannot be read"):
        Reader({}).record({**stored(1).item, "ev": events})


GOOD = stored({"text": "word " * 600, "n": 1}).item
SNAPSHOT = with_snapshot(
    stored({"text": "word " * 600}), header(), Case(one(call("x"))).start().state
)
DAMAGE = st.one_of(
    st.none(), st.integers(-5, 5), st.text(max_size=6), st.binary(max_size=6), st.booleans()
)


def damaged(item: Item, attribute: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {key: kept for key, kept in item.items() if key != attribute}
    return {**item, attribute: value}


@settings(max_examples=examples(200), deadline=None, database=None, derandomize=True)
@given(st.sampled_from(sorted(GOOD)), DAMAGE)
def test_a_damaged_record_is_refused_by_a_code_of_ours(attribute: str, value: Any) -> None:
    try:
        Reader({}).record(damaged(GOOD, attribute, value))
    except HoldfastError:
        return


@settings(max_examples=examples(200), deadline=None, database=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_flipped_byte_in_a_record_is_refused_or_harmless(place: int, byte: int) -> None:
    data = GOOD["ev"]
    assert isinstance(data, bytes)
    at = place % len(data)
    try:
        Reader({}).record({**GOOD, "ev": data[:at] + bytes([byte]) + data[at + 1 :]})
    except HoldfastError:
        return


@settings(max_examples=examples(200), deadline=None, database=None, derandomize=True)
@given(st.sampled_from(["sk", "so", "ss", "f", "pk"]), DAMAGE)
def test_a_damaged_snapshot_is_refused_by_a_code_of_ours(attribute: str, value: Any) -> None:
    try:
        Reader({}).from_snapshot(damaged(SNAPSHOT.item, attribute, value))
    except HoldfastError:
        return


def test_a_snapshot_of_a_map_packs_the_new_results_only() -> None:
    items = list(range(1_000))
    results: Results[dict[str, int]] = Results([lane, {"n": lane}] for lane in range(999))
    # Each of these is longer than what a reference replaces.
    long: Results[dict[str, int]] = Results(
        [lane, {f"field {part}": lane for part in range(8)}] for lane in range(999)
    )
    packed: list[int] = []
    book: ValueBook | None = ValueBook()
    texts = []
    for sequence in (0, 1):
        newer = ValueBook()
        packer = Packer(newer, header(sequence), 0, book)
        with mock.patch.object(Packer, "pack", autospec=True, side_effect=Packer.pack) as pack:
            document = {"items": items, "results": results.pairs, "long": long.pairs}
            texts.append((pack(packer, document), packer.lines))
        packed.append(pack.call_count)
        book, results = newer, results.with_result(999, {"n": 999})
    assert packed[0] > 1_000
    # The document, its three lists, and the pair of the new result.
    assert packed[1] < 10
    again = Packer(ValueBook(), header(1))
    assert (again.pack(document), again.lines) == texts[1]
