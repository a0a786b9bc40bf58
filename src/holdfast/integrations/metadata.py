"""SdkHttpMetadata and SdkResponseMetadata, which optimised integrations add to their results.

AWS's results have the names of headers as the service sent them. A response of this process, or of
an emulator, has them in lower case; recordings show the spellings below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SPELLINGS: Final = {
    name.lower(): name
    for name in (
        "Content-Length",
        "Content-Type",
        "Date",
        "Server",
        "X-Amz-Executed-Version",
        "X-Amz-Function-Error",
        "X-Amz-Log-Result",
        "X-Amzn-Trace-Id",
        "x-amzn-Remapped-Content-Length",
        "x-amzn-RequestId",
    )
}


def sdk_metadata(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return both metadata fields of a botocore response."""
    metadata = response.get("ResponseMetadata", {})
    headers = {
        _SPELLINGS.get(name, name): value
        for name, value in sorted(metadata.get("HTTPHeaders", {}).items(), key=_in_lower_case)
    }
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": metadata.get("HTTPStatusCode", 200),
        },
        "SdkResponseMetadata": {"RequestId": metadata.get("RequestId", "")},
    }


def _in_lower_case(header: tuple[str, str]) -> str:
    return header[0].lower()


def own_metadata(request_id: str, content_length: int) -> dict[str, Any]:
    """Return the metadata for a response that this process has created itself."""
    headers = {
        "connection": "keep-alive",
        "content-length": str(content_length),
        "content-type": "application/x-amz-json-1.0",
        "x-amzn-requestid": request_id,
    }
    return sdk_metadata(
        {
            "ResponseMetadata": {
                "HTTPHeaders": headers,
                "HTTPStatusCode": 200,
                "RequestId": request_id,
            }
        }
    )
