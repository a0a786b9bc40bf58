"""The page on limits: its Python is compiled, and its limits hold."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_module
from holdfast.deployment import Deployment
from holdfast.local.stack import deployment_of
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.testing import World, real

PAGE = Path(__file__).parents[2] / "docs/how-to/limits.md"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The page's blocks as one module, as a reader would write them down."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "page_on_limits.py").write_text("\n\n".join(blocks), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("page_on_limits")
    del sys.modules["page_on_limits"]


def test_the_workflow_of_the_page_compiles_and_its_limits_are_those_of_the_stack(
    page: ModuleType,
) -> None:
    compiled = {one.name: one for one in compile_module(page)}
    assert set(compiled) >= {"buy"}
    registry = Registry.from_modules(["page_on_limits"])
    book = Deployment(registry, {}).limits
    rules = book.rules
    assert (rules["bank"].interval_us, rules["bank"].burst) == (50_000, 40)
    assert rules["ledger"].concurrency == 10
    assert book.key_of("customer") == "customer_id"
    assert rules["shared"].weights == {"acme": 4}
    assert (book.batches["notify"].most, book.batches["notify"].wait_ms) == (100, 5_000)


def test_a_workflow_of_the_page_runs_and_the_api_knows_the_limits(page: ModuleType) -> None:
    world = World(dict.fromkeys((page.charge, page.book), real))
    assert world.run(page.buy, "o1", 5).output == "charged o1"
    deployment = deployment_of(["page_on_limits"])
    front = deployment.front(deployment.programs(), SigningKeys("k1", {"k1": bytes(32)}))
    known = {"bank", "customer", "ledger", "onboarding", "orders-table", "shared"}
    assert set(front.known.limits.rules) == known


def test_the_tests_of_the_page_pass(page: ModuleType) -> None:
    tests = [value for name, value in vars(page).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
