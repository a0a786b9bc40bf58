"""The tutorial: it shows what `holdfast init` writes, and that compiles and passes its tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from holdfast.local import new_project

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


def test_the_programs_of_the_tutorial_behave_as_described(tmp_path: Path) -> None:
    program, tests = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    new_project.create(tmp_path / "shop", "order")
    shop = tmp_path / "shop"
    assert (shop / "shop" / "order.py").read_text(encoding="utf-8") == program
    assert (shop / "tests" / "order_test.py").read_text(encoding="utf-8") == tests
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", shop],
        cwd=shop,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
    checked = subprocess.run(
        [Path(sys.executable).with_name("holdfast"), "check"],
        cwd=shop,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "no problems" in checked.stdout


def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = list(_pages(site["nav"]))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted(pages)


def _pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    if isinstance(entry, dict):
        return [page for value in entry.values() for page in _pages(value)]
    assert isinstance(entry, list)
    return [page for value in entry for page in _pages(value)]
