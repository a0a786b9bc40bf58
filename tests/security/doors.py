"""The HTTP doors of one stack in memory: the callers, the touched items, and the stored data.

Requests have the form in which API Gateway passes them on; the verified identity is a part
that the caller cannot write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.aws.http import api_handler
from holdfast.local.gateway import event_of
from holdfast.runtime.effects import (
    Clock,
    Delete,
    Effect,
    Extend,
    Get,
    GetBlob,
    Publish,
    Put,
    PutArchive,
    PutBlob,
    PutIfAbsent,
    Query,
    QueryList,
    Replace,
    Send,
    Unlist,
)
from holdfast.runtime.storage.keys import STACK_CONTROL, TENANT_DEFAULT
from holdfast_simulator.services import DEAD_LETTERS, WORK_QUEUES
from tests.builders import ask, machine, wait_for
from tests.unit.host_kit import Context, Site, site
from tests.unit.states_kit import PASS, PLACE, ROLE

Json = Any
Authorizer = Mapping[str, Any] | None

WRITES: Final = (
    Put,
    PutIfAbsent,
    Replace,
    Delete,
    Unlist,
    Extend,
    PutBlob,
    PutArchive,
    Send,
    Publish,
)
#: Partitions that all tenants' requests may read: the stack's format, the due rows, and what
#: operators have changed in the limits, which are the stack's.
READ_BY_ALL: Final = ("~ctl", "~due#")
LIMITS: Final = ("~lim",)
#: Quarantined messages without a tenant are for operators of the stack.
OPERATORS: Final = ("~#",)
#: A caller that signs with IAM: the tenant `default`.
IAM: Final[Authorizer] = {"iam": {"userArn": "arn:aws:iam::123456789012:user/clerk"}}
BOTH: Final = machine(
    {
        "it": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "paid", "States": {"paid": wait_for("paid")}},
                {"StartAt": "ask", "States": {"ask": ask()}},
            ],
            "End": True,
        }
    }
)


def tenant(name: Any) -> Authorizer:
    """Return API Gateway's claims for a caller whose JWT it has verified."""
    return {"jwt": {"claims": {"sub": "somebody", "tenant": name}, "scopes": None}}


@dataclass
class Doors:
    """One stack with the workflow `flow`, which waits for an event and for a person."""

    site: Site = field(default_factory=lambda: site(BOTH))
    #: The effects of the last request, without what every request does before it is read: it asks
    #: the clock, and once a minute the host reads the item of its own settings.
    seen: list[Effect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._api = api_handler(self.site.host, PLACE.region)
        inner = self.site.ports.perform

        def perform(effect: Effect) -> Any:
            if not _is_look(effect):
                self.seen.append(effect)
            return inner(effect)

        self.site.ports.perform = perform  # type: ignore[method-assign]

    @property
    def services(self) -> Any:
        return self.site.shop.world.services

    def http(
        self,
        method: str,
        target: str,
        body: Json = b"",
        who: Authorizer = IAM,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Json]:
        """Return status and answer. `target`: path and query as sent; `body`: bytes, or JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        event = event_of(method, target, headers or {}, raw, self.site.shop.world.now_ms)
        if who is not None:
            event["requestContext"]["authorizer"] = who
        self.seen.clear()
        answer = self._api(event, Context())
        return int(answer["statusCode"]), json.loads(answer["body"])

    def states(
        self, operation: str, body: Json, who: Authorizer = IAM, target: str = "/"
    ) -> tuple[int, Json]:
        """Return status and answer of an operation of Step Functions."""
        headers = {"x-amz-target": f"AWSStepFunctions.{operation}"}
        return self.http("POST", target, body, who, headers)

    def stored(self) -> Json:
        """Return everything that the stack holds."""
        services = self.services
        queues = (*WORK_QUEUES, *DEAD_LETTERS)
        items = [services.items(table) for table in ("executions", "mail")]
        return items, services.blobs(), [services.depth(queue) for queue in queues]

    def wrote(self) -> list[Effect]:
        """Return the writes and messages of the last request."""
        return [effect for effect in self.seen if isinstance(effect, WRITES)]

    def foreign(self, name: str) -> list[Effect]:
        """Return effects of the last request on data of other tenants."""
        own = (f"{name}#", f"{name}/", *(OPERATORS if name == TENANT_DEFAULT else ()))
        return [effect for effect in self.seen for key in _keys(effect) if not key.startswith(own)]


def _is_look(effect: Effect) -> bool:
    return isinstance(effect, Clock) or (
        isinstance(effect, Query | Get) and effect.pk == STACK_CONTROL
    )


def _keys(effect: Effect) -> Iterator[str]:
    match effect:
        case Put(_, item) | PutIfAbsent(_, item) | Replace(_, item, _):
            is_due = str(item["pk"]).startswith(("~due#", "~start#"))
            yield str(item["sk"]).partition("#")[2] if is_due else str(item["pk"])
        case Query(_, "~hurt", begins_with=prefix):
            yield str(prefix)
        case Get(_, "~hurt", place) | Delete(_, "~hurt", place):
            yield str(place)
        case Query(_, partition) if partition.startswith(READ_BY_ALL):
            return
        case Query(_, partition) | Get(_, partition) if partition in LIMITS:
            return
        case Query() | Get() | Delete() | Unlist() | Extend():
            yield effect.pk
        case QueryList():
            yield effect.partition
        case PutBlob() | GetBlob() | PutArchive():
            yield effect.key
        case Send(messages):
            yield from (f"{message.body['t']}#" for message in messages)


# -- the stack before bad input --------------------------------------------------------------------


@dataclass(frozen=True)
class Shop:
    """One tenant's data: a waiting execution, its token, and items of the API."""

    doors: Doors
    name: str
    run: str
    token: str
    machine_arn: str
    execution_arn: str
    activity_arn: str

    @property
    def who(self) -> Authorizer:
        return IAM if self.name == TENANT_DEFAULT else tenant(self.name)


def opened(doors: Doors, name: str = TENANT_DEFAULT) -> Shop:
    """Return a tenant with one of each kind."""
    who = IAM if name == TENANT_DEFAULT else tenant(name)
    start = {"workflow": "flow", "input": {"n": 0}, "name": "order-1"}
    run = doors.http("POST", "/executions", start, who)[1]["execution"]
    create = {"name": "desk", "definition": PASS, "roleArn": ROLE}
    machine_arn = doors.states("CreateStateMachine", create, who)[1]["stateMachineArn"]
    begin = {"stateMachineArn": machine_arn, "name": "first"}
    execution_arn = doors.states("StartExecution", begin, who)[1]["executionArn"]
    activity_arn = doors.states("CreateActivity", {"name": "press"}, who)[1]["activityArn"]
    doors.site.work()
    shown = doors.http("GET", f"/executions/{run}", who=who)[1]
    token = next(wait["token"] for wait in shown["waits"] if "token" in wait)
    return Shop(doors, name, run, token, machine_arn, execution_arn, activity_arn)
