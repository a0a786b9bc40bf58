"""An invalid setting, before it is known whether it came from `cdk.json` or from Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.errors import HoldfastError


class Unfit(Exception):  # noqa: N818  # it never leaves `holdfast.infra`
    """A setting has an invalid value. `key` names it, such as `functions.worker.memory_mb`."""

    def __init__(self, key: str, found: object, expected: str) -> None:
        super().__init__(key)
        self.key = key
        self._sentence = f"`{key}` is {found!r}; expected {expected}"

    def in_context(self) -> HoldfastError:
        name = self.key.partition(".")[0]
        return HoldfastError(
            "HF401",
            f"context {self._sentence}",
            help=f"set `{name}` in cdk.json, or with `cdk deploy -c {name}=...`",
        )

    def in_construct(self, path: str) -> HoldfastError:
        name = self.key.partition(".")[0]
        return HoldfastError(
            "HF405",
            f"Holdfast {path}: {self._sentence}",
            help=f"correct `{name}=` where the app creates Holdfast(...), or leave it out",
        )


def read_object(key: str, value: object) -> Mapping[str, Any]:
    """Return the object in a context key, which may also be JSON text. Raises Unfit."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise Unfit(key, value, "a JSON object") from None
    if not isinstance(value, Mapping):
        raise Unfit(key, value, "a JSON object")
    return value
