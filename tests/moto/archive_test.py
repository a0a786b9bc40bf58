"""The archive of `serve`: a folder, from which expired executions are shown."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest

from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from holdfast.remote.client import Client
from tests.unit import client_flows

ORDER = {"id": "17", "cents": 1_250, "due": "2027-01-15"}
PATIENCE_SECONDS = 20


def test_an_execution_of_serve_is_archived_in_the_folder_and_shown_after_it_has_expired(
    tmp_path: Path,
) -> None:
    folder, data = tmp_path / "archive", tmp_path / "holdfast.db"
    deployment = deployment_of([client_flows.__name__])
    with serving(deployment, port=0, data=data, archive=folder) as served:
        client = Client(served.url)
        run = client.start("fulfil", {"order": ORDER}, name="o1")
        assert run.result() == {"order": "17", "paid": 1_250}
        served.clock.advance(timedelta(hours=1) // timedelta(milliseconds=1))
        wait_until(lambda: list(folder.rglob("*.gz")))
        [file] = folder.rglob("*.gz")
        line = json.loads(gzip.decompress(file.read_bytes()))
        served.clock.advance(timedelta(days=92) // timedelta(milliseconds=1))
        shown = client.describe(line["execution"])
        assert (shown["status"], shown["archived"]) == ("SUCCEEDED", str(file))
        assert client.history(line["execution"]) == json.loads(line["history"])


def wait_until(is_true: object) -> None:
    assert callable(is_true)
    until = monotonic() + PATIENCE_SECONDS
    while not is_true():
        if monotonic() > until:
            pytest.fail("it did not come true")
        sleep(0.05)
