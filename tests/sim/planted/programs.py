"""Small programs, each of which shows one kind of bug in the fold of facts and records."""

from __future__ import annotations

from typing import Any

from tests.builders import call, machine
from tests.sim.planted.kit import AttemptOutcome, Scenario

ALL_ERRORS = ["States.ALL"]


def retried(**fields: Any) -> dict[str, Any]:
    retrier = {"ErrorEquals": ALL_ERRORS, "IntervalSeconds": 2, "BackoffRate": 3, **fields}
    return {"Retry": [retrier]}


def failing(times: int) -> tuple[AttemptOutcome, ...]:
    return (*[AttemptOutcome(error="Broken", cause="it is broken")] * times, AttemptOutcome("done"))


LANES = Scenario(
    "three lanes",
    "tasks of different lengths beside each other, one of them twice",
    {
        "main": machine(
            {
                "all": {
                    "Type": "Parallel",
                    "End": True,
                    "Branches": [
                        machine({"a": call("slow")}),
                        machine({"b": call("quick")}),
                        machine({"c": call("quick", Arguments={"second": True})}),
                    ],
                }
            }
        )
    },
    {"n": 1},
    {
        "slow": (AttemptOutcome("slow", seconds=2),),
        "quick": (AttemptOutcome(echo=True, seconds=1),),
    },
)
RETRIED = Scenario(
    "three times",
    "the third attempt succeeds",
    {"main": machine({"a": call("one", **retried(MaxAttempts=3))})},
    {"n": 1},
    {"one": failing(2)},
)
EXHAUSTED = Scenario(
    "too often",
    "it is broken once more than it may be",
    {"main": machine({"a": call("one", **retried(MaxAttempts=2))})},
    {"n": 1},
    {"one": failing(5)},
)
JITTER = Scenario(
    "by chance",
    "a retry after a drawn delay",
    {"main": machine({"a": call("one", **retried(JitterStrategy="FULL"))})},
    {"n": 1},
    {"one": failing(1)},
)
CAUGHT = Scenario(
    "caught",
    "retried once, then caught by the first that fits",
    {
        "main": machine(
            {
                "a": call(
                    "one",
                    **retried(MaxAttempts=1),
                    Catch=[
                        {"ErrorEquals": ["Broken"], "Next": "first"},
                        {"ErrorEquals": ALL_ERRORS, "Next": "second"},
                    ],
                ),
                "first": {"Type": "Pass", "Output": "first", "End": True},
                "second": {"Type": "Pass", "Output": "second", "End": True},
            }
        )
    },
    {"n": 1},
    {"one": failing(5)},
)
SLOW = Scenario(
    "out of time",
    "the first attempt is too slow, the second is not",
    {"main": machine({"a": call("one", TimeoutSeconds=3, **retried(IntervalSeconds=1))})},
    {"n": 1},
    {
        "one": (
            AttemptOutcome("first", seconds=6),
            AttemptOutcome("second", seconds=4),
            AttemptOutcome("third"),
        )
    },
)
CALLED = Scenario(
    "a child",
    "a workflow that calls another",
    {
        "main": machine(
            {"a": call("one", "b"), "b": {**call(""), "Resource": "holdfast:workflow:inner"}}
        ),
        "inner": machine({"c": call("two")}),
    },
    {"n": 1},
)
DRAWN = Scenario(
    "a drawn number",
    "the first task gets a number that was drawn",
    {"main": machine({"a": call("one", Arguments={"number": "{% $random() %}"}, End=True)})},
    tasks={"one": (AttemptOutcome("done", seconds=2),)},
)
MANY = Scenario(
    "many lanes",
    "eight lanes, each with a result of its own",
    {
        "main": machine(
            {
                "all": {
                    "Type": "Parallel",
                    "End": True,
                    "Branches": [
                        machine({f"lane {n}": {"Type": "Pass", "Output": f"r{n}", "End": True}})
                        for n in range(8)
                    ],
                }
            }
        )
    },
)
#: Text that no compression makes shorter.
_CHANCE = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(40_000))
LARGE = Scenario(
    "a large input",
    "it goes through the bucket",
    {"main": machine({"a": call("one", "b"), "b": call("two")})},
    {"text": _CHANCE},
)
WIDE = Scenario(
    "wide characters",
    "thirty values, each of three bytes a character, that are together too much for one item",
    {"main": machine({"a": call("one", "b"), "b": call("two")})},
    {
        "values": [
            "".join(chr(0x4E00 + (n * 7919 + i * 104_729) % 20_000) for i in range(5_000))
            for n in range(30)
        ]
    },
)
SECRET = Scenario(
    "a secret",
    "an input and a cause that only the log may hold",
    {"main": machine({"a": call("one")})},
    {"card": "canary-4f8a61"},
    {"one": (AttemptOutcome(error="Refused", cause="canary-4f8a61 was refused"),)},
)
