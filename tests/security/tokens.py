"""Forged callback tokens, and guessed ones. None is accepted, and none costs a read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

from holdfast.errors import RequestError
from holdfast.limits import CALLBACK_SECONDS_MAX
from holdfast.runtime.commands.tokens import (
    FORMAT,
    TOKEN_CHARACTERS_MAX,
    SigningKeys,
    Token,
    make_token,
    require_token,
)
from holdfast.runtime.effects import Clock
from tests.builders import KEYS
from tests.security.cases import Outcome, generator
from tests.security.doors import Doors, Shop, opened

#: From a genuine token, another text. Most keep as much of the genuine one as they can.
Forgery = Callable[[Random, Shop], str]

ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
MEGABYTE: Final = 1_000_000
SECRET: Final = KEYS.secret
RETIRED: Final = b"a key that was dropped, 32 bytes"


def encoded(raw: bytes | str) -> str:
    data = raw if isinstance(raw, bytes) else raw.encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(token: str) -> bytes:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def fields(shop: Shop) -> list[str]:
    """Return tenant, format, key, run, entry, attempt, expiry, MAC."""
    return decoded(shop.token).decode().split(".")


def genuine(shop: Shop) -> Token:
    name, _, _, run, entry, attempt, expires, _ = fields(shop)
    return Token(name, run, int(entry), int(attempt), int(expires))


def now_ms(shop: Shop) -> int:
    return shop.doors.site.shop.world.now_ms


def signed(
    body: str, secret: bytes = SECRET, digest: str = "sha256", domain: str = "token:"
) -> str:
    mac = hmac.new(secret, f"{domain}{body}".encode(), digest).hexdigest()
    return encoded(f"{body}.{mac}")


def body(shop: Shop) -> str:
    return ".".join(fields(shop)[:-1])


def replaced(place: int, make: Callable[[Random, str], str]) -> Forgery:
    """One field is another; the MAC stays."""

    def forge(draw: Random, shop: Shop) -> str:
        found = fields(shop)
        found[place] = make(draw, found[place])
        return encoded(".".join(found))

    return forge


def resigned(place: int, value: str, secret: bytes = SECRET) -> Forgery:
    """Return the token with one other field and a right MAC: only a fault of our own could
    make it.
    """

    def forge(_: Random, shop: Shop) -> str:
        found = fields(shop)[:-1]
        found[place] = value
        return signed(".".join(found), secret)

    return forge


def _flip_bits(draw: Random, shop: Shop) -> str:
    raw = bytearray(decoded(shop.token))
    for bit in draw.sample(range(8 * len(raw)), draw.choice([1, 1, 1, 2, 3, 8])):
        raw[bit // 8] ^= 1 << bit % 8
    return encoded(bytes(raw))


def _change_characters(draw: Random, shop: Shop) -> str:
    text = list(shop.token)
    place = draw.choice([len(text) - 1, draw.randrange(len(text))])
    text[place] = draw.choice(ALPHABET.replace(text[place], ""))
    return "".join(text)


def _insert(draw: Random, shop: Shop) -> str:
    place = draw.randrange(len(shop.token) + 1)
    inserted = draw.choice([" ", "\n", "\r\n", "\x00", "=", "A", ".", "%00", "\u200f", "é", "+"])
    return shop.token[:place] + inserted + shop.token[place:]


def _other_spelling(draw: Random, shop: Shop) -> str:
    """The same bytes, written otherwise: only one text may name one attempt."""
    spare = {0: 0, 2: 4, 3: 2}[len(shop.token) % 4]
    last = ALPHABET.index(shop.token[-1]) ^ (draw.randrange(1, 1 << spare) if spare else 0)
    left_over = shop.token[:-1] + ALPHABET[last]
    padded = shop.token + "=" * (-len(shop.token) % 4)
    standard = shop.token.replace("-", "+").replace("_", "/")
    others = {left_over, padded, standard, shop.token + "=", shop.token + "===="} - {shop.token}
    return draw.choice(sorted(others))


def _truncated(draw: Random, shop: Shop) -> str:
    start, end = sorted(draw.choices(range(len(shop.token)), k=2))
    return draw.choice([shop.token[:end], shop.token[start:end]])


def _noise(draw: Random, shop: Shop) -> str:
    length = draw.choice([0, 1, 2, 3, 4, 10, 200, TOKEN_CHARACTERS_MAX, TOKEN_CHARACTERS_MAX + 1])
    return "".join(draw.choices(ALPHABET, k=length))


def _long(draw: Random, shop: Shop) -> str:
    length = int(MEGABYTE ** draw.random())
    return draw.choice([shop.token + "A" * length, shop.token * (length // len(shop.token) + 2)])


def _jwt(draw: Random, shop: Shop) -> str:
    head = {"alg": draw.choice(["none", "None", "HS256", "RS256"]), "typ": "JWT"}
    claims = {"tenant": shop.name, "run": shop.run, "entry": 0, "attempt": 1}
    return f"{encoded(json.dumps(head))}.{encoded(json.dumps(claims))}."


def _other_digest(draw: Random, shop: Shop) -> str:
    return signed(body(shop), SECRET, draw.choice(["md5", "sha1", "sha512", "sha3_256"]))


def _other_mac(draw: Random, shop: Shop) -> str:
    text, mac = body(shop), fields(shop)[-1]
    bare = hashlib.sha256(text.encode()).hexdigest()
    macs = [mac.upper(), mac[:-1], mac[:32], mac + "0", "", "0" * 64, bare, f" {mac}", f"{mac} "]
    return encoded(f"{text}.{draw.choice(macs)}")


def _other_time(draw: Random, shop: Shop) -> str:
    token = genuine(shop)
    expires_ms = now_ms(shop) - draw.choice([0, 1, 1_000, 86_400_000])
    return make_token(Token(token.tenant, token.run, token.entry, token.attempt, expires_ms), KEYS)


def _other_tenant(draw: Random, shop: Shop) -> str:
    token = genuine(shop)
    name = draw.choice(["acme", "Default", "defaul", "default2", "DEFAULT", "~due", "x" * 64])
    return make_token(Token(name, token.run, token.entry, token.attempt, token.expires_ms), KEYS)


def _digits(draw: Random, text: str) -> str:
    return "".join(chr(draw.choice([0x660, 0x966, 0xFF10]) + int(digit)) for digit in text)


def _number(draw: Random, text: str) -> str:
    return draw.choice([str(int(text) + draw.choice([1, 2, 1_000])), f"-{text}", "", "9" * 300])


FORGERIES: Final[dict[str, Forgery]] = {
    "flipped bits": _flip_bits,
    "another character": _change_characters,
    "an inserted character": _insert,
    "the same bytes spelt otherwise": _other_spelling,
    "a part of it": _truncated,
    "noise": _noise,
    "too long": _long,
    "a token of JWT": _jwt,
    "another tenant": replaced(0, lambda draw, text: draw.choice(["acme", "", text.upper()])),
    "another format": replaced(1, lambda draw, _: draw.choice(["0", "2", "", "none", "01"])),
    "another key": replaced(2, lambda draw, _: draw.choice(["k2", "", "none", "K1", "-", "k1 "])),
    "another run": replaced(3, lambda draw, text: draw.choice([text[::-1], text + "/0/0", ""])),
    "another entry": replaced(4, _number),
    "another attempt": replaced(5, _number),
    "another expiry": replaced(6, _number),
    "digits of another script": replaced(5, _digits),
    "an expiry in another script": replaced(6, _digits),
    "another digest": _other_digest,
    "another MAC": _other_mac,
    "a MAC for something else": lambda _, shop: signed(body(shop), domain="run:"),
    "a MAC without its purpose": lambda _, shop: signed(body(shop), domain=""),
    "a dropped key under the name of ours": lambda _, shop: signed(body(shop), RETIRED),
    "a dropped key": resigned(2, "k0", RETIRED),
    "an empty key": resigned(2, "k0", b""),
    "no key": resigned(2, "", b""),
    "a signed format of tomorrow": resigned(1, "2"),
    "a field too many": lambda _, shop: signed(body(shop) + ".1"),
    "a field too few": lambda _, shop: signed(body(shop).rpartition(".")[0]),
    "an expiry that has come": _other_time,
    "a genuine token of another tenant": _other_tenant,
}

#: Step Functions' names for these errors; its shapes bound the length.
STATES_CODES: Final = {"InvalidToken", "ValidationException", "TaskTimedOut"}


def refused_by_holdfast(shop: Shop, token: object) -> None:
    """The door of our own answers: one answer for all, after no read at all."""
    status, answer = shop.doors.http("POST", "/answers", {"token": token, "output": 1}, shop.who)
    assert (status, answer["error"]["code"]) == (403, "HF230")
    assert answer["error"]["message"] == "the token is not valid here"
    assert shop.doors.seen == []


def refused_by_states(shop: Shop, operation: str, token: object) -> str:
    """Return the code. Nothing is read here either."""
    members = {"SendTaskSuccess": {"output": "1"}, "SendTaskFailure": {"error": "E"}}
    request = {"taskToken": token, **members.get(operation, {})}
    status, answer = shop.doors.states(operation, request, shop.who)
    assert status == 400
    assert all(isinstance(effect, Clock) for effect in shop.doors.seen)
    return str(answer["__type"])


@cache
def a_shop() -> Shop:
    return opened(Doors())


@generator("tokens", full=100_000)
def forged(draw: Random) -> Outcome:
    shop = a_shop()
    token = FORGERIES[draw.choice(sorted(FORGERIES))](draw, shop)
    if token == shop.token:  # a part that is all of it
        token += "A"
    if draw.random() < 0.6:
        refused_by_holdfast(shop, token)
    else:
        operation = draw.choice(["SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"])
        assert refused_by_states(shop, operation, token) in STATES_CODES
    return "refused"


@generator("guesses", full=1_000_000)
def guessed(draw: Random) -> Outcome:
    """All of a token is known but its MAC, or its key, or nothing."""
    shop = a_shop()
    match draw.randrange(4):
        case 0:
            token = encoded(draw.randbytes(draw.randrange(150)))
        case 1:
            expires_ms = now_ms(shop) + draw.randrange(CALLBACK_SECONDS_MAX * 1_000)
            text = f"default.{FORMAT}.k1.{shop.run}.{draw.randrange(9)}.1.{expires_ms}"
            token = encoded(f"{text}.{draw.getrandbits(256):064x}")
        case 2:
            token = make_token(genuine(shop), SigningKeys("k1", {"k1": draw.randbytes(32)}))
        case _:
            token = encoded(f"{body(shop)}.{draw.getrandbits(256):064x}")
    try:
        require_token(token, KEYS, "default", now_ms(shop))
    except RequestError as error:
        assert error.code == "HF230"
        return "refused"
    raise AssertionError(f"a guess was accepted: {token}")
