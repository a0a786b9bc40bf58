"""One execution with its history as one line of JSON: the form of `holdfast export` and of the
archive. docs/how-to/export.md describes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

_FIELDS: Final = (
    *("execution", "name", "workflow", "definition", "status", "started", "stopped"),
    *("error", "cause", "parent"),
)
#: The fields that are written as a text of JSON. A table for Athena needs the same type for a field
#: of all workflows, and these values may have any type.
_TEXTS: Final = ("input", "output")


def line_of(shown: Mapping[str, Any], events: Sequence[Mapping[str, Any]], exported: str) -> str:
    """Return the line. `shown`: as `describe` gives it. `exported`: the time of the export."""
    line = {name: shown[name] for name in _FIELDS if shown.get(name) is not None}
    line["exported"] = exported
    for name in _TEXTS:
        if name in shown and name not in shown.get("omitted", ()):
            line[name] = json.dumps(shown[name], ensure_ascii=False)
    line["history"] = json.dumps(events, ensure_ascii=False)
    return json.dumps(line, ensure_ascii=False)


def read_line(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the description of the execution, and its events."""
    line = json.loads(text)
    texts = {name: json.loads(line[name]) for name in _TEXTS if name in line}
    return {name: line[name] for name in _FIELDS if name in line} | texts, json.loads(
        line["history"]
    )
