"""The page on migrations: its workflow is the new version of one that waits."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast_simulator.invariants import check
from tests.unit.migration_kit import TwoVersions, compiled
from tests.unit.migration_test import work
from tests.unit.pausing_test import settle

PAGE = Path(__file__).parents[2] / "docs/how-to/migrate.md"


def test_the_loans_of_the_page_get_the_new_check(tmp_path: Path) -> None:
    page, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    before = (
        page.replace(', renamed={"answer": "decision"}', "")
        .replace("decision", "answer")
        .replace("    if not compliance_check(loan, cents):\n", "")
        .replace('        return "not compliant"\n', "")
    )
    old, new = (compiled(tmp_path, source, header="") for source in (before, page))
    assert "compliance_check" not in old.tasks
    shop = TwoVersions(old, new, work)
    run = shop.begun({"loan": "l-1", "cents": 5})
    shop.deploy()
    assert shop.migrate(run)["moves"]
    settle(shop)
    shop.answer(run, output=True)
    shop.world.run()
    assert shop.scheduled(run, "compliance_check") == 1
    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert check(shop.world) == []


def test_the_parts_of_the_page_are_computed_for_older_loans(tmp_path: Path) -> None:
    _, page = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    older = page.partition("@migrates")[0].replace("list[int]", "int")
    older = older.replace("    parts = [cents // 2, cents - cents // 2]\n", "")
    old = compiled(tmp_path, older.replace("transfer(loan, parts)", "transfer(loan, cents)"), "")
    shop = TwoVersions(old, compiled(tmp_path, page, header=""), work)
    run = shop.begun({"loan": "k1", "cents": 5})
    shop.deploy()
    assert shop.reasons(run) == []
