"""The stack's own keys: the roles that may use them, and the data that they encrypt."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import resources
from tests.infra.roles_test import ALLOWED, rights_of, roles_of_functions
from tests.infra.template import Template, as_list, target_of

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

SECRETS = "SecretsKey"
AT_REST = "AtRestKey"
STORES = {
    f"kms:{action}"
    for action in (
        *("Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo"),
        *("GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "DescribeKey"),
    )
}
SEAL = {"kms:Encrypt"}
SEAL_AND_OPEN = {"kms:Encrypt", "kms:Decrypt"}
ON_SECRETS = {
    "Worker": SEAL_AND_OPEN,
    "WorkerSingle": SEAL_AND_OPEN,
    "Api": SEAL,
    "Events": SEAL,
    "Sweeper": set[str](),
}


def rights_on(template: Template, function: str, key: str) -> set[str]:
    """The plain rights on the key: a statement on it has nothing else in it."""
    role = template.properties("AWS::IAM::Role")[f"{function}FunctionRole"]
    statements = [
        one for policy in role["Policies"] for one in policy["PolicyDocument"]["Statement"]
    ]
    found: set[str] = set()
    for statement in statements:
        actions = set(as_list(statement["Action"]))
        if any(action.startswith("kms:") for action in actions):
            assert statement.keys() == {"Action", "Effect", "Resource"}
            assert statement["Effect"] == "Allow"
            if target_of(statement["Resource"]) == key:
                found |= actions
    return found


def test_only_the_worker_opens_secrets_and_only_receivers_seal_them(
    chosen: Template,
) -> None:
    assert {name: rights_on(chosen, name, SECRETS) for name in ALLOWED} == ON_SECRETS
    functions = chosen.properties("AWS::Lambda::Function")
    told = {
        name.removesuffix("FunctionLambda")
        for name, function in functions.items()
        if resources.ENV_SECRETS_KEY in function["Environment"]["Variables"]
    }
    assert told == {name for name, actions in ON_SECRETS.items() if actions}


def test_each_function_may_use_the_key_of_stored_data(
    chosen: Template,
) -> None:
    for name in ALLOWED:
        assert rights_on(chosen, name, AT_REST) == STORES


def test_a_stack_that_asks_for_no_key_has_none(template: Template) -> None:
    assert not template.of_type("AWS::KMS::Key")
    for role in roles_of_functions(template).values():
        assert not [action for action in rights_of(role) if action.startswith("kms:")]


def test_the_keys_turn_each_year_and_outlive_the_stack(chosen: Template) -> None:
    keys = chosen.of_type("AWS::KMS::Key")
    assert keys.keys() == {SECRETS, AT_REST}
    for key in keys.values():
        assert key["Properties"]["EnableKeyRotation"]
        assert key["DeletionPolicy"] == "Retain"


def test_everything_that_is_stored_is_encrypted_with_the_stacks_key(chosen: Template) -> None:
    for table in chosen.properties("AWS::DynamoDB::Table").values():
        assert target_of(table["SSESpecification"]["KMSMasterKeyId"]) == AT_REST
    for queue in chosen.properties("AWS::SQS::Queue").values():
        assert target_of(queue["KmsMasterKeyId"]) == AT_REST
    for group in chosen.properties("AWS::Logs::LogGroup").values():
        assert target_of(group["KmsKeyId"]) == AT_REST
    [secret] = chosen.properties("AWS::SecretsManager::Secret").values()
    assert target_of(secret["KmsKeyId"]) == AT_REST
    buckets = chosen.properties("AWS::S3::Bucket")
    assert len(buckets) == 2
    for bucket in buckets.values():
        [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert target_of(rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]) == AT_REST
        assert rule["BucketKeyEnabled"]


def test_besides_the_account_only_rules_and_logs_may_use_the_key_and_only_this_accounts(
    chosen: Template,
) -> None:
    statements = policy_of(chosen, AT_REST)
    services = {
        str(statement["Principal"]["Service"]): set(as_list(statement["Action"]))
        for statement in statements
        if "Service" in statement["Principal"]
    }
    assert {"kms:Decrypt", "kms:GenerateDataKey"} == services.pop("events.amazonaws.com")
    [(logs, actions)] = services.items()
    assert "logs." in logs
    assert actions == STORES
    assert all("Condition" in one for one in statements if "Service" in one["Principal"])
    assert [next(iter(one["Principal"])) for one in policy_of(chosen, SECRETS)] == ["AWS"]


def policy_of(template: Template, key: str) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = template.properties("AWS::KMS::Key")[key]["KeyPolicy"][
        "Statement"
    ]
    return statements
