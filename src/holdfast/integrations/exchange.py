"""One HTTP request and its answer, through botocore's own HTTP session.

Not a library of its own choosing: what holds back botocore's requests (a laptop's cloud lets
nothing out) holds back these as well. No redirects are followed and nothing is retried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. Header names are in lower case."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


def exchange(request: Request, timeout_seconds: int, bytes_max: int) -> Response:
    """Return the answer, its body cut at `bytes_max`. Raises BotoCoreError without an answer."""
    from botocore.awsrequest import AWSPreparedRequest, HeadersDict  # noqa: PLC0415
    from botocore.exceptions import HTTPClientError  # noqa: PLC0415
    from botocore.httpsession import URLLib3Session  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    session = URLLib3Session(timeout=timeout_seconds)
    try:
        answer = session.send(
            AWSPreparedRequest(
                request.method,
                request.url,
                HeadersDict(request.headers),
                request.body,
                stream_output=True,
            )
        )
        body = answer.raw.read(bytes_max) or b""
    except HTTPError as error:
        # The answer has begun, and botocore translates no errors of reading its body: do it here.
        raise HTTPClientError(error=error) from error
    finally:
        session.close()
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(answer.status_code, headers, body)
