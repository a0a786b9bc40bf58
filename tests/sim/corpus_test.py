"""The corpus: every scenario is valid, names its subject, and ends as the reference predicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.asl.validation.validate import diagnose_to_run
from holdfast_simulator.reference.interpreter import Undecided, expected
from holdfast_simulator.scenarios import Scenario, corpus, read, statemachine_scenarios
from tests.sim.played import Played
from tests.thorough import some

WORKFLOWS = Path(__file__).parents[2] / "statemachines"
CORPUS = corpus()
PATHS = statemachine_scenarios(WORKFLOWS)
ALL = [pytest.param(one, id=one.name) for one in (*CORPUS, *PATHS)]


def test_the_corpus_has_machines_enough_each_with_a_name_and_a_sentence() -> None:
    names = [one.name for one in (*CORPUS, *PATHS)]
    assert len(CORPUS) >= 60
    assert len(set(names)) == len(names)
    assert all(one.about.endswith(".") for one in (*CORPUS, *PATHS))


def test_every_type_of_state_has_its_place_in_the_corpus() -> None:
    text = json.dumps([dict(one.machines) for one in CORPUS])
    kinds = ("Pass", "Task", "Wait", "Choice", "Parallel", "Map", "Succeed", "Fail")
    assert [kind for kind in kinds if f'"Type": "{kind}"' not in text] == []


def test_every_compiled_workflow_has_paths_of_its_own() -> None:
    names = {file.name.partition(".")[0] for file in WORKFLOWS.glob("*.asl.json")}
    assert {one.started for one in PATHS} == names


@pytest.mark.parametrize("scenario", ALL)
def test_a_scenario_can_be_written_down_and_read(scenario: Scenario) -> None:
    assert read(json.loads(json.dumps(scenario.document()))) == scenario


@pytest.mark.parametrize("scenario", some(ALL))
def test_a_scenario_ends_as_the_reference_says(scenario: Scenario) -> None:
    assert [fault for one in scenario.machines.values() for fault in diagnose_to_run(one)] == []
    played = Played(scenario)
    assert played.world.faults == []
    ends = list(played.ends())
    for ruling, came in ends:
        assert came.status != "RUNNING"
        assert expected(scenario, ruling) == came, ruling.workflow
    (root,) = [came for ruling, came in ends if "." not in ruling.run]
    try:
        alone = expected(scenario)
    except Undecided:
        return
    assert alone is not None
    # The cause of a failed expression names an event by its number, which depends on the history.
    assert (alone.status, alone.output, alone.error) == (root.status, root.output, root.error)
