"""Reads the contents of a token and of a stored answer, without any secret."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holdfast.runtime.effects import Item
from holdfast.runtime.storage import keys

#: The fields of an error that histories keep.
_TEXTS: Final = ("error", "cause")


class TokenClaims(NamedTuple):
    """The execution and attempt of a token, and its expiry."""

    tenant: str
    run: str
    entry: int
    attempt: int
    expires_ms: int

    @property
    def place(self) -> tuple[str, str]:
        """Return the place of the first stored answer."""
        return keys.inbox(self.tenant, self.run), keys.answer(self.entry, self.attempt)


def ticket_of(token: str) -> TokenClaims:
    """Return the claims in a token. The signature is not checked."""
    text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    tenant, _, _, run, entry, attempt, expires, _ = text.split(".")
    return TokenClaims(tenant, run.replace("/", "."), int(entry), int(attempt), int(expires))


def says(item: Item, said: Mapping[str, Any]) -> bool:
    """Return True when the item contains that output, or that error and cause. Of a large value,
    which is in a blob, only the presence is checked.
    """
    if "ref" in item:
        return "output" in said
    if "v" in item:
        return "output" in said and bool(json.loads(str(item["v"])) == said["output"])
    return all((item.get(text) or "") == (said.get(text) or "") for text in _TEXTS)
