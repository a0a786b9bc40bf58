"""Telling the account's event bus."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.aws.bus import Bus
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Publish

EVENT = Publish("holdfast.states", "Status Change", {"status": "läuft", "n": 1}, ("arn:e",), 1_500)


class Clients:
    """A bus that gives one answer, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.entries: list[dict[str, Any]] = []
        self._answer = answer

    def get(self, name: str) -> Any:
        assert name == "bus"
        return self

    def put_events(self, *, Entries: list[dict[str, Any]]) -> Any:  # noqa: N803  # botocore's name
        self.entries += Entries
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_an_event_goes_to_the_default_bus_with_its_time_and_resources() -> None:
    clients = Clients({"FailedEntryCount": 0})
    Bus(clients).publish(EVENT)  # type: ignore[arg-type]
    (entry,) = clients.entries
    assert entry["Detail"] == '{"status":"läuft","n":1}'  # every byte of it is billed
    assert (entry["Source"], entry["DetailType"]) == ("holdfast.states", "Status Change")
    assert entry["Resources"] == ["arn:e"]
    assert entry["Time"].timestamp() == 1.5
    assert "EventBusName" not in entry


REFUSALS = [
    pytest.param({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "Throttled"}]}, id="entry"),
    pytest.param(OSError("no answer"), id="call"),
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_an_entry_that_the_bus_does_not_take_is_a_fault(answer: Any) -> None:
    with pytest.raises(ServiceFault):
        Bus(Clients(answer)).publish(EVENT)  # type: ignore[arg-type]
