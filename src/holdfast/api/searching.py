"""The search attributes that a workflow declares. docs/how-to/find.md shows their use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.errors import WorkflowError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_PATH: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
ATTRIBUTES_MAX: Final = 8


def require_search(workflow: str, search: Mapping[str, str | type]) -> Mapping[str, str | type]:
    """Return the declaration. Raises WorkflowError HF153 for a name or path of another form."""
    if len(search) > ATTRIBUTES_MAX:
        found = f"has {len(search)} search attributes"
        raise _bad(workflow, found, f"at most {ATTRIBUTES_MAX}: each costs a write unit")
    for name, source in search.items():
        if not _NAME.fullmatch(name):
            expected = "1 to 40 of A-Z a-z 0-9 _, no digit first"
            raise _bad(workflow, f"has the search attribute {name!r:.60}", expected)
        is_path = isinstance(source, str) and _PATH.fullmatch(source)
        if not (is_path or isinstance(source, type)):
            expected = '"order.customer_id" for a field of the input, or a type such as str'
            raise _bad(workflow, f"has search={{{name!r}: {source!r:.60}}}", expected)
    return MappingProxyType(dict(search))


def _bad(workflow: str, found: str, expected: str) -> WorkflowError:
    return WorkflowError("HF153", f"the workflow {workflow} {found}", help=f"expected: {expected}")
