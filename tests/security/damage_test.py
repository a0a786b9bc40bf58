"""Damaged stored items: an error code, no guess, no write, and other executions continue."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from holdfast.errors import HoldfastError
from holdfast.runtime import messages
from holdfast.runtime.effects import Delete, Item, RunTask, TaskSucceeded
from holdfast.runtime.storage import formats, keys
from tests.builders import Machine, Shop, call, machine, wait_for
from tests.security.cases import Case, Outcome, each, generator, run_generated
from tests.security.worker_kit import Belt, as_text
from tests.unit.codec_test import noise

BUG, NEWER, LOST = "HF900", "HF301", "HF324"
ROUNDS: Final = 45


def looping_machine() -> Machine:
    """Rounds of a task and a variable, until there are snapshots and blobs; then an event."""
    arguments = {"n": "{% $states.input.n %}", "kept": "{% $states.input.kept %}"}
    again = {"Condition": "{% $states.input.n < 45 %}", "Next": "step"}
    return machine(
        {
            "step": call("step", "more", Arguments=arguments, Assign={"v": "{% $states.result %}"}),
            "more": {"Type": "Choice", "Choices": [again], "Default": "event"},
            "event": wait_for("paid"),
        }
    )


def growing(effect: RunTask) -> TaskSucceeded:
    number = effect.arguments["n"] + 1
    kept = [noise(650, number), noise(24_000, 7) if number % 11 == 0 else ""]
    return TaskSucceeded({"n": number, "kept": [] if number == ROUNDS else kept})


@functools.cache
def _made() -> tuple[Belt, str, str, Callable[[], None]]:
    belt = Belt(looping_machine(), tasks=growing)
    run = belt.start({"n": 0, "kept": noise(3_600)}, "order-1")
    belt.shop.world.now_ms += 1
    other = belt.start({"n": ROUNDS - 2, "kept": []}, "order-2")
    return belt, run, other, belt.save()


def world() -> tuple[Belt, str, str]:
    """Return a stack with a long log, at rest, and another execution beside it: each time
    as new.
    """
    belt, run, other, restore = _made()
    restore()
    belt.shop.world.setting.warm_logs._logs.clear()  # a new process reads every record
    belt.shop.programs.add(belt.shop.definition)
    return belt, run, other


def records(belt: Belt, run: str) -> list[Item]:
    """Oldest first."""
    partition = keys.execution("default", run)
    return [item for item in belt.services.items("executions") if item["pk"] == partition]


def base(belt: Belt, run: str) -> Item:
    """Return the record that a load begins with."""
    found = records(belt, run)
    return found[int(found[-1]["sn"])]


def wake(belt: Belt, run: str) -> Any:
    return belt.deliver(as_text(messages.recover("default", run)))


# -- records ---------------------------------------------------------------------------------------


def change(**attributes: Any) -> Callable[[Item], dict[str, Any]]:
    """None takes the attribute away."""

    def apply(item: Item) -> dict[str, Any]:
        changed = {**item, **attributes}
        return {name: value for name, value in changed.items() if value is not None}

    return apply


def payload(change_text: Callable[[str], str]) -> Callable[[Item], dict[str, Any]]:
    """Changes the events of a record, compressed or not; they are stored as readable text."""

    def apply(item: Item) -> dict[str, Any]:
        stored = item["ev"]
        if isinstance(stored, bytes):
            stored = formats.inflate(stored, int(item["f"]))
        text = str(stored)
        return {**item, "ev": change_text(text)}

    return apply


def events(change_events: Callable[[list[Any]], Any]) -> Callable[[Item], dict[str, Any]]:
    def on_text(text: str) -> str:
        *values, last = text.split("\n")
        return "\n".join([*values, json.dumps(change_events(json.loads(last)))])

    return payload(on_text)


def set_at(number: int, place: int, value: Any) -> Callable[[list[Any]], Any]:
    def apply(found: list[Any]) -> Any:
        found[number][place] = value
        return found

    return apply


RECORDS = [
    Case("no format", change(f=None), BUG),
    Case("format 0", change(f=0), BUG),
    Case("a negative format", change(f=-1), BUG),
    Case("a format that is text", change(f="1"), BUG),
    Case("a newer format", change(f=1_000), NEWER),
    Case("no time", change(at=None), BUG),
    Case("a time that is text", change(at="noon"), BUG),
    Case("no nonce", change(w=None), BUG),
    Case("no message", change(m=None), BUG),
    Case("no snapshot's number", change(sn=None), BUG),
    Case("a snapshot's number that is text", change(sn="x"), BUG),
    Case("a snapshot that is yet to come", change(sn=10**6), BUG),
    Case("no events", change(ev=None), BUG),
    Case("events that are a number", change(ev=7), BUG),
    Case("events that are no JSON", change(ev="[["), BUG),
    Case("events that are bytes of something else", change(ev=b"\x00\x01\x02"), BUG),
    Case("events that are bytes of another dictionary", change(ev=zlib.compress(b"{")), BUG),
    Case("events in a blob that is not there", change(ev=None, eb="0" * 64), BUG),
    Case("a blob named that is not there", change(bl="0" * 64), LOST),
    Case("a life that ends at a text", change(ttl="later"), BUG),
    Case("the beginning cut off", payload(lambda text: text[5:]), BUG),
    Case("the end cut off", payload(lambda text: text[:-5]), BUG),
    Case("a reference to nothing", payload(lambda _: '[["Opened",0,0,{"@":[0,999]},{}]]'), BUG),
    Case("a reference to a text", payload(lambda _: '[["Opened",0,0,{"@":"x"},{}]]'), BUG),
    Case(
        "a value in a blob that is not there", payload(lambda text: f"s3:{'0' * 64}\n{text}"), BUG
    ),
    Case("an object for the events", events(lambda _: {}), BUG),
    Case("a number for an event", events(lambda found: [*found, 5]), BUG),
    Case("an event of three parts", events(lambda found: [found[0][:3]]), BUG),
    Case("an event of an unknown type", events(set_at(0, 0, "Invented")), BUG),
    Case("an event whose type is a list", events(set_at(0, 0, [])), BUG),
    Case("an event without details", events(set_at(0, 3, None)), BUG),
    Case("an event of no time", events(set_at(0, 2, None)), BUG),
    Case("an event in an unknown line", events(set_at(0, 4, {"frame": "9.9"})), BUG),
    Case("a second beginning", events(lambda found: [["ExecutionStarted", 0, 0, {}, {}]]), BUG),
]


def refused(belt: Belt, run: str, other: str, code: str) -> None:
    """Check that the execution stops with the code for every reader, and the other one
    continues.
    """
    before = belt.stored()
    answer = wake(belt, run)
    assert answer.came_back == (0,)
    assert belt.stored() == before
    if code == NEWER:
        assert belt.hidden[-1:] == [60]
    else:
        assert answer.codes == [code]
    with pytest.raises(HoldfastError) as shown:
        belt.shop.describe(run)
    assert shown.value.code == code
    belt.shop.world.now_ms += 40 * 60_000
    hurt = records(belt, run)
    assert set(belt.sweep().codes) <= {code}
    assert records(belt, run) == hurt
    assert wake(belt, other).came_back == ()


@each(*RECORDS)
def test_a_damaged_record_stops_its_own_execution_with_a_code(case: Case) -> None:
    belt, run, other = world()
    newest = records(belt, run)[-1]
    belt.put("executions", case.given(newest))
    refused(belt, run, other, case.code)


SNAPSHOTS = [
    Case("no snapshot", change(ss=None), BUG),
    Case("a snapshot that is text", change(ss="{}"), BUG),
    Case("a snapshot of other bytes", change(ss=b"\x00" * 20), BUG),
    Case("a snapshot in a blob that is not there", change(ss=None, sb="0" * 64), BUG),
    Case("no first number", change(so=None), BUG),
    Case("another first number", change(so=10**6), BUG),
    Case("a first number that is text", change(so="x"), BUG),
    Case("an older record's number for its snapshot", change(sn=0), BUG),
]


@each(*SNAPSHOTS)
def test_a_damaged_snapshot_stops_its_own_execution_with_a_code(case: Case) -> None:
    belt, run, other = world()
    assert "ss" in base(belt, run)
    belt.put("executions", case.given(base(belt, run)))
    refused(belt, run, other, case.code)


def test_a_snapshot_that_ends_too_early_is_not_taken_for_a_whole_one() -> None:
    belt, run, other = world()
    whole = base(belt, run)
    data = whole["ss"]
    assert isinstance(data, bytes)
    for kept in range(len(data) - 8, len(data)):
        belt.put("executions", {**whole, "ss": data[:kept]})
        assert wake(belt, run).codes == [BUG]
    belt.put("executions", {**whole, "ss": data + b"!"})
    refused(belt, run, other, BUG)


@pytest.mark.parametrize("back", [1, 2, 3])
def test_a_history_with_a_hole_is_not_read_over_it(back: int) -> None:
    belt, run, other = world()
    found = records(belt, run)
    assert int(found[-1]["sn"]) < len(found) - 1 - back
    belt.take_away("executions", found[-1 - back])
    refused(belt, run, other, BUG)


def test_a_history_whose_base_is_gone_is_not_read_without_it() -> None:
    belt, run, other = world()
    belt.take_away("executions", base(belt, run))
    refused(belt, run, other, BUG)


def test_a_history_with_a_record_of_another_in_it_is_refused() -> None:
    belt, run, other = world()
    newest = records(belt, run)[-1]
    belt.put("executions", {**records(belt, other)[0], "pk": newest["pk"], "sk": newest["sk"]})
    refused(belt, run, other, BUG)


def test_the_api_does_not_show_a_history_with_a_hole_in_it() -> None:
    belt, run, _ = world()
    belt.take_away("executions", records(belt, run)[4])
    with pytest.raises(HoldfastError) as refusal:
        belt.shop.insist(lambda: belt.shop.front.history("default", run))

    assert refusal.value.code == BUG


# -- blobs -----------------------------------------------------------------------------------------

BLOBS = [
    Case("other bytes", lambda data: b"!" + data[1:], BUG),
    Case("fewer bytes", lambda data: data[:-1], BUG),
    Case("more bytes", lambda data: data + b"!", BUG),
    Case("no bytes", lambda _: b"", BUG),
    Case("another value", lambda _: zlib.compress(b'"other"'), BUG),
    Case("nothing", lambda _: None, LOST),
]


@each(*BLOBS)
def test_a_damaged_blob_stops_its_own_execution_with_a_code(case: Case) -> None:
    belt, run, other = world()
    needed = records(belt, run)[int(base(belt, run)["sk"]) :]
    named = next(str(item["bl"]) for item in needed if "bl" in item).split(",")
    replace_blob(belt, f"default/{run}/{named[0]}", case.given)
    refused(belt, run, other, case.code)


def replace_blob(belt: Belt, key: str, damage: Callable[[bytes], bytes | None]) -> None:
    data = damage(belt.services._blobs.pop(key))
    if data is not None:
        belt.services._blobs[key] = data


# -- mail, rows and definitions --------------------------------------------------------------------


def stored_mail(belt: Belt, kind: str) -> Item:
    return next(item for item in belt.services.items("mail") if str(item["sk"]).startswith(kind))


MAIL = [
    Case("no format", change(f=None), BUG),
    Case("a newer format", change(f=1_000), NEWER),
    Case("no time", change(at=None), BUG),
    Case("a time that is text", change(at="noon"), BUG),
    Case("no end", change(expires=None), BUG),
    Case("an end that is text", change(expires="never"), BUG),
    Case("no value", change(v=None), BUG),
    Case("a value that is no JSON", change(v="{"), BUG),
    Case("a value that is no number", change(v="NaN"), BUG),
    Case("a value nested 100,000 levels", change(v="[" * 100_000), BUG),
    Case("a value that is bytes", change(v=b"\xff"), BUG),
    Case("a value in a blob that is not there", change(v=None, ref="0" * 64), LOST),
]


@each(*MAIL)
def test_a_damaged_event_is_not_applied(case: Case) -> None:
    belt, run, _ = world()
    belt.shop.send_event(data={"paid": True})
    belt.put("mail", case.given(stored_mail(belt, "e#")))
    hurt = records(belt, run)
    answer = belt.deliver(as_text(messages.wake_mail("default", run, "e")))

    assert answer.came_back == (0,)
    assert answer.codes == ([] if case.code == NEWER else [case.code])
    assert records(belt, run) == hurt


def test_a_value_from_outside_with_a_changed_blob_is_refused() -> None:
    belt, run, _ = world()
    belt.shop.send_event(data={"text": noise(300_000)})
    (key,) = [key for key in belt.services.blobs() if "/events/" in key]
    replace_blob(belt, key, lambda _: b'{"text":"forged"}')
    hurt = records(belt, run)
    answer = belt.deliver(as_text(messages.wake_mail("default", run, "e")))

    assert (answer.came_back, answer.codes) == ((0,), [BUG])
    assert records(belt, run) == hurt


ROWS = [
    Case("no format", change(f=None), BUG),
    Case("a newer format", change(f=2), NEWER),
    Case("no tenant", change(t=None), BUG),
    Case("no run", change(run=None), BUG),
    Case("no sequence", change(seq=None), BUG),
    Case("a sequence that is text", change(seq="x"), BUG),
    Case("an entry that is text", change(entry="x", due=5), BUG),
    Case("a timer without its time", change(entry=1), BUG),
    Case("a timer whose time is text", change(entry=1, due="noon"), BUG),
]


@each(*ROWS)
def test_a_damaged_row_is_reported_and_hides_no_other(case: Case) -> None:
    belt, run, other = world()
    _unregister(belt)
    damaged = _watch_row(belt, run)
    belt.put("mail", case.given({**damaged, "pk": _watch_row(belt, other)["pk"]}))
    belt.shop.world.now_ms += 200 * 60_000
    answer = belt.sweep()

    assert answer.codes == [case.code]
    found = [item["body"] for item in _sent(belt)]
    assert {body["run"] for body in found} >= {other}


@pytest.mark.parametrize("key", ["!", "x#y", "-5#default", "\u0660" * 15 + "#default", " ", "0"])
def test_a_row_with_an_invalid_key_hides_no_other(key: str) -> None:
    belt, run, other = world()
    _unregister(belt)
    row = _watch_row(belt, other)
    belt.put("mail", {"pk": row["pk"], "sk": key})
    belt.shop.world.now_ms += 200 * 60_000
    codes = belt.sweep().codes

    assert set(codes) <= {BUG}
    assert {item["body"]["run"] for item in _sent(belt)} == {run, other}


def _unregister(belt: Belt) -> None:
    """Delete the registrations for events, so that each execution needs a worker."""
    for item in belt.services.items("mail"):
        if str(item["sk"]).startswith(keys.REGISTRATION_PREFIX):
            belt.services.perform(Delete("mail", str(item["pk"]), str(item["sk"])))


def _watch_row(belt: Belt, run: str) -> Item:
    return next(
        item for item in belt.services.items("mail") if str(item["sk"]).endswith(f"#{run}#w")
    )


def _sent(belt: Belt) -> list[dict[str, Any]]:
    return [{"body": received.body} for received in belt.services.receive("work")]


DEFINITIONS = [
    Case("no format", change(f=None), BUG),
    Case("a newer format", change(f=3), NEWER),
    Case("no document", change(doc=None), BUG),
    Case("a document that is text", change(doc="{}"), BUG),
    Case("a document of other bytes", change(doc=b"\x00" * 9), BUG),
    Case("a document that is no JSON", change(doc=zlib.compress(b"{")), BUG),
    Case("a document of one part", change(doc=zlib.compress(b"[{}]")), BUG),
    Case("another definition", change(doc=zlib.compress(b'[{"StartAt": "x"}, {}]')), BUG),
]


@each(*DEFINITIONS)
def test_a_damaged_definition_runs_nothing(case: Case) -> None:
    belt, run, _ = world()
    (found,) = [item for item in belt.services.items("mail") if "#def#" in str(item["pk"])]
    belt.put("mail", case.given(found))
    belt.shop.programs.definitions.clear()
    belt.shop.programs._programs.clear()
    hurt = records(belt, run)
    answer = wake(belt, run)

    assert answer.came_back == (0,)
    assert answer.codes == ([] if case.code == NEWER else [case.code])
    assert records(belt, run) == hurt


# -- generated -------------------------------------------------------------------------------------

_JUNK: Final[list[Any]] = [None, "", "x", 0, -1, 1, 2**63, b"", b"\x00\xff", "[]", "{}", "0" * 64]


@generator("stored items", full=20_000)
def damage(draw: Random) -> Outcome:
    """One attribute, byte, record, blob or row is not as it was written."""
    belt, run, other = world()
    is_shared = False
    match draw.randrange(6):
        case 0 | 1:
            item = draw.choice(records(belt, run)[int(records(belt, run)[-1]["sn"]) :])
            belt.put("executions", _hurt(draw, item, {"pk", "sk"}))
        case 2:
            item = draw.choice(records(belt, run)[int(records(belt, run)[-1]["sn"]) :])
            belt.take_away("executions", item)
        case 3:
            mine = [key for key in belt.services.blobs() if key.startswith(f"default/{run}/")]
            replace_blob(belt, draw.choice(mine), lambda data: _flipped(draw, data))
        case 4:
            is_shared = True  # both wait for it
            belt.shop.send_event(data={"paid": True})
            belt.put("mail", _hurt(draw, stored_mail(belt, "e#"), {"pk", "sk"}))
        case _:
            belt.put("mail", _hurt(draw, _watch_row(belt, run), {"pk", "sk"}))
            belt.shop.world.now_ms += 200 * 60_000
            assert all(code.startswith("HF") for code in belt.sweep().codes)
    hurt = records(belt, run)
    before = belt.stored()
    answer = belt.deliver(as_text(messages.wake_mail("default", run, "e")))
    assert all(isinstance(fault, HoldfastError) for fault in answer.faults), answer.faults
    if answer.came_back:
        assert belt.stored() == before
        assert answer.faults or belt.hidden
    else:
        assert _unlisted(records(belt, run)[: len(hurt)]) == _unlisted(hurt)
    assert is_shared or wake(belt, other).came_back == ()
    return "refused" if answer.came_back else "accepted"


def _unlisted(items: list[Item]) -> list[dict[str, Any]]:
    """An execution that ends leaves the list; nothing else of a record ever changes."""
    return [{key: item[key] for key in item if key not in {"lp", "ls"}} for item in items]


def _hurt(draw: Random, item: Item, kept: set[str]) -> dict[str, Any]:
    name = draw.choice(sorted(set(item) - kept))
    value = item[name]
    if draw.random() < 0.5:
        found = draw.choice(_JUNK)
    elif isinstance(value, bytes):
        found = _flipped(draw, value)
    elif isinstance(value, str):
        at = draw.randrange(len(value) + 1)
        found = value[:at] + draw.choice(["", "x", "0", '"', "\x00"]) + value[at + 1 :]
    else:
        found = value + draw.choice([-1, 1, -(10**6), 10**12])
    return {key: part for key, part in {**item, name: found}.items() if part is not None}


def _flipped(draw: Random, data: bytes) -> bytes:
    at = draw.randrange(len(data))
    match draw.randrange(3):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + data[at + 1 :]
        case _:
            return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]


def test_no_generated_damage_breaks_anything() -> None:
    tally = run_generated("stored items", 60, seed=1)

    assert tally.refused > 20


def test_the_shop_that_is_damaged_has_snapshots_and_blobs() -> None:
    belt, run, _ = world()

    assert 0 < int(records(belt, run)[-1]["sn"]) < len(records(belt, run)) - 4
    assert len(belt.services.blobs()) > 1
    assert isinstance(Shop(looping_machine()), Shop)
