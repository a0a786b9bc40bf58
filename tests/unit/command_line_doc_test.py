"""docs/reference/command-line.md has each command and each exit code."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.cli import console
from tests.unit.command_line_test import commands

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text("utf-8")


def test_the_page_has_each_command_and_no_other() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(commands())


def test_the_page_has_each_exit_code_and_no_other() -> None:
    codes = [console.FINE, console.NEGATIVE, console.WRONG_USAGE, console.INTERRUPTED]
    assert list(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE))) == codes
