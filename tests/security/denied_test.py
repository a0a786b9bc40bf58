"""A call that IAM does not allow: a named fault, no lost data, and no delay for other executions.

Roles are listed in tests/infra/roles_test.py; these tests show the effect of a missing right.
The doors are the bodies of the functions, on memory services that refuse one kind of call with
botocore's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast.aws.faults import fault
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Extend,
    Get,
    GetBlob,
    PutBlob,
    PutIfAbsent,
    Query,
    QueryList,
    Replace,
    Send,
    SetVisibility,
    Unlist,
)
from tests.builders import chain, machine, wait_for
from tests.unit.host_kit import Context, Site, site

#: The action of AWS that each effect is, and so the right that it needs.
ACTIONS: dict[type[Any], str] = {
    Query: "dynamodb:Query",
    QueryList: "dynamodb:Query",
    Get: "dynamodb:GetItem",
    PutIfAbsent: "dynamodb:PutItem",
    Replace: "dynamodb:PutItem",
    Delete: "dynamodb:DeleteItem",
    Unlist: "dynamodb:UpdateItem",
    Extend: "dynamodb:UpdateItem",
    PutBlob: "s3:PutObject",
    GetBlob: "s3:GetObject",
    Send: "sqs:SendMessage",
    SetVisibility: "sqs:ChangeMessageVisibility",
}


def deny(found: Site, kind: type[Any]) -> Callable[[], None]:
    """Every effect of the kind is refused from now on; returns a function that allows it again."""
    allowed = found.ports.perform

    def perform(effect: Effect) -> Any:
        if isinstance(effect, kind):
            raise denied(kind)
        return allowed(effect)

    def for_message(queue: Any, receipt: str) -> Any:
        bound = found.shop.world.services.for_message(queue, receipt)

        def perform_bound(effect: Effect) -> Any:
            if isinstance(effect, kind):
                raise denied(kind)
            return bound(effect)

        return perform_bound

    bound_before = found.ports.for_message
    found.ports.perform = perform  # type: ignore[method-assign]
    found.ports.for_message = for_message  # type: ignore[method-assign]

    def allow() -> None:
        found.ports.perform = allowed  # type: ignore[method-assign]
        found.ports.for_message = bound_before  # type: ignore[method-assign]

    return allow


def denied(kind: type[Any]) -> ServiceFault:
    action = ACTIONS[kind]
    said = {
        "Error": {
            "Code": "AccessDeniedException",
            "Message": f"User: role is not authorized to perform: {action}",
        },
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return fault(action, ClientError(said, action), is_conditional_put=kind is PutIfAbsent)


def require_named(error: Exception) -> None:
    assert isinstance(error, ServiceFault)
    assert (error.code, error.retry) == ("HF323", "never")
    assert "AccessDenied" in error.message


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_a_worker_without_a_right_gives_its_message_back_or_needs_it_not(kind: type[Any]) -> None:
    found = site(machine({"it": wait_for("paid")}))
    run = found.shop.start()
    allow = deny(found, kind)
    back = found.work()
    for _, error in found.faults:
        require_named(error)
    assert bool(back) == bool([what for what, _ in found.faults if "message" in what])

    # Nothing was lost: with the right in place, the execution continues.
    allow()
    found.shop.world.now_ms += 3_600_000
    found.host.sweeper(Context())
    found.work()
    found.host.events({"id": "b1", "detail": {"name": "paid", "key": "k1", "data": 5}})
    for _ in range(3):
        found.work()
        found.shop.world.now_ms += 3_600_000
        found.host.sweeper(Context())
    assert found.shop.history(run).state.output == 5


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_an_event_that_may_not_be_stored_goes_back_to_the_bus(kind: type[Any]) -> None:
    found = site(machine({"it": wait_for("paid")}))
    found.shop.start()
    found.work()
    deny(found, kind)
    try:
        found.host.events({"id": "b1", "detail": {"name": "paid", "key": "k1", "data": 5}})
    except ServiceFault as error:
        require_named(error)
        assert kind in {PutIfAbsent, Query, Send}
    else:
        assert kind not in {PutIfAbsent, Query, Send}


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_a_sweep_without_a_right_says_so_and_ends(kind: type[Any]) -> None:
    found = site(machine({"it": wait_for("paid")}))
    found.shop.start()
    found.work()
    found.shop.world.now_ms += 30 * 86_400_000
    deny(found, kind)
    found.host.sweeper(Context())
    for _, error in found.faults:
        require_named(error)


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/executions", {"workflow": "flow", "input": {"n": 0}}),
        ("GET", "/executions", None),
        ("POST", "/events", {"name": "paid", "key": "k1", "data": 5}),
        ("GET", "/workflows", None),
    ],
)
def test_the_api_answers_a_missing_right_with_a_code_and_no_traceback(
    kind: type[Any], method: str, path: str, body: Any
) -> None:
    found = site(chain(1))
    deny(found, kind)
    query = {"workflow": "flow"} if (method, path) == ("GET", "/executions") else None
    status, answer = found.request(method, path, body, query=query)

    if status >= 500:
        assert answer["error"]["code"] == "HF323"
    assert "Traceback" not in str(answer)
    # AWS's messages about roles and tables belong in the log, not in answers.
    assert "not authorized" not in str(answer)
