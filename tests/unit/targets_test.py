"""`--target stepfunctions`: the files, the notes about lost guarantees, and the refusals."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import InvalidArguments, TaskError, lambda_handler, task, task_context
from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.template import compile_template
from holdfast.asl.validation.validate import diagnose
from holdfast.cli import main
from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import Exported, export_all
from tests.unit.dsl_kit import loaded
from tests.unit.dsl_semantics_test import HEADER

MORE = "from holdfast import Retry, first, shielded, timeout\n"


def exported(folder: Path, source: str) -> Exported:
    with loaded(folder, f"{HEADER}\n{MORE}{source}") as module:
        return export_all(compile_module(module), Source.of(module))[-1]


def refusals(folder: Path, source: str) -> list[tuple[str, str]]:
    """Return (code, the source line) of each."""
    with pytest.raises(CompileErrors) as refused:
        exported(folder, source)
    return [(found.code, found.source_line.strip()) for found in refused.value.diagnostics]


def states_of(machine: Any) -> Iterator[tuple[str, Any]]:
    for name, state in machine["States"].items():
        yield name, state
        for inner in (*state.get("Branches", ()), state.get("ItemProcessor")):
            yield from states_of(inner) if inner else ()


SHOP = """
@task(timeout=minutes(2), heartbeat=seconds(20), retry=Retry(max_attempts=2, on=(Small,)))
def pay(pence: int) -> int: ...
@workflow
def child(n: int) -> int:
    return n
@workflow
def flow(n: int) -> int:
    paid = pay(n)
    said = wait_for_event("bank.confirmed", Answer, key="k", timeout=days(3))
    told = ask("Sure?", Answer, assignee="ada")
    try:
        paid = child(paid)
    except Problem as err:
        say(f"{err}")
    return paid
"""


def test_a_task_is_an_invocation_with_plain_arguments(tmp_path: Path) -> None:
    state = exported(tmp_path, SHOP).asl["States"]["pay"]
    assert state["Resource"] == "arn:aws:states:::lambda:invoke"
    assert state["Arguments"]["FunctionName"] == "${pay}"
    assert state["Arguments"]["Payload"] == {"pence": "{% $n %}"}
    assert state["Assign"] == {"paid": "{% $states.result.Payload %}"}
    assert state["TimeoutSeconds"] == 120
    assert "HeartbeatSeconds" not in state
    assert [retrier["ErrorEquals"][0] for retrier in state["Retry"]] == [
        "Lambda.ServiceException",
        "Small",
    ]


def test_a_wait_hands_its_token_to_a_function(tmp_path: Path) -> None:
    states = exported(tmp_path, SHOP).asl["States"]
    wait, question = states["wait for bank.confirmed"], states["ask for Answer"]
    assert wait["Resource"] == "arn:aws:states:::lambda:invoke.waitForTaskToken"
    token = "{% $states.context.Task.Token %}"
    assert wait["Arguments"] == {
        "FunctionName": "${wait_for_event}",
        "Payload": {"token": token, "event": "bank.confirmed", "key": "k"},
    }
    assert wait["Assign"] == {"said": "{% $states.result %}"}
    assert question["Arguments"]["FunctionName"] == "${ask}"
    assert question["Arguments"]["Payload"]["token"] == token


def test_a_wait_without_kept_events_says_so_to_its_function(tmp_path: Path) -> None:
    source = """
@workflow
def flow(user: str) -> None:
    wait_for_event("cancelled", None, key=user, kept=False)
    wait_for_event("cancelled", None, key=user, kept=True)
"""
    states = exported(tmp_path, source).asl["States"]
    payloads = [
        state["Arguments"]["Payload"] for name, state in states.items() if "cancelled" in name
    ]
    rest = {"token": "{% $states.context.Task.Token %}", "event": "cancelled", "key": "{% $user %}"}
    assert payloads == [{**rest, "kept": False}, rest]


def test_the_placeholders_to_fill_in_are_listed(tmp_path: Path) -> None:
    listed = json.loads(exported(tmp_path, SHOP).substitutions_text)
    kinds = {name: need["kind"] for name, need in listed["substitutions"].items()}
    assert kinds == {
        "ask": "ask",
        "child": "workflow",
        "pay": "task",
        "say": "task",
        "wait_for_event": "event",
    }
    assert all("the ARN of" in need["is"] for need in listed["substitutions"].values())


def test_a_text_that_looks_like_a_placeholder_stays_a_text(tmp_path: Path) -> None:
    source = '@workflow\ndef flow(n: int) -> int:\n    say("${say} it")\n    return n\n'
    made = exported(tmp_path, source)
    assert made.asl["States"]["say"]["Arguments"]["FunctionName"] == "${say_2}"
    assert made.asl["States"]["say"]["Arguments"]["Payload"] == {"text": "${say} it"}


def test_tasks_with_names_unfit_for_placeholders_are_distinguished(tmp_path: Path) -> None:
    source = """
