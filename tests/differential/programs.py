"""Random typed programs in the workflow language: every statement and type of the rules page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.differential.choices import Choices
from tests.differential.expressions import ELEMENTS, PARAMETERS, TYPES, Expressions

Rows = list[str]
_INDENT: Final = "    "
_ALL_ERRORS: Final = ("Small", "Problem", "Other", "TaskError", "Exception")


class Programs:
    """Draws one program. A statement gives its rows, and whether control comes out at its end."""

    def __init__(self, choices: Choices, counts: Counter[str]) -> None:
        self.choices = choices
        self.counts = counts
        self.expressions = Expressions(choices, counts)
        self._in_loop = False
        #: In a `finally` or the `else` of a loop: nothing leaves it, so what follows is reached.
        self._must_stay = False
        #: Inside a branch only its own variables may be assigned.
        self._assignable: set[str] | None = None

    def e(self, type_: str, depth: int = 2) -> str:
        return self.expressions.draw(type_, depth)

    def name(self, type_: str) -> str:
        return self.expressions.name(type_)

    # -- variables ---------------------------------------------------------------------------------

    def _declare(self, type_: str) -> str:
        name = self.expressions.new_name()
        self._own(name, type_)
        return name

    def _own(self, name: str, type_: str) -> None:
        self.expressions.variables[name] = type_
        if self._assignable is not None:
            self._assignable.add(name)

    def _target(self, type_: str) -> str:
        """A variable to assign: one that is there, or a new one."""
        there = [
            name
            for name in self.expressions.names_of(type_)
            if self._assignable is None or name in self._assignable
        ]
        if there and self.choices.chance(60):
            return self.choices.pick(there)
        return self.expressions.new_name()

    def _assigned(self, type_: str, value: str) -> str:
        name = self._target(type_)
        self._own(name, type_)
        return f"{name} = {value}"

    # -- blocks ------------------------------------------------------------------------------------

    def block(self, depth: int, *, at_most: int = 3) -> tuple[Rows, bool]:
        rows: Rows = []
        kept = dict(self.expressions.variables)
        falls = True
        for _ in range(1 + self.choices.below(at_most)):
            made, falls = self.statement(depth)
            rows += made
            if not falls:
                break
        self.expressions.variables = kept
        return [_INDENT + row for row in rows], falls

    def statement(self, depth: int) -> tuple[Rows, bool]:
        simple = [self._assign, self._task, self._task, self._step, self._mutate, self._wait]
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
        ]
        leaving = [self._leave] if depth < 2 and not self._must_stay else []
        made = self.choices.pick([*simple, *(nested if depth > 0 else []), *leaving])
        self.counts[made.__name__.removeprefix("_")] += 1
        return made(depth - 1)

    # -- simple statements -------------------------------------------------------------------------

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
            lambda: self._assigned("int", f"total_of({self.e('list[Line]')})"),
            lambda: self._assigned("int", f"echo({self.e('int', 1)}) + echo({self.e('int', 0)})"),
            lambda: self._assigned("str", f"f'{{echo({self.name('int')})}} {{upper(s)}}'"),
            lambda: self._assigned("str", f"part({self.e('int')})"),
            lambda: self._assigned("str", f"part({self.e('int')}, name={self.e('str', 1)})"),
            lambda: self._assigned("int", f"slow_part({self.e('list[Line]', 1)})"),
            lambda: self._assigned("Order", f"order_of({self.e('int')})"),
            lambda: self._assigned("str | None", f"name_of({self.e('Order')})"),
            lambda: self._assigned(
                "int",
                f"echo.options(timeout=minutes(2), retry=Retry(max_attempts=2))({self.e('int')})",
            ),
        ]
        return [self.choices.pick(makers)()], True

    def _step(self, _depth: int) -> tuple[Rows, bool]:
        """Time passes, or something is assigned in place."""
        makers: list[Callable[[], str]] = [
            lambda: f"sleep(seconds({1 + self.choices.below(90)}))",
            lambda: f"sleep(seconds(abs({self.e('int', 1)}) + 1))",
            lambda: f"sleep_until({self.e('datetime')})",
            lambda: "sleep(minutes(5))",
            lambda: self.choices.pick(["sleep(grace)", "sleep(order.grace)"]),
            lambda: f"assert {self.e('bool')}, f'not {{{self.name('str')}}}'",
            lambda: "pass",
        ]
        return [self.choices.pick(makers)()], True

    def _mutate(self, _depth: int) -> tuple[Rows, bool]:
        """A list or dict that has one name is changed; then it is as any other."""
        value, first = self.e("int", 2), self.e("int", 1)
        name = self.expressions.new_name()
        if self.choices.chance(30):
            self._own(name, "dict[str, int]")
            return [f'{name} = {{"a": {first}}}', f"{name}[{self.e('str', 1)}] = {value}"], True
        changes = [
            f"{name}.append({value})",
            f"{name}.extend([{value}, 0])",
            f"{name} += [{value}]",
            f"{name}[0] = {value}",
        ]
        rows = [f"{name} = [{first}]", self.choices.pick(changes)]
        self._own(name, "list[int]")
        return rows, True

    def _wait(self, _depth: int) -> tuple[Rows, bool]:
        bound = self.choices.pick([", timeout=hours(1)", ", timeout=days(2)", ""])
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
            return ["return n"], False
        error = self.choices.pick(["Problem", "Small", "Other"])
        return [f"raise {error}(f'{{{self.name('str')}}}')"], False

    # -- statements that hold others ---------------------------------------------------------------

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
        falls = False
        count = self.choices.below(3) if has_finally else 1 + self.choices.below(2)
        for name in sorted(
            {self.choices.pick(_ALL_ERRORS) for _ in range(count)}, key=_ALL_ERRORS.index
        ):
            is_named = self.choices.chance(50) and name != "Exception"
            handler, handler_falls = self.block(depth)
            head = f"except {name} as err:" if is_named else f"except {name}:"
            rows += [head, *([_INDENT + 'say(f"{err}")'] if is_named else [])]
            if self.choices.chance(20):
                again = ["raise"]
                if is_named:
                    again += ['raise Other(f"{err}") from err', "raise Small(str(err)) from None"]
                rows += [_INDENT + self.choices.pick(again)]
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
            last, _ = self.block(depth, at_most=2)
            self._in_loop, self._must_stay = was
            rows += ["finally:", *last]
        return rows, falls or body_falls

    def _compensate(self, depth: int) -> tuple[Rows, bool]:
        undo = self.expressions.new_name().replace("v", "undo")
        mode = self.choices.pick(["", "", 'on_undo_failure="stop"'])
        rows = [f"with compensating({mode}) as {undo}:"]
        rows += [f"    {undo}(undo_it, {self.e('int', 1)})"]
        kept = dict(self.expressions.variables)
        for _ in range(1 + self.choices.below(2)):
            made, falls = self.statement(depth)
            rows += [_INDENT + row for row in made]
            if not falls:
                self.expressions.variables = kept
                return rows, False
            taken_back = self.choices.pick(["undo_it", "undo_it", "echo"])
            rows += [f"    {undo}({taken_back}, {self.e('int', 1)})"]
        self.expressions.variables = kept
        return rows, True

    def _scope(self, depth: int) -> tuple[Rows, bool]:
        if self.choices.chance(35):
            self.counts["shielded"] += 1
            rows, falls = self.block(depth)
            return ["with shielded():", *rows], falls
        self.counts["timeout"] += 1
        bound = self.choices.pick(["minutes(5)", "seconds(2)", "hours(3)", "grace"])
        rows, falls = self.block(depth)
        rows = [f"with timeout({bound}):", *rows]
        if self.choices.chance(50):
            caught = self.choices.pick(["BlockTimeout", "WaitTimeout"])
            indented = [_INDENT + row for row in rows]
            handler, handler_falls = self.block(depth)
            return ["try:", *indented, f"except {caught}:", *handler], falls or handler_falls
        return rows, falls

    def _match(self, depth: int) -> tuple[Rows, bool]:
        kind, arms = self.choices.pick(
            [
                ("int", ["0", "1 | 2", "-3"]),
                ("str", ['"a"', '"k" | "b"']),
                ("Colour", ["Colour.RED"]),
                ("Size", ["Size.S", "Size.L"]),
                ("str | None", ["None", '"a"']),
                ("bool", ["True"]),
                ("Line", ['Line(sku="a")', "Line(qty=0 | 1)"]),
                ("Level", ["Level.LOW", "Level.HIGH"]),
            ]
        )
        names = self.expressions.names_of(kind)
        rows = [f"match {self.choices.pick(names)}:"]
        falls = False
        for arm in arms:
            guard = f" if {self.e('bool', 1)}" if self.choices.chance(20) else ""
            body, body_falls = self.block(depth)
            rows += [f"    case {arm}{guard}:", *(_INDENT + row for row in body)]
            falls = falls or body_falls
        body, body_falls = self.block(depth)
        return [*rows, "    case _:", *(_INDENT + row for row in body)], falls or body_falls

    # -- branches ----------------------------------------------------------------------------------

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

    def _open_block(self, depth: int) -> tuple[Rows, bool]:
        """Statements whose variables are seen after them."""
        rows: Rows = []
        for _ in range(1 + self.choices.below(2)):
            made, falls = self.statement(depth)
            rows += [_INDENT + row for row in made]
            if not falls:
                return rows, False
        return rows, True

    def _branch_text(self, depth: int) -> tuple[str, Rows]:
        if self.choices.chance(50):
            return f"lambda: echo({self.e('int', 1)})", []
        return self._branch(depth, None, None)

    def _branches(self, depth: int) -> tuple[Rows, bool]:
        made = [self._branch_text(depth) for _ in range(2 + self.choices.below(2))]
        rows = [row for _, body in made for row in body]
        texts = ", ".join(text for text, _ in made)
        if self.choices.chance(35):
            self.counts["at_least"] += 1
            name = self.expressions.new_name()
            needed = 1 + self.choices.below(len(made))
            rows += [f"{name} = parallel({texts}, at_least={needed})"]
            total = self._declare("int")
            return [*rows, f"{total} = len([one for one in {name} if one is not None])"], True
        names = ", ".join(self._declare("int") for _ in made)
        return [*rows, f"{names} = parallel({texts})"], True

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
        name, rows = self._branch(depth, self.expressions.new_name(), type_)
        concurrency = self.choices.pick(["", ", concurrency=1", ", concurrency=2"])
        if self.choices.chance(35):
            self.counts["tolerate"] += 1
            found = self.expressions.new_name()
            call = f"each({items}, {name}{batch}{concurrency}, tolerate={self.choices.below(3)})"
            total = self._declare("list[int]")
            return [
                *rows,
                f"{found} = {call}",
                f"{total} = [one for one in {found} if one is not None]",
            ], True
        total = self._declare("list[int]")
        return [*rows, f"{total} = each({items}, {name}{batch}{concurrency})"], True


def program(choices: Choices, counts: Counter[str] | None = None) -> str:
    """The source of `flow`, which returns everything it can see at its end."""
    programs = Programs(choices, Counter() if counts is None else counts)
    bound = choices.pick(["@workflow", "@workflow", "@workflow(timeout=hours(30))"])
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in PARAMETERS.items())
    rows: Rows = []
    falls = True
    for _ in range(2 + choices.below(3)):
        made, falls = programs.statement(2)
        rows += [_INDENT + row for row in made]
        if not falls:
            break
    if falls:
        visible = [f'"{name}": {name}' for name in PARAMETERS]
        rows += [f"    return {{{', '.join(visible)}}}"]
    return "\n".join([bound, f"def flow({parameters}) -> Any:", *rows, ""])


HEADER: Final = "from __future__ import annotations\nfrom tests.differential.shop import *\n\n\n"
