"""Statements that hold others, of one line of control."""

from __future__ import annotations

import re
from typing import Final

from tests.differential.drawing import INDENT, Rows
from tests.differential.expressions import ELEMENTS
from tests.differential.simple import SimpleStatements

_ALL_ERRORS: Final = ("Small", "Problem", "Other", "TaskError", "Exception")


#: The type of the subject, its arms, and the names that each arm binds.
_MATCHES: Final = (
    ("int", ("0", "1 | 2", "-3")),
    ("str", ('"a"', '"k" | "b"')),
    ("Colour", ("Colour.RED",)),
    ("Size", ("Size.S", "Size.L")),
    ("str | None", ("None", '"a"')),
    ("bool", ("True",)),
    ("Line", ('Line(sku="a")', "Line(qty=0 | 1)")),
    ("Line", ("Line(sku=~str, qty=2)", "Line(qty=~int)")),
    ("Level", ("Level.LOW", "Level.HIGH")),
    ("list[int]", ("[]", "[~int, 1]", "[~int, *~list[int]]")),
    ("list[str]", ('["a", ~str]', "[_]")),
    ("Card | Transfer", ("Card(digits=~str)", "Transfer() as ~Transfer")),
    (
        "Line | Transfer | str | None",
        ("Line(qty=~int)", "str(~str)", "Transfer(iban='a')", "Transfer() as ~Transfer", "None"),
    ),
    ("Line | Transfer | str | None", ("str() | None", "Line() as ~Line")),
    ("int", ("0", "~int if b")),
    ("dict[str, int]", ('{"a": ~int}', '{"k": 0 | 2, **~dict[str, int]}', "{}")),
    ("dict[str, Any]", ('{"k": True, "a": str(~str)}', '{"k": int(~int), "a": _}')),
    ("dict[str, Any]", ('{"a": 7 | "x"}', '{"": None}')),
    ("Any", ("str(~str)", '{"a": 1 | 2}', "bool()", "int(~int)", "list() | None")),
)
_NAMED: Final = re.compile(r"~(\w+(?:\[[^]]*\])?)")


