"""The verified identity of a request: its tenant, its caller, and its rights on the whole stack.

API Gateway's authoriser has verified the request. Only an IAM caller or a JWT gives a tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import RequestError
from holdfast.runtime.storage.json_values import is_unicode
from holdfast.runtime.storage.keys import TENANT_DEFAULT, is_tenant


def tenant_of(request: Mapping[str, Any]) -> str:
    """Return the tenant. Raises RequestError HF240 (403) when the verified identity names no valid
    tenant.

    A caller that signs with IAM has the tenant `default`. Any other authoriser must be one for
    JWTs.
    """
    authorizer = request.get("requestContext", {}).get("authorizer") or {}
    if not authorizer.keys() - {"iam"}:
        return TENANT_DEFAULT
    claims = (authorizer.get("jwt") or {}).get("claims") or {}
    tenant = claims.get("tenant")
    if not isinstance(tenant, str) or not is_tenant(tenant):
        raise RequestError("HF240", "the identity has no usable `tenant` claim", status=403)
    return tenant


def caller_of(request: Mapping[str, Any]) -> str | None:
    """Return the verified identity of the caller: the ARN of an IAM caller, or the subject of a
    JWT.
    """
    authorizer = request.get("requestContext", {}).get("authorizer") or {}
    found = (authorizer.get("iam") or {}).get("userArn")
    if found is None:
        found = ((authorizer.get("jwt") or {}).get("claims") or {}).get("sub")
    return found if isinstance(found, str) and is_unicode(found) else None


def require_operator(request: Mapping[str, Any]) -> None:
    """Refuse a caller that belongs to one tenant, for requests that concern every tenant. Raises
    RequestError HF252 (403).
    """
    if (request.get("requestContext", {}).get("authorizer") or {}).keys() - {"iam"}:
        raise RequestError(
            "HF252",
            "this concerns the whole stack, and a token speaks for one tenant",
            status=403,
            help="see docs/how-to/operate.md, Upgrade and rollback, for stacks that take tokens",
        )
