"""Many callers start under one name at once: one execution, and every caller gets the right
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any

import pytest

from holdfast.errors import RequestError
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.invariants import check, histories
from tests.builders import Shop, chain
from tests.unit.states_world import PASS, WAIT, Office, states

Call = Generator[Any, Any, dict[str, Any]]
INPUTS: dict[str, Callable[[int], int]] = {
    "the same input": lambda _: 0,
    "two inputs": lambda number: number % 2,
    "inputs of their own": lambda number: number,
}


def side_by_side(
    draw: Random, perform: Callable[[Any], Any], calls: list[Call], deaths: int = 0
) -> list[Any]:
    """Return the result of each call when their effects take place in any order.

    Up to this many calls crash in the middle; their result is None.
    """
    results: list[Any] = [None] * len(calls)
    answers: dict[int, Any] = dict.fromkeys(range(len(calls)))
    while answers:
        number = draw.choice(sorted(answers))
        if deaths and draw.random() < 0.2:
            deaths -= 1
            del answers[number]
            continue
        try:
            answers[number] = perform(calls[number].send(answers[number]))
        except StopIteration as ended:
            results[number] = ended.value
            del answers[number]
        except (RequestError, StatesFault) as refusal:
            results[number] = refusal
            del answers[number]
    return results


def chance(number: int) -> bytes:
    return bytes([number]) * 16


@pytest.mark.parametrize("callers", [2, 3, 5, 10, 50])
@pytest.mark.parametrize("inputs", sorted(INPUTS))
@pytest.mark.parametrize("deaths", [0, 3])
def test_one_name_is_one_execution(inputs: str, callers: int, deaths: int) -> None:
    for seed in range(10 if callers < 50 else 2):
        shop, given = Shop(chain(1)), INPUTS[inputs]
        requests = [
            {"workflow": "flow", "name": "order-1", "input": {"n": given(number)}}
            for number in range(callers)
        ]

        def call(number: int) -> Call:
            return shop.front.start("default", requests[number], chance(number)[:8])  # noqa: B023

        results = side_by_side(
            Random(seed), shop.world.perform, [call(number) for number in range(callers)], deaths
        )
        dead = [number for number, result in enumerate(results) if result is None]
        results += side_by_side(Random(seed), shop.world.perform, [call(one) for one in dead])
        sent = [request["input"] for request in requests] + [requests[one]["input"] for one in dead]
        shop.world.run()
        (history,) = histories(shop.world)
        won: Any = history.state.input

        assert history.state.output == {"n": won["n"] + 1}
        for data, result in zip(sent, results, strict=True):
            if isinstance(result, RequestError):
                assert (result.code, data == won) == ("HF212", False)
            elif result is not None:
                assert (result["execution"], data) == (history.run, won)
        assert check(shop.world) == []


@pytest.mark.parametrize("callers", [2, 10, 50])
@pytest.mark.parametrize("inputs", sorted(INPUTS))
def test_one_name_is_one_execution_of_a_state_machine(inputs: str, callers: int) -> None:
    for seed in range(5 if callers < 50 else 1):
        office = Office()
        arn = office.create(states(a=PASS, b=WAIT))
        calls = [
            office.api.call(
                "StartExecution",
                {"stateMachineArn": arn, "name": "first", "input": str(INPUTS[inputs](number))},
                chance(number),
            )
            for number in range(callers)
        ]
        results = side_by_side(Random(seed), office.perform, calls)
        office.wait(1)
        (history,) = histories(office.world)
        started = [result for result in results if not isinstance(result, StatesFault)]
        refused = {result.code for result in results if isinstance(result, StatesFault)}

        assert {answer["executionArn"] for answer in started} == {
            arn.replace("stateMachine", "execution") + ":first"
        }
        expected = [
            number for number in range(callers) if INPUTS[inputs](number) == history.state.input
        ]
        assert len(started) == len(expected)
        assert refused <= {"ExecutionAlreadyExists"}
        assert check(office.world) == []


def test_a_start_that_does_not_reserve_the_name_would_be_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from holdfast.runtime.commands import start

    def unclaimed(_tenant: str, wanted: Any, _data: Any) -> Any:
        yield from ()
        return wanted

    monkeypatch.setattr(start, "claim_name", unclaimed)
    with pytest.raises((AssertionError, ValueError)):
        test_one_name_is_one_execution("the same input", 2, 0)
