"""botocore's clients for any service, with the role of the stack's tasks or a role that a task
names.

They differ from `aws/clients.py`, which serves the engine: there are four hundred services, nothing
is retried, because the definition's Retry decides, and a response may take as long as a function
may run. Only calls that assume a role are retried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.integrations.conveniences import without_conveniences

if TYPE_CHECKING:
    from botocore.session import Session

CONNECT_TIMEOUT_SECONDS: Final = 5
READ_TIMEOUT_SECONDS: Final = 65
#: A function of Lambda runs for at most 15 minutes (a quota of Lambda).
FUNCTION_READ_TIMEOUT_SECONDS: Final = 910
#: The read time-out of calls to STS. Every call with a role waits for such a call, so it is short.
ROLE_READ_TIMEOUT_SECONDS: Final = 5
ROLE_ATTEMPTS_MAX: Final = 3
CONNECTIONS_MAX: Final = 50
ROLE_SESSION_NAME: Final = "holdfast"
# The lifetime of the credentials of a role. It is the default of STS, and the maximum for a role
# that another role assumes.
ROLE_SECONDS: Final = 3_600
ROLE_MARGIN_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class _Role:
    access_key: str
    secret_key: str
    token: str
    expires_at: float


class ServiceClients:
    """Clients by the name of the service (botocore's) and the ARN of the role. `session` is
    botocore's.

    `tasks_role_arn` is the role for calls, which also assumes the role that a task names; None: the
    credentials of the session. `clock` gives seconds since 1970, because the credentials of a role
    expire.
    """

    def __init__(
        self,
        session: Session | None = None,
        region: str | None = None,
        *,
        tasks_role_arn: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._tasks_role_arn = tasks_role_arn
        self._session = session
        self._region = region
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str | None], tuple[Any, float]] = {}
        self._roles: dict[str, _Role] = {}
        self._available: tuple[str, ...] | None = None
        self._models: dict[str, Any] = {}

    @property
    def region(self) -> str:
        with self._lock:
            return self._region or self._open().get_config_variable("region") or "aws-global"

    def available(self) -> tuple[str, ...]:
        """Return the services for which the installed botocore has a model."""
        with self._lock:
            if self._available is None:
                self._available = tuple(self._open().get_available_services())
            return self._available

    def model(self, service: str) -> Any:
        """Return botocore's model of a service, for uses without a call."""
        with self._lock:
            if service not in self._models:
                self._models[service] = self._open().get_service_model(service)
            return self._models[service]

    def get(self, service: str, role_arn: str | None = None) -> Any:
        """Return a client. Raises botocore's errors when the role cannot be assumed."""
        # Let one thread at a time do this. botocore's sessions are not thread safe, and each role
        # must be assumed only once.
        with self._lock:
            return self._get(service, role_arn or self._tasks_role_arn)

    def credentials(self, role_arn: str | None = None) -> Any:
        """Return botocore's credentials for a signature. Raises botocore's errors."""
        with self._lock:
            named = role_arn or self._tasks_role_arn
            if named is None:
                return self._open().get_credentials()
            from botocore.credentials import Credentials  # noqa: PLC0415

            role = self._assume(named)
            return Credentials(role.access_key, role.secret_key, role.token)

    def _get(self, service: str, role_arn: str | None) -> Any:
        client, expires_at = self._clients.get((service, role_arn), (None, 0.0))
        if client is None or expires_at < self._clock():
            client, expires_at = self._make(service, role_arn)
            self._clients[service, role_arn] = client, expires_at
        return client

    def _open(self) -> Session:
        if self._session is None:
            from botocore.session import Session  # noqa: PLC0415

            self._session = Session()
        return self._session

    def _make(self, service: str, role_arn: str | None) -> tuple[Any, float]:
        if role_arn is None:
            return self._create(service, {}), float("inf")
        role = self._assume(role_arn)
        credentials = {
            "aws_access_key_id": role.access_key,
            "aws_secret_access_key": role.secret_key,
            "aws_session_token": role.token,
        }
        return self._create(service, credentials), role.expires_at

    def _create(self, service: str, credentials: dict[str, str]) -> Any:
        from botocore.config import Config  # noqa: PLC0415

        is_function = service == "lambda"
        read_timeout = {
            "lambda": FUNCTION_READ_TIMEOUT_SECONDS,
            "sts": ROLE_READ_TIMEOUT_SECONDS,
        }.get(service, READ_TIMEOUT_SECONDS)
        attempts = ROLE_ATTEMPTS_MAX if service == "sts" else 1
        client = self._open().create_client(
            service,
            region_name=self._region,
            config=Config(
                connect_timeout=CONNECT_TIMEOUT_SECONDS,
                read_timeout=read_timeout,
                retries={"mode": "standard", "total_max_attempts": attempts},
                max_pool_connections=CONNECTIONS_MAX,
                tcp_keepalive=is_function,
                # Leave the check of requests to the service, so that the error has the service's
                # own message.
                parameter_validation=False,
                # As the SDK of Step Functions: it gives an object in S3 a checksum (recordings of
                # November 2025), so it has version 2.30 or later, and that asks for the checksum of
                # an object that it reads (github.com/aws/aws-sdk-java-v2/issues/5801).
                response_checksum_validation="when_supported",
            ),
            **credentials,
        )
        without_conveniences(client)
        return client

    def _assume(self, role_arn: str) -> _Role:
        role = self._roles.get(role_arn)
        if role is None or role.expires_at < self._clock():
            # The process may assume only the role for tasks, and that role assumes the other roles.
            # So the role of a task needs to trust only the role for tasks.
            who = None if role_arn == self._tasks_role_arn else self._tasks_role_arn
            answer = self._get("sts", who).assume_role(
                RoleArn=role_arn, RoleSessionName=ROLE_SESSION_NAME, DurationSeconds=ROLE_SECONDS
            )["Credentials"]
            role = _Role(
                answer["AccessKeyId"],
                answer["SecretAccessKey"],
                answer["SessionToken"],
                answer["Expiration"].timestamp() - ROLE_MARGIN_SECONDS,
            )
            self._roles[role_arn] = role
        return role
