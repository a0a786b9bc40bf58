"""The cost of authoring, as ratios in one run: `uv run python benchmarks/compiler.py`.

Two tables, each beside a floor of its own, whose rounds alternate with what is measured:

* CPU of a compile in a warm process, for each workflow of the project. Its floor is Python's own
  compiler on the module of orders, read from a text as well.
* CPU of a fresh process: imports and commands. Its floor is a process that does nothing.

Figures are medians; the ratios are what stays comparable between machines.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from holdfast.api.registry import Registry
from holdfast.api.surface import Workflow
from holdfast.compiler.compile import compile_workflow
from holdfast.local.project import modules_or_default

COMPILE_ROUNDS: Final = 40
PROCESS_ROUNDS: Final = 7
FLOOR: Final = "floor"
ONE_MODULE: Final = "statemachines.order_fulfilment"
COMMAND: Final = "from holdfast.cli import main; raise SystemExit(main())"


def compiles() -> dict[str, Callable[[], object]]:
    """Return the floor, and a compile for each workflow of the project."""
    text = (ROOT / "statemachines" / "orders.py").read_text(encoding="utf-8")
    workflows = Registry.from_modules(modules_or_default([])).workflows
    return {
        FLOOR: lambda: compile(text, "orders.py", "exec"),
        **{name: _compile(workflow) for name, workflow in sorted(workflows.items())},
    }


def _compile(workflow: Workflow[..., Any]) -> Callable[[], object]:
    return lambda: compile_workflow(workflow)


def processes(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the floor, imports, and commands on one module and on all; they write to `folder`."""
    drawn = str(folder)
    return {
        FLOOR: lambda: _run("-c", "pass"),
        "import holdfast": lambda: _run("-c", "import holdfast"),
        "import pydantic": lambda: _run("-c", "from pydantic import BaseModel"),
        "import a workflow": lambda: _run("-c", f"import {ONE_MODULE}"),
        "check, one": lambda: _run("-c", COMMAND, "check", ONE_MODULE),
        "check, all": lambda: _run("-c", COMMAND, "check"),
        "graph, one": lambda: _run("-c", COMMAND, "graph", ONE_MODULE, "--output", drawn),
        "graph, all": lambda: _run("-c", COMMAND, "graph", "--output", drawn),
    }


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def medians(
    works: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Return milliseconds by name. A first round warms up, and does not count."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            begin = clock()
            work()
            if number > 0:
                found[name].append((clock() - begin) * 1_000)
    return {name: statistics.median(times) for name, times in found.items()}


def _children_seconds() -> float:
    """CPU of the processes that have ended: on a busy machine they wait for each other."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(title: str, milliseconds: Mapping[str, float]) -> None:
    print(title)
    for name, median in milliseconds.items():
        ratio = median / milliseconds[FLOOR]
        print(f"{name:22} {median:8.2f} ms   {ratio:6.1f} x the floor")


def main() -> None:
    show("CPU of a compile", medians(compiles(), COMPILE_ROUNDS, time.process_time))
    with TemporaryDirectory() as name:
        works = processes(Path(name))
        show("CPU of a process", medians(works, PROCESS_ROUNDS, _children_seconds))


if __name__ == "__main__":
    main()
