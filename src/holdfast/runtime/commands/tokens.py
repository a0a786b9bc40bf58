"""Callback tokens: a token names one attempt of one wait, and proves that Holdfast made it.

A token is base64url of `tenant.format.key.run.entry.attempt.expiry.mac`. It is checked before
anything is read. An unknown, wrong, expired or foreign token gets the same answer.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.core.commands import OpenQuestion
from holdfast.errors import RequestError, ServiceFault
from holdfast.limits import TOKEN_SECONDS_MAX

FORMAT: Final = "1"
TOKEN_CHARACTERS_MAX: Final = 2_048
KEY_BYTES_MIN: Final = 32
# A token's fields are separated by dots.
_KEY_ID: Final = re.compile("[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Token:
    tenant: str
    run: str
    entry: int
    attempt: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The signing keys by id. `current` signs; every key verifies, so that a key can be rotated."""

    current: str
    secrets: Mapping[str, bytes]

    @property
    def secret(self) -> bytes:
        return self.secrets[self.current]


def parse_keys(secret: str) -> SigningKeys:
    """Parse the signing keys. `secret` is JSON {"current": id, "keys": {id: text}}, or one text: a
    key called `1`.

    Raises ServiceFault HF326, which quotes no key.
    """
    if not secret.startswith("{"):
        return _require_keys("1", {"1": secret})
    try:
        document = json.loads(secret)
        return _require_keys(document["current"], document["keys"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _bad_keys('it is not {"current": id, "keys": {id: text}}') from None


def _require_keys(current: str, texts: Mapping[str, str]) -> SigningKeys:
    for key, text in texts.items():
        if not _KEY_ID.fullmatch(key):
            raise _bad_keys("a key's id is not 1 to 64 of A-Z a-z 0-9 _ -")
        if len(text.encode()) < KEY_BYTES_MIN:
            raise _bad_keys(f"the key {key} is shorter than {KEY_BYTES_MIN} bytes")
    if current not in texts:
        raise _bad_keys("the current key is none of the keys")
    return SigningKeys(current, {key: text.encode() for key, text in texts.items()})


def _bad_keys(problem: str) -> ServiceFault:
    return ServiceFault("HF326", f"the secret of the signing keys: {problem}", retry="never")


def make_token(token: Token, keys: SigningKeys) -> str:
    text = (
        f"{token.tenant}.{FORMAT}.{keys.current}.{token.run.replace('.', '/')}."
        f"{token.entry}.{token.attempt}.{token.expires_ms}"
    )
    return _written(f"{text}.{_mac(text, keys.secret)}".encode())


def question_token(tenant: str, run: str, command: OpenQuestion, from_ms: int) -> Token:
    """Return the right to answer the question until its deadline; without one, for the longest time
    of a token from `from_ms` on.
    """
    expires_ms = command.due_ms or from_ms + TOKEN_SECONDS_MAX * 1_000
    return Token(tenant, run, command.entry, command.attempt, expires_ms)


def require_link(text: str, keys: SigningKeys, now_ms: int) -> Token:
    """Return the claims of the token in a link. Its holder needs no identity of a tenant.

    Raises RequestError HF230 (403) for every token that is not of this stack and in time.
    """
    token = _read(text, keys)
    return require_token(text, keys, token.tenant if token else "", now_ms)


def require_token(text: str, keys: SigningKeys, tenant: str, now_ms: int) -> Token:
    """Return the claims of a token. Raises RequestError HF230 (403) for every token that is forged,
    another tenant's, or expired.
    """
    token = _read(text, keys) if isinstance(text, str) else None
    if token is None or token.tenant != tenant or token.expires_ms <= now_ms:
        raise RequestError(
            "HF230",
            "the token is not valid here",
            status=403,
            help="take the token from the execution's own description; tokens expire",
        )
    return token


def mark_of(text: str, keys: SigningKeys) -> str:
    """Return a digest by which the same text is recognised.

    The text may hold a secret. The digest is keyed, so that texts cannot be tried without the key.
    """
    return _mark(text, keys.secret)


def is_marked(text: str, mark: str, keys: SigningKeys) -> bool:
    """Return True when any of the keys signs the text with this mark. The mark may be older than
    the current key.
    """
    marks = [_mark(text, secret) for secret in keys.secrets.values()]
    return any(hmac.compare_digest(mark, found) for found in marks)


def _mark(text: str, secret: bytes) -> str:
    return hmac.new(secret, b"text:" + text.encode(), hashlib.sha256).hexdigest()[:32]


def _read(text: str, keys: SigningKeys) -> Token | None:
    if len(text) > TOKEN_CHARACTERS_MAX or not text.isascii():
        return None
    try:
        signed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if _written(signed) != text:  # other characters and spare bits decode to the same bytes
            return None
        body, _, mac = signed.decode("ascii").rpartition(".")
        tenant, token_format, key, run, entry, attempt, expires = body.split(".")
    except (binascii.Error, ValueError):
        return None
    secret = keys.secrets.get(key, b"")
    # Compare the MAC also for an unknown key, so that every wrong token takes the same time.
    is_ours = hmac.compare_digest(mac, _mac(body, secret)) and bool(secret)
    if not is_ours or token_format != FORMAT:
        return None
    return Token(tenant, run.replace("/", "."), int(entry), int(attempt), int(expires))


def _written(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).decode().rstrip("=")


def _mac(text: str, secret: bytes) -> str:
    return hmac.new(secret, b"token:" + text.encode(), hashlib.sha256).hexdigest()
