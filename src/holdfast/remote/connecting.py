"""The API that a client calls, and the proof of the client's identity.

Nothing is sent before the first call, so a client may be created while a module is imported.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from holdfast.errors import RequestError
from holdfast.remote.errors import error_of
from holdfast.remote.operations.requests import Call
from holdfast.remote.transport import Carry, Sign, over_http, unsigned

Token: TypeAlias = str | Callable[[], str]

API_OUTPUT: Final = "ApiUrl"
_GATEWAY: Final = re.compile(r"[a-z0-9]+\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


@dataclass(frozen=True, slots=True)
class Api:
    """The API of a client. `where` names it in messages. Errors of the API are raised unchanged."""

    carry: Carry
    where: str

    def call(self, call: Call) -> Any:
        status, content = self.carry(call.method, call.target, call.body)
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if 200 <= status < 300 and isinstance(answer, dict):
            return answer
        raise error_of(self.where, status, answer)


def connect(
    endpoint: str | None = None,
    stack: str | None = None,
    token: Token | None = None,
    *,
    iam: bool = False,
) -> Api:
    """Return the API at the endpoint, of the stack, or of the project's running `serve`.

    Requests to a stack's API are signed with IAM unless a token is given. Raises RequestError
    HF273, HF274, HF287. Sending a request to a stack may raise HF276.
    """
    if endpoint is not None and stack is not None:
        raise RequestError("HF287", "an endpoint and a stack are given", help="give one of them")
    if token is not None and iam:
        raise RequestError("HF287", "a token and IAM are given", help="give one of them")
    if stack is not None:
        return Api(_StackApi(stack, token), f"stack {stack}")
    url = _require_url(endpoint if endpoint is not None else _serving_url())
    return Api(over_http(url, _sign_with(url, token, iam=iam)), url)


def _sign_with(url: str, token: Token | None, *, iam: bool) -> Sign:
    if token is not None:
        return bearer(token)
    gateway = _GATEWAY.fullmatch(urlsplit(url).hostname or "")
    return _Signer(gateway[1] if gateway else None) if iam else unsigned


def is_gateway(url: str) -> bool:
    """Return True for an address of API Gateway, whose default authoriser is IAM's."""
    return _GATEWAY.fullmatch(urlsplit(url).hostname or "") is not None


def _serving_url() -> str:
    from holdfast.local.project import find_serving  # noqa: PLC0415

    serving = find_serving()
    if serving is None:
        raise RequestError(
            "HF273",
            "there is nothing to talk to: no `serve` of this project is running",
            help="run `holdfast serve`, or give --endpoint URL or --stack NAME",
        )
    return serving.url


def _require_url(text: str) -> str:
    if not _is_http(text):
        raise RequestError(
            "HF274", f"{text!r:.200} is not an HTTP URL", help="--endpoint http://127.0.0.1:8080"
        )
    return text.rstrip("/")


def _is_http(text: str) -> bool:
    try:
        url = urlsplit(text)
        url.port  # noqa: B018  # it is read late, and raises ValueError for `:80x`
    except ValueError:
        # The URL has an incomplete IPv6 address, or an invalid port.
        return False
    return url.scheme in {"http", "https"} and bool(url.hostname)


# -- signatures and tokens -------------------------------------------------------------------------


def bearer(token: Token) -> Sign:
    """Return the header for a JWT authoriser. If the token is a function, it is called for each
    request, because tokens expire.
    """

    def sign(_method: str, _url: str, _body: bytes) -> dict[str, str]:
        return {"Authorization": f"Bearer {token() if callable(token) else token}"}

    return sign


def aws_session() -> Any:
    """Return botocore's session with the region that the AWS CLI would use.

    `AWS_REGION` comes before `AWS_DEFAULT_REGION` (AWS CLI user guide, environment variables).
    botocore reads the latter alone.
    """
    from botocore.session import Session  # noqa: PLC0415

    session = Session()
    if region := os.environ.get("AWS_REGION"):
        session.set_config_variable("region", region)
    return session


class _Signer:
    """Signs requests for the API's IAM authoriser with the credentials that the AWS CLI would
    use.
    """

    def __init__(self, region: str | None) -> None:
        self._region = region

    @cached_property
    def _session(self) -> Any:
        return aws_session()

    @cached_property
    def _credentials(self) -> Any:
        return self._session.get_credentials()

    def __call__(self, method: str, url: str, body: bytes) -> dict[str, str]:
        from botocore.auth import SigV4Auth  # noqa: PLC0415
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        region = self._region or self._session.get_config_variable("region")
        if self._credentials is None or region is None:
            missing = "region" if region is None else "credentials"
            raise RequestError(
                "HF276",
                f"{url} is to be called with IAM, and there are no {missing} of AWS",
                help="region and credentials are those of the AWS CLI: `aws configure`",
            )
        request = AWSRequest(method, url, {"Content-Type": "application/json"}, body)
        SigV4Auth(self._credentials.get_frozen_credentials(), "execute-api", region).add_auth(
            request
        )
        return dict(request.headers.items())


class _StackApi:
    """Sends requests to a deployed stack. It reads the stack's address from CloudFormation once."""

    def __init__(self, name: str, token: Token | None) -> None:
        self._name = name
        self._token = token

    def __call__(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        return self._carry(method, target, body)

    @cached_property
    def _carry(self) -> Carry:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        stack = self._name.partition("/")[0]
        try:
            formation = aws_session().create_client("cloudformation")
            outputs = formation.describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
        except (BotoCoreError, ClientError) as error:
            raise RequestError(
                "HF276",
                f"stack {stack}: {error}",
                help="name a deployed stack; region and credentials are those of the AWS CLI: "
                "AWS_REGION, AWS_PROFILE, `aws configure`",
            ) from None
        found = {output["OutputKey"]: output["OutputValue"] for output in outputs}
        region = formation.meta.region_name
        sign: Sign = _Signer(region) if self._token is None else bearer(self._token)
        # The host name of an emulator's API leads nowhere, or to AWS: only the emulator knows it.
        # So send the requests to the emulator's own address.
        emulator = os.environ.get("AWS_ENDPOINT_URL", "").rstrip("/")
        authorities = os.environ.get("AWS_CA_BUNDLE")
        url = _require_url(_api_url(found, self._name))
        return over_http(url, sign, server=emulator, authorities=authorities)


def _api_url(outputs: Mapping[str, str], name: str) -> str:
    """Return the address of the only Holdfast in a stack, or of the construct in a name such as
    `Shop/Flows`.

    The outputs of a construct begin with its name: `FlowsApiUrl`.
    """
    construct = name.partition("/")[2]
    keys = [key for key in outputs if key.endswith(API_OUTPUT)]
    found = [key for key in keys if key == f"{construct}{API_OUTPUT}"] if construct else keys
    if len(found) == 1:
        return outputs[found[0]]
    stack = name.partition("/")[0]
    several = ", ".join(f"{stack}/{key.removesuffix(API_OUTPUT)}" for key in keys)
    if keys:
        message = f"stack {stack} has the outputs {', '.join(keys)}; {name} names none of them"
        raise RequestError("HF276", message, help=f"name one of {several}")
    raise RequestError(
        "HF276",
        f"stack {name} has no output {API_OUTPUT}",
        help="name a stack that was deployed from a CDK app with Holdfast in it",
    )