@task(name="bank.pay")
def one(n: int) -> int: ...
@task(name="bank/pay")
def two(n: int) -> int: ...
@workflow
def flow(n: int) -> int:
    return one(n) + two(n)
"""
    assert list(exported(tmp_path, source).placeholders) == ["bank_pay", "bank_pay_2"]


def test_states_that_only_an_undo_on_stop_leads_to_are_left_out_and_noted(tmp_path: Path) -> None:
    source = """
@workflow
def flow(n: int) -> int:
    with compensating() as undo:
        undo(undo_it, n)
        sleep(minutes(1))
    return n
"""
    made = exported(tmp_path, source)
    assert diagnose(made.asl) == ()
    assert "undo_it" not in made.placeholders
    assert [note.source_line.strip() for note in made.notes] == ["with compensating() as undo:"]
    assert ": note: StopExecution ends" in made.notes[0].render()


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("x = first(lambda: echo(1), lambda: echo(n))", "x = first("),
        ("parallel(lambda: echo(1), lambda: echo(n), at_least=1)", "parallel("),
        ("each([n], lambda x: echo(x), tolerate=1)", "each("),
        ("each([n], lambda x: echo(x), tolerate=0, return_exceptions=True)", "each("),
        ("with timeout(minutes(5)):\n        echo(n)", "with timeout(minutes(5)):"),
    ],
)
def test_an_extension_is_refused_at_its_line(tmp_path: Path, body: str, line: str) -> None:
    source = f"@workflow\ndef flow(n: int) -> int:\n    {body}\n    return n\n"
    ((code, found),) = refusals(tmp_path, source)
    assert code == "HF064"
    assert found.startswith(line)


BRANCH = """
@workflow
def flow(n: int) -> int:
    def branch() -> int:
        {0}
        return n
    parallel(branch, lambda: echo(2))
    return n
"""


@pytest.mark.parametrize(
    "body",
    [
        "with compensating() as undo:\n            undo(undo_it, n)\n            echo(n)",
        "with shielded():\n            echo(n)",
    ],
)
def test_cleanup_of_a_branch_when_another_fails_is_refused(tmp_path: Path, body: str) -> None:
    assert [code for code, _ in refusals(tmp_path, BRANCH.format(body))] == ["HF064"]


def test_a_published_value_is_left_out_and_noted(tmp_path: Path) -> None:
    found = exported(
        tmp_path,
        """
from holdfast import publish
@workflow
def flow(n: int) -> int:
    publish("n", n)
    return n
""",
    )
    assert found.asl["States"]["publish n"] == {"Type": "Pass", "Next": "return n"}
    assert [note.message for note in found.notes] == [
        "there is no place on Step Functions where this value could be read"
    ]


def test_a_timeout_of_the_workflow_that_undoes_is_refused(tmp_path: Path) -> None:
    source = """
@workflow(timeout=hours(1))
def flow(n: int) -> int:
    with compensating() as undo:
        undo(undo_it, n)
        echo(n)
    return n
"""
    assert refusals(tmp_path, source) == [("HF064", "def flow(n: int) -> int:")]


def test_a_number_beyond_a_limit_of_aws_is_refused_at_its_line(tmp_path: Path) -> None:
    source = """
@task(retry=Retry(interval=days(2000)))
def slow(n: int) -> int: ...
@workflow
def flow(n: int) -> int:
    return slow(n)
"""
    assert refusals(tmp_path, source) == [("HF065", "return slow(n)")]


@pytest.mark.parametrize("argument", ["cancel_others=False", "return_exceptions=True"])
def test_branches_that_all_end_are_plain_states(tmp_path: Path, argument: str) -> None:
    source = f"""
@workflow
def flow(n: int) -> int:
    return len(each([n, 2], echo, {argument}))
