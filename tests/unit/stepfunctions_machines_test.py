"""State machines through the API's door."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.runtime.driver import run
from holdfast.runtime.effects import Effect, Replace, RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.references import free_variables, variable_references
from tests.unit.states_kit import PASS, PLACE, ROLE, START_MS, Desk, definition

OTHER_ROLE = ROLE + "-2"
GROUP = "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/vendedlogs/states/x:*"
DESTINATION = {"cloudWatchLogsLogGroup": {"logGroupArn": GROUP}}


def describe(desk: Desk, arn: str) -> dict[str, Any]:
    answer: dict[str, Any] = desk.call("DescribeStateMachine", stateMachineArn=arn)
    return answer


def test_a_machine_is_described_as_it_was_created() -> None:
    desk = Desk()
    text = PASS.replace(" ", "   ")
    arn = desk.create("orders", text)

    assert arn == PLACE.machine("orders")
    assert describe(desk, arn) == {
        "stateMachineArn": arn,
        "name": "orders",
        "status": "ACTIVE",
        "definition": text,
        "roleArn": ROLE,
        "type": "STANDARD",
        "creationDate": START_MS / 1_000 + 1,
        "loggingConfiguration": {"level": "OFF", "includeExecutionData": False},
        "tracingConfiguration": {"enabled": False},
        "encryptionConfiguration": {"type": "AWS_OWNED_KEY"},
    }


def test_metadata_alone_says_nothing_of_the_definition() -> None:
    desk = Desk()
    arn = desk.create()

    described = desk.call("DescribeStateMachine", stateMachineArn=arn, includedData="METADATA_ONLY")
    assert described["definition"] == "{}"


def test_an_identical_repeat_is_no_second_creation() -> None:
    desk = Desk()
    request = {"name": "m", "definition": PASS, "roleArn": ROLE, "publish": True}
    first = desk.call("CreateStateMachine", **request)

    assert desk.call("CreateStateMachine", **request) == first
    assert desk.call("CreateStateMachine", **{**request, "roleArn": OTHER_ROLE}) == first
    assert describe(desk, first["stateMachineArn"])["roleArn"] == ROLE


def test_a_machine_that_was_changed_and_changed_back_is_the_same() -> None:
    desk = Desk()
    arn = desk.create()
    for text in (definition("other"), PASS):
        desk.call("UpdateStateMachine", stateMachineArn=arn, definition=text)

    assert desk.create() == arn


@pytest.mark.parametrize(
    "change",
    [
        {"definition": definition("other")},
        {"definition": PASS + " "},
        {"type": "EXPRESS"},
        {"tracingConfiguration": {"enabled": True}},
        {"publish": True},
    ],
)
def test_another_machine_of_the_same_name_is_refused(change: dict[str, Any]) -> None:
    desk = Desk()
    arn = desk.create()
    request = {"name": "m", "definition": PASS, "roleArn": ROLE, **change}

    assert desk.refusal("CreateStateMachine", **request) == (
        "StateMachineAlreadyExists",
        f"State Machine Already Exists: '{arn}'",
    )


def test_a_definition_that_is_not_valid_is_refused_with_every_problem() -> None:
    code, message = Desk().refusal("CreateStateMachine", name="m", definition="{}", roleArn=ROLE)

    assert code == "InvalidDefinition"
    assert message.startswith("Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: ")


@pytest.mark.parametrize(
    "value", ['"\\ud800"', "1e400", f'"{random.Random(1).randbytes(400_000).hex()}"']
)
def test_a_definition_that_cannot_be_stored_is_refused(value: str) -> None:
    states = f'{{"A": {{"Type": "Pass", "Result": {value}, "End": true}}}}'
    text = f'{{"StartAt": "A", "States": {states}}}'

    desk = Desk()
    code, _ = desk.refusal("CreateStateMachine", name="m", definition=text, roleArn=ROLE)
    assert code == "InvalidDefinition"
    assert desk.services.items("mail") == []


def test_a_refused_value_can_be_returned_in_the_message() -> None:
    text = '{"StartAt": "A", "States": {"\\ud800": {"Type": "Pass"}}}'

    found = Desk().call("ValidateStateMachineDefinition", definition=text)
    assert json.dumps(found, ensure_ascii=False).encode()
    _, message = Desk().refusal("CreateStateMachine", name="m", definition=text, roleArn=ROLE)
    assert message.encode()


def test_the_name_and_the_role_are_checked() -> None:
    desk = Desk()

    request = {"definition": PASS, "roleArn": ROLE, "name": "a b"}
    assert desk.refusal("CreateStateMachine", **request) == ("InvalidName", "Invalid Name: 'a b'")
    request = {"definition": PASS, "roleArn": "clerk", "name": "m"}
    assert desk.refusal("CreateStateMachine", **request)[0] == "InvalidArn"


def test_an_update_makes_a_revision_and_an_empty_one_does_not() -> None:
    desk = Desk()
    arn = desk.create()
    assert "revisionId" not in describe(desk, arn)

    first = desk.call("UpdateStateMachine", stateMachineArn=arn, roleArn=OTHER_ROLE)
    again = desk.call("UpdateStateMachine", stateMachineArn=arn, roleArn=OTHER_ROLE)
    assert first["revisionId"] == again["revisionId"] == describe(desk, arn)["revisionId"]
    assert describe(desk, arn)["definition"] == PASS

    second = desk.call("UpdateStateMachine", stateMachineArn=arn, definition=definition("2"))
    assert second["revisionId"] != first["revisionId"]
    assert describe(desk, arn)["roleArn"] == OTHER_ROLE


def test_an_update_without_a_change_before_the_first_has_no_revision() -> None:
    desk = Desk()
    arn = desk.create()

    updated = desk.call("UpdateStateMachine", stateMachineArn=arn, definition=PASS)
    assert set(updated) == {"updateDate"}


def test_an_update_of_nothing_is_refused() -> None:
    desk = Desk()
    arn = desk.create()

    assert desk.refusal("UpdateStateMachine", stateMachineArn=arn)[0] == "MissingRequiredParameter"


def test_two_updates_at_once_both_count() -> None:
    """The second one is let in between the first one's read and its write."""
    desk = Desk()
    arn = desk.create()
    others = iter([{"roleArn": OTHER_ROLE}])

    def perform(effect: Effect) -> Any:
        if isinstance(effect, Replace):
            for change in others:
                desk.call("UpdateStateMachine", stateMachineArn=arn, **change)
        return desk.services.perform(effect)

    request = {"stateMachineArn": arn, "definition": definition("2")}
    run(desk.api.call("UpdateStateMachine", request, bytes(16)), perform)
    described = describe(desk, arn)
    assert (described["roleArn"], described["definition"]) == (OTHER_ROLE, definition("2"))


