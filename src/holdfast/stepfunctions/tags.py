"""Tags of state machines and activities."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from holdfast.runtime.effects import Effect, JsonResult
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import ActivityArn, MachineArn, parse_arn
from holdfast.stepfunctions.catalogue import Activity, Service, StateMachine
from holdfast.stepfunctions.faults import StatesFault, resource_not_found, throttled, validation
from holdfast.stepfunctions.lookup import find_machine, is_here
from holdfast.stepfunctions.workflows import refuse_workflow

Tags: TypeAlias = tuple[tuple[str, str], ...]

_SYMBOLS: Final = "_.:/=+-@"
_RESERVED: Final = "aws:"
TAGS_MAX: Final = 50  # Step Functions quota: tags of one resource


def tag_resource(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    """Set tags. An existing tag gets the new value and keeps its place."""
    arn = request["resourceArn"]
    yield from _change(service, arn, lambda tags: merged(tags, request["tags"], arn))
    return {}


def untag_resource(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    gone = set(request["tagKeys"])
    yield from _change(
        service,
        request["resourceArn"],
        lambda tags: tuple((key, value) for key, value in tags if key not in gone),
    )
    return {}


def list_tags_for_resource(service: Service, request: dict[str, Any], _: bytes) -> JsonResult:
    found = yield from _require(service, request["resourceArn"])
    return {"tags": [{"key": key, "value": value} for key, value in found.tags]}


def merged(tags: Tags, given: Sequence[Mapping[str, Any]], resource: str) -> Tags:
    """Return the merged tags of the resource with this ARN. Raises TooManyTags; and
    ValidationException for a tag without a key, or with other characters than AWS's documentation
    of tags names, which AWS's model would allow.
    """
    for number, tag in enumerate(given, 1):
        if "key" not in tag:
            raise validation(
                f"1 validation error detected: Value null at 'tags.{number}.member.key' failed to "
                "satisfy constraint: Member must not be null"
            )
        for part in ("key", "value"):
            _require_tag_text(f"tags.{number}.member.{part}", str(tag.get(part, "")))
    values = dict(tags) | {str(tag["key"]): str(tag.get("value", "")) for tag in given}
    if len(values) > TAGS_MAX:
        raise StatesFault(
            "TooManyTags",
            f"A resource can have at most {TAGS_MAX} tags",
            resourceName=resource,
        )
    return tuple(values.items())


def _require_tag_text(place: str, text: str) -> None:
    """Raise ValidationException for text that no tag may have (AWS docs, Tag; quotas, "Restrictions
    related to tagging").
    """
    opening = f"1 validation error detected: Value '{text}' at '{place}' failed to satisfy"
    if any(not (one.isalnum() or one.isspace() or one in _SYMBOLS) for one in text):
        raise validation(
            f"{opening} constraint: Member must have only Unicode letters, digits, white space, "
            f"and the symbols {' '.join(_SYMBOLS)}"
        )
    if place.endswith(".key") and text.lower().startswith(_RESERVED):
        raise validation(f"{opening} constraint: Member must not begin with {_RESERVED}")


def _change(
    service: Service, resource: str, decide: Callable[[Tags], Tags]
) -> Generator[Effect, Any, None]:
    arn = parse_arn(resource)
    if isinstance(arn, MachineArn):
        refuse_workflow(service, arn)
    found = yield from _require(service, resource)
    if isinstance(found, StateMachine):
        yield from catalogue.change(
            service.tenant,
            lambda: _require_machine(service, arn),
            lambda seen: replace(seen, tags=decide(seen.tags)),
            throttled,
        )
    else:
        yield from catalogue.change(
            service.tenant,
            lambda: _require_activity(service, arn),
            lambda seen: replace(seen, tags=decide(seen.tags)),
            throttled,
        )


def _require(service: Service, resource: str) -> Generator[Effect, Any, StateMachine | Activity]:
    arn = parse_arn(resource)
    if isinstance(arn, ActivityArn):
        return (yield from _require_activity(service, arn))
    return (yield from _require_machine(service, arn))


def _require_machine(service: Service, arn: Any) -> Generator[Effect, Any, StateMachine]:
    """Return the machine. Refuse versions and aliases, because they have no tags (as recordings
    show).
    """
    machine = None
    if isinstance(arn, MachineArn) and is_here(service, arn) and arn.qualifier is None:
        machine = yield from find_machine(service, arn.name)
    if machine is None:
        raise resource_not_found(arn.text)
    return machine


def _require_activity(service: Service, arn: Any) -> Generator[Effect, Any, Activity]:
    activity = None
    if isinstance(arn, ActivityArn) and arn.place == service.place:
        activity = yield from catalogue.activity(service.tenant, arn.name)
    if activity is None:
        raise resource_not_found(arn.text)
    return activity
