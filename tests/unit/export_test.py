"""`holdfast export`: lines of JSON for Athena and replay, in a folder and in a bucket."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from holdfast import cli
from holdfast.remote import client as client_module
from holdfast.testing import replay
from tests.unit import client_flows
from tests.unit.client_kit import MemoryStack

DAY_MS = 86_400_000
ORDER = {"id": "17", "cents": 1_250, "due": "2027-01-15"}


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> MemoryStack:
    """Two executions on one day, and one on the next."""
    found = MemoryStack("tests.unit.client_flows")
    monkeypatch.setattr(client_module, "connect", lambda *_, **__: found.api)
    for name in ("o1", "o2", "o3"):
        if name == "o3":
            found.world.now_ms += DAY_MS
        body = {"workflow": "fulfil", "input": {"order": ORDER}, "name": name}
        assert found.site.request("POST", "/executions", body)[0] == 201
        found.world.run(until_ms=found.world.now_ms)
    return found


def lines_of(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def test_each_day_has_a_file_with_a_line_for_each_execution(
    stack: MemoryStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["export", "--workflow", "fulfil", "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "exported 3 executions in 2 files\n"
    first, second = sorted(tmp_path.rglob("*.jsonl"))
    assert [path.parent.name for path in (first, second)] == ["day=2027-01-15", "day=2027-01-16"]
    lines = lines_of(first.read_bytes())
    assert {line["name"] for line in lines} == {"o1", "o2"}
    (line,) = lines_of(second.read_bytes())
    assert (line["status"], line["workflow"]) == ("SUCCEEDED", "fulfil")
    assert json.loads(line["output"]) == {"order": "17", "paid": 1_250}
    assert line["started"].startswith("2027-01-16")
    assert replay(client_flows.fulfil, line).steps == ["charge"]


def test_a_second_export_leaves_the_files_of_the_first(
    stack: MemoryStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import UTC, datetime

    from holdfast.local import execution_export
    from holdfast.remote.client import Client

    client = Client.of(stack.api)
    monkeypatch.setattr(execution_export, "_LINES_MAX", 1)
    for hour in (1, 2):
        now = datetime(2027, 3, 1, hour, tzinfo=UTC)
        found = list(execution_export.export(client, client.list(), str(tmp_path), now))
        assert [one.executions for one in found] == [1, 1, 1]
    assert len(list(tmp_path.rglob("*.jsonl"))) == 6
    assert found[-1].file == "day=2027-01-15/20270301T020000Z-0003.jsonl"


def test_a_bucket_gets_packed_files(stack: MemoryStack, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: dict[str, bytes] = {}

    class Bucket:
        def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
            stored[f"{Bucket}/{Key}"] = Body

    monkeypatch.setattr(boto3, "client", lambda _: Bucket())
    assert cli.main(["export", "--name", "o3", "--to", "s3://history/holdfast/"]) == 0
    ((key, body),) = stored.items()
    assert key.startswith("history/holdfast/day=2027-01-16/")
    assert key.endswith("-0001.jsonl.gz")
    assert len(lines_of(gzip.decompress(body))) == 1


def test_a_target_that_cannot_be_written_says_where_to_go_on(
    stack: MemoryStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "file"
    target.write_text("")
    assert cli.main(["export", "--to", str(target)]) == 2
    assert "error[HF508]" in capsys.readouterr().err
    target.unlink()
    target.mkdir()
    (target / "day=2027-01-15").write_text("")
    assert cli.main(["export", "--to", str(target)]) == 2
    assert "exported 1; go on with --until 2027-01-16" in capsys.readouterr().err
