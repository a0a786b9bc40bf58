"""Sealing (encrypting a `SecretStr` to a text) and opening (decrypting it).

Rules of this file:
* A secret is in clear text only in the memory of the function that uses it.
* A secret that was opened in a call is sealed to the same text again, so passing a secret on costs
  no encryption.
* Nothing is encrypted here. The caller passes a `Vault`, which encrypts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from holdfast.errors import VaultFault
from holdfast.limits import SECRET_BYTES_MAX
from holdfast.sealed import Sealed, parse_sealed

#: Stands for the name of the key in a secret that was created in a process without a key
#: (`HandedVault`). The process that receives such a secret encrypts it with a key.
_HANDED: Final = "handed"
#: A shorter secret is not removed from a text, because such a short text also occurs by chance.
_SCRUBBED_CHARACTERS_MIN: Final = 4


class Vault(Protocol):
    """Encrypts secrets to text that can be stored, and decrypts them. No tenant can decrypt a
    secret of another tenant.
    """

    def seal(self, tenant: str, text: str) -> str:
        """Return `sealed.Sealed.text`. `text` must have 1 to 4,096 bytes. Raises VaultFault."""

    def open(self, tenant: str, sealed: Sealed) -> str:
        """Return the secret. Raises VaultFault."""


class NoVault:
    """The vault of a deployment without secrets: it refuses to store one."""

    def seal(self, tenant: str, text: str) -> str:
        del tenant, text
        raise _no_key()

    def open(self, tenant: str, sealed: Sealed) -> str:
        del tenant, sealed
        raise _no_key()


def _no_key() -> VaultFault:
    return VaultFault(
        "HF327",
        "there is a secret, and this stack has no key for secrets",
        retry="never",
    )


NO_VAULT: Final = NoVault()


class LocalVault:
    """A vault for a local machine and for tests. It hides a secret from a text search, but does not
    protect it.

    The same secret always gives the same text.
    """

    _KEY: Final = "local"
    _CHECK_BYTES: Final = 4

    def seal(self, tenant: str, text: str) -> str:
        data = text.encode()
        mixed = _mixed(tenant, data)
        return Sealed(self._KEY, self._check(tenant, data) + mixed, len(data)).text

    def open(self, tenant: str, sealed: Sealed) -> str:
        data = _mixed(tenant, sealed.data[self._CHECK_BYTES :])
        check = sealed.data[: self._CHECK_BYTES]
        if sealed.key != self._KEY or check != self._check(tenant, data):
            raise VaultFault("HF327", "a secret was sealed with another key or for another tenant")
        return data.decode()

    def _check(self, tenant: str, data: bytes) -> bytes:
        return _digest(f"{tenant}\0".encode() + data)[: self._CHECK_BYTES]


class HandedVault:
    """The vault of a process that runs one attempt for the engine and has no key.

    The engine passes the secrets in the arguments to it. A new secret in the result is only marked
    and not encrypted; the engine encrypts it with `sealed_again` before it stores the result.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets

    def seal(self, tenant: str, text: str) -> str:
        del tenant
        data = text.encode()
        return Sealed(_HANDED, data, len(data)).text

    def open(self, tenant: str, sealed: Sealed) -> str:
        del tenant
        text = self._secrets.get(sealed.text)
        if text is None:
            raise VaultFault("HF327", "a secret was not handed over with its attempt")
        return text


def sealed_again(value: Any, seals: Seals) -> Any:
    """Return the JSON with the new secrets of a `HandedVault` encrypted. Raises ValueError,
    VaultFault.
    """
    match value:
        case str():
            sealed = parse_sealed(value)
            is_new = sealed is not None and sealed.key == _HANDED
            return seals.seal(sealed.data.decode()) if sealed and is_new else value
        case list():
            return [sealed_again(item, seals) for item in value]
        case dict():
            return {name: sealed_again(item, seals) for name, item in value.items()}
        case _:
            return value


def _mixed(tenant: str, data: bytes) -> bytes:
    """XOR the bytes with a mask that depends on the tenant. A second call restores them, and a call
    for another tenant does not. This hides values from a reader by chance; it is not encryption.
    """
    mask = _digest(tenant.encode())
    return bytes(byte ^ mask[place % len(mask)] for place, byte in enumerate(data))


def _digest(data: bytes) -> bytes:
    # Imported here because the import of a workflow's module does not need it.
    from hashlib import sha256  # noqa: PLC0415

    return sha256(data).digest()


