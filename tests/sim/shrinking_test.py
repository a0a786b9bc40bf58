"""A failure shrinks to what matters, and a tape that was written down shows it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.runtime.effects import Doubt, PutIfAbsent
from holdfast.runtime.storage import log
from holdfast_simulator import simulation
from holdfast_simulator.__main__ import main
from holdfast_simulator.reports import write_failure
from holdfast_simulator.runner import Deployed, ScheduleResult, play
from holdfast_simulator.scenarios import Brought, Scenario
from holdfast_simulator.schedule import DrawnTape
from holdfast_simulator.shrinking import shrunk
from holdfast_simulator.swarm import drawn
from tests.builders import call, machine, wait_for

STEPS: Final = Scenario(
    "three steps",
    "one task after another, a wait, and events for other waits.",
    {
        "main": machine(
            {
                "a": call("one", "b"),
                "b": call("two", "paid"),
                "paid": wait_for("paid", "c", TimeoutSeconds=900),
                "c": call("three"),
            }
        )
    },
    {"n": 1},
    events=(Brought(10, "paid", "k2", {}, "e1"), Brought(20, "paid", "k3", {}, "e2")),
)
#: One lost put is all that the bug needs.
CHOICES_MAX: Final = 3
SEEDS_MAX: Final = 500
RATES: Final = {"not done": 0.05, "late": 0.3, "duplicated": 0.2, "delivered again": 0.2}


def believe_a_doubt(patch: pytest.MonkeyPatch) -> None:
    """Continue without an answer as if the record had been written."""

    def believe(table: Any, item: Any) -> Any:
        try:
            return (yield PutIfAbsent(table, item)) is None
        except Doubt:
            return True

    patch.setattr(log, "put_surely", believe)
    # A log that cannot be read keeps every worker busy for weeks.
    patch.setattr(simulation, "TURNS_MAX", 500)


def _failure(choices_min: int) -> ScheduleResult:
    """The first failure of one lost put with something in it to leave out."""
    for seed in range(SEEDS_MAX):
        chosen = replace(drawn(seed), rates=RATES, safety_ms=200_000, redrive_percent=0)
        result = play(Deployed(STEPS), chosen, DrawnTape(seed))
        lost = [answer for _, _, answer in result.choices].count("not done")
        if result.violations and lost == 1 and len(result.choices) >= choices_min:
            print(f"seed {seed}: {len(result.choices)} choices, {result.violations[0]}")
            return result
    raise AssertionError(f"no failure in {SEEDS_MAX} seeds")


def test_a_bug_of_one_fault_shrinks_to_a_tape_of_three_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    believe_a_doubt(monkeypatch)
    failed = _failure(choices_min=8)
    least = shrunk(failed)
    print(least.choices)
    assert {one.invariant for one in least.violations} & {failed.violations[0].invariant}
    assert len(least.choices) <= CHOICES_MAX
    assert "not done" in {answer for _, _, answer in least.choices}
    assert least.scenario.events == ()


def test_a_failure_that_was_written_down_is_shown_again_by_its_tape(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        believe_a_doubt(patch)
        write_failure("seed 1: main", _failure(choices_min=1), tmp_path)
        (file,) = tmp_path.iterdir()
        capsys.readouterr()
        assert main(["--tape", str(file)]) == 1
        told = capsys.readouterr().out
    document = json.loads(file.read_text())
    assert f"trace: {document['trace']}" in told
    assert f"VIOLATED {document['violations'][0]}" in told
    assert main(["--tape", str(file)]) == 0  # without the bug


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tape", "/nowhere"], "/nowhere cannot be read"),
        (["--tape", __file__], "is no JSON"),
        (["--merge", __file__], "is no JSON"),
        (["--level", "9"], "invalid choice: 9"),
        (["--level", "0", "--tape", "x"], "exclude each other"),
        (["--schedules", "-1"], "'-1' is no whole number"),
        (["--schedules", "many"], "'many' is no whole number"),
        (["--part", "3/2", "--level", "0"], "there is no part 3 of 2"),
        (["--part", "1/2"], "say --level or --schedules too"),
        (["--processes", "0"], "at least 1 is needed"),
        (["--to", "/nowhere"], "there is no such directory"),
        (["--report", "/nowhere/at/all.json"], "its directory does not exist"),
    ],
)
def test_a_wrong_option_is_answered_by_a_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_reports_of_parts_sum_to_the_report_of_the_whole(tmp_path: Path) -> None:
    def report(name: str, *options: str) -> dict[str, Any]:
        path = tmp_path / f"{name}.json"
        assert main([*options, "--processes", "1", "--report", str(path)]) == 0
        found = json.loads(path.read_text())
        return {key: found[key] for key in ("schedules", "effects", "traces", "marks", "ends")}

    whole = report("whole", "--schedules", "30")
    report("one", "--schedules", "10")
    report("two", "--seed", "10", "--schedules", "20")
    halves = [str(tmp_path / f"{name}.json") for name in ("one", "two")]
    assert main(["--merge", *halves, "--report", str(tmp_path / "sum.json")]) == 0
    found = json.loads((tmp_path / "sum.json").read_text())
    assert {key: found[key] for key in whole} == whole
    assert len(found["runs"]) == 2


def test_a_sum_of_parts_says_which_are_missing_or_were_given_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def part(number: int) -> str:
        path = tmp_path / f"{number}.json"
        main(["--schedules", "3", "--part", f"{number}/3", "--report", str(path)])
        return str(path)

    first, second = part(1), part(2)
    assert main(["--merge", first, second, second]) == 1
    said = capsys.readouterr().out.splitlines()[-2:]
    assert said == [
        "PART 2 of 3, random schedules from seed 0: 2 times",
        "PART 3 of 3, random schedules from seed 0: missing",
    ]
    assert main(["--merge", first, second, part(3)]) == 0
