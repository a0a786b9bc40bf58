"""An AWS that shares no code with moto, as a server on loopback, for the slow suites.

It pins another botocore, so it runs in an environment of its own; without a package index to make
that from, or a cache, the tests that need it are skipped.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from botocore.config import Config
from botocore.session import Session

from holdfast.aws.clients import Clients

VERSION = "ministack==1.5.33"
UVX = Path(sys.executable).with_name("uvx")
START_SECONDS_MAX = 60
LOOK_SECONDS = 0.25


@contextmanager
def serve(directory: Path) -> Iterator[str]:
    """Yield the endpoint of a server that lives as long as the context."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = directory / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                Path(sys.executable).with_name("uvx"),
                "--from",
                VERSION,
                "--with",
                "boto3",
                "ministack",
            ],
            env={**os.environ, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)},
            cwd=directory,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        _wait_for(endpoint, server, log)
        yield endpoint
    finally:
        server.terminate()
        server.wait(timeout=20)


def clients(endpoint: str) -> Clients:
    session = Session()
    session.set_credentials("test", "test")
    create_client = session.create_client

    def create_here(service: str, **settings: object) -> object:
        return create_client(service, endpoint_url=endpoint, **settings)

    session.create_client = create_here
    session.set_default_client_config(Config(s3={"addressing_style": "path"}))
    return Clients(session, "us-east-1")


def _wait_for(endpoint: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(int(START_SECONDS_MAX / LOOK_SECONDS)):
        if _answers(endpoint):
            return
        try:
            server.wait(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        pytest.skip(f"ministack cannot be had here: {log.read_text()[-500:]}")
    pytest.fail(f"ministack did not answer: {log.read_text()[-500:]}")


def _answers(endpoint: str) -> bool:
    try:
        urllib.request.urlopen(endpoint, timeout=LOOK_SECONDS).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
