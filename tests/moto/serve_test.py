"""`serve` as an HTTP server: its refusals, and that no input crashes it."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast.cli import main
from holdfast.limits import BODY_BYTES_MAX
from holdfast.local import project
from holdfast.local.project import STATE
from holdfast.local.stack import LocalStack

pytestmark = pytest.mark.xdist_group("serve")

ROOT = Path(__file__).parents[2]
FORM = "application/x-www-form-urlencoded"


def call(
    url: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, Any]:
    status, answer = answered(url, method, path, body, **headers)
    return status, json.loads(answer)


def answered(
    url: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    address = urlsplit(url)
    assert address.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def exchange(url: str, sent: bytes) -> bytes:
    """Return everything that the server sends in answer to these bytes before it disconnects."""
    address = urlsplit(url)
    assert address.port is not None
    with socket.create_connection(("127.0.0.1", address.port), timeout=10) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def code_of(answer: Any) -> str:
    return str(answer["error"]["code"])


def test_the_workflows_of_the_modules_are_served(url: str) -> None:
    status, answer = call(url, "GET", "/workflows")
    assert status == 200
    assert {workflow["workflow"] for workflow in answer["workflows"]} == {
        "order_fulfilment",
        "loan_approval",
        "document_signing",
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/nowhere", None, 404, "HF208"),
        ("PUT", "/executions", b"{}", 404, "HF208"),
        ("POST", "/executions", b'{"workflow":', 400, "HF242"),
        ("POST", "/executions", b"[1]", 400, "HF242"),
        ("POST", "/executions", b"\xff\xfe", 400, "HF242"),
        ("POST", "/executions", b'{"workflow": 7}', 404, "HF205"),
        ("POST", "/executions", b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", 400, "HF243"),
        ("POST", "/executions", b'{"a": "\\ud800"}', 400, "HF243"),
        ("POST", "/events", b'{"name": "nonsense", "key": "k"}', 404, "HF206"),
        ("POST", "/events", b'{"name": "bank.confirmed", "key": ""}', 400, "HF202"),
        ("POST", "/answers", b'{"token": "forged", "output": 1}', 403, "HF230"),
        ("GET", "/executions?status=BORED", None, 400, "HF204"),
    ],
)
def test_a_wrong_request_gets_a_status_and_a_code(
    url: str, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    found, answer = call(url, method, path, body)
    assert (found, code_of(answer)) == (status, code)


def test_a_body_over_the_limit_is_refused_before_it_is_read(url: str) -> None:
    status, answer = call(url, "POST", "/executions", b"x" * (BODY_BYTES_MAX + 1))
    assert (status, code_of(answer)) == (413, "HF241")
    # It says how much is to come and sends nothing: the answer does not wait for it.
    announced = b"POST /events HTTP/1.1\r\nHost: %s\r\nContent-Length: 99999999999\r\n\r\n"
    assert b"413" in exchange(url, announced % urlsplit(url).netloc.encode()).split(b"\r\n")[0]


@pytest.mark.parametrize(
    "headers",
    [b"Content-Length: many\r\n", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n"],
)
def test_an_invalid_length_is_refused(url: str, headers: bytes) -> None:
    host = urlsplit(url).netloc.encode()
    answer = exchange(url, b"POST /events HTTP/1.1\r\nHost: " + host + b"\r\n" + headers + b"\r\n")
    assert re.match(rb"HTTP/1.1 4(00|11) ", answer)
    assert b"HF279" in answer


@pytest.mark.parametrize(
    "sent", [b"GARBAGE\r\n\r\n", b"BREW / HTTP/1.1\r\n\r\n", b"GET / HTTP/9\r\n\r\n"]
)
def test_a_malformed_request_is_refused_in_json(url: str, sent: bytes) -> None:
    assert b'{"error": {"code": "HF279"' in exchange(url, sent)
    assert call(url, "GET", "/workflows")[0] == 200


def test_a_web_page_cannot_talk_to_it(url: str) -> None:
    """Neither from its own origin, nor under a name of its own that leads to this machine."""
    for headers in ({"Origin": "https://shop.example"}, {"Host": "shop.example"}):
        status, answer = call(url, "POST", "/events", b"{}", **headers)
        assert (status, code_of(answer)) == (403, "HF278")


def test_a_web_page_cannot_have_a_service_act_by_a_link(url: str) -> None:
    """A browser says of an image that another site asks for it; an origin it names only to read."""
    scope = "X-Amz-Credential=any/20260101/us-east-1/sqs/aws4_request"
    link = f"/?Action=CreateQueue&QueueName=planted&Version=2012-11-05&{scope}"
    for site in ("cross-site", "same-site"):
        status, answer = call(url, "GET", link, Sec_Fetch_Site=site)
        assert (status, code_of(answer)) == (403, "HF278")
    assert call(url, "GET", "/workflows", Sec_Fetch_Site="none")[0] == 200


@pytest.mark.parametrize("service", ["s3", "sqs", "lambda", "execute-api"])
def test_a_link_to_a_form_reaches_no_service(url: str, service: str) -> None:
    """Another site may lead to a form, but not with a signature in the link."""
    link = f"/forms/any?X-Amz-Credential=any/20260101/us-east-1/{service}/aws4_request"
    status, page = answered(url, "GET", link, Sec_Fetch_Site="cross-site")
    if service == "execute-api":  # a signature for the routes of forms themselves
        assert b"<!doctype html>" in page
    else:
        assert (status, code_of(json.loads(page))) == (403, "HF278")
    assert (
        answered(url, "GET", "/forms/any?AWSAccessKeyId=a", Sec_Fetch_Site="cross-site")[0] == 403
    )


#: Every kind of route, each with a request that it would answer.
DOORS = {
    "a route": ("GET", "/workflows", {}),
    "a route that changes something": ("POST", "/events", {}),
    "the health": ("GET", "/health", {}),
    "the clock": ("POST", "/clock", {}),
    "the logs": ("GET", "/executions/any/logs", {}),
    "a form": ("GET", "/forms/any", {}),
    "the answer of a form": ("POST", "/forms/any", {}),
    "Step Functions": ("POST", "/", {"X-Amz-Target": "AWSStepFunctions.ListActivities"}),
    "a service": ("GET", "/?X-Amz-Credential=a/20260101/us-east-1/s3/aws4_request", {}),
    "a service by a form": ("POST", "/?Action=ListQueues", {"Content-Type": FORM}),
    "a preflight": ("OPTIONS", "/executions", {"Access-Control-Request-Method": "POST"}),
    "a preflight of a service": ("OPTIONS", "/bucket/key", {"X-Amz-Date": "any"}),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_another_site_and_another_name(url: str, door: str) -> None:
    method, path, headers = DOORS[door]
    port = urlsplit(url).port
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    own = f"Host: 127.0.0.1:{port}\r\n"
    for foreign in (
        "",
        f"Host: evil.example:{port}\r\n",
        f"Host: [::1]:{port}\r\n",
        own + "Host: evil.example\r\n",
        own + "Origin: http://evil.example\r\n",
        own + "Origin: null\r\n",
    ):
        sent = f"{method} {path} HTTP/1.1\r\n{foreign}{lines}Content-Length: 0\r\n\r\n"
        got = exchange(url, sent.encode())
        assert got.startswith(b"HTTP/1.1 403 "), (foreign, got)
        assert b'"HF278"' in got
        assert b"access-control-allow" not in got.lower()


def test_a_request_that_a_client_did_not_send_to_its_end_is_not_done(url: str) -> None:
    signed = b"Authorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request\r\n"
    head = b"PUT /halves%b HTTP/1.1\r\nHost: localhost:%d\r\n" + signed
    port = urlsplit(url).port
    exchange(url, head % (b"", port) + b"Content-Length: 0\r\n\r\n")
    chunked = b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"
    for rest in (b"Content-Length: 9\r\n\r\nhalf", chunked):
        assert exchange(url, head % (b"/half", port) + rest) == b""
        answer = exchange(url, (head % (b"/half", port)).replace(b"PUT", b"HEAD") + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 404")


def test_a_bug_is_a_sentence_on_the_terminal_and_its_traceback_is_for_debug(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a user's secret")

    monkeypatch.setattr(LocalStack, "request", broken)
    with caplog.at_level(logging.DEBUG, "holdfast.local.serve"):
        status, answer = call(url, "GET", "/workflows")
    assert (status, code_of(answer)) == (500, "HF900")
    shown = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert [record.getMessage() for record in shown] == [
        "a request was not served: ZeroDivisionError"
    ]
    assert shown[0].exc_info is None
    assert "a user's secret" in caplog.text


def test_commands_find_the_serve_of_their_project_until_it_is_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.holdfast]\nmodules = ["statemachines.document_signing"]\n'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 2
    assert "--endpoint URL or --stack NAME" in capsys.readouterr().err
    serve = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from holdfast.cli import main; sys.exit(main())",
            "serve",
            "--port",
            "0",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert serve.stdout is not None
        assert serve.stdout.readline().startswith("serving document_signing at http://127.0.0.1:")
        assert main(["start", "document_signing", "--input", '{"doc_id": "1", "signers": []}']) == 0
        assert main(["list", "--json"]) == 0
        serve.send_signal(signal.SIGINT)
        printed, complaints = serve.communicate(timeout=60)
    finally:
        serve.kill()
        serve.wait()
    assert (serve.returncode, printed, complaints) == (0, "", "")
    assert not list((tmp_path / STATE).glob("serve-*"))
    assert main(["list"]) == 2


def test_of_two_serves_the_one_that_is_left_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (project.Serving(f"http://127.0.0.1:{n}", os.getpid()) for n in (8080, 8081))
    project.announce(first, tmp_path)
    project.announce(second, tmp_path)
    project.withdraw(second, tmp_path)
    assert project.find_serving() == first
    project.withdraw(first, tmp_path)
    assert project.find_serving() is None


def test_a_state_file_that_a_dead_serve_left_is_as_good_as_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for left in (f'{{"url": "http://127.0.0.1:1", "pid": {gone.pid}}}', "{", '{"url": 1}', "[]"):
        (tmp_path / STATE).mkdir(exist_ok=True)
        (tmp_path / STATE / "serve-1.json").write_text(left)
        assert main(["list"]) == 2
        assert "error[HF273]" in capsys.readouterr().err
