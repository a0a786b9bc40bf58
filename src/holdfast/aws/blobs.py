"""Large values in S3, by key, and the archive in a bucket of its own. A key follows from what is
stored, so a put may happen twice.
"""

from __future__ import annotations

from holdfast.aws.clients import Clients
from holdfast.aws.faults import fault
from holdfast.aws.names import ResourceNames
from holdfast.runtime.effects import Archived, GetArchive, GetBlob, PutArchive, PutBlob


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
            # Read the body inside the `try`: it may not have arrived yet, and `read` then raises a
            # time-out, which must become a fault, too.
            return bytes(answer["Body"].read())
        except Exception as error:
            raise fault("get_object", error) from error


class Archive:
    def __init__(self, clients: Clients, names: ResourceNames) -> None:
        self._clients = clients
        self._bucket = names.archive_bucket

    def put(self, effect: PutArchive) -> None:
        try:
            self._clients.get("blobs").put_object(
                Bucket=self._bucket, Key=effect.key, Body=effect.data
            )
        except Exception as error:
            raise fault("put_object", error) from error

    def get(self, effect: GetArchive) -> Archived | None:
        if not self._bucket:
            return None
        try:
            s3 = self._clients.get("blobs")
            # An execution ends once, and once more after each retry. Each end has one object: far
            # fewer than the 1,000 keys of a page, so there is no need for a second page.
            listed = s3.list_objects_v2(Bucket=self._bucket, Prefix=effect.prefix)
            found = effect.last_of(str(one["Key"]) for one in listed.get("Contents", ()))
            if found is None:
                return None
            answer = s3.get_object(Bucket=self._bucket, Key=found)
            return Archived(f"s3://{self._bucket}/{found}", bytes(answer["Body"].read()))
        except Exception as error:
            raise fault("list_objects_v2", error) from error
