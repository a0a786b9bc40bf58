"""Statements that talk: published values, sent events, detached starts, requests, chosen tasks."""

from __future__ import annotations

from tests.differential.drawing import INDENT, Drawing, Rows


class TalkStatements(Drawing):
    """What a workflow says to others, and what others ask it."""

    def _publish(self, _depth: int) -> tuple[Rows, bool]:
        name = self.choices.pick(["status", "total", "found"])
        type_ = self.choices.pick(["int", "str", "list[int]", "Line", "str | None"])
        return [f'publish("{name}", {self.e(type_)})'], True

    def _send(self, _depth: int) -> tuple[Rows, bool]:
        type_ = self.choices.pick(["int", "str", "Line", "list[Line]"])
        return [f'send("note", {self.e(type_)}, key={self.e("str", 1)}{self._later()})'], True

    def _later(self) -> str:
        """Return the time of a later command, for some of them."""
        if not self.choices.chance(30):
            return ""
        time = self.choices.pick(["minutes(5)", "seconds(90)", "grace", self.e("timedelta", 1)])
        return f", delay={time}"

    def _start(self, _depth: int) -> tuple[Rows, bool]:
        call = self.choices.pick(
            [f"part, {self.e('int', 1)}, s", f"picky_part, {self.e('int', 1)}"]
        )
        call = f"start({call}{self._later()})"
        name = self._declare("str")
        rows = [f"{name} = {call}"]
        return [*rows, f"stop({name})"] if self.choices.chance(30) else rows, True

    def _tool(self, _depth: int) -> tuple[Rows, bool]:
        """A name that no task has is an error of the expression. The name is no call: the compiler
        refuses a name that needs a step.
        """
        name = self.choices.pick(['"echo"', '"flaky"', '"beating"', self.e("str", 0)])
        return [self._assigned("int", f"TOOLS[{name}](value={self.e('int', 1)})")], True

    def _receive(self, depth: int) -> tuple[Rows, bool]:
        """Each way through the block ends with a reply or an error."""
        type_ = self.choices.pick(["int", "Line", "Card | Transfer"])
        request = self.expressions.new_name().replace("v", "request")
        rows = [f'with receive("ask {type_}", {type_}, key={self.e("str", 1)}) as {request}:']
        kept = dict(self.expressions.variables)
        was, self._must_stay = self._must_stay, True
        data = self.expressions.new_name()
        rows.append(f"{INDENT}{data} = {request}.data")
        self._own(data, type_)
        if self.choices.chance(50):
            with self.within("receive"):
                made, _ = self.statement(min(depth, 1))
            rows += [INDENT + row for row in made]
        if self.choices.chance(30):
            error = self.choices.pick(["Small", "Other"])
            rows += [f"    if {self.e('bool', 1)}:", f"        raise {error}(s)"]
        answer = self.e(self.choices.pick(["int", "str", "list[int]", "Line"]))
        if self.choices.chance(30):
            other = f"        {request}.reply({self.e('str', 1)})"
            rows += [f"    if {self.e('bool', 1)}:", other, "    else:"]
            rows.append(f"        {request}.reply({answer})")
        else:
            rows.append(f"    {request}.reply({answer})")
        self._must_stay = was
        self.expressions.variables = kept
        return rows, True