@dataclass
class Seals:
    """The secrets of one call, for one tenant. `may_open` is False for values from outside: a
    sealed text in them must not be decrypted.
    """

    vault: Vault
    tenant: str
    may_open: bool = True
    _sealed: dict[str, str] = field(default_factory=dict)

    def seal(self, text: str) -> str:
        """Return the encrypted text; an empty text stays empty. Raises ValueError when it is too
        long, VaultFault.
        """
        if len(text.encode()) > SECRET_BYTES_MAX:
            raise ValueError(f"a secret has at most {SECRET_BYTES_MAX} bytes")
        if text and text not in self._sealed:
            self._sealed[text] = self.vault.seal(self.tenant, text)
        return self._sealed.get(text, "")

    def opened(self, value: Any) -> Any:
        """Return the JSON with a `SecretStr` for each encrypted text. Raises ValueError,
        VaultFault.
        """
        match value:
            case str():
                sealed = parse_sealed(value)
                return value if sealed is None else self._open(sealed)
            case list():
                return [self.opened(item) for item in value]
            case dict():
                return {name: self.opened(item) for name, item in value.items()}
            case _:
                return value

    def _open(self, sealed: Sealed) -> Any:
        from pydantic import SecretStr  # noqa: PLC0415

        if not self.may_open:
            raise ValueError("a sealed secret cannot be given from outside: give the secret itself")
        text = self.vault.open(self.tenant, sealed)
        self._sealed.setdefault(text, sealed.text)
        return SecretStr(text)

    def handed(self) -> dict[str, str]:
        """Return the secrets of this call by their encrypted texts, for a `HandedVault`."""
        return {sealed: text for text, sealed in self._sealed.items()}

    def scrubbed(self, text: str, others: Iterable[str] = ()) -> str:
        """Return `text` without the secrets of this call, and without `others`: the text of an
        exception may contain one.
        """
        for secret in sorted({*self._sealed, *others}, key=len, reverse=True):
            if len(secret) >= _SCRUBBED_CHARACTERS_MIN:
                text = text.replace(secret, f"<secret {len(secret.encode())} bytes>")
        return text

    def merged(self, plain: Any, python: Any) -> Any:
        """Return `plain` with an encrypted text for each `SecretStr` in `python`. Both are dumps of
        the same value.

        Raises ValueError when the two differ in their structure around a secret, VaultFault.
        """
        match plain, python:
            case str(), _ if is_secret(python):
                return self.seal(python.get_secret_value())
            case list(), list() | tuple() if len(plain) == len(python):
                return [self.merged(*pair) for pair in zip(plain, python, strict=True)]
            case dict(), dict() if len(plain) == len(python):
                pairs = zip(plain.items(), python.items(), strict=True)
                if any(map(is_secret, python)):
                    raise ValueError(_NO_PLACE)
                return {name: self.merged(one, other) for (name, one), (_, other) in pairs}
            case _ if any(map(is_secret, _parts(python))):
                raise ValueError(_NO_PLACE)
            case _:
                return plain


_NO_PLACE: Final = "a secret stands where none can be kept: give it a field, or a place in a list"


class _Nowhere:
    """The seals of values that are written in clear text: in a definition, and in runs on AWS Step
    Functions.
    """

    def seal(self, tenant: str, text: str) -> str:
        del tenant, text
        raise ValueError(_NOT_HERE)

    def open(self, tenant: str, sealed: Sealed) -> str:
        del tenant, sealed
        raise ValueError(_NOT_HERE)


_NOT_HERE: Final = "a secret cannot be written down: let a task return it, or take it as input"
NO_SEALS: Final = Seals(_Nowhere(), "")


def is_secret(value: object) -> bool:
    cls = type(value)
    return cls.__module__ == "pydantic.types" and cls.__name__ == "SecretStr"


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        for name, item in value.items():
            yield from (*_parts(name), *_parts(item))
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _parts(item)


def schema_has_secrets(schema: Any) -> bool:
    """Return True when pydantic's schema of a type has a `SecretStr` anywhere."""
    pending, seen = [schema], set()
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if part.get("type") == "is-instance" and _is_secret_class(part.get("cls")):
                return True
            children: Any = part.values()
        elif isinstance(part, list | tuple):
            children = part
        else:
            continue
        if id(part) not in seen:
            seen.add(id(part))
            pending.extend(children)
    return False


def _is_secret_class(cls: Any) -> bool:
    return getattr(cls, "__module__", "") == "pydantic.types" and cls.__name__ == "SecretStr"
