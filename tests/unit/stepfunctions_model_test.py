"""Every member of every operation of AWS's model, with each kind of value that AWS refuses.

The requests and the expected answers are generated from botocore's model by rules of their own, so
they check the product's reading of the model, and the checks that the model does not hold: kinds of
ARNs, and tokens of pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import pytest
from botocore.loaders import Loader

from holdfast.stepfunctions.api import OPERATIONS
from tests.unit.states_kit import PLACE, ROLE
from tests.unit.states_world import PASS, Office, states

MODEL: Final[Any] = Loader().load_data("stepfunctions/2016-11-23/service-2")
SHAPES: Final[Any] = MODEL["shapes"]
JSON_MEMBERS: Final = {"input", "output", "variables", "context"}
#: A valid ARN for each member that is one.
ARNS: Final[Mapping[str, str]] = {
    "stateMachineArn": PLACE.machine("flow"),
    "stateMachineVersionArn": PLACE.version("flow", 1),
    "stateMachineAliasArn": PLACE.alias("flow", "live"),
    "executionArn": PLACE.execution("flow", "first"),
    "activityArn": PLACE.activity("pack"),
    "mapRunArn": PLACE.map_run("flow", "Each", "0" * 32),
    "resourceArn": PLACE.machine("flow"),
    "roleArn": ROLE,
}
#: One ARN of each kind, by the members that take it.
KINDS: Final = [
    (PLACE.machine("flow"), {"stateMachineArn", "resourceArn"}),
    (PLACE.execution("flow", "first"), {"executionArn", "resourceArn"}),
    (PLACE.activity("pack"), {"activityArn", "resourceArn"}),
    (PLACE.map_run("flow", "Each", "0" * 32), {"mapRunArn", "resourceArn"}),
    (ROLE, {"roleArn"}),
]
#: What AWS says of an ARN that is none, and of one of another kind.
REFUSALS: Final = {"InvalidArn", "ValidationException", "ResourceNotFound"}
WRONG: Final[Mapping[str, Any]] = {
    "string": 5,
    "integer": "five",
    "long": "five",
    "double": "five",
    "float": "five",
    "boolean": "yes",
    "list": "none",
    "structure": "none",
}


def members_of(operation: str) -> Mapping[str, str]:
    """Return the shapes of the request's members, by their names."""
    shape = SHAPES[MODEL["operations"][operation]["input"]["shape"]]
    return {name: member["shape"] for name, member in shape["members"].items()}


def required_of(operation: str) -> list[str]:
    return list(SHAPES[MODEL["operations"][operation]["input"]["shape"]].get("required", []))