def test_an_update_that_never_gets_its_turn_gives_up() -> None:
    desk = Desk()
    arn = desk.create()

    def perform(effect: Effect) -> Any:
        return False if isinstance(effect, Replace) else desk.services.perform(effect)

    request = {"stateMachineArn": arn, "definition": definition("2")}
    with pytest.raises(StatesFault, match="ConflictException"):
        run(desk.api.call("UpdateStateMachine", request, bytes(16)), perform)


def test_a_deleted_machine_is_gone_with_its_versions_and_aliases() -> None:
    desk = Desk()
    arn = desk.create(publish=True)
    route = {"stateMachineVersionArn": f"{arn}:1", "weight": 100}
    desk.call("CreateStateMachineAlias", name="live", routingConfiguration=[route])

    assert desk.call("DeleteStateMachine", stateMachineArn=arn) == {}
    assert desk.call("ListStateMachines")["stateMachines"] == []
    for gone in (arn, f"{arn}:1"):
        refusal = desk.refusal("DescribeStateMachine", stateMachineArn=gone)
        assert refusal == ("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{gone}'")
    desk.create(publish=True, text=definition("new"))
    assert desk.call("ListStateMachineAliases", stateMachineArn=arn)["stateMachineAliases"] == []


def test_deleting_a_missing_machine_is_no_error() -> None:
    desk = Desk()

    assert desk.call("DeleteStateMachine", stateMachineArn=PLACE.machine("none")) == {}
    elsewhere = PLACE.machine("m").replace("eu-west-1", "eu-west-2")
    desk.create()
    assert desk.call("DeleteStateMachine", stateMachineArn=elsewhere) == {}
    assert len(desk.call("ListStateMachines")["stateMachines"]) == 1


def test_a_machine_of_another_account_or_region_is_not_there() -> None:
    desk = Desk()
    arn = desk.create().replace("123456789012", "210987654321")

    refusal = desk.refusal("DescribeStateMachine", stateMachineArn=arn)
    assert refusal[0] == "StateMachineDoesNotExist"


# -- settings --------------------------------------------------------------------------------------


def known(*groups: str) -> Callable[[RunTask], TaskSucceeded | TaskFailed]:
    return lambda _: TaskSucceeded({"LogGroups": [{"LogGroupName": group} for group in groups]})


