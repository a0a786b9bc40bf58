"""Large values in S3, by key. A key ends in the hash of the bytes, so a put may be repeated."""

from __future__ import annotations

from holdfast.aws.clients import Clients
from holdfast.aws.faults import fault
from holdfast.aws.names import ResourceNames
from holdfast.runtime.effects import GetBlob, PutBlob


class Blobs:
    def __init__(self, clients: Clients, names: ResourceNames) -> None:
        self._clients = clients
        self._names = names

    def put(self, effect: PutBlob) -> None:
        try:
            self._clients.get("blobs").put_object(
                Bucket=self._names.blobs_bucket, Key=effect.key, Body=effect.data
            )
        except Exception as error:
            raise fault("put_object", error) from error

    def get(self, effect: GetBlob) -> bytes:
        try:
            answer = self._clients.get("blobs").get_object(
                Bucket=self._names.blobs_bucket, Key=effect.key
            )
            # Read the body here: it may not have arrived yet, and then `read` raises a time-out.
            return bytes(answer["Body"].read())
        except Exception as error:
            raise fault("get_object", error) from error
