"""Callback tokens: a token names one attempt of one wait, and proves that Holdfast created it.

A token is base64url of `tenant.format.key.run.entry.attempt.expiry.mac`. It is checked before
anything is read. The refusal is the same for an unknown, a wrong, an expired and a foreign token,
so that it reveals nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Final

from holdfast.core.commands import OpenQuestion
from holdfast.errors import RequestError, ServiceFault
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import TOKEN_SECONDS_MAX

FORMAT: Final = "1"
TOKEN_CHARACTERS_MAX: Final = 2_048
KEY_BYTES_MIN: Final = 32
# The form of the id of a signing key. It has no dots, because dots separate the fields of a token.
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
    """The signing keys by id. `current` signs. Every key verifies, so that tokens stay valid when
    the key is rotated.
    """

    current: str
    secrets: Mapping[str, bytes]

    @property
    def secret(self) -> bytes:
        return self.secrets[self.current]


def parse_keys(secret: str) -> SigningKeys:
    """Parse the signing keys. `secret` is JSON {"current": id, "keys": {id: text}}, or one text: a
    key with the id `1`.

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
    """Return the token that allows an answer to the question until its deadline. Without a deadline
    it is valid for the longest time of a token from `from_ms` on.
    """
    expires_ms = command.due_ms or from_ms + TOKEN_SECONDS_MAX * 1_000
    return Token(tenant, run, command.entry, command.attempt, expires_ms)


def require_link(text: str, keys: SigningKeys, now_ms: int) -> Token:
    """Return the content of the token in a link. The person who opens the link has no identity in a
    tenant.

    Raises RequestError HF230 (403) for every token that this stack did not create, or that has
    expired.
    """
    token = _read(text, keys)
    return require_token(text, keys, token.tenant if token else "", now_ms)


def require_token(text: str, keys: SigningKeys, tenant: str, now_ms: int) -> Token:
    """Return the content of a token. Raises RequestError HF230 (403) for every token that is
    forged, belongs to another tenant, or has expired.
    """
    token = _read(text, keys) if isinstance(text, str) else None
    if token is None or token.tenant != tenant or token.expires_ms <= now_ms:
        raise RequestError(
            "HF230",
            "the token is not valid here",
            status=403,
            help="take the token from the execution's own description; tokens expire. The id of a "
            "question, as `holdfast inbox` prints it, does not",
        )
    return token


def mark_of(text: str, keys: SigningKeys) -> str:
    """Return a digest by which the same text is recognised later.

    The text may contain a secret. The digest uses a key, so that without the key texts cannot be
    tried until one has the same digest.
    """
    return _mark(text, keys.secret)


def is_marked(text: str, mark: str, keys: SigningKeys) -> bool:
    """Return True when the text has this digest with any of the keys. The digest may have been made
    before the current key.
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
        # base64 decodes several texts to the same bytes. Accept only the text that this code would
        # write, so that each token has exactly one form.
        if _written(signed) != text:
            return None
        body, _, mac = signed.decode("ascii").rpartition(".")
        tenant, token_format, key, run, entry, attempt, expires = body.split(".")
    except (binascii.Error, ValueError):
        return None
    secret = keys.secrets.get(key, b"")
    # Compute and compare the MAC for an unknown key, too. Otherwise the time of the answer would
    # tell whether a key exists.
    is_ours = hmac.compare_digest(mac, _mac(body, secret)) and bool(secret)
    if not is_ours or token_format != FORMAT:
        return None
    return Token(tenant, run.replace("/", "."), int(entry), int(attempt), int(expires))


def _written(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).decode().rstrip("=")


def _mac(text: str, secret: bytes) -> str:
    return hmac.new(secret, b"token:" + text.encode(), hashlib.sha256).hexdigest()
