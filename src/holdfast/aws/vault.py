"""Secrets, encrypted with a KMS key that never leaves KMS.

The tenant is in the encryption context, so KMS itself refuses to decrypt another tenant's secrets.
"""

from __future__ import annotations

from typing import Any

from holdfast.aws.clients import Clients
from holdfast.aws.faults import fault
from holdfast.errors import VaultFault
from holdfast.sealed import Sealed


class KmsVault:
    """Encrypts and decrypts secrets. `key_arn` is the stack's KMS key. Two calls for the same
    secret return two different texts.

    Raises VaultFault: HF327 for a secret of another key, else the fault of `faults.fault`.
    """

    def __init__(self, clients: Clients, key_arn: str) -> None:
        self._clients = clients
        self._key_arn = key_arn
        self._key_id = key_arn.rpartition("/")[2]

    def seal(self, tenant: str, text: str) -> str:
        data = text.encode()
        found = self._call("encrypt", Plaintext=data, EncryptionContext={"tenant": tenant})
        return Sealed(self._key_id, found["CiphertextBlob"], len(data)).text

    def open(self, tenant: str, sealed: Sealed) -> str:
        if sealed.key != self._key_id:
            raise VaultFault(
                "HF327",
                f"a secret was sealed with the key {sealed.key}; this stack has {self._key_id}",
                retry="never",
            )
        found = self._call(
            "decrypt", CiphertextBlob=sealed.data, EncryptionContext={"tenant": tenant}
        )
        return str(found["Plaintext"].decode())

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._clients.get("keys"), operation)(
                KeyId=self._key_arn, **request
            )
        except Exception as error:  # noqa: BLE001  # nothing of it may quote the secret
            found = fault(f"KMS {operation}", error)
            raise VaultFault(found.code, found.message, retry=found.retry) from None
        return answer
