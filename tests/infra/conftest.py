from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infra.deployed import Deployment, deploy
from tests.infra.template import Template

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run one synthesis for the whole run. It takes seconds, so the first of xdist's workers makes
    it.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    directory = shared / "cdk.out"
    with (shared / "cdk.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "manifest.json").exists():
            synthesise(directory, asset=tmp_path_factory.mktemp("asset"))
    return directory


def synthesise(directory: Path, *, asset: Path) -> None:
    (asset / "handler.py").write_text("")
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    subprocess.run(
        [sys.executable, ROOT / "tests/infra/synth.py", asset, directory],
        env={
            **os.environ,
            # The environment's own Node, whatever else the machine has.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CDK_CONTEXT_JSON": json.dumps(context),
        },
        check=True,
        timeout=120,
    )


@pytest.fixture(scope="session")
def template(assembly: Path) -> Template:
    return Template.load(assembly / "Default.template.json")


@pytest.fixture(scope="session")
def chosen(assembly: Path) -> Template:
    """The template with every other choice made; see synth.py."""
    return Template.load(assembly / "Chosen.template.json")


@pytest.fixture(scope="session")
def shop(assembly: Path) -> Template:
    """The template of a user's stack with two Holdfasts in it; see synth.py."""
    return Template.load(assembly / "own" / "Shop.template.json")


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Make one deployment for the whole run: its tests are one group of xdist's."""
    with deploy(tmp_path_factory.mktemp("ministack")) as made:
        yield made
