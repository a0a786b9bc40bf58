"""The AWS clients of one process. Each is created once, at the first use, with explicit time-outs.

botocore is imported inside `_make`, so that it slows the start of a Lambda function only when it is
needed. boto3 is not used: it adds import time, and nothing of it is needed here.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Literal

from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from botocore.session import Session

ClientName = Literal[
    "store", "store-once", "queues", "blobs", "bus", "secrets", "keys", "functions"
]

CONNECT_TIMEOUT_SECONDS: Final = 2
READ_TIMEOUT_SECONDS: Final = 5
BLOB_READ_TIMEOUT_SECONDS: Final = 20
#: A function of Lambda runs for at most 15 minutes (a quota of Lambda).
FUNCTION_READ_TIMEOUT_SECONDS: Final = 910
ATTEMPTS_MAX: Final = 3
# A worker processes the messages of a batch in parallel, so a client needs as many connections as
# the batch has calls at once.
CONNECTIONS_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class _Kind:
    service: str
    attempts_max: int = ATTEMPTS_MAX
    read_timeout_seconds: int = READ_TIMEOUT_SECONDS
    #: Send keep-alive packets during a long call. A NAT gateway drops a connection on which nothing
    #: is sent for 350 seconds, and the answer would be lost.
    keeps_alive: bool = False


_KINDS: Final[dict[ClientName, _Kind]] = {
    "store": _Kind("dynamodb"),
    # The client for conditional puts. The SDK must not retry them: if the first try was stored but
    # its answer was lost, the retry would be refused, and the put would look like a failure.
    "store-once": _Kind("dynamodb", attempts_max=1),
    "queues": _Kind("sqs"),
    "blobs": _Kind("s3", read_timeout_seconds=BLOB_READ_TIMEOUT_SECONDS),
    "bus": _Kind("events"),
    "secrets": _Kind("secretsmanager"),
    "keys": _Kind("kms"),
    # The caller repeats a call whose answer was lost, and treats a call that the function refused
    # in another way. So boto must retry neither of them.
    "functions": _Kind(
        "lambda",
        attempts_max=1,
        read_timeout_seconds=FUNCTION_READ_TIMEOUT_SECONDS,
        keeps_alive=True,
    ),
}


class Clients:
    """Clients by purpose. `session` is botocore's; by default one for the process."""

    def __init__(self, session: Session | None = None, region: str | None = None) -> None:
        self._session = session
        self._region = region
        self._lock = threading.Lock()
        self._clients: dict[ClientName, Any] = {}

    def get(self, name: ClientName) -> Any:
        client = self._clients.get(name)
        if client is not None:
            return client
        # Two threads may need their first client at the same time, and a session of botocore must
        # be used by one thread only.
        with self._lock:
            if name not in self._clients:
                self._clients[name] = self._make(_KINDS[name])
            return self._clients[name]

    def _make(self, kind: _Kind) -> Any:
        from botocore.config import Config  # noqa: PLC0415
        from botocore.session import Session  # noqa: PLC0415

        if self._session is None:
            self._session = Session()
        return self._session.create_client(
            kind.service,
            region_name=self._region,
            config=Config(
                connect_timeout=CONNECT_TIMEOUT_SECONDS,
                read_timeout=kind.read_timeout_seconds,
                retries={"mode": "standard", "total_max_attempts": kind.attempts_max},
                max_pool_connections=CONNECTIONS_MAX,
                tcp_keepalive=kind.keeps_alive,
                # boto's validation of a request costs as much time as its signing, and the contract
                # suite tests every request, so it is off. S3's checksums are off because the key of
                # each object ends in the hash of its bytes.
                parameter_validation=False,
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
