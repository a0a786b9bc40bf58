"""Pictures of state machines, read back from the text that is drawn."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from holdfast.errors import WorkflowError
from holdfast.pictures.mermaid import draw_mermaid
from holdfast.pictures.model import Look, Mark
from holdfast.pictures.read import read_drawing
from tests.thorough import some
from tests.unit.pictures_kit import Picture, check, draw, levels_of, random_machine

ROOT = Path(__file__).parents[2]
OURS = sorted((ROOT / "statemachines").glob("*.asl.json"))
IMAGES = ROOT / "docs" / "images"
IMAGE_BYTES_MAX = 120_000
NAMES = (
    'say "hi" & <b>bold</b>',
    "🎉 party 👩‍👩‍👧",
    "مرحبا بالعالم",
    "漢字の長い名前をここに書いてみましょうもっと長く",
    "a" * 80,
    "control\x01\u202ebreak\nand tab\t",
    "]]> --> ` #35; %% {{ }} | end",
    "\ud800 alone",
)


def machine(*states: dict[str, Any], **top: Any) -> Any:
    """Return states named A, B, C …; each continues to the next unless it names another."""
    names = [chr(ord("A") + number) for number in range(len(states))]
    found = {}
    for name, following, state in zip(names, [*names[1:], None], states, strict=True):
        is_over = state["Type"] in {"Choice", "Succeed", "Fail"} or state.keys() & {"Next", "End"}
        onwards = {} if is_over else {"Next": following} if following else {"End": True}
        found[name] = {**state, **onwards}
    return {"StartAt": "A", "States": found, **top}


TASK = {"Type": "Task", "Resource": "holdfast:task:charge"}
PASS = {"Type": "Pass"}


def one(name: str, state: dict[str, Any] = PASS) -> Any:
    return {"StartAt": name, "States": {name: {**state, "End": True}}}


# -- rules for every picture -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(40)))
def test_nothing_overlaps_and_no_line_runs_through_a_box_in_any_machine(seed: int) -> None:
    definition = random_machine(seed, 4 + seed)
    print(f"seed {seed}")
    check(definition, draw(definition))


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_the_workflows_of_the_project_are_drawn_with_their_lines(path: Path) -> None:
    definition = json.loads(path.read_text())
    source_map = json.loads(path.with_name(path.name.replace(".asl.", ".map.")).read_text())
    picture = draw(definition, source_map)
    assert set(picture.boxes) == {name for states in levels_of(definition) for name in states}
    for name, source in source_map["sources"].items():
        assert f"{source['file']}:{source['line']}" in picture.titles[name]
    assert picture.text.count('class="source"') == len(source_map["sources"])


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_drawn_as_text_and_nothing_else(name: str) -> None:
    definition = {
        "Comment": name,
        "StartAt": name,
        "States": {
            name: {
                "Type": "Choice",
                "Choices": [{"Variable": "$.x", "StringEquals": name, "Next": "on"}],
                "Default": "on",
            },
            "on": {"Type": "Fail", "Error": name},
        },
    }
    picture = draw(definition, {"sources": {name: {"file": name, "line": 1, "text": name}}})
    picture.text.encode()
    assert len(picture.boxes) == 2
    assert "<b>" not in picture.text
    mermaid = draw_mermaid(read_drawing(definition))
    mermaid.encode()
    assert '"' not in re.sub(r'(?<=[\[{|])"[^"]*"(?=[\]}|])', "", mermaid)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the pictures that the command draws now."""
    folder = tmp_path_factory.mktemp("pictures")
    modules = sorted(f"statemachines.{path.stem}" for path in (ROOT / "statemachines").glob("*.py"))
    assert main(["graph", *modules, "--output", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("image", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.name)
def test_the_pictures_of_the_documents_are_those_of_the_command(image: Path, drawn: Path) -> None:
    """If not: `holdfast graph --output docs/images`."""
    assert (drawn / image.name).read_text() == image.read_text()
    assert image.stat().st_size < IMAGE_BYTES_MAX


def test_the_same_definition_gives_the_same_bytes() -> None:
    definition = random_machine(7, 40)
    assert draw(definition).text == draw(json.loads(json.dumps(definition))).text


def test_the_picture_grows_with_the_machine_and_not_faster() -> None:
    sizes = []
    for count in (60, 300):
        states: dict[str, Any] = {
            f"s{n}": {**TASK, "Next": f"s{n + 1}", "Catch": [{"ErrorEquals": ["E"], "Next": "h"}]}
            for n in range(count)
        }
        states |= {f"s{count}": {"Type": "Succeed"}, "h": {"Type": "Fail"}}
        definition = {"StartAt": "s0", "States": states}
        picture = draw(definition)
        check(definition, picture)
        sizes.append(sum(len(line.points) for line in picture.lines) / count)
    assert sizes[1] < 1.1 * sizes[0]


def test_the_way_that_goes_well_is_straight() -> None:
    definition = machine(
        {"Type": "Choice", "Choices": [{"Condition": "{% $a %}", "Next": "D"}], "Default": "B"},
        {**TASK, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "E"}]},
        {"Type": "Succeed"},
        {"Type": "Succeed"},
        {"Type": "Fail", "Error": "Bad"},
    )
    picture = draw(definition)
    boxes = picture.boxes
    middles = {name: round((box.left + box.right) / 2) for name, box in boxes.items()}
    assert middles["A"] == middles["B"] == middles["C"]
    assert all(len(set(xs)) == 1 for xs in _xs(picture, "AB", "BC"))
    assert boxes["E"].left > boxes["B"].right  # Boxes that only errors reach are on the right