@pytest.mark.parametrize("level", ["ALL", "ERROR", "FATAL", "OFF"])
def test_logging_is_stored_and_described(level: str) -> None:
    desk = Desk(known("/aws/vendedlogs/states/x"))
    logging = {"level": level, "includeExecutionData": True, "destinations": [DESTINATION]}
    arn = desk.create(loggingConfiguration=logging)

    assert describe(desk, arn)["loggingConfiguration"] == logging


def test_empty_destinations_are_described_as_given() -> None:
    desk = Desk()
    arn = desk.create(loggingConfiguration={"destinations": []})

    assert describe(desk, arn)["loggingConfiguration"] == {
        "level": "OFF",
        "includeExecutionData": False,
        "destinations": [],
    }


@pytest.mark.parametrize(
    "logging",
    [
        {"level": "ALL"},
        {"level": "ERROR", "destinations": []},
        {"level": "OFF", "destinations": [DESTINATION, DESTINATION]},
    ],
)
def test_logging_goes_to_exactly_one_place(logging: dict[str, Any]) -> None:
    request = {"name": "m", "definition": PASS, "roleArn": ROLE, "loggingConfiguration": logging}

    assert Desk().refusal("CreateStateMachine", **request) == (
        "InvalidLoggingConfiguration",
        "Invalid Logging Configuration: Must specify exactly one Log Destination.",
    )


NOT_FOUND = "Log Destination not found."
UNQUALIFIED = "Log Group ARN must be provided with '*' qualifier."


@pytest.mark.parametrize(
    ("arn", "message"),
    [
        (GROUP, NOT_FOUND),
        ("arn:aws:s3:::bucket", NOT_FOUND),
        # AWS's answer in a published report: terraform-provider-aws 17683.
        (GROUP.removesuffix(":*"), UNQUALIFIED),
    ],
)
def test_a_log_group_that_is_known_not_to_exist_is_refused(arn: str, message: str) -> None:
    destination = {"cloudWatchLogsLogGroup": {"logGroupArn": arn}}
    logging = {"level": "ALL", "destinations": [destination]}
    request = {"name": "m", "definition": PASS, "roleArn": ROLE, "loggingConfiguration": logging}

    assert Desk(known("/aws/vendedlogs/states/xy")).refusal("CreateStateMachine", **request) == (
        "InvalidLoggingConfiguration",
        f"Invalid Logging Configuration: {message}",
    )


def test_a_log_group_that_cannot_be_read_is_accepted() -> None:
    logging = {"level": "ALL", "destinations": [DESTINATION]}

    assert Desk().create(loggingConfiguration=logging)


def test_a_key_of_the_customers_goes_with_its_type() -> None:
    desk = Desk()
    mine = {"type": "CUSTOMER_MANAGED_KMS_KEY", "kmsKeyId": "alias/mine"}
    arn = desk.create(encryptionConfiguration=mine)
    assert describe(desk, arn)["encryptionConfiguration"] == {
        **mine,
        "kmsDataKeyReusePeriodSeconds": 300,
    }

    for wrong in ({"type": "CUSTOMER_MANAGED_KMS_KEY"}, {"type": "AWS_OWNED_KEY", "kmsKeyId": "k"}):
        request = {"name": "n", "definition": PASS, "roleArn": ROLE}
        refusal = desk.refusal("CreateStateMachine", encryptionConfiguration=wrong, **request)
        assert refusal[0] == "InvalidEncryptionConfiguration"


# -- definitions -----------------------------------------------------------------------------------


def test_a_definition_is_validated_without_a_machine() -> None:
    desk = Desk()

    good = desk.call("ValidateStateMachineDefinition", definition=PASS)
    assert good == {"result": "OK", "diagnostics": [], "truncated": False}
    bad = desk.call("ValidateStateMachineDefinition", definition="{}")
    assert bad["result"] == "FAIL"
    assert bad["diagnostics"][0]["severity"] == "ERROR"


@pytest.mark.parametrize(
    ("request_fields", "codes", "is_cut"),
    [
        ({}, [], False),
        ({"severity": "ERROR"}, [], False),
        ({"severity": "WARNING"}, ["NO_PATH", "NO_PATH"], False),
        ({"severity": "WARNING", "maxResults": 1}, ["NO_PATH"], True),
    ],
)
def test_warnings_are_given_when_wanted_and_refuse_nothing(
    request_fields: dict[str, Any], codes: list[str], *, is_cut: bool
) -> None:
    fail = {"Type": "Fail", "Error": "$.error", "Cause": "$.cause"}
    text = json.dumps({"StartAt": "A", "States": {"A": fail}})
    desk = Desk()

    found = desk.call("ValidateStateMachineDefinition", definition=text, **request_fields)
    assert found["result"] == "OK"
    assert [each["code"] for each in found["diagnostics"]] == codes
    assert found["truncated"] is is_cut
    assert desk.call("CreateStateMachine", name="m", definition=text, roleArn=ROLE)


