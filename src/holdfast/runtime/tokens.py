"""Callback tokens: they name one attempt of one wait, and prove that Holdfast made them.

A token is base64url of `tenant.format.key.run.entry.attempt.expiry.mac`. It is checked before
anything is read; an unknown, wrong, expired or foreign token gets the same answer.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.errors import RequestError

FORMAT: Final = "1"
TOKEN_CHARACTERS_MAX: Final = 2_048


@dataclass(frozen=True, slots=True)
class Token:
    tenant: str
    run: str
    entry: int
    attempt: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Keys:
    """Signing keys by id. `current` signs; all verify, so that a key can be rotated."""

    current: str
    secrets: Mapping[str, bytes]

    @property
    def secret(self) -> bytes:
        return self.secrets[self.current]


def make_token(token: Token, keys: Keys) -> str:
    text = (
        f"{token.tenant}.{FORMAT}.{keys.current}.{token.run.replace('.', '/')}."
        f"{token.entry}.{token.attempt}.{token.expires_ms}"
    )
    signed = f"{text}.{_mac(text, keys.secret)}"
    return base64.urlsafe_b64encode(signed.encode()).decode().rstrip("=")


def require_token(text: str, keys: Keys, tenant: str, now_ms: int) -> Token:
    """Raises RequestError HF230 (403) for every token that is not this tenant's and in time."""
    token = _read(text, keys) if isinstance(text, str) else None
    if token is None or token.tenant != tenant or token.expires_ms <= now_ms:
        raise RequestError(
            "HF230",
            "the token is not valid here",
            status=403,
            help="take the token from the execution's own description; tokens expire",
        )
    return token


def _read(text: str, keys: Keys) -> Token | None:
    if len(text) > TOKEN_CHARACTERS_MAX or not text.isascii():
        return None
    try:
        signed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body, _, mac = signed.decode("ascii").rpartition(".")
        tenant, token_format, key, run, entry, attempt, expires = body.split(".")
    except (binascii.Error, ValueError):
        return None
    secret = keys.secrets.get(key, b"")
    # Compared also for an unknown key: the same work for every wrong token.
    is_ours = hmac.compare_digest(mac, _mac(body, secret)) and bool(secret)
    if not is_ours or token_format != FORMAT:
        return None
    return Token(tenant, run.replace("/", "."), int(entry), int(attempt), int(expires))


def _mac(text: str, secret: bytes) -> str:
    return hmac.new(secret, b"token:" + text.encode(), hashlib.sha256).hexdigest()
