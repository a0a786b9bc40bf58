"""One program, several generated worlds: inputs and outcomes are drawn, both runs compared."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import linecache
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

from holdfast.api.surface import Workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.local.proving import subjects_of_modules
from holdfast.testing import Difference, World, never, real, takes
from holdfast.testing.definitions import definition_of, program_of
from holdfast.testing.outcomes import Outcome
from holdfast.testing.places import WaitingPlace
from holdfast.testing.script import Script
from tests.differential import everyday, shop
from tests.differential.choices import Choices
from tests.differential.mutations import mutated
from tests.differential.programs import HEADER, program

_numbers = itertools.count()

INPUTS: dict[str, list[Any]] = {
    "who": ["ann"],
    "rounds": [0, 1, 2],
    "n": [1, 0, 7, -2],
    "m": [2, 1, -3],
    "b": [True, False],
    "s": ["a", "", "k", "Small", "a,b"],
    "o": [None, "k", ""],
    "xs": [[3, 1], [], [5], [0, 0, 2]],
    "ss": [["a", "b"], [], ["k"]],
    "xss": [[[1], [2, 3]], [], [[]]],
    "d": [{"a": 1}, {}, {"k": 2, "a": 0}],
    "line": [{"sku": "a"}, {"sku": "", "qty": 0}, {"sku": "b", "tags": ["q", "r"]}],
    "lines": [[{"sku": "x", "qty": 2, "tags": ["t"]}, {"sku": "y"}], [], [{"sku": "x"}]],
    "order": [
        {
            "id": "0b8e1c9e-4a1c-4f39-9f6a-2f7a3d0c1d11",
            "price": "12.50",
            "placed": "2026-01-01T08:00:00Z",
            "lines": [{"sku": "x", "qty": 2}],
            "notes": {"a": "b"},
        },
        {
            "id": "0b8e1c9e-4a1c-4f39-9f6a-2f7a3d0c1d12",
            "price": "0",
            "placed": "2025-12-31T23:59:59.123456+02:00",
            "due": "2026-02-01",
            "grace": "PT90S",
            "colour": "blue",
            "level": 2,
            "kind": "b",
            "coupon": "k",
        },
    ],
    "colour": ["red", "blue"],
    "size": ["s", "l"],
    "level": [1, 2],
    "at": ["2026-01-01T00:00:10Z", "2020-01-01T00:00:00Z", "2026-01-01T06:00:00+01:00"],
    "price": ["1.10", "-3"],
    "uid": ["0b8e1c9e-4a1c-4f39-9f6a-2f7a3d0c1d13"],
    "day": ["2026-01-02"],
    "grace": ["PT1H", "P1DT5S", "PT0S", "-PT10S"],
    "pay": [{"kind": "card", "digits": "42"}, {"kind": "transfer", "iban": "a"}],
    "mixed": ["a", None, {"sku": "b", "qty": 2}, {"iban": "a"}, {"iban": "c", "cents": 4}, ""],
    **everyday.INPUTS,
}
#: Results of tasks with other types than those above.
_RESULTS: dict[str, list[Any]] = {
    "careful": INPUTS["s"],
    "basket_of": [
        {"lines": [{"sku": "b", "qty": 3}, {"sku": "a", "tags": ["t"]}], "notes": {"a": 1}},
        {"best": {"sku": "z", "qty": 0}, "groups": {"a": [1], "k": []}},
        {},
    ],
    "name_of": INPUTS["o"],
    "order_of": INPUTS["order"],
    "patience": ["PT1S", "PT0S", "PT2M", "-PT5S", "P1D"],
}
_ERRORS = (shop.Small, shop.Problem, shop.Other, RuntimeError, shop.Coded, shop.Marked)
_SECONDS = (0, 0, 1, 1, 1, 20, 20, 200, 4_000, 90_000)
_CALLS_MAX = 400
#: An expression without a name for its error, such as a sum of two dicts, rejects a request under
#: another name than in Python, which the language page says.
_UNNAMED = re.compile(r"compiled: .* reply .*'error': 'States\.QueryEvaluationError'")


class TooLong(Exception):  # noqa: N818
    """A program that continues for as long as its tasks let it."""


class DrawnWorld(World):
    """Outcomes are drawn: mostly values, sometimes errors and time-outs."""

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self._choices = choices
        self._calls = 0
        #: In a hundred attempts; a world without them gets further.
        self._errors = choices.pick([0, 8, 25])
        if choices.chance(15):
            seconds = choices.pick(_SECONDS)
            self.stop(at=timedelta(seconds=seconds, milliseconds=1 + choices.below(900)))

    def _script(self, workflow: Workflow[..., Any]) -> Script:
        return replace(super()._script(workflow), draw=self._draw)

    def _draw(self, place: WaitingPlace, _number: int) -> Outcome:
        self._calls += 1
        if self._calls > _CALLS_MAX:
            raise TooLong
        if place.kind == "pure":
            return real
        pause = timedelta(
            seconds=self._choices.pick(_SECONDS), milliseconds=self._calls * 37 % 1_000
        )
        if place.timeout_ms is not None and self._choices.chance(8):
            return never
        if place.kind == "task" and self._choices.chance(self._errors):
            return takes(pause, self._choices.pick(_ERRORS)(f"e{self._calls}"))
        return takes(pause, self._value(place))

    def _value(self, place: WaitingPlace) -> Any:
        if place.kind in ("event", "ask"):
            return self._payload(place.subject)
        if place.name in _RESULTS:
            return self._choices.pick(_RESULTS[place.name])
        return None if place.subject.boundary.returns_nothing else self._choices.below(9) - 2

    def _payload(self, type_: Any) -> Any:
        if get_origin(type_) is tuple:  # a request: its id, and the data
            return [f"request-{self._calls}", self._payload(get_args(type_)[1])]
        if type_ is shop.Line:
            return self._choices.pick(INPUTS["line"])
        if type_ == shop.Card | shop.Transfer:
            return self._choices.pick(INPUTS["pay"])
        if type_ is int:
            return self._choices.below(5)
        if type_ is bool:
            return self._choices.chance(50)
        if type_ is shop.Answer:
            return {"yes": self._choices.chance(80), "note": f"e{self._calls}"}
        return self._choices.pick(INPUTS["lines"])


@contextmanager
def loaded(folder: Path, source: str) -> Iterator[ModuleType]:
    name = f"generated_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]
        linecache.cache.pop(str(path), None)
        path.unlink()


def source_of(choices: Choices, counts: Counter[str], *, is_changed: bool = False) -> str:
    """Return a program, with small changes for `is_changed`."""
    source = program(choices, counts)
    return mutated(source, choices) if is_changed else source


def compare(
    choices: Choices, folder: Path, runs: int, counts: Counter[str], *, is_changed: bool = False
) -> str:
    """Return "" or "refused"; raises Difference. The world's choices follow the program's."""
    with loaded(folder, HEADER + source_of(choices, counts, is_changed=is_changed)) as module:
        try:
            program_of(module.flow)
        except CompileErrors as errors:
            counts["refused"] += 1
            for code in {one.code for one in errors.diagnostics}:
                counts[f"refused {code}"] += 1
            return "refused"
        # `holdfast check` prints a report of every accepted program.
        (report,) = subjects_of_modules([module.__name__], [definition_of(module.flow)])
        assert report.render()
        parameters = inspect.signature(module.flow.function).parameters
        for _ in range(runs):
            given = {name: choices.pick(INPUTS[name]) for name in parameters}
            try:
                ended = DrawnWorld(choices).run_json(module.flow, given)
            except TooLong:
                counts["runs given up"] += 1
                continue
            except Difference as found:
                if not _UNNAMED.search(str(found)):
                    raise
                counts["runs with an unnamed rejection"] += 1
                continue
            counts["runs"] += 1
            counts[f"runs {ended.status}"] += 1
    counts["accepted"] += 1
    return ""


def failure(
    given: Sequence[int], folder: Path, runs: int, *, is_changed: bool = False
) -> str | None:
    """Return the difference that these choices show; None when both runs are equal."""
    choices = Choices(given=given)
    try:
        compare(choices, folder, runs, Counter(), is_changed=is_changed)
    except Difference as difference:
        return f"Difference: {difference}"
    except Exception as error:  # noqa: BLE001 - a crash is a finding, too
        return f"{type(error).__name__}: {error}"
    return None