def test_diagnostics_are_cut_where_the_caller_wants() -> None:
    states = {name: {"Type": "Pass"} for name in "ABC"}
    text = json.dumps({"StartAt": "A", "States": states})

    found = Desk().call("ValidateStateMachineDefinition", definition=text, maxResults=1)
    assert (len(found["diagnostics"]), found["truncated"]) == (1, True)


def test_a_description_says_which_variables_states_read() -> None:
    states = {
        "Set": {"Type": "Pass", "Assign": {"a": 1, "b": 2}, "Next": "Read"},
        "Read": {"Type": "Pass", "Parameters": {"x.$": "$b", "y.$": "$a.c"}, "End": True},
    }
    desk = Desk()
    arn = desk.create(text=json.dumps({"StartAt": "Set", "States": states}))

    assert describe(desk, arn)["variableReferences"] == {"Read": ["a", "b"]}


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ({"InputPath": "$x.y"}, ["x"]),
        ({"InputPath": "$.x", "OutputPath": "$$.Execution.Id"}, []),
        ({"Parameters": {"x.$": "States.Format('$no {}', $yes)"}}, ["yes"]),
        ({"Parameters": {"x": "$no", "inputPath": "$no", "Variable": "$no"}}, []),
        ({"ItemReader": {"ReaderConfig": {"MaxItemsPath": "$x"}}}, ["x"]),
        ({"ItemBatcher": {"MaxItemsPerBatchPath": "$x", "BatchInput": {"aPath": "$no"}}}, ["x"]),
        ({"Result": {"aPath": "$no", "b.$": "$no"}, "Comment": "$no"}, []),
        ({"Choices": [{"Variable": "$x", "NumericEqualsPath": "$y[0]"}]}, ["x", "y"]),
        ({"QueryLanguage": "JSONata", "Output": "{% $x & $states.input %}"}, ["x"]),
        ({"QueryLanguage": "JSONata", "Output": "$x"}, []),
        ({"QueryLanguage": "JSONata", "Comment": "{% $x %}"}, []),
    ],
)
def test_variables_are_read_where_the_language_reads_them(
    state: dict[str, Any], names: list[str]
) -> None:
    found = variable_references({"States": {"S": state}})

    assert found == ({"S": names} if names else {})


def test_states_inside_a_state_speak_for_themselves() -> None:
    inner = {"States": {"In": {"Type": "Pass", "InputPath": "$b"}}}
    for holder in ({"Branches": [inner]}, {"ItemProcessor": inner}, {"Iterator": inner}):
        state = {"InputPath": "$a", **holder}
        assert variable_references({"States": {"Out": state}}) == {"Out": ["a"], "In": ["b"]}


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("$a.b[$c] & $sum($d)", {"a", "c", "d"}),
        ("($x := $y; $x + 1)", {"y"}),
        ("$map($a, function($v) { $v * $f })", {"a", "f"}),
        ("$states.input ~> |x|{'y': $z}|", {"z"}),
        ("$states.input{$k: $v}", {"k", "v"}),
        ("$a@$b#$c.{'x': $b, 'y': $c, 'z': $d}", {"a", "d"}),
    ],
)
def test_a_name_that_an_expression_binds_is_not_taken_from_outside(
    expression: str, names: set[str]
) -> None:
    assert free_variables(expression) == names


def test_a_part_of_a_machine_is_no_machine_to_delete_or_list_by() -> None:
    desk = Desk()
    arn = desk.create("m", publish=True)
    part = PLACE.machine("m/part")
    for operation in ("DeleteStateMachine", "DescribeStateMachine", "StartExecution"):
        assert desk.refusal(operation, stateMachineArn=part)[0] == "ValidationException"
    update = {"stateMachineArn": part, "roleArn": ROLE}
    assert desk.refusal("UpdateStateMachine", **update)[0] == "ValidationException"
    assert describe(desk, arn)["status"] == "ACTIVE"
    for operation in ("ListExecutions", "ListStateMachineAliases", "ListStateMachineVersions"):
        code, _ = desk.refusal(operation, stateMachineArn=PLACE.machine("m/part"))
        assert code in {"StateMachineDoesNotExist", "InvalidArn"}
    code, _ = desk.refusal("ListTagsForResource", resourceArn=PLACE.machine("m/part"))
    assert code == "ResourceNotFound"


