"""An S3 in memory: as much of botocore's client as readers and writers of items call."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

from botocore.exceptions import ClientError

from holdfast.integrations.clients import ServiceClients
from holdfast.runtime.effects import RunTask

PAGE = 2
MODIFIED = dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.UTC)


class Bucket(ServiceClients):
    """One bucket, `b`; it returns itself as the client of every service."""

    def __init__(self, **objects: bytes) -> None:
        super().__init__()
        self.name = "b"
        self.objects = {key.replace("__", "/"): data for key, data in objects.items()}
        self.requests: list[dict[str, Any]] = []

    def get(self, service: str, role_arn: str | None = None) -> Any:
        assert service == "s3"
        return self

    def get_object(self, **request: Any) -> Any:
        self._note(request)
        if request["Key"] not in self.objects:
            raise _refusal("NoSuchKey", "The specified key does not exist.")
        return {"Body": io.BytesIO(self.objects[request["Key"]])}

    def list_objects_v2(self, **request: Any) -> Any:
        self._note(request)
        keys = [key for key in sorted(self.objects) if key.startswith(request.get("Prefix", ""))]
        start = int(request.get("ContinuationToken", 0))
        more = start + PAGE
        page = {"Contents": [self._listed(key) for key in keys[start:more]]}
        if more < len(keys):
            return {**page, "IsTruncated": True, "NextContinuationToken": str(more)}
        return {**page, "IsTruncated": False}

    def put_object(self, **request: Any) -> None:
        self._note(request)
        self.objects[request["Key"]] = request["Body"]

    def _note(self, request: dict[str, Any]) -> None:
        self.requests.append(request)
        if request["Bucket"] != self.name:
            raise _refusal("NoSuchBucket", "The specified bucket does not exist")

    def _listed(self, key: str) -> dict[str, Any]:
        size = len(self.objects[key])
        return {"Key": key, "ETag": '"e"', "LastModified": MODIFIED, "Size": size}


def errand(kind: Any, name: str, arguments: Any) -> RunTask:
    return RunTask(name, kind, arguments, "default", "01run", None, "flow", 3, 1, 0)


def _refusal(code: str, message: str) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {
                "HTTPStatusCode": 404,
                "RequestId": "R",
                "HostId": "H",
                "HTTPHeaders": {},
                "RetryAttempts": 0,
            },
        },
        "AnOperation",
    )
