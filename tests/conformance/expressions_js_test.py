"""The expressions of the language's table mean the same to jsonata-js 2.0.6."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.jsonata_js import recording, replay
from tests.unit.dsl_expressions_test import EXPRESSIONS, inputs_of, program_of
from tests.unit.dsl_kit import loaded, run_compiled

pytestmark = pytest.mark.slow


def test_every_kind_of_expression_has_no_unexplained_difference(tmp_path: Path) -> None:
    with recording() as recorder:
        for names, texts in EXPRESSIONS.items():
            with loaded(tmp_path, program_of(names)) as module:
                for number, _ in enumerate(texts):
                    for values in inputs_of(names):
                        run_compiled(getattr(module, f"flow_{number}"), values, {})
    found = replay(recorder.evaluations)
    assert found.expressions > 400
    assert found.differences == []
