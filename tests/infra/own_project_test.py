"""The built wheel outside the repository: `holdfast init`, its tests, its synthesis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--wheel", "--out-dir", str(directory), str(ROOT), cwd=ROOT)
    [built] = directory.glob("*.whl")
    return built


def uv(*arguments: str, cwd: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        cwd=cwd,
        env={**kept, "UV_PYTHON": sys.executable, "CDK_OUTDIR": str(cwd / "cdk.out")},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_alone_makes_a_project_that_is_tested_and_synthesised_twice(
    wheel: Path, tmp_path: Path
) -> None:
    uv("tool", "run", "--from", str(wheel), "holdfast", "init", "shop", cwd=tmp_path)
    shop = tmp_path / "shop"
    assert "2 passed" in uv("run", "pytest", cwd=shop)
    for _ in range(2):  # the second one into the same folder
        uv("run", "python", "app.py", cwd=shop)
    template = json.loads((shop / "cdk.out" / "Shop.template.json").read_text())
    assert "FlowsApiUrl" in template["Outputs"]
    [asset] = (shop / "cdk.out").glob("asset.*")
    assert (asset / "shop" / "buy.asl.json").exists()
    assert (asset / "functions" / "worker" / "app.py").exists()
    assert not (asset / "moto").exists()


def test_the_index_gets_absolute_links_addresses_and_every_python(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [path] = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(path).decode())
    assert not [name for name in names if "simulator" in name.split("/")[0]]
    assert "](docs/" not in metadata.get_payload()
    assert "/blob/main/docs/tutorial.md)" in metadata.get_payload()
    pythons = [one for one in metadata.get_all("Classifier", []) if "Python :: 3.1" in one]
    assert [one.rpartition(" ")[2] for one in pythons] == ["3.11", "3.12", "3.13", "3.14"]
    addresses = {one.partition(",")[0] for one in metadata.get_all("Project-URL", [])}
    assert addresses >= {"Repository", "Documentation", "Changelog", "Issues", "Security"}
