"""The differences between formats, `~ctl`, and logs whose format or snapshots are not this
code's.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import pytest

from holdfast.core.state_json import to_json
from holdfast.errors import (
    HoldfastBug,
    NewerFormatError,
    OlderFormatError,
    RequestError,
    SnapshotError,
)
from holdfast.runtime import messages
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Delete, Effect, Item, Put, Query, Replace
from holdfast.runtime.maintenance.dead_letters import StoredDeadLetter, revive
from holdfast.runtime.storage import format_control, formats, keys
from holdfast.runtime.storage.format_control import Control
from holdfast.runtime.storage.formats import FORMATS, Formats, compress, inflate
from holdfast.runtime.storage.log import Log
from holdfast_simulator.services import Services
from tests.builders import chain
from tests.unit.core_kit import START_MS
from tests.unit.host_kit import Context, site
from tests.unit.log_test import commit, next_step, services, started

OLD = Formats(oldest=1, newest=1, asked=1)
BOTH = Formats(oldest=1, newest=2, asked=1)


# -- the formats themselves ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "digest"),
    [(1, "98471b6408487b68"), (2, "280280fb14827697"), (3, "2b471673daab6c5d")],
)
def test_the_words_of_a_format_never_change(number: int, digest: str) -> None:
    """A change would make every stored log unreadable: add a format instead."""
    assert hashlib.sha256(formats._WORDS[number]).hexdigest()[:16] == digest


def test_the_compression_of_one_format_is_closed_to_the_others() -> None:
    data = compress("TaskScheduled TaskSucceeded", 2)

    assert inflate(data, 2) == "TaskScheduled TaskSucceeded"
    with pytest.raises(zlib.error):
        inflate(data, 1)


def test_the_events_of_a_record_are_compressed_by_the_better_strategy_of_zlib() -> None:
    """Twenty labels of random characters between equal words, as a packing step returns them."""
    labels = (hashlib.shake_256(bytes([n])).hexdigest(300) for n in range(20))
    random = "\n".join(f'"{label}"["TaskSucceeded","task:pack"' for label in labels)
    words = " ".join(
        f"{n} words that are in no dictionary of zlib, and come again" for n in range(99)
    )

    for text, most in ((random, 0.93), (words, 1.0)):
        data = formats.compress_well(text, 1)
        assert len(data) <= most * len(compress(text, 1))
        assert inflate(data, 1) == text


@pytest.mark.parametrize("text", ["", "ab" * 15, "ab" * 16 + "c", f'"{"0f" * 300}" and {"9" * 40}'])
def test_hexadecimal_text_takes_half_a_byte_a_digit_and_comes_back_as_it_was(text: str) -> None:
    data = compress(text, 3)

    assert inflate(data, 3) == text
    random = hashlib.shake_256(b"1").hexdigest(2_000)
    assert len(compress(random, 3)) < 2_030


def test_damage_in_hexadecimal_text_is_seen() -> None:
    data = compress("0f" * 300, 3)

    for changed in (data[:-9] + b"x" + data[-8:], data[:-1], data + b"x", data[:-304]):
        with pytest.raises(ValueError, match="not what was compressed"):
            inflate(changed, 3)


def test_this_code_reads_all_formats_and_writes_that_of_the_first_release() -> None:
    assert Formats(oldest=1, newest=3, asked=3) == FORMATS


# -- a log of another format -----------------------------------------------------------------------


def log_of(found: Formats) -> Log:
    return Log("default", "r1", f"release {found.newest}", "m1", found)


def loaded(world: Services, found: Formats) -> Log:
    log = log_of(found)
    run(log.load(), world.perform)
    return log


def written(records: int, found: Formats = BOTH) -> tuple[Services, Log]:
    world, log = services(), log_of(found)
    commit(world, log, started())
    for number in range(1, records):
        commit(world, log, next_step(log, number))
    return world, log


def stored(world: Services) -> list[Item]:
    return world.items("executions")


@pytest.mark.parametrize(("before", "after"), [(1, 2), (1, 3), (2, 3)])
def test_the_first_record_of_a_newer_format_holds_a_snapshot_and_later_ones_need_none(
    before: int, after: int
) -> None:
    world, _ = written(3, FORMATS.asking(before))
    log = loaded(world, FORMATS.asking(after))
    assert log.is_behind
    for number in range(2):
        commit(world, log, next_step(log, number))

    assert [item["f"] for item in stored(world)] == [before] * 3 + [after] * 2
    assert ["so" in item for item in stored(world)] == [False, False, False, True, False]
    assert not log.is_behind
    assert to_json(loaded(world, FORMATS).state) == to_json(log.state)
    assert not loaded(world, FORMATS.asking(after)).is_behind


def test_a_host_with_an_old_setting_does_not_convert_a_log_back() -> None:
    world, _ = written(2, BOTH.asking(2))
    log = loaded(world, BOTH)
    commit(world, log, next_step(log, 9))

    assert [item["f"] for item in stored(world)] == [2, 2, 2]


def test_an_older_release_that_loses_a_race_to_the_new_format_writes_nothing() -> None:
    world, _ = written(2)
    old, new = loaded(world, OLD), loaded(world, BOTH.asking(2))
    assert commit(world, new, next_step(new, 5))

    assert not commit(world, old, next_step(old, 6))
    with pytest.raises(NewerFormatError, match="HF301"):
        loaded(world, OLD)


def test_a_format_that_is_too_old_is_refused_with_its_code() -> None:
    world, _ = written(2)

    with pytest.raises(OlderFormatError, match="HF302"):
        loaded(world, Formats(oldest=2, newest=3, asked=2))


def test_a_dead_letter_of_a_log_that_this_code_cannot_read_is_not_sent_round() -> None:
    world, letter = services(), StoredDeadLetter(messages.recover("default", "0" * 26), "m1")
    world.perform(Put("executions", {"pk": "default#" + "0" * 26, "sk": 0, "f": 2}))

    with pytest.raises(NewerFormatError, match="HF301"):
        run(revive(letter, OLD), world.perform)
    assert world.depth("single") == 0


# -- a snapshot of other code ----------------------------------------------------------------------


def with_foreign_snapshot(records: int, **fields: Any) -> tuple[Services, Log]:
    """Return a log whose last snapshot but one has unknown fields, or lacks one."""
    world, log = written(records)
    commit(world, log, next_step(log, 7), is_aging=True)
    item = dict(stored(world)[-1])
    # The last value is the state, the last line refers to it.
    *lines, state, last = inflate(item["ss"], int(item["f"])).split("\n")  # type: ignore[arg-type]
    document = {**json.loads(state), **fields}
    document = {name: value for name, value in document.items() if value != "gone"}
    item["ss"] = compress("\n".join([*lines, json.dumps(document), last]), int(item["f"]))
    world.perform(Put("executions", item))
    commit(world, log, next_step(log, 8))
    return world, log


@pytest.mark.parametrize(
    "fields",
    [
        {"invented": 1},
        {"started_ms": "gone"},
        {"frames": [{"waiting": {"kind_of_wait": "Invented"}}]},
    ],
)
def test_a_snapshot_that_this_code_does_not_know_is_made_again_from_the_log(
    fields: dict[str, Any],
) -> None:
    world, log = with_foreign_snapshot(4, **fields)
    found = loaded(world, BOTH)

    assert found.state is not None
    assert log.state is not None
    assert to_json(found.state) == to_json(log.state)
    assert len(found.records) == 6
    assert commit(world, found, next_step(found, 9))


def test_an_unknown_snapshot_without_earlier_records_is_refused_with_its_code() -> None:
    world, _ = with_foreign_snapshot(3, invented=1)
    world.perform(Delete("executions", "default#r1", 0))

    with pytest.raises(SnapshotError, match="invented"):
        loaded(world, BOTH)


# -- ~ctl ------------------------------------------------------------------------------------------


def memory() -> Services:
    return Services(lambda: START_MS)


def ask_for(world: Services, number: Any, found: Formats = BOTH) -> Any:
    return run(format_control.ask({"format": number}, found), world.perform)


def test_the_format_of_the_first_release_is_written_until_another_is_requested() -> None:
    assert run(format_control.show(BOTH), memory().perform) == {"format": 1, "readable": [1, 2]}


def test_a_command_is_given_once_and_may_be_repeated() -> None:
    world = memory()

    assert ask_for(world, 2) == ask_for(world, 2) == {"format": 2, "readable": [1, 2]}
    assert run(format_control.show(BOTH), world.perform)["format"] == 2
    (item,) = world.items("mail")
    assert (item["pk"], item["sk"], item["rv"]) == ("~ctl", "-", 1)


@pytest.mark.parametrize("number", [0, 3, "2", True, None, 1.0])
def test_a_format_that_this_code_does_not_read_cannot_be_asked_for(number: Any) -> None:
    world = memory()
    with pytest.raises(RequestError, match="HF250"):
        ask_for(world, number)
    assert world.items("mail") == []


def test_a_format_is_never_taken_back() -> None:
    world = memory()
    ask_for(world, 2)

    with pytest.raises(RequestError, match="HF251"):
        ask_for(world, 1)
    assert run(format_control.show(BOTH), world.perform)["format"] == 2


def test_the_newer_of_two_concurrently_requested_formats_stays() -> None:
    world, newer = memory(), Formats(oldest=1, newest=3, asked=1)
    ask_for(world, 1)
    has_asked = False

    def perform(effect: Effect) -> Any:
        nonlocal has_asked
        if isinstance(effect, Replace) and not has_asked:
            has_asked = True
            ask_for(world, 3, newer)
        return world.perform(effect)

    with pytest.raises(RequestError, match="HF251"):
        run(format_control.ask({"format": 2}, newer), perform)
    assert run(format_control.show(newer), world.perform)["format"] == 3


def test_a_process_looks_once_a_minute() -> None:
    world, process = memory(), Control(BOTH)
    ask_for(world, 2)
    before = world.effects[Query.__name__]
    asked = [
        run(process.look(START_MS + seconds * 1_000), world.perform).asked
        for seconds in (0, 1, 30, 59)
    ]

    assert asked == [2] * 4
    assert world.effects[Query.__name__] - before == 1
    run(process.look(START_MS + 60_000), world.perform)
    assert world.effects[Query.__name__] - before == 2


def test_a_damaged_control_item_is_a_bug_and_no_guess() -> None:
    world = memory()
    world.perform(Put("mail", {"pk": keys.STACK_CONTROL, "sk": keys.ONLY, "f": 1}))

    with pytest.raises(HoldfastBug, match="~ctl"):
        run(Control(BOTH).look(START_MS), world.perform)


# -- the host and the API --------------------------------------------------------------------------


def test_a_host_writes_the_requested_format_from_its_next_minute_on() -> None:
    found = site(chain(1))
    ask_for(found.shop.world.services, 1)
    runs = [found.shop.start({"n": 0}, name="a")]
    found.work()
    assert found.request("POST", "/format", {"format": 2})[0] == 200
    found.shop.world.now_ms += 60_000
    runs.append(found.shop.start({"n": 0}, name="b"))
    found.work()

    assert [found.shop.history(one).items[0]["f"] for one in runs] == [1, 2]


def test_a_host_that_cannot_read_the_requested_format_returns_all_messages_and_sweeps_nothing() -> (
    None
):
    found = site(chain(1))
    item: Item = {"pk": "~ctl", "sk": "-", "f": 1, "format": FORMATS.newest + 1, "at": 0, "rv": 1}
    found.shop.world.services.perform(Put("mail", item))
    found.shop.start({"n": 0})

    assert len(found.work()) == 1
    assert found.shop.world.services.items("executions") == []
    found.host.sweeper(Context())
    assert {type(error) for _, error in found.faults} == {NewerFormatError}


def test_a_host_that_cannot_read_the_control_item_continues_unchanged() -> None:
    found = site(chain(1))
    found.shop.world.services.perform(Put("mail", {"pk": "~ctl", "sk": "-", "f": 1}))
    run_id = found.shop.start({"n": 0})

    assert found.work() == []
    assert found.shop.history(run_id).state.is_ended
    assert [what for what, _ in found.faults] == ["~ctl was not read"]


def test_the_api_shows_the_format_and_takes_a_newer_one_from_operators_alone() -> None:
    found = site(chain(1))
    assert found.request("GET", "/format") == (200, {"format": 3, "readable": [1, 2, 3]})
    ask_for(found.shop.world.services, 1)

    status, answer = found.request("POST", "/format", {"format": 2}, claims={"tenant": "acme"})
    assert (status, answer["error"]["code"]) == (403, "HF252")
    assert found.request("POST", "/format", {"format": 9})[1]["error"]["code"] == "HF250"
    assert found.request("POST", "/format", {"format": 2})[1]["format"] == 2
