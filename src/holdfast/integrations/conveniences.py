"""Removes what botocore changes in requests and responses on its own.

AWS Step Functions calls services through version 2 of the Java SDK, which sends the members of a
request as they are given and returns those of a response as the service sent them. botocore adds
conveniences for Python: it decodes an IAM policy into a dict, for example, where the result of a
state machine has the URL-encoded text. Source: the API reference of each action below.
"""

from __future__ import annotations

from typing import Any, Final

#: The names of functions with which botocore changes requests or responses, for the convenience of
#: Python programs. Step Functions passes both on as AWS documents them, so these functions are
#: unregistered. Each comment says what the function would change.
_UNWANTED: Final = frozenset(
    {
        # EC2 RunInstances and Auto Scaling CreateLaunchConfiguration: the caller must encode
        # UserData in base 64, and botocore would encode it a second time.
        "base64_encode_user_data",
        # S3 CopyObject and UploadPartCopy: the caller URL-encodes CopySource, and botocore would
        # encode it a second time.
        "handle_copy_source_param",
        # S3: the caller sends SSECustomerKey in base 64 together with its MD5, and botocore would
        # compute both again.
        "sse_md5",
        "copy_source_sse_md5",
        # S3 ListObjects: botocore would request encoded keys, which the Java SDK does not.
        "set_list_objects_encoding_type_url",
        # IAM: the policy documents in responses are URL-encoded JSON, and botocore would decode
        # them.
        "json_decode_policies",
        # EC2 GetConsoleOutput: Output is in base 64, and botocore would decode it.
        "decode_console_output",
        # CloudFormation GetTemplate: TemplateBody is a text, and botocore would parse it.
        "json_decode_template_body",
    }
)


def without_conveniences(client: Any) -> None:
    """Unregister the handlers from a client of botocore, and keep the names of headers as the
    service has sent them, because results of optimised integrations show them.
    """
    from botocore.handlers import BUILTIN_HANDLERS  # noqa: PLC0415

    for event, handler, *_ in BUILTIN_HANDLERS:
        if getattr(handler, "__name__", None) in _UNWANTED:
            client.meta.events.unregister(event, handler)
    client.meta.events.register("after-call", _keep_spelling)


def _keep_spelling(http_response: Any, parsed: dict[str, Any], **_rest: Any) -> None:
    headers = {str(name): value for name, value in http_response.headers.items()}
    parsed["ResponseMetadata"]["HTTPHeaders"] = headers
