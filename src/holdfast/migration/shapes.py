"""The comparison of JSON forms of variables, as `compiler/shapes.py` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

#: The form of an unknown value, and the form of a value that cannot exist.
_ANY: Final = "unknown"
_NEVER: Final = "nothing"


@dataclass
class ShapeComparison:
    """Compares the forms of two definitions. `seen` are pairs of models that were already compared:
    a model may contain itself.
    """

    old: Mapping[str, Any]
    new: Mapping[str, Any]
    seen: set[tuple[str, str]] = field(default_factory=set)

    def misfit(self, name: str, to: str) -> str | None:
        """Return why values of the old variable do not have the form of the new one; None when they
        do. A map of an older release has no forms; then nothing is known, and the result is None.
        """
        before = self.old.get("variables", {}).get(name)
        after = self.new.get("variables", {}).get(to)
        if before is None or after is None:
            return None
        return self._misfit(before, after, f"`{to}`")

    def _misfit(self, before: Any, after: Any, where: str) -> str | None:
        if _ANY in (before, after) or before == _NEVER:
            return None
        if isinstance(before, dict) and "any" in before:
            found = (self._misfit(one, after, where) for one in before["any"])
            return next((why for why in found if why is not None), None)
        if isinstance(after, dict) and "any" in after:
            fits = any(self._misfit(before, one, where) is None for one in after["any"])
            return None if fits else f"{where} was {_said(before)} and is {_said(after)}"
        if isinstance(before, dict) and isinstance(after, dict):
            return self._parts(before, after, where)
        if before == after or (before, after) == ("int", "float"):
            return None
        if after == "str" and isinstance(before, dict) and "text" in before:
            return None
        return f"{where} was {_said(before)} and is {_said(after)}"

    def _parts(self, before: dict[str, Any], after: dict[str, Any], where: str) -> str | None:
        ((kind, of),), ((other, to),) = before.items(), after.items()
        match kind, other:
            case "model", "model":
                return self._models(of, to, where)
            case "text", "text":
                gone = sorted(set(of) - set(to))
                return f"{where} may be {gone[0]!r}, which is no longer a value" if gone else None
            case ("list", "list") | ("dict", "dict") | ("dict by int", "dict by int"):
                return self._misfit(of, to, f"an item of {where}")
            case "tuple", "tuple" if len(of) == len(to):
                pairs = zip(of, to, strict=True)
                found = (self._misfit(one, two, f"a part of {where}") for one, two in pairs)
                return next((why for why in found if why is not None), None)
            case _:
                return f"{where} was {_said(before)} and is {_said(after)}"

    def _models(self, before: str, after: str, where: str) -> str | None:
        if (before, after) in self.seen:
            return None
        self.seen.add((before, after))
        had, wanted = self.old["models"][before], self.new["models"][after]
        for name, form in wanted.items():
            if name not in had:
                return f"{where} has no field `{name}`"
            why = self._misfit(had[name], form, f"`{name}` of {where}")
            if why is not None:
                return why
        return None


def _said(form: Any) -> str:
    """Return the form in words."""
    if isinstance(form, str):
        return form
    ((kind, of),) = form.items()
    match kind:
        case "model":
            return str(of)
        case "any":
            return " or ".join(map(_said, of))
        case "text":
            return "one of some texts"
        case _:
            return f"a {kind}"
