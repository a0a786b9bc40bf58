"""docs/how-to/talk.md: the page is one program, and its assertions hold."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.dsl_kit import loaded

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "talk.md"


def test_the_programs_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    source = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    with loaded(tmp_path, source):
        assert "assert " in source
