"""Random typed programs in the workflow language: every statement and type of the rules page."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.differential.blocks import BlockStatements
from tests.differential.branches import BranchStatements
from tests.differential.changes import ChangeStatements
from tests.differential.choices import Choices
from tests.differential.drawing import INDENT, Rows
from tests.differential.expressions import PARAMETERS
from tests.differential.graphs import graph
from tests.differential.parts import PartStatements
from tests.differential.talking import TalkStatements

HEADER: Final = (
    "from __future__ import annotations\n"
    "from tests.differential.baskets import *\n"
    "from tests.differential.shop import *\n\n\n"
)

_TIMED: Final = "@workflow(timeout=hours(30))"
_KEYED: Final = '@workflow(key="who")'

_COUNTED_INSIDE: Final = ("branches", "each", "race", "child", "scope", "compensate", "helper")


class Programs(BlockStatements, BranchStatements, ChangeStatements, PartStatements, TalkStatements):
    """Draws one program."""

    def statement(self, depth: int) -> tuple[Rows, bool]:
        simple = [self._assign, self._task, self._task, self._step, self._mutate, self._wait]
        simple += [self._change, self._change, self._fields, self._parts, self._habit]
        simple += [self._publish, self._send, self._start, self._tool]
        nested = [
            self._if,
            self._for,
            self._while,
            self._try,
            self._compensate,
            self._branches,
            self._each,
            self._race,
            self._scope,
            self._match,
            self._child,
            self._helper,
            self._receive,
        ]
        leaving = [self._leave] if depth < 2 and not self._must_stay else []
        made = self.choices.pick([*simple, *(nested if depth > 0 else []), *leaving])
        name = made.__name__.removeprefix("_")
        self.counts[name] += 1
        if name in _COUNTED_INSIDE:
            self.counts.update(f"{name} in {part}" for part in set(self._around))
        return made(depth - 1)


def program(choices: Choices, counts: Counter[str] | None = None) -> str:
    """The source of `flow`, which returns everything it can see at its end."""
    counted: Counter[str] = Counter() if counts is None else counts
    if choices.chance(5):
        counted["graph"] += 1
        return graph(choices, counted)
    programs = Programs(choices, counted)
    bound = choices.pick(["@workflow", "@workflow", _TIMED, _KEYED])
    counted["workflow timeout"] += bound == _TIMED
    counted["keyed workflow"] += bound == _KEYED
    depth = choices.pick([2, 2, 2, 3])
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in PARAMETERS.items())
    parameters = f"who: str, {parameters}, rounds: int = 0"
    rows: Rows = []
    falls = True
    for _ in range(2 + choices.below(3)):
        made, falls = programs.statement(depth)
        rows += [INDENT + row for row in made]
        if not falls:
            break
    if falls and choices.chance(25):
        counted["again"] += 1
        names = ", ".join(PARAMETERS)
        rows += [f"    if rounds > 0 and {programs.e('bool', 1)}:"]
        rows += [f"        return again(who, {names}, rounds=rounds - 1)"]
    if falls:
        # A dict of all sorts of values holds no durations that were computed.
        visible = [f'"{name}": {name}' for name in PARAMETERS if name != "grace"]
        visible.append('"grace": grace.total_seconds()')
        rows += [f"    return {{{', '.join(visible)}}}"]
    return "\n".join([bound, f"def flow({parameters}) -> Any:", *rows, ""])
