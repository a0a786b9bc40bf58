"""Reads the items of a distributed Map: from objects in S3, or from a listing of them.

    s3:getObject      one file (CSV, JSON, JSONL), or a manifest that names several files
    s3:listObjectsV2  an item per object; LOAD_AND_FLATTEN: the items of every object

Source: AWS docs, "ItemReader (Map)".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.faults import refusal_of
from holdfast.limits import READER_BYTES_MAX, READER_ITEMS_MAX
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.item_formats import (
    Items,
    UnreadableItems,
    decompressed,
    items_max,
    items_of,
    require_size,
    rows_of,
)

_GET_FIELDS: Final = ("Bucket", "Key", "VersionId", "ExpectedBucketOwner", "RequestPayer")
_LIST_FIELDS: Final = (
    "Bucket",
    "Prefix",
    "Delimiter",
    "StartAfter",
    "ExpectedBucketOwner",
    "RequestPayer",
)


def read(effect: RunTask, clients: ServiceClients) -> TaskSucceeded | TaskFailed:
    """Return {"items": list or object, "sources": [[URI, how many items], …]}. Never raises.

    `effect.arguments` is {"parameters", "config"}: the reader's Parameters and its ReaderConfig.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        client = clients.get("s3", effect.credentials)
        return TaskSucceeded(_Reading(client, **effect.arguments).of(effect.name))
    except UnreadableItems as problem:
        return TaskFailed(error_names.ITEM_READER_FAILED, str(problem))
    except ClientError as error:
        return TaskFailed(error_names.ITEM_READER_FAILED, s3_cause(error))
    except BotoCoreError as error:
        return TaskFailed(
            error_names.ITEM_READER_FAILED, f"Unable to execute HTTP request: {error}"
        )


def s3_cause(error: Any) -> str:
    """Return the message that the Java SDK would give for botocore's ClientError of a call of
    S3.
    """
    refusal = refusal_of(error)
    return (
        f"{refusal.message} (Service: Amazon S3; Status Code: {refusal.status}; "
        f"Error Code: {refusal.code}; Request ID: {refusal.request_id}; "
        f"S3 Extended Request ID: {refusal.extended_request_id or 'null'}; Proxy: null)"
    )


@dataclass(frozen=True, slots=True)
class _File:
    """A file of items. `items` reads the file only when it is iterated."""

    source: str
    items: Callable[[], Items]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The work of one reader. `client` is botocore's, for S3."""

    client: Any
    parameters: Mapping[str, Any]
    config: Mapping[str, Any]

    def of(self, target: str) -> dict[str, Any]:
        most = items_max(self.config)
        files = self._listed() if target == "s3:listObjectsV2" else self._gotten()
        found: list[Any] = []
        sources: list[list[Any]] = []
        for file in files:
            items = file.items()
            if isinstance(items, Mapping):
                # The items are the fields of an object. So this is the only file, because a listing
                # of several files gives lists.
                fields = dict(itertools.islice(items.items(), most))
                return {"items": fields, "sources": [[file.source, len(fields)]]}
            taken = list(itertools.islice(items, most - len(found)))
            found += taken
            sources.append([file.source, len(taken)])
            if len(found) >= most:
                break
        return {"items": require_count(found), "sources": sources}

    # -- files -------------------------------------------------------------------------------------

    def _gotten(self) -> Iterable[_File]:
        bucket, key = self._parameter("Bucket"), self._parameter("Key")
        manifest = self.config.get("ManifestType")
        if manifest == "ATHENA_DATA":
            return self._named_by(self._content(bucket, key))
        if manifest == "S3_INVENTORY" or self.config.get("InputType") == "MANIFEST":
            return self._inventoried(_uri(bucket, key), self._content(bucket, key))
        return [self._file(bucket, key)]

    def _file(self, bucket: str, key: str) -> _File:
        return _File(_uri(bucket, key), lambda: items_of(self._content(bucket, key), self.config))

    def _named_by(self, manifest: bytes) -> Iterator[_File]:
        """Yield the files in Athena's manifest, which names one in each line: s3://bucket/key."""
        for line in decompressed(manifest).decode(errors="replace").splitlines():
            bucket, _, key = line.strip().strip('"').partition("://")[2].partition("/")
            if key:
                yield self._file(bucket, key)

    def _inventoried(self, source: str, manifest: bytes) -> Iterator[_File]:
        """Yield the compressed files that S3's manifest.json of an inventory names, with their
        columns.
        """
        bucket, names, keys = _inventory(manifest)
        for key in keys:
            yield _File(source, lambda key=key: rows_of(self._content(bucket, key), names))  # type: ignore[misc]

    def _listed(self) -> Iterable[_File]:
        bucket = self._parameter("Bucket")
        if self.config.get("Transformation") != "LOAD_AND_FLATTEN":
            return [_File(_uri(bucket), lambda: map(_metadata, self._objects()))]
        full = (found for found in self._objects() if found["Size"])
        return (self._file(bucket, found["Key"]) for found in full)

    # -- calls -------------------------------------------------------------------------------------

    def _parameter(self, name: str) -> str:
        value = self.parameters.get(name)
        if value is None or value == "":
            raise UnreadableItems(f"The field '{name}' is required but was missing")
        if not isinstance(value, str):
            raise UnreadableItems(f"The value for the field '{name}' must be a STRING")
        return value

    def _content(self, bucket: str, key: str) -> bytes:
        request = {**_given(self.parameters, _GET_FIELDS), "Bucket": bucket, "Key": key}
        if key != self.parameters.get("Key"):
            request.pop("VersionId", None)
        body = self.client.get_object(**request)["Body"]
        try:
            return require_size(body.read(READER_BYTES_MAX + 1))
        finally:
            body.close()

    def _objects(self) -> Iterator[Mapping[str, Any]]:
        request = _given(self.parameters, _LIST_FIELDS)
        while True:
            page = self.client.list_objects_v2(**request)
            yield from page.get("Contents", ())
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = page["NextContinuationToken"]


def require_count(items: list[Any]) -> list[Any]:
    if len(items) > READER_ITEMS_MAX:
        raise UnreadableItems(f"There are more than {READER_ITEMS_MAX} items.")
    return items


def _given(parameters: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: parameters[name] for name in names if name in parameters}


def _uri(bucket: str, key: str | None = None) -> str:
    """Return the URI in the form of the context object's Map.Item.Source."""
    return f"S3://{bucket}" if key is None else f"S3://{bucket}/{key}"


def _metadata(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Etag": found["ETag"],
        "Key": found["Key"],
        "LastModified": found["LastModified"].timestamp(),
        "Size": found["Size"],
        "StorageClass": found.get("StorageClass", "STANDARD"),
    }


def _inventory(manifest: bytes) -> tuple[str, list[str], list[str]]:
    """Return the bucket, the columns and the keys of the files that S3's manifest.json names."""
    try:
        found = json.loads(decompressed(manifest))
        file_format = found["fileFormat"]
        bucket = found["destinationBucket"].removeprefix("arn:aws:s3:::")
        names = [name.strip() for name in found["fileSchema"].split(",")]
        keys = [file["key"] for file in found["files"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableItems("The object is not the manifest of an S3 inventory.") from None
    if file_format != "CSV":
        raise UnreadableItems(f"The inventory is in the format {file_format}, not in CSV.")
    return bucket, names, keys
