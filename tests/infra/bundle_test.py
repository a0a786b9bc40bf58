"""The Lambda asset as it is shipped, and the same asset for this machine, really started."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import marshal
import os
import platform
import queue
import re
import shutil
import struct
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from holdfast.infra import bundle
from holdfast.infra.bundle import build_asset, compile_workflows
from holdfast.infra.settings import Settings

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ELF_MACHINE_ARM64 = 183
UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552
ZIP_BYTES_MAX = 8_500_000
HOST = {
    "architecture": {"aarch64": "arm64"}.get(platform.machine(), platform.machine()),
    "python": f"{sys.version_info.major}.{sys.version_info.minor}",
}


def build(directory: Path, changes: Mapping[str, str], *, project: Path = ROOT) -> Path:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    settings = Settings.from_context({**context, **changes}.get)
    compiled = compile_workflows(settings.modules, project=project)
    build_asset(directory, project=project, settings=settings, compiled=compiled)
    return directory


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("shipped") / "asset", {})


@pytest.fixture(scope="module")
def runnable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("runnable") / "asset", HOST)


def test_compiled_libraries_are_for_python_3_13_on_arm64(shipped: Path) -> None:
    libraries = list(shipped.rglob("*.so"))
    assert {library.parent.name for library in libraries} >= {"pydantic_core"}
    for library in libraries:
        assert ".cpython-313-aarch64-linux-gnu.so" in library.name
        header = library.read_bytes()[:20]
        assert header[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", header, 18) == (ELF_MACHINE_ARM64,)


def test_the_asset_holds_exactly_the_files_that_lambda_needs(shipped: Path) -> None:
    names = {path.name for path in shipped.iterdir() if not path.name.endswith(".dist-info")}
    assert names >= {"holdfast", "functions", "statemachines", "pydantic", "jsonata"}
    left_out = {"boto3", "botocore", "pytest", "moto", "aws_cdk", "uv", "bin", ".lock", "tests"}
    assert not names & left_out
    ours = {path.name for path in (shipped / "holdfast").iterdir()}
    assert ours >= {"asl", "aws", "core", "integrations", "runtime", "stepfunctions"}
    assert not ours & {"local", "cli"}


def test_the_asset_holds_the_compiled_workflows(shipped: Path) -> None:
    compiled = sorted((ROOT / "statemachines").glob("*.asl.json"))
    assert compiled
    for path in compiled:
        assert (shipped / "statemachines" / path.name).read_bytes() == path.read_bytes()


def test_the_program_of_the_readme_is_found_by_its_functions_though_it_is_one_file(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, project)
    readme = (ROOT / "README.md").read_text()
    program, _ = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    (project / "my_shop.py").write_text(program)

    asset = build(tmp_path / "asset", {**HOST, "modules": "my_shop"}, project=project)

    assert {path.name for path in asset.glob("*.json")} == {"fulfil.asl.json", "fulfil.map.json"}
    found = """
import holdfast
from holdfast.deployment import Deployment
print(holdfast.__file__, *Deployment.from_modules(["my_shop"]).definitions)
"""
    run = subprocess.run(
        [sys.executable, "-c", found],
        cwd=asset,
        env={**os.environ, "PYTHONPATH": str(asset), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.stdout.split() == [str(asset / "holdfast" / "__init__.py"), "fulfil"], run.stderr


def test_the_asset_with_its_bytecode_is_smaller_than_nine_megabytes(
    runnable: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "asset.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for path in runnable.rglob("*"):
            zipped.write(path, path.relative_to(runnable))
    assert archive.stat().st_size < ZIP_BYTES_MAX


def test_every_module_has_bytecode_that_is_never_compared_with_its_source(runnable: Path) -> None:
    tag = sys.implementation.cache_tag
    for source in (runnable / "holdfast").rglob("*.py"):
        header = (source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc").read_bytes()[:8]
        assert header == importlib.util.MAGIC_NUMBER + UNCHECKED_HASH
    compiled = runnable / "holdfast" / "aws" / "__pycache__" / f"entry.{tag}.pyc"
    code = marshal.loads(compiled.read_bytes()[16:])
    assert code.co_filename == "/var/task/holdfast/aws/entry.py"


def test_the_same_project_gives_the_same_bytecode(runnable: Path, tmp_path: Path) -> None:
    assert digest(build(tmp_path / "again", HOST)) == digest(runnable)


def test_without_the_python_of_the_functions_the_asset_has_no_bytecode_and_synth_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "_find_python", lambda _: None)
    asset = build(tmp_path / "asset", HOST)

    assert not list(asset.rglob("*.pyc"))
    assert "run `uv python install" in capsys.readouterr().err


def test_the_same_project_gives_the_same_bytes(shipped: Path, tmp_path: Path) -> None:
    assert digest(build(tmp_path / "again", {})) == digest(shipped)


@pytest.mark.parametrize("function", ["worker", "events", "sweeper", "api"])
def test_lambdas_own_runtime_starts_a_handler_from_the_asset_alone(
    runnable: Path, function: str
) -> None:
    with runtime_api() as (address, reports):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable),
                *("--from", pinned("awslambdaric"), "--with", pinned("boto3")),
                *("python", "-m", "awslambdaric", f"functions.{function}.app.handler"),
            ],
            cwd=runnable,
            env={
                **os.environ,
                "PYTHONPATH": str(runnable),
                "PYTHONDONTWRITEBYTECODE": "1",
                "AWS_LAMBDA_RUNTIME_API": address,
                "AWS_LAMBDA_FUNCTION_NAME": function,
                "AWS_REGION": "eu-west-1",
                "AWS_DEFAULT_REGION": "eu-west-1",
            },
        )
        watcher = threading.Thread(target=lambda: reports.put(f"ended with {process.wait()}"))
        watcher.start()
        try:
            assert reports.get(timeout=60) == "ready"
        finally:
            process.terminate()
            watcher.join(timeout=10)


@contextmanager
def runtime_api() -> Iterator[tuple[str, queue.Queue[str]]]:
    """Serve Lambda's runtime API up to the first event: a runtime requests it, or reports why it
    crashed.
    """
    reports: queue.Queue[str] = queue.Queue()
    ended = threading.Event()

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reports.put("ready")
            ended.wait(timeout=60)

        def do_POST(self) -> None:
            reports.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", reports
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def pinned(package: str) -> str:
    return f"{package}=={importlib.metadata.version(package)}"


def digest(directory: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        total.update(f"{path.relative_to(directory)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
