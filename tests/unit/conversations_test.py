"""Ten conversations, each in a test's world and through a whole stack."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Client, RequestRejected
from holdfast.api.workflows import Workflow
from holdfast.compiler.compile import compile_module
from holdfast.local.proving import subjects_of_modules
from holdfast.testing import World, real
from tests.unit import conversation_flows as flows
from tests.unit.client_kit import MemoryStack

DAY = 86_400


@dataclass(frozen=True)
class Ask:
    """A request `at` seconds after the start, and its reply, or the error that rejects it."""

    at: int
    name: str
    data: Any
    reply: Any = None
    error: str | None = None


@dataclass(frozen=True)
class Tell:
    at: int
    name: str
    data: Any


@dataclass(frozen=True)
class Talk:
    """`key`: the first argument; `starts`: the first message starts the execution."""

    workflow: Workflow[..., Any]
    said: list[Ask | Tell]
    output: Any
    given: dict[str, Any] = field(default_factory=dict)
    lasts: int = 3_600

    def __str__(self) -> str:
        return self.workflow.name


def first_parameter(talk: Talk) -> str:
    return next(iter(inspect.signature(talk.workflow.function).parameters))


def add(sku: str, cents: int) -> dict[str, Any]:
    return {"kind": "add", "sku": sku, "cents": cents}


TALKS = [
    Talk(flows.cart, [Ask(1, "cart", {"kind": "checkout"}, error="Refused")], ": 0"),
    Talk(
        flows.cart,
        [
            Ask(1, "cart", add("tea", 5), 5),
            Ask(2, "cart", add("jam", 7), 12),
            Ask(3, "cart", {"kind": "checkout"}, "ordered"),
        ],
        "tea, jam: 12",
    ),
    Talk(
        flows.chat,
        [
            Ask(1, "chat", {"text": "hello"}, "yes"),
            Ask(
                2,
                "chat",
                {"text": "sun?", "tool": "get_weather", "argument": {"city": "Rome"}},
                "rain in Rome",
            ),
            Ask(3, "chat", {"text": "bye"}, "bye"),
        ],
        [
            ["user", "hello"],
            ["bot", "yes"],
            ["user", "sun?"],
            ["bot", "rain in Rome"],
            ["user", "bye"],
        ],
    ),
    Talk(
        flows.pool,
        [
            Tell(1, "pool", {"kind": "want", "who": "ann"}),
            Tell(2, "pool", {"kind": "want", "who": "bob"}),
            Tell(3, "pool", {"kind": "free", "who": "ann"}),
            Tell(4, "pool", {"kind": "free", "who": "bob"}),
            Tell(5, "pool", {"kind": "want", "who": "cem"}),
        ],
        ["ann", "bob", "cem"],
    ),
    Talk(
        flows.movable_timer,
        [Tell(5, "timer.move", 60), Tell(20, "timer.move", 5)],
        "fired after 2 moves",
        {"wait_seconds": 10},
    ),
    Talk(
        flows.manager,
        [
            Ask(1, "cluster", {"action": "add", "node": "a"}, 1),
            Ask(2, "cluster", {"action": "add", "node": "a"}, error="Refused"),
            Ask(3, "cluster", {"action": "add", "node": "b"}, 2),
            Ask(4, "cluster", {"action": "remove", "node": "a"}, 1),
            Ask(5, "cluster", {"action": "shutdown"}, ["b"]),
        ],
        ["b"],
    ),
    # An event is taken by `receive`, too. Its sender waits for no reply.
    Talk(
        flows.manager,
        [
            Tell(1, "cluster", {"action": "add", "node": "a"}),
            Tell(2, "cluster", {"action": "add", "node": "a"}),
            Ask(3, "cluster", {"action": "shutdown"}, ["a"]),
        ],
        ["a"],
    ),
    Talk(
        flows.cart,
        [Tell(1, "cart", add("tea", 5)), Ask(2, "cart", {"kind": "checkout"}, "ordered")],
        "tea: 5",
    ),
    Talk(
        flows.payment,
        [
            Ask(1, "payment", {"action": "charge", "cents": 900}, error="Refused"),
            Ask(2, "payment", {"action": "charge", "cents": 300}, "charge of 300"),
            Ask(3, "payment", {"action": "charge", "cents": 300}, error="Refused"),
            Ask(4, "payment", {"action": "refund"}, "refunded"),
            Ask(5, "payment", {"action": "close"}, "refunded"),
        ],
        "refunded",
    ),
    Talk(
        flows.order,
        [Tell(1, "order.paid", 5), Tell(2, "order.delivered", "at the door")],
        "at the door",
    ),
    Talk(flows.order, [Tell(1, "order.paid", 5)], "lost", lasts=8 * DAY),
    Talk(
        flows.approval,
        [
            Ask(1, "review", {"verdict": "edit", "text": "better"}, "better"),
            Ask(2, "review", {"verdict": "approve"}, "approve"),
        ],
        "better",
        {"draft": "good"},
    ),
    Talk(
        flows.session,
        [Tell(1, "session.click", "home"), Tell(200, "session.click", "shop")],
        ["home", "shop"],
    ),
    Talk(
        flows.subscription,
        [Tell(75 * DAY, "subscription.cancel", True)],
        30,
        lasts=80 * DAY,
    ),
]


@pytest.mark.parametrize("talk", TALKS, ids=str)
def test_a_conversation_in_a_world(talk: Talk) -> None:
    world, asked = World(others=real), {}
    for one in talk.said:
        at = timedelta(seconds=one.at)
        if isinstance(one, Ask):
            asked[world.request(one.name, one.data, key="k", at=at)] = one
        else:
            world.send(one.name, one.data, key="k", at=at)
    given = {first_parameter(talk): "k", **talk.given}
    run = world.run_json(talk.workflow, given)
    assert run.end.output == talk.output
    for request, one in asked.items():
        reply = run.replies[request]
        assert (reply.get("value"), reply.get("error")) == (one.reply, one.error)


@pytest.mark.parametrize("talk", TALKS, ids=str)
def test_a_conversation_through_a_stack(talk: Talk) -> None:
    stack = MemoryStack(flows.__name__)
    client, begin_ms = Client.of(stack.api), stack.world.now_ms
    keyed, parameter = talk.workflow.keyed, first_parameter(talk)
    if keyed is None or keyed.starts_on is None:
        client.start(talk.workflow.name, {parameter: "k", **talk.given})
    for one in talk.said:
        stack.world.run(until_ms=begin_ms + one.at * 1_000)
        stack.world.now_ms = begin_ms + one.at * 1_000
        if isinstance(one, Tell):
            client.event(one.name, "k", one.data)
            continue
        try:
            assert client.request(one.name, "k", one.data, timeout=0) == one.reply
        except RequestRejected as rejected:
            assert rejected.error == one.error
    stack.world.run(until_ms=begin_ms + talk.lasts * 1_000)
    [row] = client.list(workflow=talk.workflow.name)
    assert client.describe(row["execution"])["output"] == talk.output


def test_a_workflow_may_wait_without_a_bound_for_the_event_that_it_lives_for() -> None:
    """`check --strict` warns of the waits for other events alone."""
    compiled = compile_module(flows)
    warned = {
        machine.proofs.name
        for machine in subjects_of_modules([flows.__name__], compiled)
        if any(found.severity == "warning" for found in machine.proofs.findings)
    }
    assert warned == {"customer", "order"}