class BlockStatements(SimpleStatements):
    """Choices, loops, and parts with a rule of their own."""

    def _if(self, depth: int) -> tuple[Rows, bool]:
        test = self.e("bool", 3) if self.choices.chance(80) else f"echo({self.e('int', 0)}) > 1"
        rows = [f"if {test}:"]
        body, falls = self.block(depth)
        rows += body
        if self.choices.chance(30):
            body, others = self.block(depth)
            rows += [f"elif {self.e('bool')}:", *body]
            falls = falls or others
        if self.choices.chance(50):
            body, others = self.block(depth)
            return [*rows, "else:", *body], falls or others
        return rows, True

    def _looping(self, depth: int) -> Rows:
        was, self._in_loop = self._in_loop, True
        rows, _ = self.block(depth)
        self._in_loop = was
        return rows

    def _else(self, depth: int) -> Rows:
        if not self.choices.chance(20):
            return []
        self.counts["loop else"] += 1
        was, self._must_stay = self._must_stay, True
        rows, _ = self.block(depth)
        self._must_stay = was
        return ["else:", *rows]

    def _for(self, depth: int) -> tuple[Rows, bool]:
        kept = dict(self.expressions.variables)
        source = self.choices.pick(list(ELEMENTS))
        items = self.e(source, 1)
        name = self.expressions.new_name()
        heads = [
            (f"for {name} in {items}:", ELEMENTS[source]),
            (f"for {name} in range({self.e('int', 0)} % 4):", "int"),
            (f"for {name}, _ in enumerate({items}):", "int"),
            (f"for _, {name} in zip({self.e('list[int]', 1)}, {items}):", ELEMENTS[source]),
            (f"for {name} in {self.e('dict[str, int]', 1)}:", "str"),
            (f"for _, {name} in {self.e('dict[str, int]', 1)}.items():", "int"),
            (f"for {name} in order_of({self.e('int', 0)}).lines:", "Line"),
            (f"for {name} in range(3, {self.e('int', 0)}, -2):", "int"),
        ]
        head, type_ = self.choices.pick(heads)
        self._own(name, type_)
        rows = [head, *self._looping(depth)]
        self.expressions.variables = kept
        return [*rows, *self._else(depth)], True

    def _while(self, depth: int) -> tuple[Rows, bool]:
        count = self.expressions.new_name()
        test = self.choices.pick(
            [
                f"{count} < 3",
                f"{count} < 2 and {self.e('bool', 1)}",
                f"echo({count}) < 3",
                f"echo({count}) + {count} < {self.e('int', 0)}",
            ]
        )
        rows = [f"{count} = 0", f"while {test}:", f"    {count} += 1", *self._looping(depth)]
        return [*rows, *self._else(depth)], True

    def _try(self, depth: int) -> tuple[Rows, bool]:
        body, body_falls = self.block(depth)
        rows = ["try:", f"    echo({self.e('int', 0)})", *body]
        has_finally = self.choices.chance(35)
        if self.choices.chance(15):
            # It changes nothing, wherever it stands.
            rows += ["except BlockTimeout:", "    raise"]
        falls = False
        count = self.choices.below(3) if has_finally else 1 + self.choices.below(2)
        for name in sorted(
            {self.choices.pick(_ALL_ERRORS) for _ in range(count)}, key=_ALL_ERRORS.index
        ):
            is_named = self.choices.chance(50) and name != "Exception"
            handler, handler_falls = self.block(depth)
            head = f"except {name} as err:" if is_named else f"except {name}:"
            rows += [head, *([INDENT + 'say(f"{err}")'] if is_named else [])]
            if self.choices.chance(20):
                again = ["raise"]
                if is_named:
                    again += ['raise Other(f"{err}") from err', "raise Small(str(err)) from None"]
                rows += [INDENT + self.choices.pick(again)]
            else:
                rows += handler
                falls = falls or handler_falls
            self.counts["except"] += 1
        has_handlers = len(rows) > len(body) + 2
        if body_falls and has_handlers and self.choices.chance(30):
            self.counts["try else"] += 1
            other, body_falls = self.block(depth)
            rows += ["else:", *other]
        if has_finally:
            self.counts["finally"] += 1
            was = self._in_loop, self._must_stay
            self._in_loop, self._must_stay = False, True
            with self.within("finally"):
                last, _ = self.block(depth, at_most=2)
            self._in_loop, self._must_stay = was
            rows += ["finally:", *last]
        return rows, falls or body_falls

    def _compensate(self, depth: int) -> tuple[Rows, bool]:
        undo = self.expressions.new_name().replace("v", "undo")
        mode = self.choices.pick(["", "", 'on_undo_failure="stop"'])
        self.counts["on_undo_failure"] += bool(mode)
        around = f"timeout({self._time_out()}), " if self.choices.chance(15) else ""
        rows = [f"with {around}compensating({mode}) as {undo}:"]
        rows += [f"    {undo}(undo_it, {self.e('int', 1)})"]
        kept = dict(self.expressions.variables)
        for _ in range(1 + self.choices.below(2)):
            with self.within("compensating"):
                made, falls = self.statement(depth)
            rows += [INDENT + row for row in made]
            if not falls:
                self.expressions.variables = kept
                return rows, False
            rows += [f"    {undo}({self._taking_back()})"]
        self.expressions.variables = kept
        return rows, True

    def _taking_back(self) -> str:
        """Return the function of an undo step, and its arguments."""
        number = self.e("int", 1)
        return self.choices.pick(
            [
                f"undo_it, {number}",
                f"undo_it, {number}",
                f"echo, {number}",
                f"part, {number}",
                f"picky_part, {number}",
                f'send, "note", {number}, key="k"',
                f"start, part, {number}, s",
            ]
        )

    def _scope(self, depth: int) -> tuple[Rows, bool]:
        if self.choices.chance(35):
            self.counts["shielded"] += 1
            with self.within("shielded"):
                rows, falls = self.block(depth)
            return ["with shielded():", *rows], falls
        self.counts["timeout"] += 1
        bound = self.choices.pick(["minutes(5)", "seconds(2)", "hours(3)", "grace"])
        if self.choices.chance(30):
            bound = self._time_out()
        with self.within("timeout"):
            rows, falls = self.block(depth)
        rows = [f"with timeout({bound}):", *rows]
        if self.choices.chance(50):
            caught = self.choices.pick(["BlockTimeout", "WaitTimeout"])
            indented = [INDENT + row for row in rows]
            handler, handler_falls = self.block(depth)
            return ["try:", *indented, f"except {caught}:", *handler], falls or handler_falls
        return rows, falls

    def _match(self, depth: int) -> tuple[Rows, bool]:
        kind, arms = self.choices.pick(_MATCHES)
        rows = [f"match {self.choices.pick(self.expressions.names_of(kind))}:"]
        falls = False
        for arm in arms:
            kept = dict(self.expressions.variables)
            pattern = _NAMED.sub(lambda named: self._declare(named.group(1)), arm)
            if " if " not in arm and self.choices.chance(20):
                pattern += f" if {self.e('bool', 1)}"
            body, body_falls = self.block(depth)
            rows += [f"    case {pattern}:", *(INDENT + row for row in body)]
            falls = falls or body_falls
            self.expressions.variables = kept
        body, body_falls = self.block(depth)
        return [*rows, "    case _:", *(INDENT + row for row in body)], falls or body_falls
