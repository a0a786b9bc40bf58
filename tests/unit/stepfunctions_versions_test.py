"""Versions and aliases through the API's door."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.driver import run
from holdfast.runtime.effects import Effect, PutIfAbsent, Replace
from holdfast.stepfunctions import aliases, catalogue, versions
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.versions import resolve_for_start
from tests.unit.states_kit import PASS, PLACE, ROLE, START_MS, Desk, definition

ARN = PLACE.machine("m")
SUM = "Sum of routing configuration weights must equal 100. Received:"


def machine_of_versions(count: int) -> Desk:
    """Return a desk with machine m, published `count` times."""
    desk = Desk()
    desk.create(text=definition("1"), publish=True)
    for number in range(2, count + 1):
        desk.call(
            "UpdateStateMachine",
            stateMachineArn=ARN,
            definition=definition(str(number)),
            publish=True,
        )
    return desk


def routes(*weights: tuple[int, int]) -> list[dict[str, Any]]:
    return [
        {"stateMachineVersionArn": PLACE.version("m", number), "weight": weight}
        for number, weight in weights
    ]


def version_numbers(desk: Desk) -> list[int]:
    listed = desk.call("ListStateMachineVersions", stateMachineArn=ARN)["stateMachineVersions"]
    return [int(one["stateMachineVersionArn"].rpartition(":")[2]) for one in listed]


def test_versions_are_listed_the_newest_first() -> None:
    desk = machine_of_versions(12)

    assert version_numbers(desk) == list(range(12, 0, -1))
    page = desk.call("ListStateMachineVersions", stateMachineArn=ARN, maxResults=10)
    rest = desk.call("ListStateMachineVersions", stateMachineArn=ARN, nextToken=page["nextToken"])
    assert [one["stateMachineVersionArn"] for one in rest["stateMachineVersions"]] == [
        PLACE.version("m", 2),
        PLACE.version("m", 1),
    ]


def test_a_page_continues_although_the_last_shown_version_is_gone() -> None:
    desk = machine_of_versions(2)
    page = desk.call("ListStateMachineVersions", stateMachineArn=ARN, maxResults=1)
    desk.call("DeleteStateMachineVersion", stateMachineVersionArn=PLACE.version("m", 2))
    rest = desk.call("ListStateMachineVersions", stateMachineArn=ARN, nextToken=page["nextToken"])
    assert [one["stateMachineVersionArn"] for one in rest["stateMachineVersions"]] == [
        PLACE.version("m", 1)
    ]


def test_a_number_with_zeros_before_it_is_no_version() -> None:
    desk = machine_of_versions(1)
    code, _ = desk.refusal("DescribeStateMachine", stateMachineArn=f"{ARN}:01")
    assert code == "StateMachineDoesNotExist"
    code, _ = desk.refusal("DeleteStateMachineVersion", stateMachineVersionArn=f"{ARN}:01")
    assert (code, version_numbers(desk)) == ("ValidationException", [1])


def test_a_version_stays_as_it_was_published() -> None:
    desk = machine_of_versions(1)
    desk.call("UpdateStateMachine", stateMachineArn=ARN, definition=definition("later"))

    described = desk.call("DescribeStateMachine", stateMachineArn=f"{ARN}:1")
    assert described["definition"] == definition("1")
    assert described["stateMachineArn"] == f"{ARN}:1"
    assert described["name"] == "m"
    assert described["creationDate"] == START_MS / 1_000 + 1
    assert "description" not in described
    assert "revisionId" not in described


def test_a_version_may_be_described() -> None:
    desk = Desk()
    desk.create(publish=True, versionDescription="the first")

    assert (
        desk.call("DescribeStateMachine", stateMachineArn=f"{ARN}:1")["description"] == "the first"
    )
    assert "description" not in desk.call("DescribeStateMachine", stateMachineArn=ARN)


@pytest.mark.parametrize("operation", ["CreateStateMachine", "UpdateStateMachine"])
def test_a_description_needs_a_version(operation: str) -> None:
    desk = Desk()
    request = {"definition": PASS, "roleArn": ROLE, "versionDescription": "x"}
    named = {"name": "m"} if operation.startswith("Create") else {"stateMachineArn": ARN}

    assert desk.refusal(operation, **request, **named) == (
        "ValidationException",
        "Version description can only be set when publish is true",
    )


def test_a_revision_is_published_once() -> None:
    desk = machine_of_versions(1)

    for _ in range(2):
        published = desk.call("PublishStateMachineVersion", stateMachineArn=ARN)
        assert published["stateMachineVersionArn"] == f"{ARN}:1"
    assert version_numbers(desk) == [1]


def test_a_number_is_never_given_again() -> None:
    desk = machine_of_versions(2)
    desk.call("DeleteStateMachineVersion", stateMachineVersionArn=f"{ARN}:2")

    published = desk.call("PublishStateMachineVersion", stateMachineArn=ARN)
    assert published["stateMachineVersionArn"] == f"{ARN}:3"
    assert version_numbers(desk) == [3, 1]


def test_a_version_that_was_stored_but_not_counted_is_found_by_the_next_publish() -> None:
    """The process crashes between the version and its machine."""
    desk = Desk()
    desk.create()

    def perform(effect: Effect) -> Any:
        if isinstance(effect, Replace):
            raise KeyboardInterrupt
        return desk.services.perform(effect)

    with pytest.raises(KeyboardInterrupt):
        request = {"stateMachineArn": ARN}
        run(desk.api.call("PublishStateMachineVersion", request, bytes(16)), perform)
    desk.call("UpdateStateMachine", stateMachineArn=ARN, definition=definition("2"), publish=True)
    assert version_numbers(desk) == [2, 1]


def test_a_machine_of_the_same_name_does_not_get_the_versions_of_the_one_before() -> None:
    """A publish that was under way while the first machine was deleted has left one behind."""
    desk = machine_of_versions(1)
    left = run(catalogue.version("default", "m", 1), desk.services.perform)
    desk.call("DeleteStateMachine", stateMachineArn=ARN)
    desk.services.perform(PutIfAbsent("mail", catalogue.version_item("default", left)))
    desk.create(text=definition("other"))

    arn = desk.call("PublishStateMachineVersion", stateMachineArn=ARN)["stateMachineVersionArn"]
    described = desk.call("DescribeStateMachine", stateMachineArn=arn)
    assert described["definition"] == definition("other")


def test_a_revision_that_is_no_longer_current_is_not_published() -> None:
    desk = machine_of_versions(1)
    first = desk.call("UpdateStateMachine", stateMachineArn=ARN, definition=definition("a"))
    second = desk.call("UpdateStateMachine", stateMachineArn=ARN, definition=definition("b"))

    for old in (first["revisionId"], "INITIAL"):
        refusal = desk.refusal("PublishStateMachineVersion", stateMachineArn=ARN, revisionId=old)
        assert refusal[0] == "ConflictException"
        assert refusal[1] == (
            f"Failed to publish the State Machine version for revision {old}. "
            f"The current State Machine revision is {second['revisionId']}."
        )
    published = desk.call(
        "PublishStateMachineVersion", stateMachineArn=ARN, revisionId=second["revisionId"]
    )
    assert published["stateMachineVersionArn"] == f"{ARN}:2"


def test_publishing_a_missing_machine_is_refused() -> None:
    refusal = Desk().refusal("PublishStateMachineVersion", stateMachineArn=ARN)

    assert refusal == ("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{ARN}'")


def test_a_version_that_an_alias_routes_to_is_not_deleted() -> None:
    desk = machine_of_versions(2)
    for name in ("blue", "green"):
        desk.call(
            "CreateStateMachineAlias", name=name, routingConfiguration=routes((1, 20), (2, 80))
        )

    refusal = desk.refusal("DeleteStateMachineVersion", stateMachineVersionArn=f"{ARN}:1")
    assert refusal[0] == "ConflictException"
    assert refusal[1] == (
        "Version to be deleted must not be referenced by an alias. Current list of aliases "
        "referencing this version: [blue, green]"
    )


def test_an_alias_is_described_as_it_was_last_updated() -> None:
    desk = machine_of_versions(2)
    made = desk.call(
        "CreateStateMachineAlias",
        name="live",
        description="what customers see",
        routingConfiguration=routes((1, 100)),
    )
    arn = made["stateMachineAliasArn"]
    assert arn == f"{ARN}:live"

    desk.call(
        "UpdateStateMachineAlias",
        stateMachineAliasArn=arn,
        routingConfiguration=routes((1, 90), (2, 10)),
    )
    described = desk.call("DescribeStateMachineAlias", stateMachineAliasArn=arn)
    assert described.pop("updateDate") == described["creationDate"] + 1
    assert described == {
        "stateMachineAliasArn": arn,
        "name": "live",
        "description": "what customers see",
        "routingConfiguration": routes((1, 90), (2, 10)),
        "creationDate": made["creationDate"],
    }


def test_an_alias_is_created_once() -> None:
    desk = machine_of_versions(2)
    request = {"name": "live", "routingConfiguration": routes((1, 100))}
    made = desk.call("CreateStateMachineAlias", **request)

    assert desk.call("CreateStateMachineAlias", **request) == made
    other = {"name": "live", "routingConfiguration": routes((2, 100))}
    assert desk.refusal("CreateStateMachineAlias", **other)[0] == "ConflictException"


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (((1, 50), (1, 50)), "Routing configuration must contain distinct state machine version"),
        (((1, 70), (2, 29)), f"{SUM} [70, 29]"),
        (((1, 70), (2, 31)), f"{SUM} [70, 31]"),
    ],
)
def test_routes_have_to_add_up(weights: tuple[tuple[int, int], ...], told: str) -> None:
    desk = machine_of_versions(2)
    request = {"name": "live", "routingConfiguration": routes(*weights)}

    code, message = desk.refusal("CreateStateMachineAlias", **request)
    assert code == "ValidationException"
    assert message.startswith(told)


def test_a_route_leads_to_a_version_that_exists() -> None:
    desk = machine_of_versions(1)
    machine = [{"stateMachineVersionArn": ARN, "weight": 100}]
    refusal = desk.refusal("CreateStateMachineAlias", name="live", routingConfiguration=machine)
    assert refusal == (
        "ValidationException",
        f"Routing configuration must contain state machine version ARNs. Received: [{ARN}]",
    )
    refusal = desk.refusal(
        "CreateStateMachineAlias", name="live", routingConfiguration=routes((2, 100))
    )
    assert refusal[0] == "ResourceNotFound"


def test_an_alias_that_is_not_there_is_refused() -> None:
    desk = machine_of_versions(1)
    missing = (
        "ResourceNotFound",
        "Request references a resource that does not exist.",
    )
    arn = {"stateMachineAliasArn": f"{ARN}:live"}

    assert desk.refusal("UpdateStateMachineAlias", description="x", **arn) == missing
    assert desk.refusal("DescribeStateMachineAlias", **arn) == missing


def test_an_alias_that_is_not_there_may_be_deleted() -> None:
    desk = machine_of_versions(1)
    elsewhere = ARN.replace("123456789012", "999999999999")
    for machine in (ARN, f"{ARN}x", elsewhere):
        assert desk.call("DeleteStateMachineAlias", stateMachineAliasArn=f"{machine}:live") == {}


def test_aliases_are_listed_by_name_of_a_machine_or_a_version() -> None:
    desk = machine_of_versions(2)
    for name, number in (("c", 1), ("a", 2), ("b", 1)):
        desk.call("CreateStateMachineAlias", name=name, routingConfiguration=routes((number, 100)))

    def names(arn: str) -> list[str]:
        listed = desk.call("ListStateMachineAliases", stateMachineArn=arn)["stateMachineAliases"]
        return [one["stateMachineAliasArn"].rpartition(":")[2] for one in listed]

    assert names(ARN) == ["a", "b", "c"]
    assert names(f"{ARN}:1") == ["b", "c"]
    desk.call("DeleteStateMachineAlias", stateMachineAliasArn=f"{ARN}:b")
    assert names(ARN) == ["a", "c"]
    missing = PLACE.machine("none")
    refusal = desk.refusal("ListStateMachineAliases", stateMachineArn=missing)
    assert refusal[0] == "StateMachineDoesNotExist"


# -- quotas ----------------------------------------------------------------------------------------


def test_the_quotas_are_those_of_awss_documentation() -> None:
    assert (versions.VERSIONS_MAX, aliases.ALIASES_MAX) == (1_000, 100)


def test_a_machine_has_no_more_versions_than_its_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "VERSIONS_MAX", 2)
    desk = machine_of_versions(2)
    again = desk.call("PublishStateMachineVersion", stateMachineArn=ARN)
    assert again["stateMachineVersionArn"] == PLACE.version("m", 2)  # that revision has a version
    changed = {"stateMachineArn": ARN, "definition": definition("3")}
    assert desk.refusal("UpdateStateMachine", **changed, publish=True)[0] == (
        "ServiceQuotaExceededException"
    )
    assert desk.call("DescribeStateMachine", stateMachineArn=ARN)["definition"] == definition("2")
    desk.call("UpdateStateMachine", **changed)
    code, message = desk.refusal("PublishStateMachineVersion", stateMachineArn=ARN)
    assert code == "ServiceQuotaExceededException"
    assert message == (
        "The request would cause a service quota to be exceeded: a state machine can have at most "
        "2 versions"
    )
    desk.call("DeleteStateMachineVersion", stateMachineVersionArn=PLACE.version("m", 1))
    published = desk.call("PublishStateMachineVersion", stateMachineArn=ARN)
    assert published["stateMachineVersionArn"] == PLACE.version("m", 3)


def test_a_machine_has_no_more_aliases_than_its_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aliases, "ALIASES_MAX", 2)
    desk = machine_of_versions(1)
    route = {"routingConfiguration": routes((1, 100))}
    for name in ("a", "b", "b"):
        desk.call("CreateStateMachineAlias", name=name, **route)
    code, message = desk.refusal("CreateStateMachineAlias", name="c", **route)
    assert code == "ServiceQuotaExceededException"
    assert message.endswith(": a state machine can have at most 2 aliases")
    desk.call("DeleteStateMachineAlias", stateMachineAliasArn=PLACE.alias("m", "a"))
    assert desk.call("CreateStateMachineAlias", name="c", **route)


# -- the definition that a start runs --------------------------------------------------------------


def started(desk: Desk, arn: str, ticket: int = 0) -> Any:
    chance = bytes(12) + ticket.to_bytes(4, "big")
    return run(resolve_for_start(desk.service, arn, chance), desk.services.perform)


def comment(desk: Desk, found: Any) -> Any:
    service = desk.service
    fetch = service.programs.fetch(service.tenant, found.definition)
    asl: Any = run(fetch, desk.services.perform).asl
    return asl["Comment"]


def test_a_start_of_the_machine_runs_it_as_it_is() -> None:
    desk = machine_of_versions(1)
    desk.call("UpdateStateMachine", stateMachineArn=ARN, definition=definition("now"))

    found = started(desk, ARN)
    assert comment(desk, found) == "now"
    assert (found.machine_arn, found.name, found.role_arn, found.type) == (
        ARN,
        "m",
        ROLE,
        "STANDARD",
    )
    assert (found.version_arn, found.alias_arn) == (None, None)


def test_a_start_of_a_version_runs_the_version() -> None:
    desk = machine_of_versions(2)

    found = started(desk, f"{ARN}:1")
    assert comment(desk, found) == "1"
    assert (found.version_arn, found.alias_arn) == (f"{ARN}:1", None)


def test_an_alias_chooses_by_weight() -> None:
    desk = machine_of_versions(2)
    desk.call("CreateStateMachineAlias", name="live", routingConfiguration=routes((1, 30), (2, 70)))

    chosen = [started(desk, f"{ARN}:live", ticket).version_arn for ticket in range(100)]
    assert chosen == [f"{ARN}:1"] * 30 + [f"{ARN}:2"] * 70
    assert started(desk, f"{ARN}:live").alias_arn == f"{ARN}:live"


@pytest.mark.parametrize("arn", [PLACE.machine("none"), f"{ARN}:9", f"{ARN}:none"])
def test_a_start_of_a_missing_machine_is_refused(arn: str) -> None:
    with pytest.raises(StatesFault) as refusal:
        started(machine_of_versions(1), arn)

    assert refusal.value.code == "StateMachineDoesNotExist"
    assert refusal.value.message == f"State Machine Does Not Exist: '{arn}'"
