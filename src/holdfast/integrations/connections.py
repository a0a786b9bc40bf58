"""EventBridge connections: what they add to the request of an HTTP task.

The secrets of a connection are in Secrets Manager, in an item that EventBridge has created for it.
Source: AWS docs, "Authorization methods for connections in EventBridge".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.exchange import Request, exchange
from holdfast.runtime.effects import RunTask

TOKEN_TIMEOUT_SECONDS: Final = 20
TOKEN_BYTES_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class Authorization:
    """The parts of a request that a connection sets; header names in lower case."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)


def authorization_of(arn: str, effect: RunTask, clients: ServiceClients) -> Authorization:
    """Return the authorization of a connection. Raises botocore's errors."""
    name = arn.partition(":connection/")[2].split("/")[0]
    events = clients.get("events", effect.credentials)
    connection = events.describe_connection(Name=name)
    secrets = clients.get("secretsmanager", effect.credentials)
    held = secrets.get_secret_value(SecretId=connection["SecretArn"])["SecretString"]
    secret: Mapping[str, Any] = json.loads(held)
    extra = _invocation_parameters(secret.get("invocation_http_parameters") or {})
    authorize = _AUTHORIZE[connection["AuthorizationType"]]
    headers = {**extra.headers, **authorize(connection, secret)}
    return Authorization(headers, extra.query, extra.body)


def _invocation_parameters(parameters: Mapping[str, Any]) -> Authorization:
    def named(kind: str) -> dict[str, str]:
        return {part["key"]: part["value"] for part in parameters.get(kind) or ()}

    headers = {name.lower(): value for name, value in named("header_parameters").items()}
    return Authorization(headers, named("query_string_parameters"), named("body_parameters"))


def _basic(_: Mapping[str, Any], secret: Mapping[str, Any]) -> dict[str, str]:
    pair = f"{secret['username']}:{secret['password']}"
    return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _api_key(_: Mapping[str, Any], secret: Mapping[str, Any]) -> dict[str, str]:
    return {secret["api_key_name"].lower(): secret["api_key_value"]}


def _oauth(connection: Mapping[str, Any], secret: Mapping[str, Any]) -> dict[str, str]:
    """Return the header for client credentials. Each call requests a new token, so a token never
    expires.
    """
    parameters = connection["AuthParameters"]["OAuthParameters"]
    form = {
        "grant_type": "client_credentials",
        "client_id": secret["client_id"],
        "client_secret": secret["client_secret"],
        **_invocation_parameters(secret.get("oauth_http_parameters") or {}).body,
    }
    request = Request(
        parameters["HttpMethod"],
        parameters["AuthorizationEndpoint"],
        {"content-type": "application/x-www-form-urlencoded"},
        urlencode(form).encode(),
    )
    answer = json.loads(exchange(request, TOKEN_TIMEOUT_SECONDS, TOKEN_BYTES_MAX).body)
    return {"authorization": f"{answer.get('token_type', 'Bearer')} {answer['access_token']}"}


_AUTHORIZE: Final = {"API_KEY": _api_key, "BASIC": _basic, "OAUTH_CLIENT_CREDENTIALS": _oauth}
