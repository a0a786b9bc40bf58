"""Bodies and payloads, as bytes, that no client sends on purpose."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any, Final

from tests.security.cases import Outcome, generator
from tests.security.doors import Doors, Shop, opened
from tests.unit import bad_input

#: Each where a value may stand. No JSON, or JSON that cannot be kept.
BAD_VALUES: Final[list[bytes]] = [
    b"NaN", b"Infinity", b"-Infinity", b"nan", b"1e400", b"-1e400", b"1e999999999", b"9" * 309,
    b"9" * 5_000, b"01", b"+1", b".5", b"1.", b"0x10", b"1_000", b"1e", b"--1", b"\xd9\xa1",
    b'"\\ud800"', b'"\\udfff\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b'"\xc0\x80"', b'"\xe2\x82"',
    b'"\xf4\x90\x80\x80"', b'"\\u12"', b'"\\x41"', b'"a\nb"', b'"\x00"', b'"a', b"'a'", b"a",
    b"True", b"None", b"undefined", b"[1,]", b"[,1]", b"[1 2]", b"{,}", b'{"a"}', b'{"a":}',
    b"{a: 1}", b"{1: 2}", b'{"a": 1,}', b'{"a": 1, "a": 2}', b'{"\\ud800": 1}', b"/* x */ 1",
    b"1 // x", b"[" * 65 + b"]" * 65, b'{"a":' * 70 + b"1" + b"}" * 70, b"[" * 2_000,
    b"[" * 2_000 + b"]" * 2_000, b"]", b"}", b"",
]  # fmt: skip
GOOD_VALUES: Final[list[bytes]] = [
    b"1", b"-0", b"-0.0", b"1e308", b"1e-400", b"9007199254740993", b"9" * 308, b"0.1e1", b"true",
    b"null", b'""', b'"\\u0000"', b'"\\ud83d\\ude00"', b'"\\u202e"', b'"\xf0\x9f\x98\x80"',
    b'{"": 1}', b'{"__proto__": 1}', b"[]", b"{}", b"[" * 61 + b"]" * 61,
    b'"' + b"x" * 9_999 + b'"',
]  # fmt: skip
ENCODINGS: Final = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig")
#: Status and code for an invalid body, or one with values that cannot be stored.
CODES: Final = {(400, "HF242"), (400, "HF243"), (413, "HF241"), (413, "HF203")}

#: How each door takes a value: path, and the body around it.
AROUND: Final[dict[str, tuple[bytes, bytes]]] = {
    "/executions": (b'{"workflow": "flow", "input": ', b"}"),
    "/events": (b'{"name": "paid", "key": "k1", "data": ', b"}"),
    "/answers": (b'{"token": "no", "output": ', b"}"),
}


def around(path: str, value: bytes) -> bytes:
    before, after = AROUND[path]
    return before + value + after


def a_value(draw: Random, levels: int = 3) -> bytes:
    """Return text of a value; about one in three is no JSON, or cannot be kept."""
    match draw.randrange(10):
        case 0:
            return draw.choice(BAD_VALUES)
        case 1 | 2 if levels:
            return b"[%b]" % b",".join(a_value(draw, levels - 1) for _ in range(draw.randrange(4)))
        case 3 | 4 if levels:
            keys = draw.choices(["a", "b", "", "\u00e9", "\\ud800", "@", "x" * 200], k=2)
            pairs = [b'"%b":%b' % (key.encode(), a_value(draw, levels - 1)) for key in keys]
            return b"{%b}" % b",".join(pairs[: draw.randrange(3)])
        case 5:
            return json.dumps(bad_input.junk(draw)).encode()
        case 6:
            depth = int(10 ** (draw.random() * 4))
            return b"[" * depth + b"]" * draw.choice([depth, depth, depth - 1])
        case 7:
            return b"%b%b" % (
                draw.choice([b"", b"-", b"1e"]),
                b"7" * int(10 ** (draw.random() * 5)),
            )
        case _:
            return draw.choice(GOOD_VALUES)


def a_body(draw: Random, path: str) -> bytes:
    body = around(path, a_value(draw))
    match draw.randrange(12):
        case 0:
            return body[: draw.randrange(len(body) + 1)]
        case 1:
            place = draw.randrange(len(body) + 1)
            return body[:place] + draw.randbytes(draw.choice([1, 2, 8])) + body[place:]
        case 2:
            return body.decode(errors="replace").encode(draw.choice(ENCODINGS))
        case 3:
            return draw.choice(BAD_VALUES + GOOD_VALUES)
        case 4:
            return draw.randbytes(draw.randrange(40))
        case _:
            return body


def is_kept(raw: bytes) -> bool:
    """Return True when the body is an object that can be stored, by rules written for this test."""
    try:
        value = json.loads(
            raw.decode("utf-8") or "{}", object_pairs_hook=_pairs, parse_constant=_refuse
        )
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
        value = json.loads(text, parse_int=_small)
    except (ValueError, RecursionError, OverflowError):
        return False
    return isinstance(value, dict) and _depth(value) <= 64


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError
    return {key: value for key, value in pairs}  # noqa: C416


def _refuse(_: str) -> None:
    raise ValueError


def _small(text: str) -> int:
    float(int(text))
    return int(text)


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max([_depth(item) for item in inner], default=0)


@cache
def a_shop() -> Shop:
    return opened(Doors())


@generator("payloads", full=20_000)
def sent(draw: Random) -> Outcome:
    """Check that every operation refuses a value that cannot be stored, and that a refusal stores
    nothing.
    """
    doors = a_shop().doors
    if draw.random() < 0.3:
        return started(doors, a_value(draw))
    path = draw.choice(sorted(AROUND))
    raw = a_body(draw, path)
    status, answer = doors.http("POST", path, raw)
    if status < 300:
        assert is_kept(raw)
        return "accepted"
    assert (status, answer["error"]["code"]) in CODES or is_kept(raw)
    assert doors.wrote() == []
    return "refused"


def started(doors: Doors, value: bytes) -> Outcome:
    """The input of a state machine is JSON in JSON."""
    text = value.decode(errors="replace")
    request = {"stateMachineArn": a_shop().machine_arn, "input": text}
    status, answer = doors.states("StartExecution", request)
    if status == 200:
        return "accepted"
    assert answer["__type"] in {"InvalidExecutionInput", "ValidationException"}
    assert doors.wrote() == []
    return "refused"
