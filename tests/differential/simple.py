"""Statements that hold no others: assignments, calls, time, waits, ways out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.differential.drawing import Drawing, Rows
from tests.differential.expressions import TYPES

_PATIENT: Final = "slow_part.options(timeout=minutes(50), retry=Retry(max_attempts=2))"


class SimpleStatements(Drawing):
    """Assignments, calls, time, waits, ways out."""

    def _assign(self, _depth: int) -> tuple[Rows, bool]:
        kind = self.choices.below(12)
        if kind == 1:
            name = self._target("int")
            if name in self.expressions.variables:
                return [f"{name} {self.choices.pick(['+=', '-='])} {self.e('int')}"], True
        if kind == 2:
            values = self.e("int"), self.e("str")
            one, other = self._declare("int"), self._declare("str")
            return [f"{one}, {other} = {values[0]}, {values[1]}"], True
        if kind == 3:
            value = self.e("int")
            one, other = self._declare("int"), self._declare("int")
            return [f"{one} = {other} = {value}", f"{one}, {other} = {other}, {one}"], True
        if kind == 4:
            value = f"({self.e('int', 1)}, {self.e('int', 1)}), {self.e('str', 1)}"
            names = self._declare("int"), self._declare("int"), self._declare("str")
            return [f"({names[0]}, {names[1]}), {names[2]} = {value}"], True
        type_ = self.choices.pick(TYPES)
        value = self.e(type_, 3)
        if type_ == "str | None" or value in ("[]", "{}", "None"):
            name = self._declare(type_)
            return [f"{name}: {type_} = {value}"], True
        return [self._assigned(type_, value)], True

    def _task(self, _depth: int) -> tuple[Rows, bool]:
        makers: list[Callable[[], str]] = [
            lambda: self._assigned("int", f"echo({self.e('int')})"),
            lambda: f"say({self.e('str')})",
            lambda: self._assigned("int", f"flaky({self.e('int')})"),
            lambda: self._assigned("str", f"careful({self.e('str')}, loud={self.e('bool', 1)})"),
            lambda: self._assigned("str", f"upper({self.e('str')})"),
            lambda: self._assigned("int", f"total_of(lines, **{self.e('dict[str, int]', 1)})"),
            lambda: self._assigned("int", f"echo(**{{'value': {self.e('int')}}} | d)"),
            lambda: self._assigned("int", f"spent(**{self.e('Line')}.model_dump())"),
            lambda: self._assigned("int", f"spent({self.e('str', 1)}, **bag)"),
            lambda: self._assigned("int", f"total_of({self.e('list[Line]')})"),
            lambda: self._assigned("int", f"echo({self.e('int', 1)}) + echo({self.e('int', 0)})"),
            lambda: self._assigned("str", f"f'{{echo({self.name('int')})}} {{upper(s)}}'"),
            lambda: self._assigned("Order", f"order_of({self.e('int')})"),
            lambda: self._assigned("str | None", f"name_of({self.e('Order')})"),
            lambda: self._assigned("timedelta", f"patience({self.e('timedelta')})"),
            lambda: self._assigned("int", f"beating({self.e('int')})"),
            lambda: self._assigned("int", self._with_options(f"({self.e('int')})")),
        ]
        return [self.choices.pick(makers)()], True

    def _with_options(self, arguments: str) -> str:
        return self.choices.pick(
            [
                f"echo.options(timeout=minutes(2), retry=Retry(max_attempts=2)){arguments}",
                f'echo.options(retry=Retry(max_attempts=3, on=(Small,)), label="again"){arguments}',
                f"beating.options(heartbeat=seconds(10), timeout=minutes(10)){arguments}",
                f"flaky.options(timeout=seconds(5)){arguments}",
            ]
        )

    def _child(self, _depth: int) -> tuple[Rows, bool]:
        """A child workflow: one that is undone, one that fails, one that is late, a graph."""
        calls = [
            ("str", f"part({self.e('int')})"),
            ("str", f"part({self.e('int')}, name={self.e('str', 1)})"),
            ("int", f"slow_part({self.e('list[Line]', 1)})"),
            ("int", f"picky_part({self.e('int')})"),
            ("int", f"late_part({self.e('timedelta', 1)})"),
            ("int", f"graph_part(number={self.e('int')}, name={self.e('str', 1)})"),
            ("int", f"{_PATIENT}({self.e('list[Line]', 1)})"),
            ("int", f"picky_part.options(retry=Retry(on=(Small,)))({self.e('int')})"),
            ("str", f"part.options(timeout=seconds(30), label='in time')({self.e('int')})"),
            ("int", f"CHILDREN[{self._kind()}]({self.e('int')})"),
            ("int", f"CHILDREN[{self._kind()}](number={self.e('int', 1)})"),
        ]
        return [self._assigned(*self.choices.pick(calls))], True

    def _kind(self) -> str:
        """A name that no workflow has is an error of the expression."""
        return self.choices.pick(['"picky_part"', '"tidy_part"', self.e("str", 1)])

    def _step(self, _depth: int) -> tuple[Rows, bool]:
        """Time passes, or nothing at all."""
        makers: list[Callable[[], str]] = [
            lambda: f"sleep(seconds({1 + self.choices.below(90)}))",
            lambda: f"sleep(seconds({self.name('int')}))",
            lambda: f"sleep(minutes({self.e('int', 1)} - {self.name('int')}))",
            lambda: f"sleep_until({self.e('datetime')})",
            lambda: "sleep(minutes(5))",
            lambda: f"sleep({self.name('timedelta')} - {self.e('timedelta', 1)})",
            lambda: self.choices.pick(["sleep(grace)", "sleep(order.grace)"]),
            lambda: f"assert {self.e('bool')}, f'not {{{self.name('str')}}}'",
            lambda: "pass",
        ]
        return [self.choices.pick(makers)()], True

    def _mutate(self, _depth: int) -> tuple[Rows, bool]:
        """A list or dict that has one name is changed; then it is as any other."""
        value, first = self.e("int", 2), self.e("int", 1)
        line = self.e("Line", 1)
        name = self.expressions.new_name()
        kind, rows = self.choices.pick(
            [
                ("list[int]", [f"{name} = [{first}]", f"{name}.append({value})"]),
                ("list[int]", [f"{name} = [{first}]", f"{name}.extend([{value}, 0])"]),
                ("list[int]", [f"{name} = [{first}]", f"{name} += [{value}]"]),
                ("list[int]", [f"{name} = [{first}]", f"{name}[0] = {value}"]),
                ("list[int]", [f"{name} = [{first}, 2]", f"{name}[-1] -= {value}"]),
                ("list[int]", [f"{name} = list(xs)", f"{name}[{self.e('int', 0)}] = {value}"]),
                ("dict[str, int]", [f'{name} = {{"a": {first}}}', f'{name}["a"] += {value}']),
                (
                    "dict[str, int]",
                    [f'{name} = {{"a": {first}}}', f"{name}[{self.e('str', 1)}] = {value}"],
                ),
                ("dict[str, int]", [f"{name} = dict(d)", f'{name}["z"] = {value}']),
                ("list[Line]", [f"{name} = [line]", f"{name}.append({line})"]),
            ]
        )
        self._own(name, kind)
        return rows, True

    def _time_out(self) -> str:
        """Some of them are too short, which is an error of the expression."""
        if self.choices.chance(60):
            return self.choices.pick(["hours(1)", "days(2)"])
        return self.choices.pick([f"seconds({self.name('int')})", self.e("timedelta", 1)])

    def _wait(self, _depth: int) -> tuple[Rows, bool]:
        bound = f", timeout={self._time_out()}" if self.choices.chance(70) else ""
        key = self.e("str", 1)
        if self.choices.chance(50):
            name = self.expressions.new_name()
            rows = [f'{name} = wait_for_event("bank", Answer, key={key}{bound})']
            text = self._declare("str")
            return [*rows, f"{text} = {name}.note if {name}.yes else ''"], True
        if self.choices.chance(40):
            name, total = self.expressions.new_name(), self._declare("int")
            kind = self.choices.pick(["event", "ask"])
            call = {
                "event": f'wait_for_event("lines", list[Line], key={key}{bound})',
                "ask": f'ask("Which?", list[Line], assignee="ann"{bound})',
            }[kind]
            return [f"{name} = {call}", f"{total} = len({name})"], True
        call = f'ask(f"Sure about {{{self.name("str")}}}?", bool, assignee=role("a"){bound})'
        return [self._assigned("bool", call)], True

    def _leave(self, _depth: int) -> tuple[Rows, bool]:
        if self._in_loop and self.choices.chance(60):
            return [
                f"if {self.e('bool')}:",
                f"    {self.choices.pick(['break', 'continue'])}",
            ], True
        if self._assignable is None and self.choices.chance(40):
            return [
                self.choices.pick(["return n", "return grace", f"return echo({self.e('int', 1)})"])
            ], False
        if self._assignable is not None and self.choices.chance(40):
            return [f"return {self.e('int', 1)}"], False
        error = self.choices.pick(["Problem", "Small", "Other"])
        return [f"raise {error}(f'{{{self.name('str')}}}')"], False
