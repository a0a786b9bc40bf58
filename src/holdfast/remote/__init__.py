"""The client for applications: `holdfast.Client`, `holdfast.AsyncClient`, and their errors.

`operations.py` has each call of the API once, as a generator that yields requests and waits.
`client.py` performs them in the calling thread, `async_client.py` in other threads.
"""

from __future__ import annotations

from holdfast.remote.async_client import AsyncClient, AsyncHandle
from holdfast.remote.client import Client, Handle
from holdfast.remote.errors import (
    AlreadyEnded,
    Conflict,
    ExecutionFailed,
    Forbidden,
    NotFound,
    NotPublished,
    PublishedTimeout,
    ResultTimeout,
)

__all__ = [
    "AlreadyEnded",
    "AsyncClient",
    "AsyncHandle",
    "Client",
    "Conflict",
    "ExecutionFailed",
    "Forbidden",
    "Handle",
    "NotFound",
    "NotPublished",
    "PublishedTimeout",
    "ResultTimeout",
]
