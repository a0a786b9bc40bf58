"""Invalid files, names and settings for the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from holdfast.cli import main
from holdfast.local import project
from tests.security.cases import Case, each, time_limit

ROOT: Final = Path(__file__).parents[2]
MACHINE: Final = {"StartAt": "a", "States": {"a": {"Type": "Pass", "End": True}}}
STEP: Final = [{"id": "a", "task": "f"}]


def written(data: bytes | str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(data if isinstance(data, bytes) else data.encode())

    return make


def looped(path: Path) -> None:
    path.symlink_to(path)


def closed(path: Path) -> None:
    path.symlink_to("/proc/self/mem")


#: The file; the code, or a word, of each command's refusal.
FILES: Final = [
    Case("no file", lambda _: None, "HF282"),
    Case("a folder", Path.mkdir, "HF282"),
    Case("a link to itself", looped, "HF282"),
    Case("what cannot be read", closed, "HF282"),
    Case("nothing", written(""), ""),
    Case("blanks", written(" \n"), ""),
    Case("bytes that are no UTF-8", written(b"\xff\xfe{}"), "HF282"),
    Case("UTF-16", written(json.dumps(MACHINE).encode("utf-16")), "HF282"),
    Case("Latin-1", written('{"Comment": "\u00e9"}'.encode("latin-1")), "HF282"),
    Case("a zip", written(b"PK\x03\x04\x00\xff"), "HF282"),
    Case("a byte order mark", written(b"\xef\xbb\xbf{}"), ""),
    Case("NUL bytes", written(b"\x00" * 100), ""),
    Case("half of it", written('{"StartAt": "a", "Sta'), ""),
    Case("a list", written("[]"), ""),
    Case("null", written("null"), ""),
    Case("a number of 100,000 digits", written("9" * 100_000), ""),
    Case("100,000 brackets", written("[" * 100_000), ""),
    Case("100,000 levels", written("[" * 100_000 + "]" * 100_000), ""),
    Case("a key twice", written('{"StartAt": "a", "StartAt": "b", "States": {}}'), ""),
    Case("no states", written('{"StartAt": "a", "States": {}}'), ""),
    Case("300 KB of blanks", written(json.dumps(MACHINE) + " " * 300_000 + "x"), ""),
    Case("1 MB of a text", written(json.dumps({"StartAt": "x" * 1_000_000})), ""),
    Case("terminal codes", written('{"StartAt": "\x1b[2J", "States": 5}'), ""),
]


@each(*FILES)
@pytest.mark.parametrize("command", ["check", "graph"])
def test_a_file_that_cannot_be_used_is_refused_and_nothing_is_written(
    command: str,
    case: Case,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    case.given(tmp_path / "machine.json")
    before = sorted(tmp_path.iterdir())
    with time_limit():
        status = main([command, "machine.json"])
    told = capsys.readouterr()

    assert status in {1, 2}
    assert "Traceback" not in told.out + told.err
    assert "HF900" not in told.out + told.err
    assert "\x1b" not in told.out + told.err
    assert case.code in told.out + told.err
    assert told.out + told.err
    assert sorted(tmp_path.iterdir()) == before


NAMES: Final = [
    "../evil", "../../evil", "/tmp/evil", "a/b", "a\\b", ".", "..", "", "\x00", "a\nb", "a b",
    "\u202eevil", "x" * 300, "con/../../x", "~/evil", "%2e%2e/evil", "-rf",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_in_a_file_does_not_lead_out_of_its_folder(
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = tmp_path / "inner" / "most"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    monkeypatch.setattr("sys.path", [str(inner), *sys.path])
    (inner / "bare_tasks.py").write_text(
        "from holdfast import task\n\n@task\ndef f() -> int:\n    return 1\n"
    )
    (inner / "graph.json").write_text(json.dumps({"name": name, "steps": STEP}))
    status = main(["compile", "graph.json", "bare_tasks"])
    told = capsys.readouterr()
    sys.modules.pop("bare_tasks", None)
    outside = [path for path in tmp_path.rglob("*") if inner not in path.parents and path != inner]

    assert outside == [tmp_path / "inner"]
    assert "Traceback" not in told.out + told.err
    assert "HF900" not in told.out + told.err
    assert status in {1, 2} or name == "-rf"


VALUES: Final = [
    Case("a file that is not there", "@missing.json", "HF282"),
    Case("a folder", "@.", "HF282"),
    Case("a file of the system", "@../../../../../../etc/passwd", "HF282"),
    Case("no name", "@", "HF282"),
    Case("a name with NUL", "@a\x00b", "HF282"),
    Case("bytes that are no UTF-8", "@latin", "HF282"),
    Case("no JSON", "{", "HF282"),
    Case("100,000 brackets", "[" * 100_000, "HF282"),
    Case("a number of 100,000 digits", "9" * 100_000, "HF282"),
    Case("a text with a raw surrogate", '"\udcff"', "HF273"),
]


@each(*VALUES)
def test_a_value_that_cannot_be_read_is_refused_before_anything_is_sent(
    case: Case,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin").write_bytes(b'"\xe9"')
    status = main(["start", "flow", "--input", case.given])
    told = capsys.readouterr()

    assert status == 2
    assert f"error[{case.code}]" in told.err
    assert "root:" not in told.err
    assert "Traceback" not in told.err


SETTINGS: Final = [
    Case("no TOML", b"[tool.holdfast", "HF271"),
    Case("bytes that are no UTF-8", b"\xff\xfe", "HF271"),
    Case("modules that are a number", b"[tool.holdfast]\nmodules = 7", "HF271"),
    Case("modules that are a text", b'[tool.holdfast]\nmodules = "a"', "HF271"),
    Case("modules of numbers", b"[tool.holdfast]\nmodules = [7]", "HF271"),
    Case("no modules", b"[tool.holdfast]\nmodules = []", "HF27"),
    Case("a section that is a text", b'[tool]\nholdfast = "x"', "HF27"),
    Case("a module that is a path", b'[tool.holdfast]\nmodules = ["../evil"]', "HF070"),
    Case("a module with a NUL", b'[tool.holdfast]\nmodules = ["a\\u0000b"]', "HF07"),
    Case("a module of nothing", b'[tool.holdfast]\nmodules = [""]', "HF07"),
    Case("a relative module", b'[tool.holdfast]\nmodules = [".evil"]', "HF07"),
]


@each(*SETTINGS)
def test_settings_that_cannot_be_used_are_refused(
    case: Case,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_bytes(case.given)
    status = main(["compile"])
    told = capsys.readouterr()

    assert status in {1, 2}
    assert f"error[{case.code}" in told.err
    assert "HF900" not in told.err


ENDPOINTS: Final = [
    "ftp://127.0.0.1", "file:///etc/passwd", "127.0.0.1", "http://", "http://127.0.0.1:0",
    "http://127.0.0.1:99999", "http://[::1", "javascript:alert(1)", "http://a b/", "\x00",
    "http://127.0.0.1:1/\r\nX: y",
]  # fmt: skip


@pytest.mark.parametrize("url", ENDPOINTS, ids=ascii)
def test_an_invalid_endpoint_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["list", "--endpoint", url])
    told = capsys.readouterr()

    assert status == 2
    assert "error[HF27" in told.err


def test_the_file_that_serve_writes_may_hold_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    project.announce(project.Serving("http://127.0.0.1:1", os.getpid()), tmp_path)
    texts = {b"": "HF273", b"{": "HF273", b"[]": "HF273", b"\xff": "HF273", b"null": "HF273"}
    texts |= {b'{"url": 5}': "HF273", b'{"url": "x", "pid": "y"}': "HF273"}
    texts |= {b'{"url": "x", "pid": 1e400}': "HF273", b'{"url": "x", "pid": 1e30}': "HF273"}
    texts |= {b'{"url": "file:///etc/passwd", "pid": %d}' % os.getpid(): "HF274"}
    for text, code in texts.items():
        (tmp_path / project.announcement_of("http://127.0.0.1:1")).write_bytes(text)
        assert main(["list"]) == 2
        assert f"error[{code}]" in capsys.readouterr().err, text


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_that_knows_no_unicode_gets_escapes(encoding: str, tmp_path: Path) -> None:
    definition = {**MACHINE, "StartAt": "\u6f22\u5b57 \U0001f600", "Comment": "\u00e9"}
    (tmp_path / "machine.json").write_text(json.dumps(definition, ensure_ascii=False), "utf-8")
    shown = subprocess.run(
        [sys.executable, "-m", "holdfast", "check", str(tmp_path / "machine.json")],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )

    assert b"Traceback" not in shown.stderr
    assert b"HF900" not in shown.stderr + shown.stdout
