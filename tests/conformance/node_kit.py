"""Programs of other people that run on Node, asked by lines of JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SECONDS_MAX = 300


def ask(script: str, package: str, questions: Iterable[Any]) -> list[Any]:
    """Return the answer to each question, from one process. Skips where the npm package is
    missing.
    """
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    node = shutil.which("node", path=commands)
    if node is None or not (ROOT / "node_modules" / package).is_dir():
        pytest.skip(f"needs Node and {package}: `npm ci` brings what package.json names")
    lines = [json.dumps(question) for question in questions]
    ran = subprocess.run(
        [node, HERE / script],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    answers = [json.loads(line) for line in ran.stdout.split("\n") if line]
    assert len(answers) == len(lines)
    return answers
