"""Secrets sealed by a key of KMS: their tenants, and the errors without the key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from moto import mock_aws

from holdfast import resources
from holdfast.aws.clients import Clients
from holdfast.aws.entry import NO_KEYS, make_host
from holdfast.aws.vault import KmsVault
from holdfast.errors import VaultFault
from holdfast.sealed import Sealed, hidden, parse_sealed

SECRET: Final = "open sesame é"
REGION: Final = "eu-west-1"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    with mock_aws():
        yield Clients(region=REGION)


def new_key(clients: Clients) -> str:
    return str(clients.get("keys").create_key()["KeyMetadata"]["Arn"])


def sealed_of(text: str) -> Sealed:
    found = parse_sealed(text)
    assert found is not None
    return found


def test_a_secret_comes_back_for_its_own_tenant_and_is_shown_by_its_size(keys: Clients) -> None:
    vault = KmsVault(keys, new_key(keys))
    text = vault.seal("acme", SECRET)
    assert SECRET not in text
    assert hidden({"key": f"<{text}>"}) == {"key": "<<secret 14 bytes>>"}
    assert vault.open("acme", sealed_of(text)) == SECRET


def test_another_tenant_cannot_open_it(keys: Clients) -> None:
    vault = KmsVault(keys, new_key(keys))
    sealed = sealed_of(vault.seal("acme", SECRET))
    with pytest.raises(VaultFault, match="KMS decrypt was refused: InvalidCiphertext") as refused:
        vault.open("globex", sealed)
    assert (refused.value.code, refused.value.retry) == ("HF323", "never")


def test_another_key_cannot_open_it_and_both_are_named(keys: Clients) -> None:
    old, new = new_key(keys), new_key(keys)
    sealed = sealed_of(KmsVault(keys, old).seal("acme", SECRET))
    with pytest.raises(VaultFault, match="sealed with the key") as refused:
        KmsVault(keys, new).open("acme", sealed)
    assert refused.value.code == "HF327"
    assert old.rpartition("/")[2] in refused.value.message
    assert new.rpartition("/")[2] in refused.value.message
    forged = sealed._replace(key=new.rpartition("/")[2])
    with pytest.raises(VaultFault, match="KMS decrypt"):
        KmsVault(keys, new).open("globex", forged)


def test_a_key_that_is_not_there_is_named_and_the_secret_is_not(keys: Clients) -> None:
    vault = KmsVault(keys, f"arn:aws:kms:{REGION}:123456789012:key/gone")
    with pytest.raises(VaultFault, match="KMS encrypt was refused: NotFound") as refused:
        vault.seal("acme", SECRET)
    assert SECRET not in str(refused.value)


def test_the_largest_secret_that_the_door_takes_is_one_that_kms_takes(keys: Clients) -> None:
    vault = KmsVault(keys, new_key(keys))
    assert vault.open("acme", sealed_of(vault.seal("acme", "x" * 4_096))) == "x" * 4_096


def test_a_function_finds_its_key_in_the_environment(
    keys: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = ("WORK_QUEUE_URL", "SINGLE_QUEUE_URL", "STARTS_QUEUE_URL")
    names = ("EXECUTIONS_TABLE", "MAIL_TABLE", "BLOBS_BUCKET", *queues)
    for name in names:
        monkeypatch.setenv(f"HOLDFAST_{name}", "x")
    monkeypatch.setenv(resources.ENV_MODULES, "statemachines.order_fulfilment")
    monkeypatch.setenv(resources.ENV_STACK, "Holdfast")
    monkeypatch.setenv(resources.ENV_SECRETS_KEY, new_key(keys))
    types: Any = make_host(NO_KEYS).front.types
    assert isinstance(types.vault, KmsVault)
    monkeypatch.delenv(resources.ENV_SECRETS_KEY)
    types = make_host(NO_KEYS).front.types
    assert not isinstance(types.vault, KmsVault)
