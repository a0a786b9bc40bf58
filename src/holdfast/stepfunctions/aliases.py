"""Aliases: a name for one version of a state machine, or for two versions with weights."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from holdfast.runtime.effects import Clock, Delete, Effect, JsonResult, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import MachineArn, parse_machine_arn
from holdfast.stepfunctions.catalogue import Alias, Service
from holdfast.stepfunctions.faults import (
    conflict,
    no_such_reference,
    quota_exceeded,
    state_machine_does_not_exist,
    validation,
)
from holdfast.stepfunctions.lookup import find_created, find_machine, is_here, refuse_deleting
from holdfast.stepfunctions.pages import page

ALIASES_MAX: Final = 100  # AWS docs, CreateStateMachineAlias: aliases of one machine
Routes: TypeAlias = tuple[tuple[int, int], ...]


def create_state_machine_alias(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """Create an alias of its versions' machine. An identical repeated request gets the same
    response.
    """
    machine, routes = yield from _require_routes(service, request["routingConfiguration"])
    yield from _require_room(service, machine, request["name"])
    now_ms = yield Clock()
    wanted = Alias(machine, request["name"], routes, now_ms, now_ms, request.get("description"))
    found = yield PutIfAbsent(tables.MAIL, catalogue.alias_item(service.tenant, wanted))
    alias = wanted if found is None else catalogue.read_alias(found)
    if (alias.routes, alias.description) != (wanted.routes, wanted.description):
        raise conflict(
            "Failed to create alias because an alias with the same name and a different routing "
            "configuration already exists."
        )
    return {
        "stateMachineAliasArn": service.place.alias(machine, alias.name),
        "creationDate": alias.created_ms,
    }


def _require_room(service: Service, machine: str, name: str) -> Generator[Effect, Any, None]:
    """Raise ServiceQuotaExceededException when the alias would be one more than AWS allows."""
    names = {alias.name for alias in (yield from catalogue.aliases(service.tenant, machine))}
    if len(names | {name}) > ALIASES_MAX:
        raise quota_exceeded(f"a state machine can have at most {ALIASES_MAX} aliases")


def update_state_machine_alias(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    arn = _parse_alias_arn(request["stateMachineAliasArn"])
    if "description" not in request and "routingConfiguration" not in request:
        raise validation(
            "Either the description or the routing configuration must be specified",
            "MISSING_REQUIRED_PARAMETER",
        )
    yield from _refuse_deleting(service, arn)
    yield from _require_alias(service, arn)
    changes: dict[str, Any] = {}
    if "description" in request:
        changes["description"] = request["description"]
    if "routingConfiguration" in request:
        machine, changes["routes"] = yield from _require_routes(
            service, request["routingConfiguration"]
        )
        if machine != arn.name:
            raise no_such_reference()
    now_ms = yield Clock()
    yield from catalogue.change(
        service.tenant,
        lambda: _require_alias(service, arn),
        lambda seen: replace(seen, **changes, updated_ms=now_ms),
    )
    return {"updateDate": now_ms}


def describe_state_machine_alias(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    arn = _parse_alias_arn(request["stateMachineAliasArn"])
    alias = yield from _require_alias(service, arn)
    response = {
        "stateMachineAliasArn": arn.text,
        "name": alias.name,
        "routingConfiguration": [
            {"stateMachineVersionArn": service.place.version(arn.name, number), "weight": weight}
            for number, weight in alias.routes
        ],
        "creationDate": alias.created_ms,
        "updateDate": alias.updated_ms,
    }
    return response if alias.description is None else {**response, "description": alias.description}


def delete_state_machine_alias(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """Delete an alias. A missing alias is not an error: AWS's own CloudFormation provider describes
    the alias before it deletes it, to find out.
    """
    arn = _parse_alias_arn(request["stateMachineAliasArn"])
    if is_here(service, arn):
        alias = keys.alias(str(arn.alias))
        yield Delete(tables.MAIL, keys.machine(service.tenant, arn.name), alias)
    return {}


def list_state_machine_aliases(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """List the aliases of a machine by name, or only those that route to one of its versions."""
    arn = parse_machine_arn(request["stateMachineArn"])
    machine = None
    if is_here(service, arn):
        machine = yield from find_machine(service, arn.name)
    if machine is None:
        raise state_machine_does_not_exist(arn.text)
    refuse_deleting(service, machine)
    aliases = yield from catalogue.aliases(service.tenant, arn.name)
    if arn.qualifier is not None:
        aliases = [alias for alias in aliases if arn.version in dict(alias.routes)]
    scope = f"aliases:{arn.name}:{arn.qualifier}"
    shown, more = yield from page(service, request, aliases, scope, lambda one: one.name)
    listed = [
        {
            "stateMachineAliasArn": service.place.alias(arn.name, alias.name),
            "creationDate": alias.created_ms,
        }
        for alias in shown
    ]
    return {"stateMachineAliases": listed, **more}


def _parse_alias_arn(text: str) -> MachineArn:
    arn = parse_machine_arn(text)
    if arn.alias is None:
        raise validation(f"A state machine alias ARN is expected: '{text}'")
    return arn


def _require_alias(service: Service, arn: MachineArn) -> Generator[Effect, Any, Alias]:
    alias = None
    if is_here(service, arn):
        alias = yield from catalogue.alias(service.tenant, arn.name, str(arn.alias))
    if alias is None:
        raise no_such_reference()
    return alias


def _require_routes(
    service: Service, given: Sequence[Mapping[str, Any]]
) -> Generator[Effect, Any, tuple[str, Routes]]:
    """Return the machine, and its versions' numbers with their weights. Raises StatesFault for a
    version that does not exist.
    """
    texts = [str(route["stateMachineVersionArn"]) for route in given]
    weights = [int(route["weight"]) for route in given]
    arns = [parse_machine_arn(text) for text in texts]
    problem = _routing_problem(arns, weights)
    if problem is not None:
        raise validation(problem, "INVALID_ROUTING_CONFIGURATION")
    yield from _refuse_deleting(service, arns[0])
    for arn in arns:
        yield from _require_version(service, arn)
    numbers = [arn.version or 0 for arn in arns]
    return arns[0].name, tuple(zip(numbers, weights, strict=True))


def _routing_problem(arns: Sequence[MachineArn], weights: Sequence[int]) -> str | None:
    texts = _listed([arn.text for arn in arns])
    opening = "Routing configuration must contain"
    if any(arn.version is None for arn in arns):
        return f"{opening} state machine version ARNs. Received: {texts}"
    if len({arn.text for arn in arns}) < len(arns):
        return f"{opening} distinct state machine version ARNs. Received: {texts}"
    if sum(weights) != 100:
        received = _listed(weights)
        return f"Sum of routing configuration weights must equal 100. Received: {received}"
    if len({arn.name for arn in arns}) > 1:
        return f"{opening} versions of the same state machine. Received: {texts}"
    return None


def _refuse_deleting(service: Service, arn: MachineArn) -> Generator[Effect, Any, None]:
    """Raise StateMachineDeleting while the machine waits for the ends of its executions. Its
    versions and aliases are gone by then.
    """
    machine = (yield from find_created(service, arn.name)) if is_here(service, arn) else None
    if machine is not None:
        refuse_deleting(service, machine)


def _require_version(service: Service, arn: MachineArn) -> Generator[Effect, Any, None]:
    found = None
    if is_here(service, arn):
        found = yield from catalogue.version(service.tenant, arn.name, arn.version or 0)
    if found is None:
        raise no_such_reference()


def _listed(values: Sequence[object]) -> str:
    return f"[{', '.join(map(str, values))}]"
