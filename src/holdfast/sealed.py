"""The text that replaces a secret in JSON: its form, and the text that people see instead.

`holdfast.secret.1.<key>.<base64url>.<bytes>`: the key that decrypts it, the encrypted secret, and
the length of the secret.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final, NamedTuple

_MARK: Final = "holdfast.secret.1."
_SEALED: Final = re.compile(
    re.escape(_MARK) + r"(?P<key>[A-Za-z0-9-]+)\.(?P<data>[A-Za-z0-9_-]+)\.(?P<size>[0-9]{1,4})"
)


class Sealed(NamedTuple):
    """An encrypted secret. `key` has letters, digits and hyphens; `size` is the secret's length in
    UTF-8 bytes.
    """

    key: str
    data: bytes
    size: int

    @property
    def text(self) -> str:
        data = base64.urlsafe_b64encode(self.data).decode().rstrip("=")
        return f"{_MARK}{self.key}.{data}.{self.size}"


def parse_sealed(text: str) -> Sealed | None:
    """Return the encrypted secret in the text; None for other text."""
    found = _SEALED.fullmatch(text) if text.startswith(_MARK) else None
    if found is None:
        return None
    data = found["data"]
    try:
        bytes_ = base64.urlsafe_b64decode(f"{data}{'=' * (-len(data) % 4)}")
    except ValueError:
        return None
    return Sealed(found["key"], bytes_, int(found["size"]))


def holds_sealed(value: Any) -> bool:
    """Return True when a text of the JSON is a sealed secret."""
    match value:
        case str():
            return parse_sealed(value) is not None
        case dict():
            return any(map(holds_sealed, value.values()))
        case list():
            return any(map(holds_sealed, value))
        case _:
            return False


def hidden(value: Any) -> Any:
    """Return the JSON with text such as `<secret 43 bytes>` in place of each secret, even inside of
    a text.
    """
    match value:
        case str():
            return _SEALED.sub(_shown, value) if _MARK in value else value
        case dict():
            return {hidden(key): hidden(item) for key, item in value.items()}
        case list() | tuple():
            return [hidden(item) for item in value]
        case _:
            return value


def _shown(found: re.Match[str]) -> str:
    return f"<secret {found['size']} bytes>"
