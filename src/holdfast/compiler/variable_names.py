"""The names of ASL variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

#: A variable with one of these names would hide the JSONata function of that name in every
#: expression.
_JSONATA_NAMES: Final = frozenset(
    """
    abs append assert average base64decode base64encode boolean ceil clone contains count
    decodeUrl decodeUrlComponent distinct each encodeUrl encodeUrlComponent error eval exists
    filter floor formatBase formatInteger formatNumber fromMillis hash join keys length lookup
    lowercase map match max merge millis min not now number pad parse parseInteger partition
    power random range reduce replace reverse round shuffle sift single sort split spread sqrt
    string substring substringAfter substringBefore sum toMillis trim type uppercase uuid zip
    states
    """.split()  # noqa: SIM905 - forty words read better than forty quotes
)


#: ASL allows 80 characters for the name of a variable. The rest is for a number that makes the name
#: unique.
_STEM_CHARACTERS_MAX: Final = 72


def _identifier(wanted: str) -> str:
    """Return a valid identifier. A task may have any name: `bank.pay_result` gives
    `bank_pay_result`.
    """
    if wanted.isidentifier():
        return wanted
    stem = re.sub(r"\W", "_", wanted)
    return stem if stem.isidentifier() else f"of_{stem}"


class VariableScopeNames:
    """The ASL variables of a workflow or a branch, and their names.

    In ASL a branch must not assign a name that exists outside of it, and the parameter of a JSONata
    function hides a variable. So a name is used once among a scope, the scopes around it, and those
    inside it. A local function runs in the scope `parent`, but reads the names of the scope in
    which it is defined.

    `is_inlined`: the body of a helper. Its variables are assigned among those of its caller, and
    may be read after a second call of the helper. So the caller's scope gives them their names.
    """

    def __init__(
        self,
        parent: VariableScopeNames | None,
        local_names: Iterable[str],
        sees: VariableScopeNames | None = None,
        *,
        is_inlined: bool = False,
    ) -> None:
        self.parent = parent
        self.is_inlined = is_inlined
        self.sees = parent if sees is None else sees
        #: The names that Python treats as local to this scope, in source order. A name is local
        #: even before its first assignment.
        self.local_names = dict.fromkeys(local_names)
        self.children: list[VariableScopeNames] = []
        self.given: dict[object, str] = {}
        #: The names that this scope, a scope around it, or one inside it has assigned.
        self.taken: set[str] = set()
        for ancestor in self._ancestors():
            self.taken.update(ancestor.given.values())
        if parent is not None:
            parent.children.append(self)

    def is_local(self, name: str) -> bool:
        """Return True when `name` belongs to this function or one around it, and not to the
        module.
        """
        scope: VariableScopeNames | None = self
        while scope is not None:
            if name in scope.local_names:
                return True
            scope = scope.sees
        return False

    def name(self, wanted: str, key: object = None) -> str:
        """Return a free name similar to `wanted`; for the same `key` always the same one."""
        key = wanted if key is None else key
        if self.is_inlined and self.parent is not None:
            return self.parent.name(wanted, (self, key))
        if key not in self.given:
            self.given[key] = found = self._free(wanted)
            for scope in (self, *self._ancestors(), *self._descendants()):
                scope.taken.add(found)
        return self.given[key]

    @property
    def frame(self) -> VariableScopeNames:
        """Return the scope of the workflow or branch to which these variables belong."""
        return self.parent.frame if self.is_inlined and self.parent is not None else self

    def _free(self, wanted: str) -> str:
        # On AWS a variable must start with a letter.
        stem = _identifier(wanted)[:_STEM_CHARACTERS_MAX].strip("_") or "unused"
        if stem in _JSONATA_NAMES:
            stem = f"{stem}_value"
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        return name

    def _ancestors(self) -> Iterator[VariableScopeNames]:
        ancestor = self.parent
        while ancestor is not None:
            yield ancestor
            ancestor = ancestor.parent

    def _descendants(self) -> Iterator[VariableScopeNames]:
        pending = list(self.children)
        while pending:
            scope = pending.pop()
            yield scope
            pending.extend(scope.children)
