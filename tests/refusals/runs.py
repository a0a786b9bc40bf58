"""Many candidates of one kind, counted."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from random import Random
from types import MappingProxyType, ModuleType
from typing import Final

from tests.refusals.candidates import Candidate, grammatical, library, mutants
from tests.refusals.trial import Broken, outcome_of

ROOT: Final = Path(__file__).parents[2]


def run(kind: str, seed: int, programs: int, folder: Path) -> tuple[Counter[str], list[Broken]]:
    """Return the results of the candidates, and the forbidden ones."""
    counts: Counter[str] = Counter()
    broken: list[Broken] = []
    for candidate in islice(KINDS[kind](Random(seed)), programs):
        try:
            counts[outcome_of(candidate.text, candidate.known, folder)] += 1
        except Broken as error:
            counts["broken"] += 1
            broken.append(error)
    return counts, broken


def _mutants(random: Random) -> Iterator[Candidate]:
    return mutants(_modules("tests/golden") + _modules("statemachines"), random)


def _modules(folder: str) -> list[ModuleType]:
    names = sorted(path.stem for path in (ROOT / folder).glob("*.py") if path.stem != "__init__")
    return [importlib.import_module(f"{folder.replace('/', '.')}.{name}") for name in names]


#: Programs of the grammar that are no Python are drawn and counted, too.
KINDS: Final[Mapping[str, Callable[[Random], Iterator[Candidate]]]] = MappingProxyType(
    {"library": library, "mutants": _mutants, "grammatical": grammatical}
)
