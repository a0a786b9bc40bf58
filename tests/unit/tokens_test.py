"""Callback tokens, run ids and the grammar of names."""

from __future__ import annotations

import base64

import pytest

from holdfast.errors import RequestError
from holdfast.limits import NAME_CHARACTERS_MAX
from holdfast.runtime.commands.tokens import (
    TOKEN_CHARACTERS_MAX,
    SigningKeys,
    Token,
    make_token,
    require_token,
)
from holdfast.runtime.storage import keys
from tests.builders import KEYS

NOW_MS = 1_800_000_000_000
TOKEN = Token("default", "0" * 26, 3, 2, NOW_MS + 1_000)
SECRET = KEYS.secret


def refused(text: str, signing: SigningKeys = KEYS, now_ms: int = NOW_MS) -> RequestError:
    with pytest.raises(RequestError) as caught:
        require_token(text, signing, "default", now_ms)
    error = caught.value
    assert (error.code, error.status) == ("HF230", 403)
    return error


def test_a_token_contains_its_fields() -> None:
    assert require_token(make_token(TOKEN, KEYS), KEYS, "default", NOW_MS) == TOKEN


def test_a_token_of_a_child_run_keeps_its_dots() -> None:
    child = Token("a-b", f"{'0' * 26}.4.1", 0, 1, NOW_MS + 1)

    assert require_token(make_token(child, KEYS), KEYS, "a-b", NOW_MS) == child


def test_a_token_of_another_tenant_is_as_wrong_as_any() -> None:
    with pytest.raises(RequestError, match="HF230"):
        require_token(make_token(TOKEN, KEYS), KEYS, "other", NOW_MS)


def test_a_token_can_be_a_part_of_a_link() -> None:
    text = make_token(TOKEN, KEYS)

    assert len(text) <= TOKEN_CHARACTERS_MAX
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_no_flipped_bit_passes() -> None:
    text = make_token(TOKEN, KEYS)
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for bit in range(8 * len(raw)):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(base64.urlsafe_b64encode(bytes(flipped)).decode().rstrip("="))


def test_no_part_of_a_token_passes() -> None:
    text = make_token(TOKEN, KEYS)
    for length in range(len(text)):
        refused(text[:length])


@pytest.mark.parametrize(
    "text",
    ["", "x", "=" * 8, "ü" * 40, "\x00", "1.2.3", "A" * (TOKEN_CHARACTERS_MAX + 1), "٣" * 80],
)
def test_a_text_that_is_no_token_gets_the_same_answer(text: str) -> None:
    assert refused(text).message == refused(make_token(TOKEN, KEYS) + "x").message


def test_a_token_ends_with_its_time() -> None:
    text = make_token(TOKEN, KEYS)
    require_token(text, KEYS, "default", NOW_MS + 999)

    refused(text, now_ms=NOW_MS + 1_000)


def test_a_key_is_rotated_without_ending_the_tokens_of_the_old_one() -> None:
    old = make_token(TOKEN, KEYS)
    both = SigningKeys("k2", {"k1": SECRET, "k2": b"another secret of the test......"})

    assert require_token(old, both, "default", NOW_MS) == TOKEN
    assert require_token(make_token(TOKEN, both), both, "default", NOW_MS) == TOKEN
    refused(make_token(TOKEN, both), KEYS)


def test_a_token_signed_with_an_empty_key_is_refused_where_the_key_is_unknown() -> None:
    refused(make_token(TOKEN, SigningKeys("kx", {"kx": b""})))


# -- run ids ---------------------------------------------------------------------------------------


def test_run_ids_sort_by_their_time() -> None:
    chances = [b"\xff" * 8, b"\x00" * 8]
    minted = [
        keys.mint_run("default", ms, chances[ms % 2], SECRET)
        for ms in range(NOW_MS, NOW_MS + 5_000, 7)
    ]

    assert minted == sorted(minted)
    assert all(keys.is_run(run) and len(run) == 26 for run in minted)
    assert keys.minted_ms(minted[0]) == NOW_MS


def test_the_door_knows_the_ids_that_it_minted() -> None:
    run = keys.mint_run("default", NOW_MS, b"12345678", SECRET)
    other = run[:-1] + ("0" if run[-1] != "0" else "1")

    assert keys.is_minted("default", run, SECRET)
    assert not keys.is_minted("default", other, SECRET)
    assert not keys.is_minted("default", run, b"another")
    assert not keys.is_minted("other", run, SECRET)
    assert not keys.is_minted("default", f"{run}.0.1", SECRET)
    assert not keys.is_minted("default", "", SECRET)


# -- names and keys --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * NAME_CHARACTERS_MAX])
def test_names_are_of_a_few_plain_characters(name: str) -> None:
    assert keys.require_name(name, "the name") == name


@pytest.mark.parametrize(
    "name",
    ["", "x" * (NAME_CHARACTERS_MAX + 1), "a b", "a#b", "a/b", "ä", "a\n", "..\x00", 5, None, "٣"],
)
def test_other_names_are_refused_and_shown_shortened(name: str) -> None:
    with pytest.raises(RequestError) as caught:
        keys.require_name(name, "the name")

    assert caught.value.code == "HF201"
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("key", ["", "k" * 1_025, None, 5])
def test_a_business_key_is_text_of_some_length(key: str) -> None:
    with pytest.raises(RequestError, match="HF202"):
        keys.require_business_key(key)


def test_a_business_key_may_hold_anything_and_leads_to_a_key_of_its_own() -> None:
    odd = ["a", "a#b", "a#", "#", "\U0001f600", "k" * 1_024, " a"]
    partitions = {keys.event("default", "paid", keys.require_business_key(key)) for key in odd}

    assert len(partitions) == len(odd)
    assert all(part.count("#") == 3 and len(part) < 100 for part in partitions)


def test_rows_due_by_a_moment_sort_before_its_bound() -> None:
    bound = keys.due_until(5_000)

    assert keys.watch_row(5_000, "zz", "zz") < bound < keys.watch_row(5_001, "a", "a")
    assert keys.timer_row(5_000, "zz", "zz", 9) < bound < keys.timer_row(5_001, "a", "a", 0)
