"""Events between workflows, detached starts, published values: through a whole stack."""

from __future__ import annotations

import json

from holdfast import Client
from tests.unit import talk_flows
from tests.unit.client_kit import MemoryStack

TOKEN = "open sesame"  # no secret


def test_workflows_talk_to_each_other_and_their_secrets_stay_sealed() -> None:
    talk_flows.read.clear()
    stack = MemoryStack(talk_flows.__name__)
    client = Client.of(stack.api)
    given = {"user": "ann", "token": TOKEN}
    started = client.start("door", given).result(timeout=5)
    session = client.describe(started)
    assert talk_flows.read == [TOKEN]
    assert session["published"]["login"]["user"] == "ann"
    assert session["name"] is not None
    assert client.list(workflow="session").__next__()["execution"] == started
    client.start("leave", {"user": "ann"}).result(timeout=5)
    ended = client.describe(started)
    assert (ended["status"], ended["output"]) == ("SUCCEEDED", 1)
    shown = json.dumps([session, ended, client.history(started)])
    assert "<secret 11 bytes>" in shown
    assert TOKEN not in shown
    assert TOKEN not in repr(stack.world.services.items("executions"))
    assert TOKEN not in repr(stack.world.services.items("mail"))
