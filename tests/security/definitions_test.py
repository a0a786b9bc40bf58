"""An invalid definition is refused, and the first finding names the error and its place."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any

import pytest

from holdfast.asl.parsing.parse import DefinitionError, parse_definition
from holdfast.asl.validation.validate import DefinitionProblem, diagnose
from tests.security import definitions_generated, definitions_machines, definitions_states
from tests.security.cases import Case, each, run_generated, time_limit
from tests.thorough import examples

assert definitions_generated  # registers the generators

ROWS: tuple[Case, ...] = tuple(
    chain(
        definitions_machines.TEXT,
        definitions_machines.MACHINE,
        definitions_machines.TRANSITIONS,
        definitions_machines.EXTENSIONS,
        definitions_states.TYPES,
        definitions_states.RETRY,
        definitions_states.CHOICE,
        definitions_states.PARALLEL,
        definitions_states.EXPRESSIONS,
    )
)


def code_of(found: tuple[DefinitionProblem, ...]) -> str:
    """'SCHEMA_VALIDATION_FAILED /States/A', 'INVALID_JSON_DESCRIPTION 1:8', 'accepted'"""
    if not found:
        return "accepted"
    place = found[0].location or ""
    at = re.search(r"line: (\d+), column: (\d+)\]\Z", place)
    return f"{found[0].code} {f'{at[1]}:{at[2]}' if at else place}".strip()


@each(*ROWS)
def test_a_definition_is_refused_with_the_code_and_the_place_of_its_error(case: Case) -> None:
    text = case.given if isinstance(case.given, str) else json.dumps(case.given)
    with time_limit():
        assert code_of(diagnose(text)) == case.code


@each(*(case for case in ROWS if not isinstance(case.given, str)))
def test_a_document_that_is_refused_as_text_becomes_no_program_either(case: Case) -> None:
    document: Any = case.given
    with time_limit():
        if (
            case.code == "accepted"
            or case.code.startswith("MISSING_END_STATE")
            or "is not reachable" in diagnose(document)[0].message
        ):
            assert parse_definition(document).states
        else:
            with pytest.raises(DefinitionError) as refused:
                parse_definition(document)
            assert str(refused.value).startswith("error[HF100]: the definition does not validate: ")


def _is_about_the_end(found: DefinitionProblem) -> bool:
    """Return True for a definition that is refused today; one that was stored earlier
    still runs.
    """
    return found.code == "MISSING_END_STATE" or found.message.endswith("is not reachable.")


def test_changed_definitions_are_refused_or_run() -> None:
    tally = run_generated("definitions", 250, seed=1)
    # It would prove little if all were refused, or all were accepted.
    assert min(tally.refused, tally.accepted) > 10


def test_random_programs_are_refused_or_compiled() -> None:
    assert run_generated("python", examples(60), seed=1).refused > examples(10)
