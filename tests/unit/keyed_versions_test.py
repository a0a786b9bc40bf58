"""Keyed workflows whose key or first event changes with a deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.runtime.effects import RunTask, TaskSucceeded
from tests.builders import CHANCE
from tests.unit.migration_kit import TwoVersions, compiled
from tests.unit.pausing_test import settle

HEADER = "from holdfast import again, wait_for_event, workflow\n"
BODY = """
def flow(owner: str) -> str:
    first = wait_for_event("msg", str, key=owner)
    second = wait_for_event("later", str, key=owner)
    return {end}
"""
KEYED = '@workflow(key="owner", starts_on="msg")' + BODY
CHANGES = {
    "no key": "@workflow" + BODY,
    "another event": '@workflow(key="owner", starts_on="later")' + BODY,
}


def work(_effect: RunTask) -> TaskSucceeded:
    return TaskSucceeded(None)


def versions(folder: Path, new: str, end: str = "first + second") -> TwoVersions:
    old, other = (compiled(folder, one.format(end=end), HEADER) for one in (KEYED, new))
    shop = TwoVersions(old, other, work)
    shop.deploy(shop.old)
    return shop


def send(shop: TwoVersions, name: str, number: int) -> Any:
    request = {"name": name, "key": "k", "data": name, "id": f"e{number}"}
    told = shop.world.call(shop.front.event("default", request, CHANCE + bytes([number])))
    settle(shop, 1)
    return told


@pytest.mark.parametrize("new", CHANGES)
def test_another_key_is_another_definition_and_no_execution_moves_to_it(
    tmp_path: Path, new: str
) -> None:
    shop = versions(tmp_path, CHANGES[new])
    assert shop.old.hash != shop.new.hash
    run = send(shop, "msg", 1)["execution"]
    shop.deploy()
    assert shop.reasons(run) == ["the new version has another key, or starts on another event"]


@pytest.mark.parametrize("new", CHANGES)
def test_an_execution_does_not_go_on_as_new_under_another_key(tmp_path: Path, new: str) -> None:
    shop = versions(tmp_path, CHANGES[new], end="again(owner)")
    run = send(shop, "msg", 1)["execution"]
    shop.deploy()
    send(shop, "later", 2)
    state = shop.state(run)
    assert (state.status, state.error) == ("FAILED", "InvalidArguments")


def test_an_ended_execution_drops_its_events_when_nothing_starts_on_them_now(
    tmp_path: Path,
) -> None:
    shop = versions(tmp_path, CHANGES["no key"])
    run = send(shop, "msg", 1)["execution"]
    send(shop, "msg", 2)
    shop.deploy()
    send(shop, "later", 3)
    assert shop.state(run).status == "SUCCEEDED"
    rows = {item["sk"]: item for item in shop.world.services.items("mail")}
    assert [rows["e#e1"]["to"], rows["e#e2"]["to"]] == [run, ""]
    assert "ttl" in rows["k"]


@pytest.mark.parametrize("new", CHANGES)
def test_an_event_that_was_sent_after_the_change_goes_to_the_next_execution(
    tmp_path: Path, new: str
) -> None:
    """It starts no workflow any longer, so it is not one of the events of the ended execution."""
    shop = versions(tmp_path, CHANGES[new])
    run = send(shop, "msg", 1)["execution"]
    shop.deploy()
    send(shop, "msg", 2)
    send(shop, "later", 3)
    assert shop.state(run).status == "SUCCEEDED"
    request = {"workflow": "flow", "input": {"owner": "k"}, "name": "next"}
    told = shop.world.call(shop.front.start("default", request, CHANCE + b"n"))
    settle(shop, 4_000)
    assert [*shop.state(told["execution"]).used_events] == ["e2"]
