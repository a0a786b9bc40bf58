"""`holdfast export`: lines of JSON for Athena and replay, in a folder and in a bucket."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from holdfast import cli
from holdfast.errors import HoldfastError
from holdfast.remote import client as client_module
from holdfast.remote.client import Client
from holdfast.runtime.effects import Put
from holdfast.runtime.storage import keys, tables
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

    client = Client.of(stack.api)
    monkeypatch.setattr(execution_export, "_LINES_MAX", 1)
    for hour in (1, 2):
        now = datetime(2027, 3, 1, hour, tzinfo=UTC)
        rows, unread = client.list(), dict[str, HoldfastError]()
        found = list(execution_export.export(client, rows, str(tmp_path), now, unread.__setitem__))
        assert unread == {}
        # Two executions started in one millisecond: `--until` could not go on between them.
        assert [one.executions for one in found] == [1, 2]
    assert len(list(tmp_path.rglob("*.jsonl"))) == 4
    assert found[-1].file == "day=2027-01-15/20270301T020000Z-0002.jsonl"


def test_an_execution_that_cannot_be_read_is_named_and_the_others_are_exported(
    stack: MemoryStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (damaged,) = (row["execution"] for row in Client.of(stack.api).list(name="o2"))

    def damage() -> Any:
        for record in stack.world.services.items(tables.EXECUTIONS):
            if record["pk"] == keys.execution("default", damaged):
                yield Put(tables.EXECUTIONS, {**record, "ev": b"no record"})

    stack.world.call(damage())
    assert cli.main(["export", "--to", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == "exported 2 executions in 2 files, 1 was not read\n"
    assert f"{damaged} is not exported: " in printed.err


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