def test_the_way_that_goes_well_stays_straight_where_others_come_in() -> None:
    definition = machine(
        {"Type": "Choice", "Choices": [{"Condition": "{% $a %}", "Next": "C"}], "Default": "B"},
        {**PASS, "Next": "F"},
        {**PASS, "Next": "D"},
        {**PASS, "Next": "E"},
        {**PASS, "Next": "F"},
        {"Type": "Succeed"},
    )
    assert all(len(set(xs)) == 1 for xs in _xs(draw(definition), "AC", "CD", "DE", "EF"))


def _xs(picture: Picture, *ways: str) -> list[list[float]]:
    lines = {line.source + line.target: line for line in picture.lines}
    return [[x for x, _ in lines[way].points] for way in ways]


# -- texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({"Condition": "{% $order.paid %}"}, "order.paid"),
        ({"Condition": "{% $count($x) > 1 %}"}, "$count(x) > 1"),
        ({"Condition": '{% $failure.Error in ["A", "States.Timeout"] %}'}, "A or timeout"),
        ({"Variable": "$.n", "NumericGreaterThanEquals": 5}, "$.n ≥ 5"),
        ({"Variable": "$.s", "StringEquals": "yes"}, '$.s = "yes"'),
        ({"Variable": "$.s", "StringEqualsPath": "$.t"}, "$.s = $.t"),
        ({"Variable": "$.b", "BooleanEquals": True}, "$.b = true"),
        ({"Variable": "$.p", "IsPresent": False}, "$.p is not present"),
        ({"Not": {"Variable": "$.p", "IsNull": True}}, "not $.p is null"),
        (
            {"Or": [{"Variable": "$.a", "IsNull": True}, {"Variable": "$.b", "IsNull": True}]},
            "$.a is null or $.b",
        ),
    ],
)
def test_a_choice_says_its_conditions(rule: dict[str, Any], word: str) -> None:
    definition = machine(
        {"Type": "Choice", "Choices": [{**rule, "Next": "B"}], "Default": "C"},
        {"Type": "Succeed"},
        {"Type": "Succeed"},
    )
    picture = draw(definition)
    assert any(said.startswith(word) for said in picture.words), picture.words
    assert "otherwise" in picture.words


def test_many_errors_are_counted_beside_the_line_and_named_in_its_tooltip() -> None:
    names = ["ValueError", "A", "B", "C"]
    catch = [{"ErrorEquals": names, "Next": "B"}]
    picture = draw(machine({**TASK, "Catch": catch, "End": True}, {"Type": "Fail"}))
    assert "ValueError or 3 more" in " ".join(picture.words)
    assert "ValueError or A or B or C" in picture.text


def test_a_compiled_question_is_answered_with_yes_and_no() -> None:
    definition = {
        "StartAt": "if order.paid",
        "States": {
            "if order.paid": {
                "Type": "Choice",
                "Choices": [{"Condition": "{% $order.paid %}", "Next": "ship"}],
                "Default": "return None",
            },
            "ship": {**TASK, "Next": "return None"},
            "return None": {"Type": "Succeed"},
        },
    }
    source = {"file": "shop/orders.py", "line": 42, "text": "if order.paid:"}
    picture = draw(definition, {"sources": {"if order.paid": source}})
    assert {"yes", "no", "orders.py:42", "charge"} <= set(picture.words)


