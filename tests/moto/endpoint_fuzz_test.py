"""`serve` answers any bytes within a second, and continues to serve.

One seed again, or all from one to another: `python -m tests.moto.endpoint_fuzz_test FIRST [LAST]`.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

import holdfast
from holdfast.local.serve import Served, serving
from holdfast.local.stack import deployment_of
from holdfast.stepfunctions.api import OPERATIONS
from tests.unit import bad_input
from tests.unit.states_kit import PASS, ROLE

pytestmark = pytest.mark.xdist_group("endpoint-fuzz")

ANSWER_SECONDS_MAX: Final = 1.0
#: The machine is shared: a slow answer is asked for again before it counts.
ATTEMPTS_MAX: Final = 3
STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
BODIES: Final = [
    b"", b"{", b"null", b"[]", b"1e999999", b"NaN", b'"x"', b"\xff\xfe", b"\xef\xbb\xbf{}", b"\x00",
    b'{"a": 1, "a": 2}', b'{"name": "\\ud800"}', b'{"name": "\\u0000"}', b"[" * 50_000,
    b'{"a":' * 50_000, b'{"maxResults": ' + b"9" * 10_000 + b"}", b'{"maxResults": 1e400}',
    b'{"name": "' + b"x" * 300_000 + b'"}', b"{}" * 3, b'{"definition": "{"}', b"'", b"{}\n\n",
]  # fmt: skip
TARGETS: Final = [
    "AWSStepFunctions.", "AWSStepFunctions", "", ".", "awsstepfunctions.ListActivities",
    "AWSStepFunctions.ListActivities.x", "DynamoDB_20120810.ListTables",
    "AWSStepFunctions.__init__",
    "AWSStepFunctions.call", "AWSStepFunctions.../../etc", "x" * 5_000, "AWSStepFunctions.\xe9",
]  # fmt: skip
HEADERS: Final = [
    ("Content-Type", "text/plain"), ("Content-Type", "application/x-www-form-urlencoded"),
    ("Content-Encoding", "gzip"), ("Content-Encoding", "aws-chunked"), ("Accept", "x"),
    ("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "gzip"), ("Expect", "100-continue"),
    ("Authorization", "AWS4-HMAC-SHA256 Credential=a/b/c"), ("Authorization", "Bearer x"),
    ("Authorization", "AWS4-HMAC-SHA256 Credential=a/20300101/us-east-1/states/aws4_request"),
    ("Content-Length", "-1"), ("Content-Length", "x"), ("Content-Length", "5"),
    ("Content-Length", "9" * 30), ("Host", "evil.example"), ("Origin", "http://evil.example"),
    ("X-Amz-Date", "never"), ("Cookie", "a=b; " * 500), ("X-Amz-Tagging", "\xff"),
    ("Range", "bytes=x"),
    ("X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), ("Connection", "close"),
]  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(deployment_of([]), port=0) as running:
        states = holdfast.client(running.url)
        for name, kind in (("real", "STANDARD"), ("quick", "EXPRESS")):
            states.create_state_machine(name=name, definition=PASS, roleArn=ROLE, type=kind)
        states.create_activity(name="desk")
        yield running


# -- requests --------------------------------------------------------------------------------------


def a_request(draw: Random, host: str) -> bytes:
    target = f"AWSStepFunctions.{draw.choice(ANSWERED_AT_ONCE)}"
    headers = {"Host": host, "X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"}
    body = a_body(draw, target)
    match draw.randrange(8):
        case 0:
            headers["X-Amz-Target"] = draw.choice(TARGETS)
        case 1 | 2:
            headers |= dict(draw.sample(HEADERS, draw.choice([1, 2])))
        case 3:
            return _cut(draw, _written("POST", "/", headers, body))
        case 4:
            method = draw.choice(
                ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "POST", "BREW", "post"]
            )
            del headers["X-Amz-Target"]
            return _written(method, draw.choice(PATHS), headers, body)
        case _:
            pass
    return _written("POST", draw.choice(["/", "/", "//", "/x?y=%zz"]), headers, body)


PATHS: Final = [
    "/", "/executions", "/events", "/answers", "/workflows", "/executions/x",
    "/executions/x/history",
    "/executions/%2e%2e", "/executions/%zz/stop", "/executions?status=%ff", "*", "/" + "x" * 3_000,
    "http://evil.example/", "/executions/\xe9", "/?Action=x&Credential=y", "/executions?workflow=",
]  # fmt: skip
#: GetActivityTask waits for a minute, as it should.
ANSWERED_AT_ONCE: Final = sorted(set(OPERATIONS) - {"GetActivityTask"})


def a_body(draw: Random, target: str) -> bytes:
    if draw.random() < 0.3:
        return draw.choice(BODIES)
    request = bad_input.request(draw, target.partition(".")[2])
    return bad_input.text_of(draw, request).encode("utf-8", "surrogatepass")


def _written(method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
    sized = {"Content-Length": str(len(body)), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in sized.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def _cut(draw: Random, sent: bytes) -> bytes:
    """Return the request with some of its bytes changed, left out or doubled."""
    made = bytearray(sent)
    for _ in range(draw.choice([1, 2, 5])):
        place = draw.randrange(min(len(made), 400))
        made[place : place + draw.choice([0, 1, 1, 20])] = draw.randbytes(draw.choice([0, 1, 1, 8]))
    return bytes(made)


# -- results ---------------------------------------------------------------------------------------


def exchange(url: str, sent: bytes) -> tuple[bytes, float]:
    """Return everything that the server sends until it disconnects, and the seconds that
    it took.
    """
    address = urlsplit(url)
    assert address.port is not None
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", address.port), timeout=10) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            """It has refused the request before it was sent to the end."""
        answer = bytearray()
        try:
            while piece := connection.recv(65_536):
                answer += piece
        except ConnectionResetError:
            """It hung up on what it had not read; what it said before that is here."""
    return bytes(answer), time.monotonic() - began


def answered(url: str, seed: int) -> str:
    """Return the status of the first answer."""
    host = urlsplit(url).netloc
    for _ in range(ATTEMPTS_MAX):
        sent = a_request(Random(seed), host)
        answer, took_seconds = exchange(url, sent)
        assert b"Traceback" not in answer
        statuses = [int(status) for status in STATUS.findall(answer)]
        # 501 is an unknown service, or an unknown method.
        assert all(status < 500 or status == 501 for status in statuses), answer[:500]
        if took_seconds < ANSWER_SECONDS_MAX:
            return str(statuses[0]) if statuses else "hung up"
    raise AssertionError(f"{took_seconds:.1f} s for {sent[:200]!r}")


def checked(url: str, seeds: range) -> Counter[str]:
    """Return how often each status occurred; a failure names the seed that repeats it."""
    ends = Counter[str]()
    for seed in seeds:
        try:
            ends[answered(url, seed)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return ends


def still_works(served: Served) -> None:
    assert not served.ended.is_set()
    states = holdfast.client(served.url)
    arn = states.create_state_machine(name="after", definition=PASS, roleArn=ROLE)
    execution = states.start_execution(stateMachineArn=arn["stateMachineArn"], input="7")
    deadline = time.monotonic() + 10
    while True:
        found: Any = states.describe_execution(executionArn=execution["executionArn"])
        if found["status"] != "RUNNING":
            break
        assert time.monotonic() < deadline
    assert (found["status"], found["output"]) == ("SUCCEEDED", "7")


def test_bytes_of_any_kind_are_answered(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ends = checked(served.url, range(650))
    assert ends["200"] > 20
    assert ends["400"] > 200
    assert [record.getMessage() for record in caplog.records] == []
    still_works(served)


@pytest.mark.slow
def test_many_bytes_of_any_kind_are_answered(served: Served) -> None:
    checked(served.url, range(1_000, 6_000))
    still_works(served)


if __name__ == "__main__":
    first = int(sys.argv[1])
    last = int(sys.argv[2]) if len(sys.argv) > 2 else first + 1
    with serving(deployment_of([]), port=0) as running:
        print(json.dumps(checked(running.url, range(first, last))))
