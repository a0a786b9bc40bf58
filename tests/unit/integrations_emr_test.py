"""Instance fleets and groups of EMR, which a task names and EMR knows by their ids."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from tests.unit.integrations_kit import effect, perform

CASES = [
    (
        "modifyInstanceFleetByName",
        "InstanceFleet",
        {"TargetOnDemandCapacity": 8, "TargetSpotCapacity": 0},
        lambda part: {"ClusterId": "j-1", "InstanceFleet": part},
    ),
    (
        "modifyInstanceGroupByName",
        "InstanceGroup",
        {"InstanceCount": 8},
        lambda part: {"ClusterId": "j-1", "InstanceGroups": [part]},
    ),
]


def _modify(action: str, field: str, part: Any, answers: dict[str, Any], **other: Any) -> Any:
    arguments = {"ClusterId": "j-1", f"{field}Name": "core", field: part, **other}
    return perform(effect(f"elasticmapreduce:{action}", arguments), answers)


@pytest.mark.parametrize(("action", "field", "part", "request_of"), CASES)
def test_the_name_becomes_the_id_of_the_cluster_s_own_part(
    action: str, field: str, part: dict[str, Any], request_of: Any
) -> None:
    methods = {"InstanceFleet": "instance_fleet", "InstanceGroup": "instance_groups"}
    modify = f"modify_{methods[field]}"
    parts = [{"Id": "x", "Name": "other"}, {"Id": "i-7", "Name": "core"}]
    list_ = f"list_instance_{field[8:].lower()}s"
    answers = {list_: {f"{field}s": parts}, modify: {}}
    result, clients = _modify(action, field, part, answers)

    assert isinstance(result, TaskSucceeded)
    assert clients.calls == [
        (list_, {"ClusterId": "j-1"}),
        (modify, request_of({f"{field}Id": "i-7", **part})),
    ]


@pytest.mark.parametrize(("action", "field", "part", "_"), CASES)
def test_a_name_that_the_cluster_does_not_have_is_refused(
    action: str, field: str, part: dict[str, Any], _: Any
) -> None:
    list_ = f"list_instance_{field[8:].lower()}s"
    result, _clients = _modify(action, field, part, {list_: {f"{field}s": []}})
    assert isinstance(result, TaskFailed)
    assert f"The cluster has no {field} with the name 'core'" in str(result.cause)


def test_a_refusal_of_the_list_is_the_error_of_the_task() -> None:
    said = {
        "Error": {"Code": "InvalidRequestException", "Message": "Cluster id 'j-1' is not valid"}
    }
    refused = ClientError(
        {**said, "ResponseMetadata": {"HTTPStatusCode": 400}}, "ListInstanceFleets"
    )
    result, _ = _modify(*CASES[0][:3], {"list_instance_fleets": refused})
    assert result.error == "ElasticMapReduce.InvalidRequestException"
    assert str(result.cause).startswith("Cluster id 'j-1' is not valid (Service: AmazonElasticMap")


def test_what_is_missing_or_of_another_type_is_named() -> None:
    result, _ = perform(effect("elasticmapreduce:modifyInstanceFleetByName", {}), {})
    assert "The field 'ClusterId' is required but was missing" in str(result.cause)
    result, _ = _modify("modifyInstanceFleetByName", "InstanceFleet", 3, {})
    assert "The value for the field 'InstanceFleet' must be an OBJECT" in str(result.cause)
