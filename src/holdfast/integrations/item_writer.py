"""Writes the results of a distributed Map to files in S3, one kind of file for each kind of end.

    PREFIX/MAP-RUN/SUCCEEDED_0.json  FAILED_0.json  PENDING_0.json  manifest.json

Writing them again gives the same files. Source: AWS docs, "ResultWriter (Map)".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.core.map_results import MapChild, Transformation, record, transformed
from holdfast.core.run_ids import child_name
from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.item_reader import s3_cause
from holdfast.limits import RESULT_FILE_BYTES_MAX
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded

#: For each file, the statuses of the children in it. A child with any other status is in the file
#: FAILED.
_FILES: Final = {"FAILED": (), "PENDING": ("PENDING",), "SUCCEEDED": ("SUCCEEDED",)}


def write(effect: RunTask, clients: ServiceClients) -> TaskSucceeded | TaskFailed:
    """Return the Map's output: {"MapRunArn", "ResultWriterDetails": {"Bucket", "Key"}}. Never
    raises.

    `effect.arguments` is what core.map_run puts into the event ResultsAsked.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        client = clients.get("s3", effect.credentials)
        return _Writing(client, effect).do()
    except ClientError as error:
        return TaskFailed(error_names.RESULT_WRITER_FAILED, s3_cause(error))
    except BotoCoreError as error:
        return TaskFailed(
            error_names.RESULT_WRITER_FAILED, f"Unable to execute HTTP request: {error}"
        )


@dataclass(frozen=True, slots=True)
class _Writing:
    """The work of one writer. `client` is botocore's, for S3."""

    client: Any
    effect: RunTask

    def do(self) -> TaskSucceeded | TaskFailed:
        arguments = self.effect.arguments
        parameters, arn = arguments["parameters"], arguments["map_run_arn"]
        bucket = parameters.get("Bucket")
        if bucket is None or bucket == "":
            problem = "The field 'Bucket' is required but was missing"
            return TaskFailed(error_names.RESULT_WRITER_FAILED, problem)
        if not isinstance(bucket, str):
            problem = "The value for the field 'Bucket' must be a STRING"
            return TaskFailed(error_names.RESULT_WRITER_FAILED, problem)
        prefix = str(parameters.get("Prefix") or "").rstrip("/")
        folder = "/".join([*([prefix] if prefix else []), arn.rpartition(":")[2]])
        found = {name: self._write(bucket, folder, name) for name in _FILES}
        manifest = {"DestinationBucket": bucket, "MapRunArn": arn, "ResultFiles": found}
        key = f"{folder}/manifest.json"
        self._put(bucket, key, _text(manifest).encode())
        details = {"Bucket": bucket, "Key": key}
        return TaskSucceeded({"MapRunArn": arn, "ResultWriterDetails": details})

    def _write(self, bucket: str, folder: str, name: str) -> list[dict[str, Any]]:
        """Write the files of that name, and return them as the manifest lists them."""
        is_lines = self._config.get("OutputType") == "JSONL"
        files = []
        for number, texts in enumerate(_portions(self._texts(name))):
            key = f"{folder}/{name}_{number}.{'jsonl' if is_lines else 'json'}"
            body = "".join(f"{text}\n" for text in texts) if is_lines else f"[{','.join(texts)}]"
            data = body.encode(errors="replace")
            self._put(bucket, key, data)
            files.append({"Key": key, "Size": len(data)})
        return files

    def _texts(self, name: str) -> Iterator[str]:
        mine = [child for child in self._children() if _file_of(child) == name]
        if name == "SUCCEEDED":
            transformation: Transformation = self._config.get("Transformation", "NONE")
            return map(_text, transformed(mine, transformation))
        return (_text(record(child)) for child in mine)

    @property
    def _config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.effect.arguments["config"]
        return config

    def _children(self) -> Iterator[MapChild]:
        effect, arguments = self.effect, self.effect.arguments
        pairs = zip(arguments["inputs"], arguments["results"], strict=True)
        for lane, (data, result) in enumerate(pairs):
            yield MapChild(
                child_name(f"{effect.run}.{effect.entry}.{lane}"),
                arguments["map_run_arn"],
                arguments["is_express"],
                data,
                result,
            )

    def _put(self, bucket: str, key: str, data: bytes) -> None:
        self.client.put_object(Bucket=bucket, Key=key, Body=data, ContentType="application/json")


def _file_of(child: MapChild) -> str:
    return next((name for name, statuses in _FILES.items() if child.status in statuses), "FAILED")


def _portions(texts: Iterator[str]) -> Iterator[Sequence[str]]:
    """Yield as many results as fit into one file. A larger result is alone in its file."""
    portion: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode(errors="replace")) + 1
        if portion and size + length > RESULT_FILE_BYTES_MAX:
            yield portion
            portion, size = [], 0
        portion.append(text)
        size += length
    if portion:
        yield portion


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
