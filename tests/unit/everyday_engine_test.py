"""Everyday collections and texts on the workers of a deployment: dicts by int and by enum, Counter,
defaultdict, groups of matches, texts of lists, reduce.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast.runtime.driver import run
from holdfast.testing import World, real
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.world import SimulatorWorld
from tests.builders import CHANCE, KEYS
from tests.unit.dsl_kit import loaded

SHOP = """
from __future__ import annotations
import re
from collections import Counter, defaultdict
from enum import Enum
from functools import reduce
from typing import Any
from pydantic import BaseModel
from holdfast import parallel, task, workflow

class Status(Enum):
    NEW = "new"
    DONE = "done"

class Page(BaseModel):
    by_number: dict[int, str] = {}
    by_status: dict[Status, list[int]] = {}

@task
def opened(order: str) -> int:
    return len(order)
@task
def closed(order: str) -> int:
    if order == "bad":
        raise ValueError(order)
    return -len(order)
@task
def page_of(by_number: dict[int, str]) -> Page:
    assert all(isinstance(one, int) for one in by_number)
    return Page(by_number=by_number, by_status={Status.DONE: [*by_number]})

HANDLERS = {Status.NEW: opened, Status.DONE: closed}
ORDER = re.compile(r"(?P<name>[a-z]+)-(\\d+)?")

@workflow
def flow(orders: dict[int, str], status: Status, weights: list[float]) -> Any:
    counts = Counter(orders.values())
    groups = defaultdict(list)
    for number, order in orders.items():
        groups[len(order)].append(number)
        counts[order] += HANDLERS[status](order)
    page = page_of(orders)
    results = parallel(lambda: opened("a"), lambda: closed("bad"), return_exceptions=True)
    failed = str(results[1]) if isinstance(results[1], Exception) else ""
    found = ORDER.match(orders.get(7, ""))
    name = found["name"] if found else "none"
    texts = [f"{weights}", f"{orders}", f"{counts.most_common(1)}"]
    total = reduce(lambda so_far, number: so_far * 2 + number, orders, 1)
    return [page, groups, dict(counts), failed, name, texts, total, sorted(page.by_number)]
"""
GIVEN: list[dict[str, Any]] = [
    {"orders": {"7": "tea-12", "-1": "cup", "30": "cup"}, "status": "new", "weights": [2.0, 0.5]},
    {"orders": {}, "status": "done", "weights": []},
]


def test_the_workers_of_a_deployment_do_what_python_does(tmp_path: Path) -> None:
    with loaded(tmp_path, SHOP) as module:
        deployment = Deployment.from_modules([module.__name__], _compiled)
        for given in GIVEN:
            expected = World(others=real).run_json(module.flow, given).end.output
            assert _outcome(deployment, given) == expected


def _compiled(workflow: Any) -> tuple[Any, dict[str, Any]]:
    found = compile_workflow(workflow)
    return found.asl, json.loads(found.map_text)


def _outcome(deployment: Deployment, given: dict[str, Any]) -> Any:
    programs = deployment.programs()
    world = SimulatorWorld(deployment.setting(programs, lambda: KEYS), deployment.run_task)
    front = deployment.front(programs, KEYS)
    request = {"workflow": "flow", "input": given}
    execution = run(front.start("default", request, CHANCE), world.perform)["execution"]
    world.run()
    assert (check(world), lost(world)) == ([], [])
    return {history.run: history.state for history in histories(world)}[execution].output