def test_an_arn_without_a_name_is_refused_before_anything_is_looked_up() -> None:
    desk = Desk()
    for operation in ("DeleteStateMachine", "ListStateMachineAliases", "ListStateMachineVersions"):
        code, _ = desk.refusal(operation, stateMachineArn=PLACE.machine("/part"))
        assert code == "InvalidArn"


# -- the actions of services -----------------------------------------------------------------------

SDK = "arn:aws:states:::aws-sdk:"


def calling(action: str) -> dict[str, Any]:
    task = {"Type": "Task", "Resource": f"{SDK}{action}", "QueryLanguage": "JSONata", "End": True}
    return {**task, "Arguments": "{% $states.input %}"}


def unknown(action: str, place: str) -> dict[str, str]:
    return {
        "severity": "ERROR",
        "code": "SCHEMA_VALIDATION_FAILED",
        "message": f"The resource provided {SDK}{action} is not recognized. The value is not a "
        "valid resource ARN, or the resource is not available in this region.",
        "location": place,
    }


def found_in(states: dict[str, Any]) -> Any:
    text = json.dumps({"StartAt": next(iter(states)), "States": states})
    return Desk().call("ValidateStateMachineDefinition", definition=text)["diagnostics"]


@pytest.mark.parametrize(
    "action",
    [
        "s3:getObject",
        "s3:putObject.waitForTaskToken",
        "cognitoidentityprovider:adminGetUser",
        "rds:createDBInstance",
        "nothing:atAll",  # it may be a name of the Java SDK
    ],
)
def test_an_action_that_its_service_may_have_is_accepted(action: str) -> None:
    assert found_in({"A": calling(action)}) == []


@pytest.mark.parametrize("action", ["s3:getObjects", "sfn:startExecutions.waitForTaskToken"])
def test_an_action_that_its_service_does_not_have_is_refused(action: str) -> None:
    assert found_in({"A": calling(action)}) == [unknown(action, "/States/A/Resource")]
    machine = {"StartAt": "A", "States": {"A": calling(action)}}
    desk = Desk()
    request = {"name": "m", "definition": json.dumps(machine), "roleArn": ROLE}
    code, message = desk.refusal("CreateStateMachine", **request)
    assert code == "InvalidDefinition"
    assert message.endswith("available in this region. at /States/A/Resource'")
    arn = desk.create("n")
    update = {"stateMachineArn": arn, "definition": json.dumps(machine)}
    assert desk.refusal("UpdateStateMachine", **update) == (code, message)
    mock = {"result": "{}", "fieldValidationMode": "NONE"}
    for tested, name in ((machine, {"stateName": "A"}), (calling(action), {})):
        refused = desk.refusal("TestState", definition=json.dumps(tested), mock=mock, **name)
        assert refused[0] == "InvalidDefinition"
        assert "is not recognized" in refused[1]


def test_an_unknown_action_is_found_wherever_its_state_is() -> None:
    inner = {"StartAt": "In", "States": {"In": calling("s3:no")}}
    second = {"StartAt": "Two", "States": {"Two": calling("s3:none")}}
    states: dict[str, Any] = {
        "Both": {"Type": "Parallel", "Branches": [inner, second], "Next": "Each"},
        "Each": {
            "Type": "Map",
            "ItemProcessor": {"StartAt": "I", "States": {"I": calling("s3:never")}},
            "Next": "Old",
        },
        "Old": {
            "Type": "Map",
            "Iterator": {"StartAt": "O", "States": {"O": calling("s3:gone")}},
            "End": True,
        },
    }
    assert found_in(states) == [
        unknown("s3:no", "/States/Both/Branches[0]/States/In/Resource"),
        unknown("s3:none", "/States/Both/Branches[1]/States/Two/Resource"),
        unknown("s3:never", "/States/Each/ItemProcessor/States/I/Resource"),
        unknown("s3:gone", "/States/Old/Iterator/States/O/Resource"),
    ]


def test_an_action_is_looked_up_only_in_a_definition_without_another_error() -> None:
    found = found_in({"A": {**calling("s3:no"), "Next": "A"}})
    assert [one["code"] for one in found] == ["SCHEMA_VALIDATION_FAILED"]
    assert "is not recognized" not in found[0]["message"]
