"""The ten conversations through the stack of `serve`, on a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Client, RequestRejected
from holdfast.local.clock import VirtualClock
from holdfast.local.cloud import LocalCloud
from holdfast.local.stack import LocalStack, deployment_of, local_stack
from holdfast.remote.connecting import Api
from tests.moto.schedules_test import START_MS
from tests.thorough import some
from tests.unit import conversation_flows as flows
from tests.unit import request_flows
from tests.unit.conversations_test import TALKS, Ask, Talk, first_parameter

#: A request is handled by then; nothing else is due so soon.
_HANDLED_MS = 500


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack[LocalCloud]]:
    with local_stack(
        deployment_of([flows.__name__, request_flows.__name__]), VirtualClock(START_MS)
    ) as stack:
        yield stack


def client_of(stack: LocalStack[LocalCloud]) -> Client:
    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        answer = stack.request(method, target, body)
        if method == "POST":
            stack.pump.run_until_idle(until_ms=stack.cloud.clock() + _HANDLED_MS)
        return answer.status, answer.body

    return Client.of(Api(carry, "the test"))


_LONG = [talk for talk in TALKS if talk.lasts > 3_600]  # each minute costs a sweep


@pytest.mark.parametrize(
    "talk",
    [pytest.param(talk, marks=pytest.mark.slow) if talk in _LONG else talk for talk in some(TALKS)],
    ids=str,
)
def test_a_conversation_through_a_local_stack(stack: LocalStack[LocalCloud], talk: Talk) -> None:
    client, begin_ms = client_of(stack), stack.cloud.clock()
    key = f"k{TALKS.index(talk)}"  # an event of a talk is kept for later talks of its key
    before = {row["execution"] for row in client.list(workflow=talk.workflow.name)}
    keyed, given = talk.workflow.keyed, {first_parameter(talk): key, **talk.given}
    if keyed is None or keyed.starts_on is None:
        client.start(talk.workflow.name, given)
    for one in talk.said:
        stack.pump.run_until_idle(until_ms=begin_ms + one.at * 1_000)
        if not isinstance(one, Ask):
            client.event(one.name, key, one.data)
            continue
        try:
            assert client.request(one.name, key, one.data, timeout=0) == one.reply
        except RequestRejected as rejected:
            assert rejected.error == one.error
    stack.pump.run_until_idle(until_ms=begin_ms + talk.lasts * 1_000)
    [run] = {row["execution"] for row in client.list(workflow=talk.workflow.name)} - before
    assert client.describe(run)["output"] == talk.output


def test_a_workflow_asks_another_through_a_local_stack(stack: LocalStack[LocalCloud]) -> None:
    client = client_of(stack)
    for amount, total in ((2, 2), (5, 7)):
        asked = client.start("adds", {"name": "k", "amount": amount})
        assert asked.describe()["output"] == total
