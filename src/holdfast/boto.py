"""`holdfast.client()`: boto3's own client of Step Functions, with Holdfast as its endpoint.

Like `local` and `cli`, this module connects parts: nothing in the engine imports it.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.errors import RequestError

REGION_DEFAULT: Final = "us-east-1"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_GATEWAY: Final = re.compile(r"[a-z0-9]+\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


def client(endpoint_url: str | None = None, **settings: Any) -> Any:
    """Return `boto3.client("stepfunctions")` for the endpoint; `settings` are boto3's own.

    `endpoint_url` is a `holdfast serve` (by default that of this project) or the API of a deployed
    stack (its output ApiUrl), for which requests are signed for its IAM authoriser. Raises
    RequestError HF273 when no endpoint is given and no `serve` runs.
    """
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    url = endpoint_url or _serving_url()
    host = urlsplit(url).hostname or ""
    # For StartSyncExecution boto3 would put `sync-` before the name of the host, and no host has
    # that name.
    config = Config(inject_host_prefix=False)
    given = settings.pop("config", None)
    made = boto3.client(
        "stepfunctions",
        endpoint_url=url,
        config=config if given is None else given.merge(config),
        **{**_defaults(host), **settings},
    )
    if host not in _LOOPBACK:
        made.meta.events.register("before-sign.sfn", _sign_for_gateway)
    return made


def _defaults(host: str) -> dict[str, str]:
    """Return the settings for an endpoint. A local endpoint checks no signature, so it needs no
    credentials.
    """
    if host in _LOOPBACK:
        return {
            "region_name": REGION_DEFAULT,
            "aws_access_key_id": "local",
            "aws_secret_access_key": "local",
        }
    gateway = _GATEWAY.fullmatch(host)
    return {} if gateway is None else {"region_name": gateway[1]}


def _sign_for_gateway(request: Any, **_: Any) -> None:
    request.context.setdefault("signing", {})["signing_name"] = "execute-api"


def _serving_url() -> str:
    from holdfast.local.project import find_serving  # noqa: PLC0415

    serving = find_serving()
    if serving is None:
        raise RequestError(
            "HF273",
            "there is nothing to talk to: no `serve` of this project is running",
            help="run `holdfast serve`, or give endpoint_url",
        )
    return serving.url
