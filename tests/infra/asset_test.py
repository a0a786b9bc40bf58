"""How the asset of the functions is built: the calls of uv, what is copied, and what is refused.

The calls are noted and not made. bundle_test.py, which is slow, looks at real assets.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HoldfastError, WorkflowError
from holdfast.infra import bundle
from holdfast.infra.bundle import build_asset, compile_workflows
from holdfast.infra.locked import only_for_tools
from holdfast.infra.settings import _LOG_DAYS, Settings
from holdfast.infra.sizes import _TIMEOUT_BOUNDS
from holdfast.infra.unfit import Unfit, read_object
from holdfast.limits import SWEEP_SECONDS
from holdfast.runtime.storage.spread import STARTS_PER_SECOND

ROOT = Path(__file__).parents[2]
PLAIN = """
def helper() -> int:
    return 1
"""


class Runs:
    """`subprocess.run`, as far as the bundle uses it."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], dict[str, Any]]] = []
        self.answers: dict[str, tuple[int, str, str]] = {}

    def __call__(self, command: list[str], **given: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append((list(map(str, command)), given))
        what = "compileall" if "compileall" in command else str(command[3])
        if "--target" in command:
            self._install(Path(command[command.index("--target") + 1]))
        code, out, error = self.answers.get(what, (0, f"out of {what}\n", ""))
        return subprocess.CompletedProcess(command, code, out, error)

    def _install(self, target: Path) -> None:
        for name in ("bin/tool", ".lock", "lib-1.dist-info/RECORD", "lib-1.dist-info/METADATA"):
            (target / name).parent.mkdir(exist_ok=True)
            (target / name).write_text("x")
        (target / "lib.py").write_text("")

    def of(self, word: str) -> tuple[list[str], dict[str, Any]]:
        [found] = [call for call in self.calls if word in call[0]]
        return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs()
    monkeypatch.setattr("holdfast.infra.bundle.subprocess.run", found)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in ("one.py", "src/two/__init__.py", "src/two/part.py", "three/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(PLAIN)
    for name in ("src/two/.hidden", "src/two/old.pyc", "src/two/__pycache__/two.pyc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    (folder / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1"\n')
    (folder / "uv.lock").write_text("version = 1\n")
    return folder


@pytest.fixture
def settings() -> Settings:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    made = Settings.from_context(context.get)
    return dataclasses.replace(made, modules=("one", "two.part", "two"))


Build = Callable[..., Path]


@pytest.fixture
def build(project: Path, settings: Settings, runs: Runs, tmp_path: Path) -> Build:
    def make(**changes: Any) -> Path:
        asset = tmp_path / "made" / "asset"
        chosen = dataclasses.replace(settings, **changes)
        build_asset(asset, project=project, settings=chosen, compiled=[])
        return asset

    return make


def test_an_asset_has_the_modules_of_the_user_the_handlers_and_what_was_installed(
    build: Build,
) -> None:
    asset = build()
    assert {path.name for path in asset.iterdir()} == {
        *("holdfast", "functions", "one.py", "two", "lib.py", "lib-1.dist-info")
    }
    assert {path.name for path in (asset / "two").iterdir()} == {"__init__.py", "part.py"}
    assert {path.name for path in (asset / "lib-1.dist-info").iterdir()} == {"METADATA"}
    assert (asset / "functions/worker/app.py").exists()
    ours = {path.name for path in (asset / "holdfast").iterdir()}
    assert ours >= {"aws", "core", "runtime", "api", "deployment.py", "limits.py", "asl"}
    left_out = {"cli", "__main__.py", "pytest_plugin.py", "local", "pictures", "proofs", "testing"}
    assert not ours & {*left_out, "functions", "infra", "__pycache__"}
    compiler = {path.name for path in (asset / "holdfast/compiler").iterdir()}
    assert not compiler & {"emit", "expressions", "statements", "steps", "targets"}


def test_a_file_that_the_project_has_removed_leaves_the_asset(build: Build) -> None:
    asset = build()
    (asset / "removed.py").write_text("")
    assert not (build() / "removed.py").exists()


def test_the_functions_get_the_versions_of_the_lock_file(
    build: Build, runs: Runs, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/another")
    monkeypatch.setattr(bundle, "only_for_tools", lambda _project: ["rich", "moto"])
    asset = build()
    command, given = runs.of("export")
    assert command == [
        *(sys.executable, "-m", "uv", "export", "--frozen", "--no-dev", "--no-emit-project"),
        *("--no-emit-package", "holdfast", "--prune", "boto3", "--prune", "rich"),
        *("--prune", "moto", "--no-header", "--no-annotate", "--project", str(project)),
    ]
    assert "VIRTUAL_ENV" not in given["env"]
    assert "PATH" in given["env"]
    assert given["input"] is None
    assert (given["capture_output"], given["text"], given["check"]) == (True, True, False)
    command, given = runs.of("pip")
    assert command == [
        *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-config"),
        *("--no-installer-metadata", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--target", str(asset), "--python-platform", "aarch64-manylinux_2_34"),
        *("--python-version", "3.13", "--requirements", "-"),
    ]
    assert given["input"] == "out of export\n"


@pytest.mark.parametrize(
    ("architecture", "python", "platform"),
    [
        ("x86_64", "3.12", "x86_64-manylinux_2_34"),
        ("x86_64", "3.11", "x86_64-manylinux_2_17"),
        ("arm64", "3.11", "aarch64-manylinux_2_17"),
    ],
)
def test_wheels_fit_the_oldest_glibc_of_the_runtime(
    build: Build, runs: Runs, architecture: str, python: str, platform: str
) -> None:
    build(architecture=architecture, python=python)
    command, _ = runs.of("pip")
    assert command[command.index("--python-platform") + 1] == platform
    assert command[command.index("--python-version") + 1] == python


@pytest.mark.parametrize(
    ("failed", "code", "fix"),
    [("export", "HF402", "run `uv lock` in the project"), ("pip", "HF407", "needs a wheel for")],
)
def test_a_failure_of_uv_is_told_with_its_text_and_the_fix(
    build: Build, runs: Runs, failed: str, code: str, fix: str
) -> None:
    runs.answers[failed] = (2, "", " no such thing \n")
    with pytest.raises(HoldfastError) as refused:
        build()
    assert refused.value.code == code
    assert refused.value.message == f"`uv {failed}` ended with code 2: no such thing"
    assert fix in str(refused.value.help)


def test_bytecode_is_made_by_the_python_of_the_functions_for_the_folder_of_lambda(
    build: Build, runs: Runs
) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    asset = build(python=version)
    command, given = runs.of("compileall")
    assert command == [
        *(sys.executable, "-I", "-m", "compileall", "-qq"),
        *("--invalidation-mode", "unchecked-hash", "-s", str(asset), "-p", "/var/task"),
        str(asset),
    ]
    assert (given["stdout"], given["check"]) == (subprocess.DEVNULL, False)
    assert not [call for call, _ in runs.calls if "find" in call]


def test_another_python_is_looked_for_on_this_machine(build: Build, runs: Runs) -> None:
    runs.answers["python"] = (0, "/opt/python3.14\n", "")
    build(python="3.14")
    command, given = runs.of("find")
    assert command == [sys.executable, "-m", "uv", "python", "find", "--no-project", "3.14"]
    assert (given["capture_output"], given["text"], given["check"]) == (True, True, False)
    assert runs.of("compileall")[0][0] == "/opt/python3.14"


@pytest.mark.parametrize("answer", [(1, "/opt/python3.14\n", ""), (0, " \n", "")])
def test_without_that_python_there_is_no_bytecode_and_a_note(
    build: Build, runs: Runs, capsys: pytest.CaptureFixture[str], answer: tuple[int, str, str]
) -> None:
    runs.answers["python"] = answer
    build(python="3.14")
    assert not [call for call, _ in runs.calls if "compileall" in call]
    assert capsys.readouterr().err == (
        "note: there is no Python 3.14 on this machine, so the functions get no bytecode and start "
        "more slowly; to change that, run `uv python install 3.14`\n"
    )


def test_a_module_that_is_not_in_the_project_is_named(build: Build, project: Path) -> None:
    with pytest.raises(HoldfastError) as refused:
        build(modules=("four.five",))
    assert refused.value.code == "HF403"
    assert refused.value.message == (
        f"`modules` names `four`, which is neither in {project} nor in its src/"
    )
    assert "name modules of this project" in str(refused.value.help)


def test_the_modules_of_a_project_are_found_in_it_and_in_its_src(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (project / "src/of_src.py").write_text(PLAIN)
    (project / "of_root.py").write_text(PLAIN)
    assert compile_workflows(["of_src", "of_root"], project=project) == []
    assert sys.path[:2] == [str(project), str(project / "src")]
    compile_workflows(["of_src"], project=project)
    assert sys.path.count(str(project / "src")) == 1
    (project / "of_wrong.py").write_text("import nothing_of_this_name")
    with pytest.raises(WorkflowError, match="the modules cannot be deployed\n") as refused:
        compile_workflows(["of_wrong"], project=project)
    assert refused.value.code == "HF406"
    for name in ("of_src", "of_root"):
        sys.modules.pop(name, None)


def test_a_definition_stands_beside_the_module_of_its_workflow(tmp_path: Path) -> None:
    (tmp_path / "a/d").mkdir(parents=True)
    for name, folder in (("a.b:f", "a"), ("a.d.e:f", "a/d"), ("a:f", "a"), ("c:f", "")):
        workflow: Any = type("Workflow", (), {"function": name})
        assert bundle._folder_of(workflow, tmp_path) == tmp_path / folder


def test_the_handlers_are_in_the_package_or_beside_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bundle._functions() == ROOT / "functions"
    package = tmp_path / "site-packages/holdfast"
    (package / "functions").mkdir(parents=True)
    monkeypatch.setattr(bundle, "_HOLDFAST", package)
    assert bundle._functions() == package / "functions"


def test_what_only_the_tools_need_is_left_out_and_a_circle_of_packages_ends(tmp_path: Path) -> None:
    (tmp_path / "member").mkdir()
    (tmp_path / "member/pyproject.toml").write_text('[project]\nname = "My_Shop"\n')
    assert only_for_tools(tmp_path / "member") == []  # uv reports the missing lock file
    lock = """
[[package]]
name = "my-shop"
dependencies = [{ name = "holdfast", extra = ["local"] }, { name = "user", extra = ["x"] }]
[[package]]
name = "holdfast"
dependencies = [{ name = "boto3" }]
[package.optional-dependencies]
local = [{ name = "rich" }, { name = "moto" }, { name = "boto3" }]
infra = [{ name = "uv" }, { name = "cdk" }]
[[package]]
name = "boto3"
dependencies = [{ name = "botocore" }]
[[package]]
name = "botocore"
dependencies = [{ name = "boto3" }]
[[package]]
name = "user"
[package.optional-dependencies]
x = [{ name = "uv" }]
y = [{ name = "cdk" }, { name = "numpy" }]
"""
    # Of a workspace, in the folder above.
    (tmp_path / "uv.lock").write_text(lock)
    assert only_for_tools(tmp_path / "member") == ["cdk", "moto", "rich"]


def test_logs_are_kept_for_one_of_the_times_that_cloudwatch_has() -> None:
    """CloudWatch Logs API, PutRetentionPolicy: retentionInDays."""
    months = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731)
    assert (*months, 1096, 1827, 2192, 2557, 2922, 3288, 3653) == _LOG_DAYS


@pytest.mark.parametrize("empty", [None, ""])
def test_an_object_that_the_context_does_not_have_is_empty(empty: object) -> None:
    assert read_object("groups", empty) == {}
    assert read_object("groups", '{"a": 1}') == read_object("groups", {"a": 1}) == {"a": 1}
    for wrong in ("{", "[1]", 5):
        with pytest.raises(Unfit) as refused:
            read_object("groups.mail", wrong)
        assert refused.value.in_context().code == "HF401"
        assert "set `groups` in cdk.json" in str(refused.value.in_context().help)
        assert refused.value.in_construct("Shop/Flows").code == "HF405"
        assert "expected a JSON object" in refused.value.in_construct("Shop/Flows").message


@pytest.mark.parametrize(("text", "is_on"), [("on", True), ("true", True), ("off", False)])
def test_a_switch_of_the_context_has_two_names(text: str, is_on: bool) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    made = Settings.from_context({**context, "payload_limit": text}.get)
    assert made.limits_payloads is is_on
    assert made.starts_per_second == STARTS_PER_SECOND


def test_a_time_out_stays_within_what_calls_its_function() -> None:
    """The next sweep, API Gateway, and Lambda itself."""
    assert _TIMEOUT_BOUNDS == {"events": (5, 900), "sweeper": (10, 58), "api": (3, 29)}
    assert _TIMEOUT_BOUNDS["sweeper"][1] < SWEEP_SECONDS
