"""One local endpoint for all services of AWS: finds out which service a request is for.

A client with `endpoint_url` sends the requests for every service to one place. The credential scope
of the signature names service and region. The request is then answered as if it had been sent to
the host of that service.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from holdfast import resources
from holdfast.errors import RequestError
from holdfast.local import wall
from holdfast.local.wall import AwsRequest, AwsResponse

#: The response by which moto says that it does not emulate a service.
MOTO_HAS_NOT: Final = (404, b"Not yet implemented")
REGION_DEFAULT: Final = "us-east-1"
#: The scope of a signature has this form: ACCESS_KEY/DATE/REGION/SERVICE/aws4_request.
_SCOPE: Final = re.compile(r"Credential=[^/,\s]+/\d{8}/([a-z0-9-]+)/([a-z0-9.-]+)/aws4_request")
_SCOPE_IN_QUERY: Final = re.compile(r"[^/]+/\d{8}/([a-z0-9-]+)/([a-z0-9.-]+)/aws4_request")
#: The services whose host is not `{signing name}.{region}`, with their hosts.
_HOSTS: Final[Mapping[str, str]] = {
    "budgets": "budgets.amazonaws.com",
    "cloudfront": "cloudfront.amazonaws.com",
    "eventbridge": "events.{region}.amazonaws.com",
    "iam": "iam.amazonaws.com",
    "iotdata": "data.iot.{region}.amazonaws.com",
    "mobiletargeting": "pinpoint.{region}.amazonaws.com",
    "organizations": "organizations.{region}.amazonaws.com",
    "route53": "route53.amazonaws.com",
    "sagemaker": "api.sagemaker.{region}.amazonaws.com",
    "timestream": "ingest.timestream.{region}.amazonaws.com",
}
#: The calls that AWS accepts without a signature. Their body has this value as the parameter
#: `Action`.
_UNSIGNED_ACTIONS: Final = frozenset({"AssumeRoleWithSAML", "AssumeRoleWithWebIdentity"})
_QUEUE_HOST: Final = re.compile(
    rb"https?://(?:sqs\.[a-z0-9-]+|queue|[a-z0-9-]+\.queue)\.amazonaws\.com"
)


#: The first part of the path of each of Holdfast's own routes, as a list with one item.
_OWN_PATHS: Final = [
    [route.split("/")[1]]
    for route in (*resources.ROUTES, *resources.FORM_ROUTES)
    if not route.endswith(" /")
]


def is_for_aws(method: str, target: str, headers: Mapping[str, str]) -> bool:
    """Return True when the request uses one of AWS's protocols. `headers` have names in lower case.

    A signature for `execute-api` is for Holdfast's own routes, unless the request has an
    `X-Amz-Target`.
    """
    scope = _scope(target, headers)
    if scope is not None:
        return scope[1] != "execute-api" or "x-amz-target" in headers
    is_form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    legacy = headers.get("authorization", "").startswith("AWS ") or "AWSAccessKeyId=" in target
    marked = any(name.startswith("x-amz-") for name in headers)
    # `curl -d` declares every body as a form. So an unsigned form is taken for a call of AWS only
    # outside of Holdfast's own routes.
    is_own = urlsplit(target).path.split("/")[1:2] in _OWN_PATHS
    return legacy or marked or (method == "POST" and is_form and not is_own)


def is_for_states(headers: Mapping[str, str]) -> bool:
    """Return True for a request to Step Functions. Unsigned requests with a target count, too: the
    other services with targets accept only signed ones.
    """
    target = headers.get("x-amz-target")
    if target is None:
        return False
    return target.startswith("AWSStepFunctions.") or not headers.get("authorization")


def answer(
    method: str, target: str, headers: Mapping[str, str], body: bytes, here: str
) -> AwsResponse:
    """Return AWS's answer. `here` is the URL of this endpoint, which the URLs of queues must
    contain.
    """
    region, service = _scope(target, headers) or _unsigned(body)
    host = _host(service, region, urlsplit(target).path, headers)
    content, unframed = _unframed(headers, body)
    path = target if target.startswith("/") else f"/{target}"
    call = AwsRequest(method, f"https://{host}{path}", {**unframed, "host": host}, content)
    try:
        found = wall.answer(call)
    except RequestError as refused:
        return _not_here(refused)
    if (found.status, found.body) == MOTO_HAS_NOT:
        return _not_here(wall.refusal(host))
    return _with_queue_urls(found, here) if service == "sqs" else found


def _scope(target: str, headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return region and service from the signature, in the header or in a presigned URL."""
    found = _SCOPE.search(headers.get("authorization", ""))
    if found is None and "X-Amz-Credential" in target:
        credential = parse_qs(urlsplit(target).query).get("X-Amz-Credential", [""])[0]
        found = _SCOPE_IN_QUERY.fullmatch(credential)
    return None if found is None else (found[1], found[2].lower())


