"""The page on questions: its workflow runs, and its form has the fields of the answer."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast import hours, role
from holdfast.api.boundary import schema_of
from holdfast.testing import World
from tests.unit.dsl_kit import loaded

PAGE = Path(__file__).parents[2] / "docs/how-to/people.md"


def test_the_workflow_of_the_page_asks_a_manager(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with loaded(tmp_path, program) as page:
        world = World()
        answer = page.Decision(approved=True)
        world.answer("Approve e1?", answer, assignee=role("manager"), at=hours(47))
        assert world.run(page.approve, "e1", 5).output is True
        assert set(schema_of(page.Decision)["properties"]) == {"approved", "note"}
