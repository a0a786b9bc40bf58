"""Every expression that workflows evaluate means the same to jsonata-js 2.0.6.

`pytest -m slow --log-level=INFO -rA` shows the numbers.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from holdfast.asl.jsonata.jsonata import EvaluationMoment, compile_expression
from holdfast.compiler.targets.queries import caller, error_of_child, error_of_function
from statemachines import document_signing, loan_approval, order_fulfilment
from statemachines.orders import read_orders
from tests.conformance import generated
from tests.conformance.jsonata_js import Recorder, Replayed, recording, replay, same
from tests.unit.dsl_kit import assert_same

LOG = logging.getLogger(__name__)
SAMPLE = Path(__file__).parents[2] / "statemachines" / "orders-sample.jsonl"
PROGRAMS = 300
pytestmark = [
    pytest.mark.slow,
    # Parts of random programs are foolish (`[] [0]`); Python warns about some of them.
    pytest.mark.filterwarnings("ignore::SyntaxWarning"),
]


def replayed(recorder: Recorder) -> Replayed:
    found = replay(recorder.evaluations)
    LOG.info(
        "%d evaluations of %d expressions, %d with keys in JavaScript's order",
        found.evaluations,
        found.expressions,
        found.of_order,
    )
    return found


def test_the_runs_of_generated_programs_have_no_unexplained_difference(tmp_path: Path) -> None:
    with recording() as recorder:
        generated.run(tmp_path, PROGRAMS)
    found = replayed(recorder)
    assert found.expressions > 1_000
    assert found.differences == []


def test_the_runs_of_the_projects_workflows_have_no_unexplained_difference() -> None:
    with recording() as recorder:
        for order in read_orders(SAMPLE).requests:
            for settled in (True, False):
                arrived = {"bank.confirmed": {"payment_id": "p", "settled": settled}}
                assert_same(order_fulfilment.fulfil, order.input, arrived)
        for cents in (1, 999_999, 1_000_001):
            for number in range(20):
                loan = {"id": f"L{number}", "applicant": f"a{number}", "cents": cents}
                assert_same(loan_approval.approve_loan, {"loan": loan}, {})
        assert_same(document_signing.sign_document, {"doc_id": "d", "signers": ["ada", "bob"]}, {})
    found = replayed(recorder)
    assert found.expressions > 20
    assert found.differences == []


CAUSES: list[Any] = [
    None,
    "",
    "plain",
    '{"errorMessage":"no \\"more\\" \\\\ \\u00fc","errorType":"Small","stackTrace":["x"]}',
    '{"errorMessage": "cut off", "errorType": "Sma',
    '{"errorMessage": "cut o',
    '{"errorType":"Sandbox.Timedout","errorMessage":"too late"}',
    '{"Cause":"{\\"errorMessage\\":\\"no\\"}","Error":"Small","Input":{"Error":"Other"}}',
    '{"Error":"Small","Input":{"Cause":"x"}}',
    '{"Status":"TIMED_OUT","StopDate":17}',
]


def test_the_expressions_that_the_target_stepfunctions_adds_mean_the_same() -> None:
    arn = "arn:aws:states:eu-west-1:123456789012:execution:orders:k\u00e4se"
    state = {"EnteredTime": "2026-11-21T12:00:00.000Z", "RetryCount": 0}
    context = {"Execution": {"Id": arn}, "State": state, "Map": {"Item": {"Index": 3}}}
    lanes = ("$states.context.Map.Item.Index",)
    questions = [
        (text, {"errorOutput": {"Error": "States.TaskFailed", "Cause": cause}})
        for cause in CAUSES
        for text in (error_of_function(), error_of_child())
        if cause is not None or text == error_of_function()
    ]
    questions.append((caller("return x \u2026", lanes), {"context": context}))
    with recording() as recorder:
        for text, states in questions:
            evaluated(text, states)
    found = replayed(recorder)
    assert found.evaluations == len(questions)
    assert found.differences == []


def evaluated(text: str, states: Any) -> Any:
    moment = EvaluationMoment(now_ms=0, draw=lambda: 0.5)
    return compile_expression(text).evaluate({"states": states}, moment)


def test_a_difference_would_be_seen() -> None:
    wrong = {"text": "1 + $n", "bindings": {"n": 1}, "answer": {"value": 3}}
    (difference,) = replay([wrong]).differences
    assert difference["js"] == {"value": 2}
    order = {"text": "$keys($d)[0]", "bindings": {"d": {"a": 1, "3": 2}}, "answer": {"value": "a"}}
    assert replay([order]).of_order == 1
    assert not same({"value": True}, {"value": 1})
    assert same({"value": 1.0}, {"value": 1})