def _unsigned(body: bytes) -> tuple[str, str]:
    """Return service and action of an unsigned call. Only STS accepts one, and S3 for a public
    bucket.
    """
    action = parse_qs(body[:65_536].decode("latin-1")).get("Action", [""])[0]
    return REGION_DEFAULT, "sts" if action in _UNSIGNED_ACTIONS else "s3"


def _host(service: str, region: str, path: str, headers: Mapping[str, str]) -> str:
    target = headers.get("x-amz-target", "")
    match service:
        case "dynamodb" if target.startswith("DynamoDBStreams"):
            return f"streams.dynamodb.{region}.amazonaws.com"
        case "s3" if path.startswith("/v20180820/"):
            return f"{headers.get('x-amz-account-id', '123456789012')}.s3-control.amazonaws.com"
        case "s3":
            return _bucket_host(region, headers.get("host", ""))
        case "sagemaker" if path.endswith("/invocations"):
            return f"runtime.sagemaker.{region}.amazonaws.com"
        case _:
            return _HOSTS.get(service, f"{service}.{{region}}.amazonaws.com").format(region=region)


def _bucket_host(region: str, host: str) -> str:
    """Return the service's host. A request may name the bucket in its host: BUCKET.localhost,
    BUCKET.s3.localhost.
    """
    name = host.partition(":")[0]
    bucket = name.removesuffix(".localhost").removesuffix(".s3") if "." in name else ""
    if not name.endswith(".localhost") or bucket in {"", "s3"}:
        return f"s3.{region}.amazonaws.com"
    return f"{bucket}.s3.{region}.amazonaws.com"


def _with_queue_urls(found: AwsResponse, here: str) -> AwsResponse:
    """Return the answer with queue URLs that contain this endpoint, so that a client which uses
    such a URL calls this endpoint again.
    """
    return AwsResponse(found.status, _sized(found), _QUEUE_HOST.sub(here.encode(), found.body))


def _sized(found: AwsResponse) -> dict[str, str]:
    """Return the headers without length and checksum, because the body has changed."""
    stale = {"content-length", "x-amz-crc32"}
    return {name: value for name, value in found.headers.items() if name.lower() not in stale}


def _not_here(refused: RequestError) -> AwsResponse:
    body = {"__type": "NotImplemented", "message": refused.message}
    headers = {"Content-Type": "application/json", "x-amzn-RequestId": str(uuid.uuid4())}
    return AwsResponse(501, headers, json.dumps(body).encode())


# -- aws-chunked -----------------------------------------------------------------------------------


def _unframed(headers: Mapping[str, str], body: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the content of an `aws-chunked` body, and headers that describe that content."""
    codings = [part.strip() for part in headers.get("content-encoding", "").split(",")]
    is_framed = "aws-chunked" in codings or headers.get("x-amz-content-sha256", "").startswith(
        "STREAMING-"
    )
    if not is_framed:
        return body, dict(headers)
    content, trailers = _chunks(body)
    framing = {"content-encoding", "x-amz-decoded-content-length", "x-amz-trailer"}
    left = {name: value for name, value in headers.items() if name not in framing}
    kept = ", ".join(coding for coding in codings if coding not in {"aws-chunked", ""})
    if kept:
        left["content-encoding"] = kept
    # The emulators do not check signatures, so the headers may say that the payload has no digest.
    fixed = {"content-length": str(len(content)), "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
    return content, {**left, **trailers, **fixed}


def _chunks(body: bytes) -> tuple[bytes, dict[str, str]]:
    """Return content and trailing headers of a body: `SIZE[;chunk-signature=…]CRLF bytes CRLF` up
    to a size of 0, then the headers.

    Raises RequestError HF279 when the sizes do not fit the body.
    """
    parts: list[bytes] = []
    place = 0
    while True:
        end = body.find(b"\r\n", place)
        size_text = body[place:end].partition(b";")[0].strip()
        if end < 0 or not re.fullmatch(rb"[0-9a-fA-F]{1,16}", size_text):
            raise RequestError("HF279", "the chunks of the body do not add up")
        size, place = int(size_text, 16), end + 2
        if size == 0:
            break
        parts.append(body[place : place + size])
        place += size + 2
    return b"".join(parts), _trailers(body[place:])


def _trailers(text: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.decode("latin-1").splitlines())
    own = {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}
    return {name: value for name, value in own.items() if name.startswith("x-amz-checksum-")}


# -- Step Functions, asked from inside the process -------------------------------------------------


def is_states_host(url: str) -> bool:
    host = unquote(urlsplit(url).netloc)
    return re.fullmatch(r"(?:sync-)?states\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?", host) is not None
