"""The ARNs of all resources: `arn:aws:states:REGION:ACCOUNT:KIND:…`.

    stateMachine:NAME                   stateMachine:NAME:7 (a version)   stateMachine:NAME:ALIAS
    execution:NAME:EXECUTION            execution:NAME/LABEL:EXECUTION (item of a distributed Map)
    express:NAME:EXECUTION:UUID         mapRun:NAME/LABEL:UUID            activity:NAME

The functions `parse_*` raise StatesFault InvalidArn for other text. A valid ARN may name a resource
of another region or account, or one that does not exist; the caller refuses it with the exception
for its kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from holdfast.runtime.storage.keys import is_machine_name
from holdfast.stepfunctions.faults import StatesFault, invalid_arn, invalid_name

_ARN: Final = re.compile(
    r"arn:(?P<partition>[a-z0-9-]+):(?P<service>[^:]+):(?P<region>[^:]*):(?P<account>[^:]*)"
    r":(?P<kind>[^:]+):(?P<rest>.+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ArnRegion:
    """The region and account of one service's resources."""

    region: str
    account: str
    partition: str = "aws"

    def arn(self, kind: str, *parts: str) -> str:
        return ":".join(("arn", self.partition, "states", self.region, self.account, kind, *parts))

    def machine(self, name: str) -> str:
        return self.arn("stateMachine", name)

    def version(self, name: str, number: int) -> str:
        return self.arn("stateMachine", name, str(number))

    def alias(self, name: str, alias: str) -> str:
        return self.arn("stateMachine", name, alias)

    def execution(self, machine: str, name: str, label: str | None = None) -> str:
        """Return the ARN of an execution. `label` is that of the Map state, for a child of a
        distributed Map.
        """
        return self.arn("execution", _labelled(machine, label), name)

    def express(self, machine: str, name: str, identifier: str) -> str:
        return self.arn("express", machine, name, identifier)

    def map_run(self, machine: str, label: str, identifier: str) -> str:
        return self.arn("mapRun", _labelled(machine, label), identifier)

    def activity(self, name: str) -> str:
        return self.arn("activity", name)


@dataclass(frozen=True, slots=True)
class MachineArn:
    """The ARN of a state machine. `qualifier` is a version's number or an alias's name; `label` is
    that of a distributed Map.
    """

    text: str
    place: ArnRegion
    name: str
    qualifier: str | None = None
    label: str | None = None

    @property
    def version(self) -> int | None:
        """Return the version's number; None when the ARN is that of a machine or an alias."""
        is_number = self.qualifier is not None and re.fullmatch(r"[1-9][0-9]*", self.qualifier)
        return int(self.qualifier or 0) if is_number else None

    @property
    def alias(self) -> str | None:
        return self.qualifier if self.version is None else None


@dataclass(frozen=True, slots=True)
class ExecutionArn:
    """The ARN of an execution. `express` is the last part of an express execution's ARN, `label`
    that of a distributed Map.
    """

    text: str
    place: ArnRegion
    machine: str
    name: str
    label: str | None = None
    express: str | None = None


@dataclass(frozen=True, slots=True)
class MapRunArn:
    text: str
    place: ArnRegion
    machine: str
    label: str
    identifier: str


@dataclass(frozen=True, slots=True)
class ActivityArn:
    text: str
    place: ArnRegion
    name: str


Arn = MachineArn | ExecutionArn | MapRunArn | ActivityArn


def parse_arn(text: str) -> Arn:
    """Return the parts of the ARN, for a resource of any kind."""
    found = _parts(text)
    match found.group("kind"):
        case "stateMachine":
            return parse_machine_arn(text)
        case "execution" | "express":
            return parse_execution_arn(text)
        case "mapRun":
            return parse_map_run_arn(text)
        case "activity":
            return parse_activity_arn(text)
        case kind:
            raise _wrong_kind(kind)


def parse_machine_arn(text: str) -> MachineArn:
    """Return a state machine, a version or an alias."""
    place, kind, parts = _split(text)
    if kind != "stateMachine":
        raise _wrong_kind(kind)
    if len(parts) > 2 or not all(parts):
        raise invalid_arn(f"Invalid arn: '{text}'")
    name, label = _unlabelled(parts[0])
    return MachineArn(text, place, name, parts[1] if len(parts) == 2 else None, label)


def parse_execution_arn(text: str) -> ExecutionArn:
    """Return an execution of a standard machine, of an express machine, or a child of a distributed
    Map.
    """
    place, kind, parts = _split(text)
    if kind not in ("execution", "express"):
        raise _wrong_kind(kind)
    if len(parts) != (2 if kind == "execution" else 3) or not all(parts):
        raise invalid_arn(f"Invalid arn: '{text}'")
    machine, label = _unlabelled(parts[0])
    return ExecutionArn(
        text, place, machine, parts[1], label, parts[2] if kind == "express" else None
    )


def parse_map_run_arn(text: str) -> MapRunArn:
    place, kind, parts = _split(text)
    if kind != "mapRun":
        raise _wrong_kind(kind)
    machine, label = _unlabelled(parts[0])
    if len(parts) != 2 or not all(parts) or label is None:
        raise invalid_arn(f"Invalid arn: '{text}'")
    return MapRunArn(text, place, machine, label, parts[1])


def parse_activity_arn(text: str) -> ActivityArn:
    place, kind, parts = _split(text)
    if kind != "activity":
        raise _wrong_kind(kind)
    if len(parts) != 1 or not parts[0]:
        raise invalid_arn(f"Invalid arn: '{text}'")
    return ActivityArn(text, place, parts[0])


def require_name(name: str) -> str:
    """Return the name of a machine, an activity or an execution. Raises InvalidName."""
    if not is_machine_name(name):
        raise invalid_name(name)
    return name


def require_role_arn(text: str) -> str:
    """Return the ARN. Raises InvalidArn when it is not that of an IAM role."""
    if not re.fullmatch(r"arn:[a-z0-9-]+:iam::[0-9]{12}:role/.+", text, re.DOTALL):
        raise StatesFault("InvalidArn", f"Invalid Role Arn: '{text}'")
    return text


def _split(text: str) -> tuple[ArnRegion, str, list[str]]:
    found = _parts(text)
    place = ArnRegion(found.group("region"), found.group("account"), found.group("partition"))
    return place, found.group("kind"), found.group("rest").split(":")


def _parts(text: str) -> re.Match[str]:
    if not text.startswith("arn:"):
        raise invalid_arn(f"Invalid ARN prefix: {text}")
    found = _ARN.fullmatch(text)
    if found is None:
        raise invalid_arn(f"Invalid arn: '{text}'")
    if found.group("service") != "states":
        raise invalid_arn(f"Service name not valid in this context: {found.group('service')}")
    return found


def _wrong_kind(kind: str) -> StatesFault:
    return invalid_arn(f"Resource type not valid in this context: {kind}")


def _labelled(machine: str, label: str | None) -> str:
    return machine if label is None else f"{machine}/{label}"


def _unlabelled(text: str) -> tuple[str, str | None]:
    """Return name and label. Raises InvalidArn when the name is missing."""
    machine, _, label = text.partition("/")
    if not machine:
        raise invalid_arn(f"Invalid arn: no name stands before '{text}'")
    return machine, label or None
