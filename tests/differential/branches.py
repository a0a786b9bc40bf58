"""Lines of control side by side: `parallel`, `first`, `each`."""

from __future__ import annotations

from tests.differential.drawing import Drawing, Rows
from tests.differential.expressions import ELEMENTS


class BranchStatements(Drawing):
    """`parallel`, `first`, `each`."""

    def _branch(self, depth: int, parameter: str | None, type_: str | None) -> tuple[str, Rows]:
        """A `def` that begins with a durable call: what begins together is ordered by time."""
        name = self.expressions.new_name().replace("v", "branch")
        kept = dict(self.expressions.variables), self._assignable, self._in_loop, self._must_stay
        self._assignable, self._in_loop, self._must_stay = set(), False, False
        if parameter is not None and type_ is not None:
            self.expressions.variables[parameter] = type_
        began = self.expressions.new_name()
        rows = [f"    {began} = echo({self.e('int', 0)})"]
        self._own(began, "int")
        body, falls = self._open_block(depth)
        rows += body
        if falls:
            rows += [f"    return {self.e('int', 1)}"]
        self.expressions.variables, self._assignable, self._in_loop, self._must_stay = kept
        signature = f"{parameter}: {type_}" if parameter is not None else ""
        return name, [f"def {name}({signature}) -> int:", *rows]

    def _helper(self, depth: int) -> tuple[Rows, bool]:
        """A local `def` that is called as a function: alone, twice, and where it may not run."""
        name, rows = self._branch(depth, self.expressions.new_name(), "int")
        one, other = self.e("int", 1), self.e("int", 1)
        call = self.choices.pick(
            [
                f"{name}({one})",
                f"{name}({one}) + {name}({other})",
                f"len([{name}({one}), echo({other})])",
                f"({name}({one}) if {self.e('bool', 1)} else {other}) + 1",
                f"{name}({one}) or {name}({other})",
                f"labelled({name}({one}), {self.e('list[Line]', 1)})",
                f"settled({one}, {self.e('list[Line]', 1)})",
                f"spread({name}({one}), {other}, *{self.name('list[int]')}, 1)",
                f"{name}({one}) + Line.first_of({self.name('list[Line]')}).qty",
            ]
        )
        if self.choices.chance(30):
            test = f"{self.e('bool', 1)} and {name}({one}) > 1"
            body, _ = self.block(depth)
            return [*rows, f"if {test} or echo({other}) > 2:", *body], True
        return [*rows, self._assigned("int", call)], True

    def _branch_text(self, depth: int) -> tuple[str, Rows]:
        kind = self.choices.below(10)
        if kind < 4:
            return f"lambda: echo({self.e('int', 1)})", []
        if kind == 4:
            call = self.choices.pick(["picky_part", "graph_part", "late_part"])
            given = {"graph_part": f"number={self.name('int')}, name=s", "late_part": "grace"}
            return f"lambda: {call}({given.get(call, self.name('int'))})", []
        return self._branch(depth, None, None)

    def _branches(self, depth: int) -> tuple[Rows, bool]:
        made = [self._branch_text(depth) for _ in range(2 + self.choices.below(2))]
        rows = [row for _, body in made for row in body]
        texts = ", ".join(text for text, _ in made)
        if self.choices.chance(25):
            self.counts["parallel concurrency"] += 1
            texts += f", concurrency={1 + self.choices.below(2)}"
        if self.choices.chance(35):
            limits = self._limits(len(made))
            name = self.expressions.new_name()
            rows += [f"{name} = parallel({texts}, {limits})"]
            total = self._declare("int")
            return [*rows, f"{total} = len([one for one in {name} if one is not None])"], True
        if self.choices.chance(25):
            self.counts["parallel return_exceptions"] += 1
            name = self.expressions.new_name()
            limits = self._partial(len(made))
            rows += [f"{name} = list(parallel({texts}{limits}, return_exceptions=True))"]
            return self._outcomes(name, rows), True
        names = ", ".join(self._declare("int") for _ in made)
        return [*rows, f"{names} = parallel({texts}{self._late()})"], True

    def _limits(self, count: int) -> str:
        limits = self.choices.pick([("at_least",), ("tolerate",), ("at_least", "tolerate")])
        self.counts[" and ".join(limits)] += 1
        numbers = {"at_least": 1 + self.choices.below(count), "tolerate": self.choices.below(count)}
        if self.choices.chance(30):
            self.counts["computed limit"] += 1
            computed = self.choices.pick(list(limits))
            return ", ".join(
                f"{name}={self.name('int') if name == computed else numbers[name]}"
                for name in limits
            )
        return ", ".join(f"{name}={numbers[name]}" for name in limits)

    def _partial(self, count: int) -> str:
        """Return limits for a call that returns its errors, or nothing."""
        if not self.choices.chance(50):
            return ""
        self.counts["partial results"] += 1
        return f", {self._limits(count)}"

    def _late(self) -> str:
        if not self.choices.chance(25):
            return ""
        self.counts["cancel_others"] += 1
        return ", cancel_others=False"

    def _outcomes(self, name: str, rows: Rows) -> Rows:
        """Read a list of results and errors."""
        wanted = self.choices.pick(["Exception", "Problem", "(Small, Other)", "BranchCancelled"])
        other = self.expressions.new_name()
        raised = self.choices.pick(["", "Exception", "Coded"])
        if raised:
            rows += [f"for {other} in {name}:", f"    if isinstance({other}, {raised}):"]
            rows += [f"        raise {other}"]
        rows += [f"{other} = len([one for one in {name} if isinstance(one, {wanted})])"]
        total = self._declare("list[int]")
        kept = f"[one for one in {name} if not isinstance(one, Exception)]"
        return [*rows, f"{total} = [{other}, *{kept}]"]

    def _race(self, depth: int) -> tuple[Rows, bool]:
        made = [self._branch_text(depth) for _ in range(2 + self.choices.below(2))]
        rows = [row for _, body in made for row in body]
        texts = [text for text, _ in made]
        if self.choices.chance(40):
            texts[-1] = 'lambda: wait_for_event("race", int, key="race", timeout=days(1))'
        return [*rows, self._assigned("int", f"first({', '.join(texts)})")], True

    def _each(self, depth: int) -> tuple[Rows, bool]:
        source = self.choices.pick(["list[int]", "list[Line]", "list[str]"])
        items = self.e(source, 1)
        type_ = ELEMENTS[source]
        batch = self.choices.pick(["", "", ", batch=2"])
        if batch:
            type_ = source
            self.counts["batch"] += 1
        if not batch and self.choices.chance(30):
            return self._each_of_pairs(items), True
        name, rows = self._branch(depth, self.expressions.new_name(), type_)
        concurrency = self.choices.pick(["", ", concurrency=1", ", concurrency=2"])
        limit = self.choices.pick(["", "", "some", "some", "return_exceptions"])
        if limit == "return_exceptions":
            self.counts["each return_exceptions"] += 1
            found = self.expressions.new_name()
            limits = self._partial(2)
            call = f"each({items}, {name}{batch}{concurrency}{limits}, return_exceptions=True)"
            return self._outcomes(found, [*rows, f"{found} = {call}"]), True
        if limit:
            found = self.expressions.new_name()
            call = f"each({items}, {name}{batch}{concurrency}, {self._limits(3)})"
            total = self._declare("list[int]")
            return [
                *rows,
                f"{found} = {call}",
                f"{total} = [one for one in {found} if one is not None]",
            ], True
        total = self._declare("list[int]")
        return [*rows, f"{total} = each({items}, {name}{batch}{concurrency}{self._late()})"], True

    def _each_of_pairs(self, items: str) -> Rows:
        """Pass the parts of each item as arguments."""
        self.counts["each of pairs"] += 1
        number, other, total = (self.expressions.new_name() for _ in range(3))
        echoed = f"lambda {number}, {other}: echo({number})"
        numbers = self.name("list[int]")
        call = self.choices.pick(
            [
                f"each(enumerate({items}), {echoed})",
                f"each(zip({numbers}, {items}), {echoed})",
                f"each(enumerate({numbers}), lambda {other}: spread(*{other}, *[1], 2))",
            ]
        )
        self._own(total, "list[int]")
        return [f"{total} = {call}"]
