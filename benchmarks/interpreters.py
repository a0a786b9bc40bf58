"""CPU per transition beside other interpreters of ASL: `uv run python benchmarks/interpreters.py`.

Three machines in both query languages (see peers/workloads.py), in memory, no HTTP anywhere. All
peers run in one go, in processes of their own, and take turns round by round; each figure is the
median of a peer's rounds, measured by itself as CPU time, and its ratio to ours in the same run.

Peers live in environments that are made on the first run, below benchmarks/.peers, so that nothing
of theirs stands in this project's lock. One that cannot be installed or started is named, and left
out. PEERS_PYTHON names the Python for theirs (LocalStack asks for 3.13).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
SCRIPTS: Final = HERE / "peers"
ENVIRONMENTS: Final = HERE / ".peers"
sys.path.insert(0, str(SCRIPTS))

from workloads import LANGUAGES, TRANSITIONS, request

ROUNDS: Final = 5
PYTHON: Final = os.environ.get("PEERS_PYTHON", "3.13")
OURS: Final = "holdfast"
MODULE: Final = "aws-local-stepfunctions"

Cell = tuple[str, str]
CELLS: Final[tuple[Cell, ...]] = tuple(
    (workload, language) for language in LANGUAGES for workload in TRANSITIONS
)


# -- environments ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    name: str
    command: tuple[str, ...]


def peers() -> list[Peer]:
    """Ours first; those that can be had, and a line about each that cannot."""
    found = [Peer(OURS, (sys.executable, str(SCRIPTS / "holdfast_core.py")))]
    for make in (_moto, _localstack, _javascript):
        try:
            found.append(make())
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"missing: {make.__name__.strip('_')}: {error}", file=sys.stderr)
    return found


def _moto() -> Peer:
    python = _environment("moto", ("moto[stepfunctions]==5.2.5", "boto3"))
    return Peer("moto 5.2.5", (python, *_emulator("moto.stepfunctions.parser")))


def _localstack() -> Peer:
    python = _environment("localstack", ("localstack-core[runtime]==2026.3.0",))
    return Peer("LocalStack 2026.3", (python, *_emulator("localstack.services.stepfunctions")))


def _emulator(package: str) -> tuple[str, str]:
    return str(SCRIPTS / "emulator.py"), package


def _environment(name: str, packages: tuple[str, ...]) -> str:
    """Return the Python of a peer's environment, which is whole when its marker is there."""
    place = ENVIRONMENTS / name
    python, marker = str(place / "bin" / "python"), place / "installed"
    if not marker.exists():
        _call("uv", "venv", "--quiet", "--clear", "--python", PYTHON, str(place))
        _call("uv", "pip", "install", "--quiet", "--python", python, *packages)
        marker.touch()
    return python


def _javascript() -> Peer:
    place = ENVIRONMENTS / "javascript"
    module = place / "node_modules" / MODULE / "build" / "main.node.esm.js"
    if not module.exists():
        _call("npm", "install", "--silent", "--prefix", str(place), f"{MODULE}@3.0.0")
    node = shutil.which("node") or "node"
    return Peer(f"{MODULE} 3.0.0", (node, str(SCRIPTS / "javascript.mjs"), str(module)))


def _call(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


# -- rounds ----------------------------------------------------------------------------------------


class Running:
    """A peer's process, and what it has answered."""

    def __init__(self, peer: Peer) -> None:
        self.name = peer.name
        self.rounds: dict[Cell, list[float]] = {cell: [] for cell in CELLS}
        self.refused: dict[Cell, str] = {}
        self._process = subprocess.Popen(
            peer.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def play(self, cell: Cell) -> None:
        """One round. A case that a peer has refused is not sent again."""
        if cell in self.refused:
            return
        answer = self._ask(json.dumps(request(*cell)))
        if "cpu_ms" in answer:
            self.rounds[cell].append(answer["cpu_ms"])
        else:
            self.refused[cell] = answer["refused"]

    def _ask(self, line: str) -> Mapping[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(line, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return {"refused": "does not run"}
        answer = self._process.stdout.readline()
        return json.loads(answer) if answer else {"refused": "does not run"}

    def median(self, cell: Cell) -> float | None:
        return statistics.median(self.rounds[cell]) if self.rounds[cell] else None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    running = [Running(peer) for peer in peers()]
    try:
        for _ in range(ROUNDS):
            for cell in CELLS:
                for one in running:
                    one.play(cell)
    finally:
        for one in running:
            one.end()
    _print(running)


def _print(running: list[Running]) -> None:
    ours = running[0]
    print(f"ms of CPU per transition, median of {ROUNDS} rounds (x ours)")
    names = [f"{workload} {language}" for workload, language in CELLS]
    print(f"{'':30}" + "".join(f"{name:>20}" for name in names))
    for one in running:
        print(f"{one.name:30}" + "".join(f"{_shown(one, ours, cell):>20}" for cell in CELLS))
    for one in running:
        for (workload, language), why in one.refused.items():
            print(f"{one.name} refused {workload} {language}: {why}")


def _shown(one: Running, ours: Running, cell: Cell) -> str:
    median, base = one.median(cell), ours.median(cell)
    if median is None or base is None:
        return "-"
    return f"{median:.4f} ({median / base:.1f})"


if __name__ == "__main__":
    main()
