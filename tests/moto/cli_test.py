"""The command line against a running `serve`: start, show, send events, stop."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.limits import BODY_BYTES_MAX
from tests.moto.conftest import Shell

pytestmark = pytest.mark.xdist_group("serve")

ORDER = {"placed_at": "2026-03-02 09:00:00", "country": "Norway"}
LINES = [{"sku": "LH01", "qty": 2, "unit_pence": 450}]


def order(order_id: str) -> str:
    return json.dumps({"order": {**ORDER, "id": order_id, "lines": LINES}})


def loan(name: str) -> str:
    """A loan that a person has to decide about."""
    return json.dumps({"loan": {"id": name, "applicant": "Ann Lee 1", "cents": 30_000_000}})


def document(doc_id: str) -> str:
    return json.dumps({"doc_id": doc_id, "signers": ["ada"]})


def waits_for(kind: str) -> Callable[[Any], bool]:
    return lambda execution: any(wait["kind"] == kind for wait in execution["waits"])


def has_ended(execution: Any) -> bool:
    return bool(execution["status"] != "RUNNING")


# -- start -----------------------------------------------------------------------------------------


def test_an_order_is_started_and_waited_for(shell: Shell) -> None:
    assert (
        shell("start", "order_fulfilment", "--name", "a00", "--input", order("a00"), "--wait", "10")
        == 0
    )
    assert "SUCCEEDED" in shell.printed
    assert '"reason": "shipped"' in shell.printed


def test_an_input_can_come_from_a_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text(order("a02"))
    assert shell("start", "order_fulfilment", "--input", f"@{tmp_path}/order.json") == 0
    assert shell.printed.startswith("started ")


def test_the_same_name_and_input_start_one_execution(shell: Shell) -> None:
    start = ("start", "document_signing", "--name", "a03", "--input", document("a03"))
    assert shell.json(*start)["execution"] == shell.json(*start)["execution"]


def test_the_same_name_with_another_input_is_a_negative_answer(shell: Shell) -> None:
    start = ("start", "document_signing", "--name", "a04", "--input")
    assert shell(*start, document("one")) == 0
    assert shell(*start, document("two")) == 1
    assert "has another input" in shell.complaints


def test_a_wait_that_is_over_before_the_execution_is_says_so(shell: Shell) -> None:
    start = ("start", "document_signing", "--name", "a05", "--input", document("a05"))
    assert shell(*start, "--wait", "0") == 1
    assert "still running after 0 s" in shell.complaints


def test_the_log_and_the_trace_of_an_execution(shell: Shell) -> None:
    start = ("start", "order_fulfilment", "--name", "a06", "--input", order("a06"))
    assert shell(*start, "--wait", "10") == 0

    assert shell("logs", "a06") == 0
    assert " charge " in shell.printed
    assert {row["execution_name"] for row in shell.json("logs", "a06")} == {"a06"}
    assert shell("trace", "a06") == 0
    assert shell.printed.startswith("trace ")
    assert "order_fulfilment" in shell.printed
    (resource,) = shell.json("trace", "a06", "--format", "otlp")["resourceSpans"]
    assert resource["scopeSpans"][0]["spans"][0]["name"] == "order_fulfilment"


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("start", "nonsense"), 1, "error[HF205]: there is no workflow 'nonsense'"),
        (("start", "loan_approval"), 2, "loan: missing"),
        (("start", "loan_approval", "--input", '{"loan": {"id": 1}}'), 2, "loan.id"),
        (("start", "loan_approval", "--name", "a b", "--input", loan("x")), 2, "is not a name"),
        (("show", "nobody"), 1, "error[HF207]: there is no execution 'nobody'"),
        (("history", "nobody"), 1, "error[HF207]"),
        (("logs", "nobody"), 1, "error[HF207]"),
        (("trace", "nobody"), 1, "error[HF207]"),
        (("stop", "nobody"), 1, "error[HF207]"),
        (("show", "a b"), 2, "error[HF201]"),
        (("show", "a#b?c"), 1, "error[HF208]"),
        (("show", "a/b"), 2, "error[HF201]"),
        (("list", "--workflow", "nonsense"), 1, "error[HF205]"),
        (("event", "nonsense", "--key", "k", "--data", "1"), 1, "declares an event named"),
        (("event", "bank.confirmed", "--key", "k", "--data", "{}"), 2, "payment_id"),
        (("answer", "forged", "--output", "1"), 1, "error[HF230]: the token is not valid"),
    ],
)
def test_an_impossible_command_is_refused_with_a_code(
    shell: Shell, arguments: tuple[str, ...], status: int, says: str
) -> None:
    assert shell(*arguments) == status
    assert says in shell.complaints
    assert shell.printed == ""


def test_an_input_over_the_limit_is_refused_by_the_server(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(json.dumps("x" * BODY_BYTES_MAX))
    assert shell("start", "document_signing", "--input", f"@{tmp_path}/large.json") == 2
    assert "error[HF241]: the body is over" in shell.complaints


# -- events ----------------------------------------------------------------------------------------


def test_an_order_found_by_its_number_shows_its_wait_and_the_source_line(shell: Shell) -> None:
    shell.json("start", "order_fulfilment", "--name", "b09", "--input", order("b09"))
    shell.until(waits_for("event"), "show", "b09")
    assert shell("show", "b09") == 0
    assert "event bank.confirmed, key payment-b09" in shell.printed
    assert "statemachines/order_fulfilment.py:" in shell.printed
    assert "bank = wait_for_event(" in shell.printed
    assert "holdfast event bank.confirmed --key payment-b09" in shell.printed

    confirmed = '{"payment_id": "payment-b09", "settled": true}'
    event = ("event", "bank.confirmed", "--key", "payment-b09", "--data", confirmed, "--id", "e1")
    assert shell(*event) == 0
    assert shell.printed == "event e1 has woken 1\n"
    assert shell.until(has_ended, "show", "b09")["output"]["reason"] == "shipped"
    # The sender does not know whether the event arrived and sends it again: it counts once.
    assert shell(*event) == 0


def test_an_event_without_a_waiting_execution_is_kept_and_listed(shell: Shell) -> None:
    confirmed = '{"payment_id": "payment-b11", "settled": true}'
    event = ("event", "bank.confirmed", "--key", "payment-b11", "--data", confirmed)
    assert shell.json(*event)["waiting"] == 0
    other = ("event", "bank.confirmed", "--key", "payment-b11", "--data", confirmed, "--id", "e2")
    assert shell(*other) == 0
    assert shell.printed == "event e2 is kept until an execution waits for it\n"
    assert shell("list", "--events") == 0
    assert "payment-b11" in shell.printed
    drop = ("drop", "bank.confirmed", "--key", "payment-b11", "--id", "e2", "--reason", "twice")
    assert shell(*drop) == 0
    assert shell.printed == "event e2 is dropped\n"
    assert shell(*other) == 0
    assert shell.printed == "event e2 was dropped before: no execution uses it\n"
    [kept] = shell.json("list", "--events", "--name", "bank.confirmed", "--key", "payment-b11")
    assert kept["type"] == "BankConfirmation"

    shell.json("start", "order_fulfilment", "--name", "b11", "--input", order("b11"))
    assert shell.until(has_ended, "show", "b11")["output"]["reason"] == "shipped"


# -- people ----------------------------------------------------------------------------------------


def test_a_person_is_asked_and_answers_with_the_line_that_show_prints(shell: Shell) -> None:
    shell.json("start", "loan_approval", "--name", "c1", "--input", loan("c1"))
    shell.until(waits_for("ask"), "show", "c1")
    assert shell("show", "c1") == 0
    assert "an answer: Approve loan c1" in shell.printed
    assert "role:credit_manager" in shell.printed
    [token] = re.findall(r"^holdfast answer (\S+) --output", shell.printed, re.MULTILINE)

    assert shell("answer", token, "--output", '{"approved": true}') == 0
    assert shell.until(has_ended, "show", "c1")["output"] == "approved"
    assert shell("answer", token, "--output", '{"approved": false}') == 1
    assert "another answer was given before by" in shell.complaints


def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(shell: Shell) -> None:
    shell.json("start", "loan_approval", "--name", "c2", "--input", loan("c2"))
    token = shell.until(waits_for("ask"), "show", "c2")["waits"][0]["token"]
    assert shell("answer", token, "--output", '{"approved": "perhaps"}') == 2
    assert "approved" in shell.complaints
    assert waits_for("ask")(shell.json("show", "c2"))


def test_an_answer_can_be_an_error(shell: Shell) -> None:
    shell.json("start", "loan_approval", "--name", "c3", "--input", loan("c3"))
    token = shell.until(waits_for("ask"), "show", "c3")["waits"][0]["token"]
    assert shell("answer", token, "--error", "Ill", "--cause", "the manager is ill") == 0
    ended = shell.until(has_ended, "show", "c3")
    assert (ended["status"], ended["error"], ended["cause"]) == (
        "FAILED",
        "Ill",
        "the manager is ill",
    )


# -- stop, list, history ---------------------------------------------------------------------------


def test_a_stopped_execution_ends_as_aborted_with_its_reason(shell: Shell) -> None:
    shell.json("start", "document_signing", "--name", "d1", "--input", document("d1"))
    assert shell("stop", "d1", "--error", "Withdrawn", "--cause", "by the sender") == 0
    ended = shell.until(has_ended, "show", "d1")
    assert (ended["status"], ended["error"]) == ("ABORTED", "Withdrawn")
    assert shell("list", "--status", "ABORTED") == 0
    header, row, *_ = shell.printed.splitlines()
    assert header.split() == ["name", "status", "workflow", "started", "took", "error"]
    assert row.split()[:3] == ["d1", "ABORTED", "document_signing"]
    assert row.endswith("Withdrawn")


def test_a_paused_execution_says_so_until_it_is_resumed(shell: Shell) -> None:
    shell.json("start", "document_signing", "--name", "p1", "--input", document("p1"))
    why = ("--reason", "the notary is ill", "--by", "ann")
    assert shell("pause", "p1", *why) == 0
    assert shell.printed.endswith("to pause; its timers stand still\n")
    shell.until(lambda shown: "paused" in shown, "show", "p1")

    assert shell("show", "p1") == 0
    assert "by ann; timers freeze" in shell.printed
    assert "the notary is ill" in shell.printed
    assert shell("list") == 0
    assert "the notary is ill" in shell.printed

    assert shell("resume", "p1", "--reason", "she is back") == 0
    shell.until(lambda shown: "paused" not in shown, "show", "p1")


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [("d2", [], "after undoing"), ("d3", ["--now"], "at once, undoing nothing more")],
)
def test_a_stop_voids_the_document_unless_it_is_to_end_at_once(
    shell: Shell, name: str, options: list[str], said: str
) -> None:
    shell.json("start", "document_signing", "--name", name, "--input", document(name))
    shell.until(lambda shown: shown["waits"], "show", name)
    assert shell("stop", name, *options) == 0
    assert shell.printed.endswith(f"to stop {said}\n")
    assert shell.until(has_ended, "show", name)["status"] == "ABORTED"
    assert shell("history", name) == 0
    assert ("task:void_document" in shell.printed) is not bool(options)


def test_an_execution_is_found_by_workflow_and_name(shell: Shell) -> None:
    started = shell.json("start", "document_signing", "--name", "d9", "--input", document("d9"))
    for command in ("show", "history", "stop", "doctor"):
        assert shell(command, "document_signing:d9") == 0
    assert shell.json("stop", "document_signing:d9")["execution"] == started["execution"]


def test_a_list_of_nothing_says_so(shell: Shell) -> None:
    assert shell("list", "--status", "TIMED_OUT") == 0
    assert shell.printed == "no executions\n"
    assert shell.json("list", "--status", "TIMED_OUT") == []


def test_a_history_is_a_table_with_a_row_for_each_event(shell: Shell) -> None:
    shell("start", "order_fulfilment", "--name", "d03", "--input", order("d03"), "--wait", "10")
    assert shell("history", "d03") == 0
    found = shell.printed.splitlines()
    lines = [line for line in found if not line.startswith(" " * 30)]  # tracebacks are below
    events = shell.json("history", "d03")
    assert len(lines) == 1 + len(events)
    assert any('File "statemachines/' in line for line in found)
    assert [event["id"] for event in events if "id" in event] == list(
        range(1, 1 + sum("id" in event for event in events))
    )
    assert any("TaskFailed" in line and "BankUnavailable" in line for line in lines)
    assert any("TaskScheduled" in line and "attempt 2" in line for line in lines)
    assert max(map(len, lines)) <= 200
