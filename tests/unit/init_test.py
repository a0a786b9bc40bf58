"""`holdfast init`: every template is green at once, and nothing that was there is touched."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.errors import RequestError
from holdfast.local import new_project

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One project of each template; `dag-new` has the package dag_new."""
    made = {}
    for template in new_project.TEMPLATES:
        made[template] = tmp_path_factory.mktemp("init") / f"{template}-new"
        new_project.create(made[template], template)
    return made


def test_the_tests_of_every_template_pass(projects: dict[str, Path]) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull),
            *("--import-mode=importlib", "-W", "error", *map(str, projects.values())),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, projects.values()))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "9 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize("template", new_project.TEMPLATES)
def test_the_check_of_every_template_finds_no_problem(
    projects: dict[str, Path],
    template: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(projects[template])
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["check", "--strict"]) == 0
    assert "no problems" in capsys.readouterr().out


def test_the_written_project_is_formatted_and_holds_no_name_of_a_template(
    projects: dict[str, Path],
) -> None:
    for project in projects.values():
        for path in project.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                assert not re.search(r"@\w+@", path.read_text(encoding="utf-8")), path
        for check in ("format --check", "check --select E,F,I,B,UP"):
            done = subprocess.run(
                [str(BIN / "ruff"), *check.split(), "--isolated", "--line-length", "100", "."],
                cwd=project,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert done.returncode == 0, done.stdout


def test_the_readme_starts_the_workflow_of_the_template(projects: dict[str, Path]) -> None:
    for project in projects.values():
        started = re.search(r"holdfast start (\w+)", (project / "README.md").read_text())
        assert started is not None
        [source] = [path for path in project.glob("*/*.py") if path.stem == project.name[:-4]]
        text = source.read_text(encoding="utf-8")
        assert f"def {started[1]}(" in text or f"{started[1]} = dag(" in text


def test_a_file_that_is_there_stays_as_it_is_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    settings = (
        '[project]\nname = "mine"\n[tool.holdfast]\nmodules = ["mine.flows"]\n'
        '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
    )
    (shop / "pyproject.toml").write_text(settings)
    monkeypatch.chdir(shop)
    assert main(["init"]) == 0
    printed = capsys.readouterr().out
    assert (shop / "pyproject.toml").read_text() == settings
    assert "skipped  pyproject.toml: it was there before" in printed
    assert 'modules = ["mine.flows", "shop.order"]' in printed
    assert 'pythonpath = ["src", "."]' in printed
    assert f"uv add {ROOT} && uv add --dev" in printed
    assert "wrote    shop/order.py" in printed

    before = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    assert main(["init"]) == 0
    assert "wrote" not in capsys.readouterr().out
    assert {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()} == before


def test_the_name_of_the_folder_becomes_that_of_package_and_stack(tmp_path: Path) -> None:
    new_project.create(tmp_path / "My Web-Shop", "order")
    settings = tomllib.loads((tmp_path / "My Web-Shop" / "pyproject.toml").read_text())
    assert settings["project"]["name"] == "my-web-shop"
    assert settings["tool"]["holdfast"]["modules"] == ["my_web_shop.order"]
    new_project.create(tmp_path / "Überblick", "order")
    assert (tmp_path / "Überblick" / "uberblick" / "order.py").is_file()
    assert "class MyWebShopStack(Stack)" in (tmp_path / "My Web-Shop" / "app.py").read_text()


@pytest.mark.parametrize("name", ["json", "class", "2026", "holdfast", "tests", "boto3", "---"])
def test_a_name_that_no_package_can_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match="gives no name of a Python package") as refused:
        new_project.create(Path(name), "order")
    assert refused.value.code == "HF298"
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "shop")]) == 2
    assert "error[HF299]" in capsys.readouterr().err


def installed(monkeypatch: pytest.MonkeyPatch, direct_url: object) -> None:
    """Pretend that this Holdfast was installed so: pip and uv write down each address but that of
    an index.
    """

    class Installed:
        version = "1.0"

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return None if direct_url is None else json.dumps(direct_url)

    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed())


def test_the_wheel_is_copied_into_the_project_which_other_machines_then_can_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "a b" / "holdfast-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"PK")
    installed(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    new_project.create(tmp_path / "shop", "order")
    settings = tomllib.loads((tmp_path / "shop" / "pyproject.toml").read_text())
    [path] = settings["tool"]["uv"]["sources"]["holdfast"].values()
    assert path == "vendor/holdfast-1.0-py3-none-any.whl"
    assert (tmp_path / "shop" / path).read_bytes() == b"PK"
    assert "vendor" not in (tmp_path / "shop" / ".gitignore").read_text()
    assert path in new_project.additions(tmp_path / "shop", "order")

    wheel.unlink()
    with pytest.raises(RequestError, match="is no longer there") as refused:
        new_project.create(tmp_path / "other", "order")
    assert refused.value.code == "HF296"


@pytest.mark.parametrize(
    ("direct_url", "source"),
    [
        ({"url": "https://host/holdfast-1.whl"}, {"url": "https://host/holdfast-1.whl"}),
        (
            {"url": "https://host/holdfast", "vcs_info": {"vcs": "git", "commit_id": "4f2"}},
            {"git": "https://host/holdfast", "rev": "4f2"},
        ),
    ],
)
def test_an_address_that_holdfast_was_installed_from_is_that_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct_url: object, source: object
) -> None:
    installed(monkeypatch, direct_url)
    new_project.create(tmp_path / "shop", "order")
    settings = tomllib.loads((tmp_path / "shop" / "pyproject.toml").read_text())
    assert settings["tool"]["uv"]["sources"]["holdfast"] == source


def test_no_project_is_made_that_would_install_the_package_of_this_name_on_pypi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, None)
    with pytest.raises(RequestError, match="on PyPI another project has its name") as refused:
        new_project.create(tmp_path / "shop", "order")
    assert refused.value.code == "HF295"
    assert not (tmp_path / "shop").exists()


def test_the_version_is_printed_and_the_package_is_a_program() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "holdfast", "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.stdout == f"holdfast {importlib.metadata.version('holdfast')}\n"