"""
    states = dict(states_of(exported(tmp_path, source).asl))
    assert not any("Holdfast" in state for state in states.values())
    (echo,) = [state for state in states.values() if state["Type"] == "Task"]
    assert [catcher["ErrorEquals"] for catcher in echo["Catch"]] == [["States.ALL"]]


def test_an_error_that_is_passed_on_keeps_its_name_and_text(tmp_path: Path) -> None:
    catch = exported(tmp_path, SHOP).asl["States"]["child"]["Catch"][0]
    assert catch["ErrorEquals"] == ["States.TaskFailed"]
    (template,) = catch["Assign"].values()
    for cause, error, text in (
        ('{"Cause":"no","Error":"Small","Input":{"Error":"Other"}}', "Small", "no"),
        ('{"Cause":"a \\"b\\" \\\\","Error":"Small"}', "Small", 'a "b" \\'),
        ('{"Error":"Small","Input":{"Cause":"x"}}', "Small", ""),
        ('{"Status":"ABORTED","StopDate":17}', "States.TaskFailed", ""),
        ('{"Status":"TIMED_OUT","StopDate":17}', "States.Timeout", ""),
    ):
        given = {"Error": "States.TaskFailed", "Cause": cause}
        assert evaluate(template, errorOutput=given) == {"Error": error, "Cause": text}
    other = {"Error": "StepFunctions.ExecutionLimitExceeded", "Cause": "too many"}
    assert evaluate(template, errorOutput=other) == other


def evaluate(template: Any, **states: Any) -> Any:
    moment = EvaluationMoment(now_ms=0, draw=lambda: 0.5)
    return compile_template(template, "/Assign").evaluate({"states": states}, moment)


# Handlers.


class Declined(TaskError):  # noqa: N818
    pass


@task
def charge(pence: int) -> dict[str, Any]:
    if pence > 100:
        raise Declined("too much")
    context = task_context()
    return {"pence": pence, "workflow": context.workflow, "attempt": context.attempt}


def test_a_handler_takes_arguments_and_gives_the_result() -> None:
    assert lambda_handler(charge)({"pence": 5}, None) == {
        "pence": 5,
        "workflow": "",
        "attempt": 1,
    }


def test_a_handler_raises_the_tasks_errors_and_refuses_values_that_do_not_fit() -> None:
    with pytest.raises(Declined, match="too much"):
        lambda_handler(charge)({"pence": 500}, None)
    with pytest.raises(InvalidArguments, match="pence"):
        lambda_handler(charge)({"pence": "many"}, None)


def test_a_handler_can_read_its_caller(tmp_path: Path) -> None:
    sent = exported(tmp_path, SHOP).asl["States"]["pay"]["Arguments"]["ClientContext"]
    arn = "arn:aws:states:eu-west-1:123456789012:execution:orders:käse"
    entered = {"EnteredTime": "2026-11-21T12:00:00.000Z", "RetryCount": 2}
    around = {"Execution": {"Id": arn}, "State": entered}
    custom = json.loads(base64.b64decode(evaluate(sent, context=around)))["custom"]
    context = SimpleNamespace(client_context=SimpleNamespace(custom=custom))
    seen = lambda_handler(noting)({}, context)
    assert seen["execution"] == arn
    assert (seen["workflow"], seen["name"], seen["attempt"]) == ("orders", "käse", 3)
    again = lambda_handler(noting)({}, context)
    assert again["key"] == seen["key"]


@task
def noting() -> dict[str, Any]:
    context = task_context()
    return {
        "execution": context.execution,
        "workflow": context.workflow,
        "name": context.name,
        "attempt": context.attempt,
        "key": context.idempotency_key,
    }


# The command.


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return tmp_path


PROGRAM = """
from holdfast import compensating, first, task, workflow

@task
def hold(n: int) -> int: ...
@task
def free(n: int) -> None: ...

@workflow
def hold_it(n: int) -> int:
    with compensating() as undo:
        held = hold(n)
        undo(free, held)
    return held
"""


def test_the_command_writes_both_files_and_reports_lost_guarantees(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "holding_a.py").write_text(PROGRAM)
    command = ["compile", "--target", "stepfunctions", "holding_a"]
    assert main([*command, "--check"]) == 1
    assert main(command) == 0
    assert "holding_a.py:11: note: StopExecution" in capsys.readouterr().out
    names = sorted(path.name for path in project.glob("*.json"))
    assert names == ["hold_it.stepfunctions.asl.json", "hold_it.stepfunctions.json"]
    assert diagnose((project / names[0]).read_text()) == ()
    assert main([*command, "--check"]) == 0


def test_the_command_writes_nothing_when_a_line_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    racing = "\n@workflow\ndef race(n: int) -> int | None:\n    return first(lambda: hold(n))\n"
    (project / "holding_b.py").write_text(PROGRAM + racing)
    assert main(["compile", "--target", "stepfunctions", "holding_b"]) == 1
    assert "holding_b.py:18:5: error[HF064]" in capsys.readouterr().err
    assert list(project.glob("*.json")) == []


def test_a_child_is_retried_after_every_error_or_not_at_all(project: Path) -> None:
    parent = """

@workflow
def twice(n: int) -> int:
    return hold_it.options(retry=Retry(max_attempts=2, SETTING), timeout=minutes(9))(n)
"""
    source = PROGRAM.replace("import ", "import Retry, minutes, ") + parent
    (project / "holding_c.py").write_text(source.replace("SETTING", "on=(KeyError,)"))
    assert main(["compile", "--target", "stepfunctions", "holding_c"]) == 1
    (project / "holding_d.py").write_text(source.replace("SETTING", "backoff=1.0"))
    assert main(["compile", "--target", "stepfunctions", "holding_d"]) == 0
    text = (project / "twice.stepfunctions.asl.json").read_text()
    assert diagnose(text) == ()
    assert json.loads(text)["States"]["hold_it"]["TimeoutSeconds"] == 540
