"""One HTTP request and its response, through botocore's own HTTP session.

Because of that session, the local cloud intercepts these requests, too, and none leaves the
machine. No redirects are followed and nothing is retried.
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


def exchange(
    request: Request, timeout_seconds: int, bytes_max: int, authority: str | None = None
) -> Response:
    """Return the response, with its body cut at `bytes_max`. Raises BotoCoreError when no response
    comes. `authority` is the file with the certificates that may have signed the server's; None:
    those that botocore knows.
    """
    from botocore.awsrequest import AWSPreparedRequest, HeadersDict  # noqa: PLC0415
    from botocore.exceptions import HTTPClientError  # noqa: PLC0415
    from botocore.httpsession import URLLib3Session  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    session = URLLib3Session(
        verify=True if authority is None else authority, timeout=timeout_seconds
    )
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
        # botocore does not translate errors that occur while the body is read, so translate them
        # here.
        raise HTTPClientError(error=error) from error
    finally:
        session.close()
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(answer.status_code, headers, body)
