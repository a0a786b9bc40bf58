"""Callback tokens: only Holdfast makes them, and each opens one attempt of one tenant."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from holdfast.errors import RequestError, ServiceFault
from holdfast.runtime.commands.tokens import (
    KEY_BYTES_MIN,
    TOKEN_CHARACTERS_MAX,
    SigningKeys,
    Token,
    make_token,
    parse_keys,
    require_token,
)
from tests.builders import KEYS
from tests.security.cases import Case, FindingError, each, run_generated
from tests.security.doors import Doors, opened
from tests.security.tokens import (
    FORGERIES,
    a_shop,
    body,
    encoded,
    forged,
    genuine,
    refused_by_holdfast,
    refused_by_states,
    signed,
)
from tests.thorough import examples

# -- forged ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(FORGERIES))
def test_a_forged_token_opens_no_door_and_costs_no_read(kind: str) -> None:
    shop = a_shop()
    before = shop.doors.stored()
    token = FORGERIES[kind](Random(kind), shop)
    refused_by_holdfast(shop, token)
    code = refused_by_states(shop, "SendTaskSuccess", token)

    is_too_long = len(token) > TOKEN_CHARACTERS_MAX
    is_over = kind == "an expiry that has come"
    assert code == (
        "ValidationException" if is_too_long else "TaskTimedOut" if is_over else "InvalidToken"
    )
    assert shop.doors.stored() == before


NO_TEXT: list[Any] = [None, 5, 1.5, True, [], {}, ["a"], {"a": 1}, "", " ", "\u202e", "٣" * 80]


@pytest.mark.parametrize("token", NO_TEXT, ids=repr)
def test_a_text_that_is_no_token_gets_the_answer_of_a_forged_one(token: Any) -> None:
    refused_by_holdfast(a_shop(), token)


def test_a_request_without_a_token_gets_the_answer_of_a_forged_one() -> None:
    doors = a_shop().doors

    assert doors.http("POST", "/answers", {"output": 1})[1]["error"]["code"] == "HF230"


@pytest.mark.parametrize("length", [0, 1, 2_047, 2_048, 2_049, 100_000, 1_000_000])
def test_a_token_of_any_length_is_refused(length: int) -> None:
    refused_by_holdfast(a_shop(), "A" * length)
    refused_by_holdfast(a_shop(), ("é" * length)[:500_000])


def test_a_genuine_token_is_good_until_its_last_millisecond() -> None:
    shop = a_shop()
    token = genuine(shop)
    at_ms = token.expires_ms
    assert require_token(shop.token, KEYS, "default", at_ms - 1_000) == token
    assert require_token(shop.token, KEYS, "default", at_ms - 1) == token

    for late_ms in (0, 1, 1_000):
        with pytest.raises(RequestError, match="HF230"):
            require_token(shop.token, KEYS, "default", at_ms + late_ms)


def test_one_attempt_has_one_text() -> None:
    """Each length of a token leaves other bits over at its end."""
    shop = a_shop()
    for digits in range(1, 4):
        token = replace(genuine(shop), entry=10**digits)
        text = make_token(token, KEYS)
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/="
        same = [
            spelt
            for spelt in [*(text[:-1] + last for last in alphabet), text + "=", text + "=="]
            if spelt != text and _is_read(spelt)
        ]
        assert same == []
        assert encoded(raw) == text


def _is_read(text: str) -> bool:
    try:
        require_token(text, KEYS, "default", 0)
    except RequestError:
        return False
    return True


def test_no_token_of_another_tenant_is_good_here_nor_ours_there() -> None:
    doors = Doors()
    ours, theirs = opened(doors), opened(doors, "acme")

    refused_by_holdfast(ours, theirs.token)
    refused_by_holdfast(theirs, ours.token)
    assert refused_by_states(ours, "SendTaskHeartbeat", theirs.token) == "InvalidToken"
    assert refused_by_states(theirs, "SendTaskFailure", ours.token) == "InvalidToken"


@each(
    Case("another entry", lambda token: replace(token, entry=90), "HF232"),
    Case("another attempt", lambda token: replace(token, attempt=2), "HF232"),
    Case("no such child", lambda token: replace(token, run=token.run + ".0.1"), "HF232"),
)
def test_a_signed_token_without_a_waiting_execution_changes_nothing(case: Case) -> None:
    shop = a_shop()
    before = shop.doors.stored()
    changed: Token = case.given(genuine(shop))
    token = make_token(changed, KEYS)
    status, answer = shop.doors.http("POST", "/answers", {"token": token, "output": 1})

    assert (status, answer["error"]["code"]) == (409, case.code)
    assert shop.doors.stored() == before


def test_a_mistake_in_the_check_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: True)

    with pytest.raises((AssertionError, ValueError)):
        for number in range(50):
            forged(Random(number))


def test_generated_forgeries_are_refused() -> None:
    tally = run_generated("tokens", examples(2_000), seed=1)

    assert (tally.refused, tally.accepted) == (examples(2_000), 0)


def test_guesses_are_refused() -> None:
    assert run_generated("guesses", examples(5_000), seed=1).refused == examples(5_000)


@pytest.mark.parametrize("name", ["tokens", "guesses"])
def test_accepting_a_forged_or_guessed_token_is_a_finding(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine_one = genuine(a_shop())
    for place in ("runtime.commands.answers", "stepfunctions.tasks"):
        monkeypatch.setattr(f"holdfast.{place}.require_token", lambda *_: genuine_one)
    monkeypatch.setattr("tests.security.tokens.require_token", lambda *_: genuine_one)

    with pytest.raises(FindingError, match="--class"):
        run_generated(name, 50, seed=1)


# -- where a token may be seen ---------------------------------------------------------------------


def test_a_token_is_in_no_log_no_metric_and_nothing_stored(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shop = opened(Doors())
    doors = shop.doors
    mac = base64.urlsafe_b64decode(shop.token + "=" * (-len(shop.token) % 4))[-64:].decode()
    for token in (shop.token + "A", shop.token, shop.token):
        doors.http("POST", "/answers", {"token": token, "output": 1})
    doors.http("POST", "/answers", {"token": shop.token, "output": 2})
    doors.states("SendTaskSuccess", {"taskToken": shop.token, "output": "{"})
    doors.site.work()
    history = doors.http("GET", f"/executions/{shop.run}/history")[1]
    seen = capsys.readouterr()
    for place in (seen.out, seen.err, str(history), str(doors.stored()), str(doors.site.faults)):
        assert shop.token not in place
        assert mac not in place


# -- the keys --------------------------------------------------------------------------------------

LONG = "0123456789abcdef" * 4


def keys_text(current: str, **texts: str) -> str:
    return json.dumps({"current": current, "keys": texts})


def test_the_first_secret_is_plain_text() -> None:
    assert parse_keys(LONG) == SigningKeys("1", {"1": LONG.encode()})


def test_tokens_of_both_keys_are_good_while_both_are_listed() -> None:
    other = LONG[::-1]
    first, both = parse_keys(LONG), parse_keys(keys_text("2", **{"1": LONG, "2": other}))
    after = parse_keys(keys_text("2", **{"2": other}))
    token = genuine(a_shop())
    old, new = make_token(token, first), make_token(token, both)

    assert require_token(old, both, "default", 0) == token
    assert require_token(new, both, "default", 0) == token
    assert require_token(new, after, "default", 0) == token
    for text, known in ((old, after), (new, first)):
        with pytest.raises(RequestError, match="HF230"):
            require_token(text, known, "default", 0)


@each(
    Case("empty", "", "shorter than"),
    Case("too short", "x" * (KEY_BYTES_MIN - 1), "shorter than"),
    Case("no JSON", '{"current": ', "it is not"),
    Case("no keys", '{"current": "1"}', "it is not"),
    Case("keys that are a list", '{"current": "1", "keys": ["1"]}', "it is not"),
    Case("a key that is a number", '{"current": "1", "keys": {"1": 5}}', "it is not"),
    Case("a current key that is not there", keys_text("2", **{"1": LONG}), "none of the keys"),
    Case("a current key that is a list", '{"current": [], "keys": {}}', "it is not"),
    Case("a short one among them", keys_text("1", **{"1": LONG, "2": "x"}), "shorter than"),
    Case("an id with a dot", keys_text("a.b", **{"a.b": LONG}), "id is not"),
    Case("an empty id", keys_text("", **{"": LONG}), "id is not"),
)
def test_a_secret_that_cannot_sign_is_refused_without_being_shown(case: Case) -> None:
    with pytest.raises(ServiceFault) as caught:
        parse_keys(case.given)

    assert caught.value.code == "HF326"
    assert case.code in caught.value.message
    assert LONG not in caught.value.message


def test_an_id_that_an_older_key_signed_is_known_while_the_key_is_listed() -> None:
    doors = Doors()
    front = doors.site.shop.front
    start = {"workflow": "flow", "input": {}}
    run = doors.http("POST", "/executions", start)[1]["execution"]
    both = SigningKeys("k2", {"k2": b"x" * 32, "k1": front.keys.secret})
    rotated = replace(front, keys=both)
    dropped = replace(front, keys=SigningKeys("k2", {"k2": b"x" * 32}))

    assert doors.site.host.perform(rotated.describe("default", run))["status"] == "RUNNING"
    with pytest.raises(RequestError, match="HF207"):
        doors.site.host.perform(dropped.describe("default", run))


# -- the time that a comparison takes --------------------------------------------------------------


def separation(first: str, second: str, rounds: int) -> float:
    """Return how often the second takes longer than the first; 0.5: no difference can be
    measured.
    """
    draw, times = Random(0), {first: [0] * rounds, second: [0] * rounds}
    for number in range(rounds):
        for text in draw.sample((first, second), 2):
            began = time.perf_counter_ns()
            _is_read(text)
            times[text][number] = time.perf_counter_ns() - began
    ranked = sorted([(t, 0) for t in times[first]] + [(t, 1) for t in times[second]])
    below, wins, place = 0, 0.0, 0
    while place < len(ranked):  # those of equal length win half
        end, counts = place, [0, 0]
        while end < len(ranked) and ranked[end][0] == ranked[place][0]:
            counts[ranked[end][1]] += 1
            end += 1
        wins += counts[1] * (below + counts[0] / 2)
        below += counts[0]
        place = end
    return wins / rounds**2


def wrong_from(place: int) -> str:
    """Return the token with a MAC that is right up to a place."""
    shop = a_shop()
    mac = list(hmac.new(KEYS.secret, f"token:{body(shop)}".encode(), "sha256").hexdigest())
    for later in range(place, len(mac)):
        mac[later] = "0" if mac[later] != "0" else "1"
    return encoded(f"{body(shop)}.{''.join(mac)}")


def test_how_much_of_a_mac_is_right_cannot_be_measured() -> None:
    # A leak shows each time; other work of the machine does not.
    measured = (separation(wrong_from(0), wrong_from(63), 4_000) for _ in range(3))
    assert any(abs(one - 0.5) < 0.1 for one in measured)


@pytest.mark.slow
def test_how_much_of_a_mac_is_right_cannot_be_measured_in_many_tries() -> None:
    assert abs(separation(wrong_from(0), wrong_from(63), 100_000) - 0.5) < 0.01


def test_a_comparison_that_stops_early_would_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def stops_early(one: str, other: str) -> bool:
        return all(a == b for a, b in zip(one, other, strict=False))

    monkeypatch.setattr(hmac, "compare_digest", stops_early)
    assert separation(wrong_from(0), wrong_from(63), 1_000) > 0.65


def work_of(text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            done.append(name)
            return function(*arguments)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(hmac, "new", noted("MAC", hmac.new))
        patch.setattr(hmac, "compare_digest", noted("compare", hmac.compare_digest))
        with pytest.raises(RequestError):
            require_token(text, KEYS, "default", genuine(a_shop()).expires_ms)
    return done


def test_unknown_wrong_expired_and_foreign_tokens_cost_the_same_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = a_shop()
    foreign = make_token(replace(genuine(shop), tenant="acme"), KEYS)
    unknown = signed(body(shop).replace(".k1.", ".k9."))
    for text in (wrong_from(0), shop.token, foreign, unknown):
        assert work_of(text, monkeypatch) == ["MAC", "compare"]
