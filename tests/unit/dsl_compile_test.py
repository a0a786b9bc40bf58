"""The document that the compiler writes: names, order, hash and map."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.asl.parsing.parse import definition_hash, parse_definition
from holdfast.compiler.compile import CompiledWorkflow, compile_module, compile_workflow
from holdfast.errors import WorkflowError
from statemachines import order_fulfilment
from tests.unit.dsl_kit import loaded
from tests.unit.dsl_semantics_test import HEADER

FLOW = """
@workflow(name="shop", timeout=hours(1))
def flow(order: Order) -> str:
    try:
        answer = wait_for_event("bank", Answer, key=order.id, timeout=days(1))
        ok = ask(f"Sure about {order.id}?", bool, assignee="ann")
    except WaitTimeout:
        upper(
            order.id,
        )
        return "late"
    return upper(order.id)
"""


def states_of(document: Any) -> dict[str, Any]:
    """Every state of a machine, branches included."""
    found: dict[str, Any] = {}
    for name, state in document["States"].items():
        inner = [*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])]
        assert name not in found
        found[name] = state
        for machine in inner:
            below = states_of(machine)
            assert not found.keys() & below.keys()
            found |= below
    return found


def compiled(folder: Path, text: str) -> CompiledWorkflow:
    with loaded(folder, HEADER + text) as module:
        return compile_workflow(module.flow)


def test_the_map_leads_from_every_state_to_its_line(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + FLOW) as module:
        found = compile_workflow(module.flow)
        file, lines = f"{module.__name__}.py", (HEADER + FLOW).splitlines()
    document = json.loads(found.map_text)
    assert document["workflow"] == "shop"
    assert document["function"] == f"{module.__name__}:flow"
    assert document["definition"] == definition_hash(json.loads(found.asl_text))
    assert document["tasks"] == ["upper"]
    assert document["events"] == {"bank": f"{module.__name__}:Answer"}
    assert document["answers"] == {"ask for bool": "builtins:bool"}
    assert document["sources"].keys() == states_of(found.asl).keys()
    for row in document["sources"].values():
        assert row["file"] == file
        assert lines[row["line"] - 1].strip() == row["text"]
        assert row["column"] >= 1


def test_state_names_are_readable_and_short(tmp_path: Path) -> None:
    found = compiled(tmp_path, FLOW)
    assert list(found.asl["States"]) == [
        "start",
        "wait for bank",
        "ask for bool",
        "upper",
        'return "late"',
        "upper (2)",
    ]
    for name in states_of(compile_workflow(order_fulfilment.fulfil).asl):
        assert len(name) <= 80


def test_layout_and_comments_do_not_change_the_definition(tmp_path: Path) -> None:
    spaced = FLOW.replace("    try:", "\n    # why\n    try:").replace(
        "key=order.id, timeout", "key=order.id,  # the key\n            timeout"
    )
    assert spaced != FLOW
    before, after = compiled(tmp_path, FLOW), compiled(tmp_path, spaced)
    assert before.asl == after.asl
    assert before.definition_hash == after.definition_hash
    assert before.sources != after.sources


def test_another_process_writes_the_same_bytes() -> None:
    program = (
        "from holdfast.compiler.compile import compile_module;"
        "import statemachines.order_fulfilment as m;"
        "[print(c.asl_text, c.map_text, end='') for c in compile_module(m)]"
    )
    ours = [f"{one.asl_text} {one.map_text}" for one in compile_module(order_fulfilment)]
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".", "PYTHONIOENCODING": "utf-8"},
        )
        assert ran.stdout == "".join(ours)


def test_a_definition_passes_the_engine_s_own_checks(tmp_path: Path) -> None:
    document = json.loads(compiled(tmp_path, FLOW).asl_text)
    assert parse_definition(document).timeout_seconds == 3600


def test_task_settings_become_fields_of_the_state(tmp_path: Path) -> None:
    found = compiled(
        tmp_path,
        """
from holdfast import Retry

@task(retry=Retry(max_attempts=4, on=(Problem, WaitTimeout), max_delay=minutes(1), jitter=False),
      timeout=minutes(14), heartbeat=seconds(30))
def slow(n: int, text: str = "x") -> None: ...

@workflow
def flow(n: int) -> None:
    slow(n)
    slow.options(retry=Retry(max_attempts=1), label="slow, once")(n=n, text="{% 1 %}")
    slow.options(timeout=seconds(5), retry=Retry())(n)
""",
    )
    first, once, quick = (found.asl["States"][name] for name in ("slow", "slow, once", "slow (2)"))
    assert first == {
        "Type": "Task",
        "Resource": "holdfast:task:slow",
        "Arguments": {"n": "{% $n %}"},
        "TimeoutSeconds": 840,
        "HeartbeatSeconds": 30,
        "Retry": [
            {
                "ErrorEquals": [
                    "Problem",
                    "Small",
                    "States.Timeout",
                    "WaitTimeout",
                    "BlockTimeout",
                ],
                "IntervalSeconds": 1,
                "MaxAttempts": 3,
                "BackoffRate": 2.0,
                "MaxDelaySeconds": 60,
            }
        ],
        "Next": "slow, once",
    }
    assert "Retry" not in once
    assert once["Arguments"] == {"n": "{% $n %}", "text": '{% "{% 1 %}" %}'}
    assert quick["TimeoutSeconds"] == 5
    assert quick["Retry"][0] == {
        "ErrorEquals": ["States.ALL"],
        "IntervalSeconds": 1,
        "MaxAttempts": 2,
        "BackoffRate": 2.0,
        "JitterStrategy": "FULL",
    }


def test_no_variable_hides_a_jsonata_function_or_starts_oddly(tmp_path: Path) -> None:
    found = compiled(
        tmp_path,
        """
@workflow
def flow(count: int, _: int, sum_value: int, states: int) -> int:
    sum = count + _ + sum_value + states
    return len([count for count in [sum]])
""",
    )
    assert set(found.asl["States"]["start"]["Assign"]) == {
        "count_value",
        "unused",
        "sum_value",
        "states_value",
    }


def test_an_operand_that_may_fail_is_protected_by_a_conditional(tmp_path: Path) -> None:
    """JSONata does not promise that `and` leaves its right side alone."""
    found = compiled(
        tmp_path,
        """
@workflow
def flow(n: int, xs: list[int]) -> bool:
    return (n > 1 and xs[0] > 1) or (n > 2 and n > 3)
""",
    )
    (text,) = (state["Output"] for state in states_of(found.asl).values() if "Output" in state)
    assert text.startswith("{% ($n > 1 ? (")
    assert text.endswith(" > 1 : false) or $n > 2 and $n > 3 %}")


def test_the_bodies_of_branches_have_variables_of_their_own(tmp_path: Path) -> None:
    found = compiled(
        tmp_path,
        """
@workflow
def flow(x: int, xs: list[int]) -> None:
    each(xs, lambda x: echo(x))
    parallel(lambda: echo(x), lambda: each(xs, lambda y: each(xs, lambda x: echo(x + y))))
""",
    )
    text = found.asl_text
    assert '"x_2": "{% $states.input %}"' in text
    assert '"value": "{% $x_2 + $y %}"' in text


def test_source_that_cannot_be_read_is_said_so() -> None:
    namespace: dict[str, Any] = {"__name__": "nowhere"}
    exec(
        "from holdfast import workflow\n@workflow\ndef flow(n: int) -> int:\n  return n", namespace
    )
    with pytest.raises(WorkflowError) as refused:
        compile_workflow(namespace["flow"])
    assert refused.value.code == "HF004"
