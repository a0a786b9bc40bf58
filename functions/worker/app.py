"""SQS batches of both work queues: runs executions until they end, park or hand themselves on."""

from __future__ import annotations

from typing import Any

from holdfast.aws.entry import prepare_worker, worker_handler

prepare_worker()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return worker_handler(event, context)
