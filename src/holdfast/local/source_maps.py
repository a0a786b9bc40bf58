"""The map of a definition: the place in the Python source of each of its states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from holdfast.asl.json_text import JsonDepthError, JsonTextError, read_json
from holdfast.asl.parsing.parse import definition_hash
from holdfast.asl.program import Json

_DEFINITION: Final = ".asl.json"


def machine_name(path: Path) -> str:
    """Return the name of the machine: "orders" for `orders.asl.json` and `orders.json`."""
    return path.name.removesuffix(_DEFINITION).removesuffix(".json")


def find_source_map(path: Path, definition: Json) -> dict[str, Any] | None:
    """Return `<name>.map.json` for `<name>.asl.json`, if it belongs to exactly this definition.

    The lines of another map would be wrong. Without lines, a state still has its name.
    """
    if not path.name.endswith(_DEFINITION):
        return None
    try:
        text = path.with_name(f"{machine_name(path)}.map.json").read_text(encoding="utf-8")
        found = read_json(text)
    except (OSError, UnicodeDecodeError, JsonTextError, JsonDepthError):
        return None
    if isinstance(found, dict) and found.get("definition") == definition_hash(definition):
        return found
    return None
