"""The ten conversations under `serve` on a file. Between two messages `serve` ends and starts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast import Client, RequestRejected
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.unit import conversation_flows as flows
from tests.unit.conversations_test import DAY, TALKS, Ask, Talk, Tell, first_parameter

#: An execution that writes nothing for this long waits for time to pass, or for a message.
_IDLE_SECONDS = 0.5
_PATIENCE_SECONDS = 60
#: The clock moves in steps: a wait that begins after another has ended begins in its own step.
_STEP_SECONDS = 10 * DAY


def history_lengths(client: Client) -> dict[str, int]:
    runs = [row["execution"] for row in client.list()]
    return {run: len(client.history(run)) for run in runs}


def wait_until_idle(client: Client) -> None:
    until, seen = time.monotonic() + _PATIENCE_SECONDS, history_lengths(client)
    while time.monotonic() < until:
        time.sleep(_IDLE_SECONDS)
        before, seen = seen, history_lengths(client)
        if before == seen:
            return
    raise AssertionError(f"{seen} events after {_PATIENCE_SECONDS} s, and it goes on")


def pass_time(client: Client, seconds: int) -> None:
    while seconds > 0:
        step = min(seconds, _STEP_SECONDS)
        client.advance(step * 1_000)
        wait_until_idle(client)
        seconds -= step


def say(client: Client, one: Ask | Tell) -> None:
    if isinstance(one, Tell):
        client.event(one.name, "k", one.data)
        return
    try:
        reply = client.request(one.name, "k", one.data, timeout=_PATIENCE_SECONDS)
        assert (reply, None) == (one.reply, one.error)
    except RequestRejected as rejected:
        assert rejected.error == one.error


@pytest.mark.slow
@pytest.mark.parametrize("talk", TALKS, ids=str)
def test_a_conversation_survives_a_restart_after_each_message(talk: Talk, tmp_path: Path) -> None:
    deployment, data = deployment_of([flows.__name__]), tmp_path / "holdfast.db"
    keyed, given = talk.workflow.keyed, {first_parameter(talk): "k", **talk.given}
    with serving(deployment, 0, data=data) as served:
        if keyed is None or keyed.starts_on is None:
            Client(served.url).start(talk.workflow.name, given)
            wait_until_idle(Client(served.url))
    passed = 0
    for one in talk.said:
        with serving(deployment, 0, data=data) as served:
            client = Client(served.url)
            pass_time(client, one.at - passed)
            say(client, one)
            wait_until_idle(client)
        passed = one.at
    with serving(deployment, 0, data=data) as served:
        client = Client(served.url)
        pass_time(client, talk.lasts - passed)
        rows = client.list(workflow=talk.workflow.name)
        assert [client.describe(row["execution"])["output"] for row in rows] == [talk.output]