def test_tasks_say_how_long_and_how_often() -> None:
    retry = [{"ErrorEquals": ["Busy"], "MaxAttempts": 4}]
    waiting = {"Type": "Task", "Resource": "holdfast:ask.waitForTaskToken"}
    picture = draw(
        machine(
            {**TASK, "Retry": retry, "TimeoutSeconds": 90},
            {**waiting, "TimeoutSeconds": 259200},
            {"Type": "Wait", "Seconds": 3600},
            {"Type": "Wait", "Timestamp": "{% $when %}"},
        )
    )
    assert {"charge · up to 90 seconds", "retry 4\u00d7"} <= set(picture.words)
    assert {"up to 3 days", "1 hour", "until when"} <= set(picture.words)
    assert "Retried on Busy: up to 4 times" in picture.titles["A"]
    assert picture.classes["B"] >= {"ask"}


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        ({"Needed": 1, "Tolerated": 0}, "the first to end decides"),
        ({"Needed": 2, "Tolerated": 1}, "at least 2 of 3 · tolerates 1 failure"),
        ({"Tolerated": 2}, "tolerates 2 failures"),
        ({"Tolerated": 2, "ReturnErrors": True}, "errors are results · tolerates 2 failures"),
        (
            {
                "Needed": '{% ($_v := $n >= 1 ? $n : $error("n"); $_v < 9 ? $_v : $error("9")) %}',
                "Tolerated": "{% $count($all) - $n %}",
            },
            "at least n of 3",
        ),
        ({"Tolerated": "{% $n %}"}, "tolerates n failures"),
        ({"Tolerated": "{% $floor($n / 2) %}"}, "tolerates a computed number of failures"),
        (
            {"Needed": "{% $count($all) %}", "Tolerated": "{% 3 - $count($all) %}"},
            "at least a computed number of 3",
        ),
    ],
)
def test_a_race_and_a_quorum_stand_on_the_frame(marked: dict[str, int], said: str) -> None:
    branches = [one(name) for name in ("x", "y", "z")]
    picture = draw(machine({"Type": "Parallel", "Branches": branches, "Holdfast": marked}))
    assert said in picture.words


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        ({"Seconds": "{% $days * 86400 %}"}, "days * 86400 seconds"),
        ({"Seconds": "{% $max([0, $n * 60]) %}"}, "a computed time"),
        ({"Seconds": '{% ($_v := $n * 60; $_v >= 1 ? $_v : $error("n")) %}'}, "n * 60 seconds"),
        ({"Timestamp": '{% $n = "Z" ? $n : $error("naive") %}'}, "until n"),
        ({"Timestamp": "{% $now() %}"}, "until a computed time"),
    ],
)
def test_a_time_that_takes_jsonata_to_read_is_computed(wait: dict[str, str], said: str) -> None:
    assert said in draw(machine({"Type": "Wait", **wait})).words


def test_branches_that_wait_for_others_stand_below_them() -> None:
    branches = [one(name) for name in ("x", "y", "z")]
    after = {"After": [[], [0], [0, 1]]}
    boxes = draw(machine({"Type": "Parallel", "Branches": branches, "Holdfast": after})).boxes
    assert boxes["x"].bottom < boxes["y"].top
    assert boxes["y"].bottom < boxes["z"].top


def test_undo_deadline_and_shield_are_to_be_seen() -> None:
    definition = machine(
        {**TASK, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C"}]},
        {"Type": "Succeed"},
        {**TASK, "Next": "D"},
        {"Type": "Fail", "Error": "Undone"},
        PASS,
        Holdfast={
            "Undo": [{"States": ["A"], "Begin": "C", "End": "D"}],
            "Shielded": [["C"]],
            "Deadlines": [{"Begin": "A", "Seconds": "{% 1800 %}", "States": ["A"], "Next": "E"}],
        },
    )
    picture = draw(definition)
    assert "undo" in picture.classes["C"]
    assert {"handler", "fail"} <= picture.classes["D"]
    assert "charge · deadline 30 minutes" in picture.words
    assert "charge · shielded" in picture.words
    assert "When it is cancelled here: C" in picture.titles["A"]
    late = [line for line in picture.lines if line.kind == "deadline"]
    assert [(line.source, line.target) for line in late] == [("A", "E")]


def test_an_undo_in_a_branch_is_to_be_seen_too() -> None:
    branch = one("X")
    branch["States"] |= {"U": {**TASK, "Next": "V"}, "V": {"Type": "Fail"}}
    definition = machine(
        {"Type": "Parallel", "Branches": [branch]},
        Holdfast={"Undo": [{"States": ["X"], "Begin": "U", "End": "V"}]},
    )
    assert "undo" in draw(definition).classes["U"]


def test_marks_show_the_states_of_an_execution() -> None:
    look = Look(marks={"A": Mark("succeeded", 3), "B": Mark("running")})
    picture = draw(machine(TASK, TASK, {"Type": "Succeed"}), look=look)
    assert "succeeded" in picture.classes["A"]
    assert "running" in picture.classes["B"]
    assert "not_reached" in picture.classes["C"]
    assert "3\u00d7" in picture.words
    assert "succeeded (3 times)" in picture.titles["A"]


def test_lines_are_links_only_where_a_prefix_is_given() -> None:
    source_map = {"sources": {"A": {"file": 'a dir/o"rders.py', "line": 7, "text": "x"}}}
    definition = machine(PASS)
    assert "<a " not in draw(definition, source_map).text
    linked = draw(definition, source_map, Look(link_prefix="https://example.org/main/")).text
    assert '<a href="https://example.org/main/a%20dir/o%22rders.py#L7">' in linked


def test_a_picture_has_a_text_alternative_and_no_script() -> None:
    text = draw(machine(PASS), None).text
    assert 'role="graphics-document document"' in text
    assert "<title>state machine</title>" in text
    assert "<desc>State machine state machine with 1 state.</desc>" in text
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"<script|@import|url\(|\son\w+=", text)


