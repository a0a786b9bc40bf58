"""Publishes events on the account's default event bus."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from holdfast.aws.clients import Clients
from holdfast.aws.faults import fault
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Publish


class Bus:
    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def publish(self, effect: Publish) -> None:
        """Publish an event. If it is refused, a ServiceFault is raised: SQS delivers the message of
        the worker again, and the worker publishes the event again.
        """
        entry = {
            "Source": effect.source,
            "DetailType": effect.detail_type,
            "Detail": json.dumps(effect.detail, separators=(",", ":"), ensure_ascii=False),
            "Resources": list(effect.resources),
            "Time": dt.datetime.fromtimestamp(effect.at_ms / 1_000, tz=dt.UTC),
        }
        answer = self._put(entry)
        if answer.get("FailedEntryCount"):
            code = answer["Entries"][0].get("ErrorCode")
            raise ServiceFault("HF322", f"the bus refused an event: {code}", retry="now")

    def _put(self, entry: dict[str, Any]) -> Any:
        try:
            return self._clients.get("bus").put_events(Entries=[entry])
        except Exception as error:
            raise fault("put_events", error) from error