def valid(name: str, shape_name: str) -> Any:
    if name in ARNS:
        return ARNS[name]
    shape = SHAPES[shape_name]
    match shape["type"]:
        case "string" if "enum" in shape:
            return shape["enum"][0]
        case "string" if name == "definition":
            return json.dumps(states(A=PASS))
        case "string" if name in JSON_MEMBERS:
            return "{}"
        case "string":
            return "live" * max(1, -(-int(shape.get("min", 0)) // 4))
        case "integer" | "double" | "float" | "long":
            return shape.get("min", 1) or 1
        case "boolean":
            return True
        case "list":
            return [valid("", shape["member"]["shape"])]
        case _:
            return {
                inner: valid(inner, shape["members"][inner]["shape"])
                for inner in shape.get("required", [])
            }


def base(operation: str) -> dict[str, Any]:
    members = members_of(operation)
    return {name: valid(name, members[name]) for name in required_of(operation)}


def problems(name: str, shape_name: str) -> Iterator[tuple[Any, str]]:
    """Yield a value and the sentence with which AWS refuses it, for each bound of the shape."""
    shape = SHAPES[shape_name]
    hidden = shape.get("sensitive", False)

    def told(value: Any, what: str) -> str:
        shown = "" if hidden else f" '{value}'"
        return f"Value{shown} at '{name}' failed to satisfy constraint: Member must {what}"

    if shape["type"] == "string" and "enum" not in shape and "pattern" not in shape:
        if "max" in shape:
            long = "x" * (shape["max"] + 1)
            yield long, told(long, f"have length less than or equal to {shape['max']}")
        if shape.get("min"):
            yield "", told("", f"have length greater than or equal to {shape['min']}")
    if shape["type"] in {"integer", "long", "double", "float"}:
        if "max" in shape:
            high = shape["max"] + 1
            yield high, told(high, f"have value less than or equal to {shape['max']}")
        if "min" in shape:
            low = shape["min"] - 1
            yield low, told(low, f"have value greater than or equal to {shape['min']}")


@cache
def office() -> Office:
    """One world for all requests: none of them changes anything."""
    world = Office()
    world.call("CreateActivity", name="pack")
    world.start(world.create(states(A=PASS), publish=True), name="first")
    world.wait(10)
    return world


ALL: Final = sorted(OPERATIONS)


def test_every_operation_of_the_model_is_there() -> None:
    assert set(MODEL["operations"]) == set(OPERATIONS)


@pytest.mark.parametrize("operation", ALL)
def test_a_missing_member_is_named(operation: str) -> None:
    for name in required_of(operation):
        request = {key: value for key, value in base(operation).items() if key != name}
        constraint = f"Value null at '{name}' failed to satisfy constraint: Member must not be null"
        assert office().refusal(operation, **request) == (
            "ValidationException",
            f"1 validation error detected: {constraint}",
        )


@pytest.mark.parametrize("operation", ALL)
def test_a_value_of_another_type_is_not_read(operation: str) -> None:
    for name, shape in members_of(operation).items():
        request = {**base(operation), name: WRONG[SHAPES[shape]["type"]]}
        assert office().refusal(operation, **request)[0] == "SerializationException", name


@pytest.mark.parametrize("operation", ALL)
def test_a_value_out_of_bounds_is_quoted_with_its_bound(operation: str) -> None:
    for name, shape in members_of(operation).items():
        for value, sentence in problems(name, shape):
            refused = office().refusal(operation, **{**base(operation), name: value})
            expected = f"1 validation error detected: {sentence}"
            assert refused == ("ValidationException", expected), name


@pytest.mark.parametrize("operation", ALL)
def test_a_value_that_no_enum_has_is_refused_with_all_of_its_values(operation: str) -> None:
    for name, shape in members_of(operation).items():
        if "enum" in SHAPES[shape]:
            code, message = office().refusal(operation, **{**base(operation), name: "NONE"})
            before, _, listed = message.partition("enum value set: [")
            assert code == "ValidationException"
            assert before == (
                f"1 validation error detected: Value 'NONE' at '{name}' failed to satisfy "
                "constraint: Member must satisfy "
            )
            assert sorted(listed.removesuffix("]").split(", ")) == sorted(SHAPES[shape]["enum"])


@pytest.mark.parametrize("operation", ALL)
def test_an_arn_of_another_kind_or_none_is_refused(operation: str) -> None:
    for name in members_of(operation):
        if name in ARNS:
            wrong = [arn for arn, takers in KINDS if name not in takers]
            for arn in ("nonsense", "arn:aws:states:::", *wrong):
                code, _ = office().refusal(operation, **{**base(operation), name: arn})
                assert code in REFUSALS, (name, arn)
                is_none = not arn.startswith("arn:")
                assert not is_none or code == "InvalidArn", (name, arn)


@pytest.mark.parametrize("operation", ALL)
def test_a_token_that_no_page_gave_is_refused(operation: str) -> None:
    if "nextToken" not in members_of(operation):
        return
    request = {**base(operation), "nextToken": "made up"}
    if operation == "ListExecutions":
        request["stateMachineArn"] = ARNS["stateMachineArn"]
    assert office().refusal(operation, **request) == (
        "InvalidToken",
        "Invalid Token: 'Invalid token'",
    )


@pytest.mark.parametrize("operation", ["SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"])
@pytest.mark.parametrize("token", ["made up", "a" * 700, "AAAA"])
def test_a_token_that_no_task_has_is_refused(operation: str, token: str) -> None:
    request = {**base(operation), "taskToken": token}
    assert office().refusal(operation, **request) == (
        "InvalidToken",
        "Invalid Token: 'Invalid token'",
    )