def test_mermaid_has_subgraphs_for_branches_and_dashes_for_errors() -> None:
    branches = [one("x"), one("y", {"Type": "Map", "ItemProcessor": one("z")})]
    catch = [{"ErrorEquals": ["Bad"], "Next": "B"}]
    definition = machine(
        {"Type": "Parallel", "Branches": branches, "Catch": catch, "End": True}, {"Type": "Fail"}
    )
    text = draw_mermaid(read_drawing(definition))
    assert text.startswith("flowchart TD\n")
    assert text.count("subgraph") == text.count("    end\n") == 4
    assert 's0 -.->|"Bad"| s4' in text


# -- definitions that cannot be drawn --------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        (None, "/ is missing"),
        ([], "/ is a list"),
        ({}, "/States is missing"),
        ({"StartAt": "A", "States": {}}, "/States is an object"),
        ({"StartAt": "B", "States": {"A": {"Type": "Pass"}}}, '/StartAt is "B"'),
        ({"StartAt": "A", "States": {"A": 7}}, "/States/A is 7"),
        ({"StartAt": "A", "States": {"A": {"Type": "Jump"}}}, '/States/A/Type is "Jump"'),
        (machine({"Type": "Pass", "Next": "Z"}), '/States/A/Next is "Z"'),
        (machine({"Type": "Pass", "Next": ["A"]}), "/States/A/Next is a list"),
        (machine({"Type": "Choice", "Choices": [7]}), "/States/A/Choices is a list"),
        (machine({"Type": "Choice", "Choices": [{"Next": "Z"}]}), "/States/A/Choices[0]/Next"),
        (machine({**TASK, "Catch": [{"Next": "Z"}]}), "/States/A/Catch[0]/Next"),
        (machine({"Type": "Parallel"}), "/States/A/Branches is missing"),
        (machine({"Type": "Parallel", "Branches": [one("A")]}), "a name that is taken"),
        (machine({"Type": "Map"}), "/States/A/ItemProcessor is missing"),
        (machine({"Type": "Map", "Iterator": {"States": {}}}), "/States/A/Iterator/States"),
    ],
)
def test_a_definition_that_cannot_be_drawn_is_refused_with_its_place(
    definition: Any, said: str
) -> None:
    with pytest.raises(WorkflowError) as refused:
        read_drawing(definition)
    assert refused.value.code == "HF104"
    assert said in refused.value.message
    assert refused.value.help


@pytest.mark.parametrize("seed", some(range(200)))
def test_a_broken_definition_is_drawn_or_refused_and_nothing_else(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    definition = _broken(random_machine(seed, 6), chance)
    try:
        draw_mermaid(read_drawing(definition, _broken({"sources": {"s0": {}}}, chance)))
        draw(definition)
    except WorkflowError as refused:
        assert refused.code == "HF104"


def _broken(value: Any, chance: Any) -> Any:
    if chance.random() < 0.02:
        return chance.choice([None, 7, "s1", [], {}, [7], {"Next": []}, True, -1.5])
    if isinstance(value, dict):
        return {key: _broken(inner, chance) for key, inner in value.items()}
    if isinstance(value, list):
        return [_broken(inner, chance) for inner in value]
    return value
