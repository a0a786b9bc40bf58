"""The documents against the tree: named files exist, and numbers are the code's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import limits
from holdfast.stepfunctions.api import MODULES, OPERATIONS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DESIGN = (ROOT / "docs" / "explanation" / "step-functions.md").read_text(encoding="utf-8")
COMPATIBILITY = (ROOT / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
MIB = 1024 * 1024


def without_code(text: str) -> str:
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", prose)


def links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
            if not link.startswith("https://"):
                yield page, link


@pytest.mark.parametrize(("page", "link"), sorted(set(links())), ids=str)
def test_the_target_of_each_link_exists(page: Path, link: str) -> None:
    name, _, heading = link.partition("#")
    target = page.parent / name if name else page
    assert target.exists()
    if heading:
        assert heading in headings(target)


def headings(page: Path) -> set[str]:
    """Return the anchors that a page's headings are given."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_module_that_the_design_names_is_there() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", DESIGN))
    assert len(named) > 20
    missing = {
        name
        for name in named
        if not (SOURCE / name).exists() and not (SOURCE / "stepfunctions" / name).exists()
    }
    assert missing == set()


def test_every_module_of_operations_is_in_the_design() -> None:
    files = {module.replace(".", "/") for module in MODULES}
    assert {file for file in files if f"`{file}.py`" not in DESIGN} == set()


def test_the_page_on_the_simulator_names_every_module_of_it_and_no_other() -> None:
    page = (ROOT / "docs" / "explanation" / "simulator.md").read_text(encoding="utf-8")
    named = {name.rpartition("/")[2] for name in re.findall(r"`([a-z_0-9/]+\.py)`", page)}
    simulator = (ROOT / "simulator" / "src").rglob("*.py")
    files = {file.name for file in simulator if not file.name.startswith("__")}
    assert files - named == set()
    planted = {file.name for file in (ROOT / "tests" / "sim").rglob("*.py")}
    assert named - files - planted - {"__init__.py"} == set()


@pytest.mark.parametrize(
    "sentence",
    [
        f"{len(OPERATIONS)} operations",
        f"At most {limits.CHILDREN_AT_ONCE_MAX} children run at once",
        f"at most {limits.READER_ITEMS_MAX:,} items",
        f"may have {limits.READER_BYTES_MAX // MIB} MiB",
        f"At most {limits.MAX_CONCURRENCY_DEFAULT} iterations",
        f"{limits.PAYLOAD_BYTES_MAX // 1024} KiB",
        f"have {limits.BODY_BYTES_MAX // 1_000_000} MB",
    ],
)
def test_a_number_of_the_page_on_compatibility_is_the_codes(sentence: str) -> None:
    assert sentence in " ".join(COMPATIBILITY.split())
