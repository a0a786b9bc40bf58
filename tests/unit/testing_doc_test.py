"""The examples of docs/how-to/testing.md, run by pytest as a reader would run them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.thorough import worlds

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "testing.md"
#: The history of one execution of the page's workflow.
HISTORY = Path(__file__).parents[1] / "golden" / "recorded" / "order-17.json"
HEADER = """
from __future__ import annotations
import uuid
from pathlib import Path
from uuid import UUID
from pydantic import BaseModel
from holdfast import (
    Retry, TaskError, ask, compensating, days, hours, minutes, role, seconds, task, wait_for_event,
    workflow,
)
from holdfast.testing import (
    World, check_workflow, fails, in_turn, never, real, replay, takes,
)
"""


def test_every_example_of_the_page_runs(tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "page_test.py").write_text("\n".join([HEADER, *snippets]), encoding="utf-8")
    (tmp_path / "histories").mkdir()
    shutil.copy(HISTORY, tmp_path / "histories")
    ini = tmp_path / "pytest.ini"
    ini.write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ini), "-p", "no:cacheprovider"]
    # An editable install that is older than the entry point does not have it.
    plugin = [] if _is_installed() else ["-p", "holdfast.pytest_plugin"]
    options = [f"--holdfast-examples={worlds(20)}", "--holdfast-seed=1", str(tmp_path)]
    run = subprocess.run(
        [*command, *plugin, *options], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(re.findall('def test_', ''.join(snippets)))} passed" in run.stdout


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(point.name == "holdfast" for point in entry_points(group="pytest11"))
