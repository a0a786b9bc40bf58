"""The form of `finally`, `timeout`, `shielded` and undo policies in a definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.asl.parsing.parse import parse_definition
from holdfast.compiler.compile import compile_workflow
from tests.unit.dsl_kit import loaded
from tests.unit.dsl_semantics_test import HEADER
from tests.unit.dsl_statements_test import MORE


def asl_of(tmp_path: Path, program: str) -> dict[str, Any]:
    with loaded(tmp_path, f"{HEADER}{MORE}\n@workflow{program}") as module:
        asl = compile_workflow(module.flow).asl
        parse_definition(asl)
        return asl


def test_each_way_out_has_its_own_copy_of_a_finally_body_with_a_name_that_says_which(
    tmp_path: Path,
) -> None:
    program = """
def flow(n: int) -> int:
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 2:
                break
            if i == 3:
                return echo(i)
        finally:
            say("x")
    return 0
"""
    copies = [name for name in asl_of(tmp_path, program)["States"] if name.startswith("say")]
    assert copies == [
        "say",
        "say (after an error)",
        "say (before return)",
        "say (before break)",
        "say (before continue)",
    ]


def test_an_unused_way_out_has_no_copy(tmp_path: Path) -> None:
    program = """
def flow(n: int) -> int:
    try:
        n = echo(n)
    finally:
        say("x")
    return n
"""
    asl = asl_of(tmp_path, program)
    assert set(asl["States"]) == {
        "start",
        "echo",
        "say",
        "say (after an error)",
        "raise again",
        "return n",
    }
    assert asl["Holdfast"] == {
        "Undo": [
            {
                "States": ["echo"],
                "Begin": "say (after an error)",
                "End": "raise again",
                "Assign": {"failure": "{% $states.errorOutput %}"},
            }
        ],
        "Shielded": [["say", "say (after an error)"]],
    }


def test_a_deadline_names_its_states_and_where_it_leads(tmp_path: Path) -> None:
    program = """
def flow(n: int) -> int:
    try:
        with timeout(minutes(30)):
            n = echo(n)
            try:
                n = echo(n)
            except Small:
                say("small")
    except WaitTimeout as err:
        say(str(err))
    return n
"""
    asl = asl_of(tmp_path, program)
    assert asl["Holdfast"]["Deadlines"] == [
        {
            "Begin": "with timeout(minutes(30))",
            "Seconds": 1800,
            "States": ["echo", "echo (2)", "say"],
            "Cuts": "steps",
            "Next": "say (2)",
            "Assign": {"err": "{% $states.errorOutput %}"},
        }
    ]
    catch = asl["States"]["echo"]["Catch"][0]["ErrorEquals"]
    assert {"States.Timeout", "WaitTimeout", "BlockTimeout"} <= set(catch)


def test_an_uncaught_deadline_leads_to_no_state(tmp_path: Path) -> None:
    program = """
def flow(n: int) -> int:
    with timeout(minutes(n)):
        n = echo(n)
    return n
"""
    (deadline,) = asl_of(tmp_path, program)["Holdfast"]["Deadlines"]
    assert set(deadline) == {"Begin", "Seconds", "States", "Cuts"}


def test_an_inner_deadline_comes_before_the_outer_one(tmp_path: Path) -> None:
    program = """
def flow(n: int) -> int:
    with timeout(hours(2)):
        with timeout(hours(1)):
            n = echo(n)
    return n
"""
    found = asl_of(tmp_path, program)["Holdfast"]["Deadlines"]
    assert [deadline["Seconds"] for deadline in found] == [3600, 7200]
    assert found[1]["States"] == ["with timeout(hours(1))", "echo"]


def test_a_shielded_block_is_listed_and_undo_steps_need_not_be(tmp_path: Path) -> None:
    program = """
def flow(n: int) -> int:
    with compensating() as undo:
        undo(undo_it, n)
        with shielded():
            n = echo(n)
            say("x")
        n = echo(n)
    return n
"""
    asl = asl_of(tmp_path, program)
    assert asl["Holdfast"]["Shielded"] == [["echo", "say"]]


def test_the_undo_policy_decides_on_the_step_after_a_failed_undo_step(tmp_path: Path) -> None:
    program = """
def flow(n: int) -> int:
    with compensating({}) as undo:
        undo(undo_it, n)
        n = echo(n)
    return n
"""
    going = asl_of(tmp_path, program.format(""))
    stopping = asl_of(tmp_path, program.format('on_undo_failure="stop"'))

    def after_failure(asl: dict[str, Any]) -> Any:
        return asl["States"]["undo: undo_it"]["Catch"][0]["Next"]

    assert after_failure(going) == "undo in reverse order"
    assert after_failure(stopping) == "raise what was undone"


def test_a_machine_without_blocks_and_undos_has_no_extension(tmp_path: Path) -> None:
    program = """
def flow(n: int) -> int:
    for x in [1, 2]:
        if x == n:
            break
    else:
        n = echo(n)
    return n
"""
    assert "Holdfast" not in asl_of(tmp_path, program)
