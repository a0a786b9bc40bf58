"""Random typed programs in the workflow language, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

#: Type -> annotation; variables of these types exist from the start.
PARAMETERS = {
    "n": "int",
    "m": "int",
    "b": "bool",
    "s": "str",
    "o": "str | None",
    "xs": "list[int]",
    "ss": "list[str]",
    "xss": "list[list[int]]",
    "d": "dict[str, int]",
    "line": "Line",
    "lines": "list[Line]",
}
LITERALS = {
    "int": ["0", "1", "2", "-3", "7"],
    "bool": ["True", "False"],
    "str": ['""', '"a"', '"k"', '"{% 1 %}"'],
    "str | None": ["None", '"a"'],
    "list[int]": ["[]", "[1]", "[3, 1]"],
    "list[str]": ["[]", '["a"]', '["k", ""]'],
    "list[list[int]]": ["[[]]", "[[1]]", "[[1, 2], []]"],
    "dict[str, int]": ["{}", '{"a": 1}', '{"k": 0, "a": 2}'],
    "Line": ['Line(sku="z")', 'Line(sku="a", qty=0, tags=["t"])'],
    "list[Line]": ["[]", '[Line(sku="q", qty=3)]'],
}
TYPES = list(LITERALS)


class Programs:
    """Draws one program; `@` in a pattern stands for what is drawn next."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.variables: dict[str, str] = dict(PARAMETERS)
        self.names = 0
        self.is_branch = False

    # Expressions.

    def expression(self, type_: str, depth: int = 2) -> str:
        names = [name for name, known in self.variables.items() if known == type_]
        if depth <= 0 or self.random.random() < 0.3:
            if names and self.random.random() < 0.7:
                return self.random.choice(names)
            return self.random.choice(LITERALS[type_])
        draw: Callable[[int], str] = getattr(self, f"_{_KINDS[type_]}")
        return draw(depth - 1)

    def _pick(self, *makers: Callable[[], str]) -> str:
        return self.random.choice(makers)()

    def _loop(self, pattern: str, source: str, type_: str, depth: int) -> str:
        """A comprehension: `pattern` gets the element variable as {x} and a body as {body}."""
        self.names += 1
        name = f"v{self.names}"
        items = self.expression(source, depth)
        kept = dict(self.variables)
        self.variables[name] = _ELEMENTS[source]
        body = self.expression(type_, depth)
        test = f" if {self.expression('bool', depth)}" if self.random.random() < 0.4 else ""
        self.variables = kept
        return pattern.format(body=body, loop=f"for {name} in {items}{test}")

    def _int(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"({e('int', depth)} {self.random.choice('+-*')} {e('int', depth)})",
            lambda: f"({e('int', depth)} {self.random.choice(['//', '%'])} {e('int', depth)})",
            lambda: f"len({e(self.random.choice(_SIZED), depth)})",
            lambda: f"sum({e('list[int]', depth)})",
            lambda: f"{e('list[int]', depth)}[{e('int', 0)}]",
            lambda: f"{e('dict[str, int]', depth)}.get({e('str', depth)}, {e('int', 0)})",
            lambda: f"{e('dict[str, int]', depth)}[{e('str', 0)}]",
            lambda: f"({e('int', depth)} if {e('bool', depth)} else {e('int', depth)})",
            lambda: f"({e('int', depth)} {self.random.choice(['and', 'or'])} {e('int', depth)})",
            lambda: f"{e('Line', depth)}.qty",
            lambda: f"max({e('int', depth)}, {e('int', depth)})",
            lambda: f"min({e('list[int]', depth)})",
            lambda: f"-{e('int', depth)}",
            lambda: f"abs({e('int', depth)})",
            lambda: self._loop("sum({body} {loop})", "list[int]", "int", depth),
            lambda: self._loop("sum({body} {loop})", "list[list[int]]", "int", depth),
        )

    def _bool(self, depth: int) -> str:
        e = self.expression
        same = self.random.choice(TYPES)
        return self._pick(
            lambda: f"({e('int', depth)} {self.random.choice(_ORDERS)} {e('int', depth)})",
            lambda: f"({e(same, depth)} {self.random.choice(['==', '!='])} {e(same, depth)})",
            lambda: f"({e('bool', depth)} {self.random.choice(['and', 'or'])} {e('bool', depth)})",
            lambda: f"(not {e(self.random.choice(TYPES), depth)})",
            lambda: f"({e('str', depth)} in {e('list[str]', depth)})",
            lambda: f"({e('list[int]', depth)} in {e('list[list[int]]', depth)})",
            lambda: f"({e('str', depth)} not in {e('dict[str, int]', depth)})",
            lambda: f"({e('str | None', depth)} is None)",
            lambda: f"({e('str', depth)} < {e('str', depth)})",
            lambda: f"{e('str', depth)}.startswith({e('str', depth)})",
            lambda: self._loop("any({body} {loop})", "list[int]", "bool", depth),
            lambda: self._loop("all({body} {loop})", "list[Line]", "bool", depth),
        )

    def _str(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"({e('str', depth)} + {e('str', depth)})",
            lambda: f"str({e('int', depth)})",
            lambda: f"{e('str', depth)}.upper()",
            lambda: f"({e('str | None', depth)} or {e('str', depth)})",
            lambda: f"','.join({e('list[str]', depth)})",
            lambda: f"{e('Line', depth)}.sku",
            lambda: f"str({e('bool', depth)})",
            lambda: f"{e('str', depth)}[{e('int', 0)}:]",
            lambda: f"{e('list[str]', depth)}[{e('int', 0)}]",
            lambda: f"({e('str', depth)} if {e('bool', depth)} else {e('str', depth)})",
        )

    def _optional(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"({e('str', depth)} if {e('bool', depth)} else None)",
            lambda: f"({e('str | None', depth)} and {e('str', depth)})",
        )

    def _ints(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"[{e('int', depth)}, {e('int', depth)}]",
            lambda: f"({e('list[int]', depth)} + {e('list[int]', depth)})",
            lambda: f"sorted({e('list[int]', depth)})",
            lambda: f"{e('list[int]', depth)}[{e('int', 0)}:{e('int', 0)}]",
            lambda: f"({e('list[int]', depth)} or {e('list[int]', depth)})",
            lambda: f"{e('list[list[int]]', depth)}[{e('int', 0)}]",
            lambda: self._loop("[{body} {loop}]", "list[int]", "int", depth),
            lambda: self._loop("[{body} {loop}]", "list[list[int]]", "int", depth),
            lambda: self._loop("[{body} {loop}]", "list[Line]", "int", depth),
            lambda: f"list({e('dict[str, int]', depth)}.values())",
            lambda: f"[i + x for i, x in enumerate({e('list[int]', depth)}) if i < x]",
            lambda: f"[x - y for x, y in zip({e('list[int]', depth)}, {e('list[int]', depth)})]",
        )

    def _strs(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"[{e('str', depth)}]",
            lambda: f"sorted({e('list[str]', depth)})",
            lambda: f"list({e('dict[str, int]', depth)})",
            lambda: f"{e('Line', depth)}.tags",
            lambda: f"{e('str', depth)}.split(',')",
            lambda: self._loop("[{body} {loop}]", "list[str]", "str", depth),
            lambda: self._loop("[{body} {loop}]", "list[Line]", "str", depth),
        )

    def _rows(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"[{e('list[int]', depth)}, {e('list[int]', depth)}]",
            lambda: f"[{e('list[int]', depth)}]",
            lambda: f"({e('list[list[int]]', depth)} + {e('list[list[int]]', depth)})",
            lambda: f"{e('list[list[int]]', depth)}[{e('int', 0)}:{e('int', 0)}]",
            lambda: self._loop("[{body} {loop}]", "list[int]", "list[int]", depth),
            lambda: self._loop("[{body} {loop}]", "list[list[int]]", "list[int]", depth),
        )

    def _dict(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"{{'a': {e('int', depth)}, 'z': {e('int', depth)}}}",
            lambda: f"{{**{e('dict[str, int]', depth)}, {e('str', depth)}: {e('int', depth)}}}",
            lambda: f"{{k + 'x': v for k, v in {e('dict[str, int]', depth)}.items()}}",
            lambda: self._loop("{{str({body}): 1 {loop}}}", "list[int]", "int", depth),
        )

    def _line(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"Line(sku={e('str', depth)}, qty={e('int', depth)})",
            lambda: f"Line(sku={e('str', depth)}, tags={e('list[str]', depth)})",
            lambda: f"{e('list[Line]', depth)}[{e('int', 0)}]",
        )

    def _lines(self, depth: int) -> str:
        e = self.expression
        return self._pick(
            lambda: f"[{e('Line', depth)}]",
            lambda: f"{e('list[Line]', depth)}[{e('int', 0)}:]",
            lambda: self._loop("[{body} {loop}]", "list[int]", "Line", depth),
            lambda: self._loop("[{body} {loop}]", "list[Line]", "Line", depth),
        )

    # Statements.

    def body(self, depth: int, indent: str, *, in_loop: bool = False) -> list[str]:
        rows: list[str] = []
        kept = dict(self.variables)
        for _ in range(self.random.randint(1, 3)):
            statement = self._statement(depth, in_loop=in_loop)
            rows += [indent + row for row in statement]
            if _never_falls_through(statement):
                break
        self.variables = kept
        return rows

    def _statement(self, depth: int, *, in_loop: bool) -> list[str]:
        simple = [self._assign, self._assign, self._assign, self._task, self._append]
        makers = list(simple)
        if depth > 0:
            makers += [self._if, self._for, self._while, self._try, self._undo, self._branches]
        if in_loop:
            makers += [self._jump]
        if depth < 2 and self.random.random() < 0.04:
            return [f"return {self._result()}"]
        if depth < 2 and self.random.random() < 0.06:
            text = self.expression("str", 1)
            return [f"raise {self.random.choice(['Problem', 'Small', 'Other'])}({text})"]
        self._depth, self._in_loop = depth, in_loop
        return self.random.choice(makers)()

    def _new(self, type_: str) -> str:
        self.names += 1
        name = f"v{self.names}"
        self.variables[name] = type_
        return name

    def _assign(self) -> list[str]:
        type_ = self.random.choice(TYPES)
        value = self.expression(type_, 3)
        names = [name for name, known in self.variables.items() if known == type_]
        name = self.random.choice(names) if names and self.random.random() < 0.5 else None
        return [f"{name or self._new(type_)} = {value}"]

    def _task(self) -> list[str]:
        e = self.expression
        makers = [
            lambda: f"{self._fresh('int')} = echo({e('int')})",
            lambda: f"say({e('str')})",
            lambda: f"{self._fresh('int')} = fail_with({self.random.choice(_ERRORS)})",
            lambda: (
                f"{self._fresh('str')} = upper({e('str')}) + str(echo({e('int')}) + {e('int', 1)})"
            ),
            lambda: f"sleep(seconds(abs({e('int', 1)}) + 1))",
        ]
        return [self.random.choice(makers)()]

    def _fresh(self, type_: str) -> str:
        names = [n for n, t in self.variables.items() if t == type_ and n.startswith("v")]
        return self.random.choice(names) if names else "n" if type_ == "int" else "s"

    def _append(self) -> list[str]:
        value = self.expression("int", 2)
        name = self._new("list[int]")
        return [f"{name} = [{self.expression('int', 1)}]", f"{name}.append({value})"]

    def _if(self) -> list[str]:
        depth, in_loop = self._depth - 1, self._in_loop
        rows = [f"if {self.expression('bool', 3)}:", *self.body(depth, "    ", in_loop=in_loop)]
        if self.random.random() < 0.3:
            rows += [f"elif {self.expression('bool')}:"]
            rows += self.body(depth, "    ", in_loop=in_loop)
        if self.random.random() < 0.5:
            rows += ["else:", *self.body(depth, "    ", in_loop=in_loop)]
        return rows

    def _for(self) -> list[str]:
        depth = self._depth - 1
        kept = dict(self.variables)
        source = self.random.choice(list(_ELEMENTS))
        items = self.expression(source)
        name = self._new(_ELEMENTS[source])
        head = f"for {name} in {items}:"
        if self.random.random() < 0.3:
            self.variables[name] = "int"
            head = f"for {name} in range({self.expression('int', 1)} % 4):"
        rows = [head, *self.body(depth, "    ", in_loop=True)]
        self.variables = kept
        return rows

    def _while(self) -> list[str]:
        depth = self._depth - 1
        self.names += 1
        count = f"count{self.names}"
        rows = [f"{count} = 0", f"while {count} < 3 and {self.expression('bool')}:"]
        return [*rows, f"    {count} += 1", *self.body(depth, "    ", in_loop=True)]

    def _jump(self) -> list[str]:
        return [
            f"if {self.expression('bool')}:",
            f"    {self.random.choice(['break', 'continue'])}",
        ]

    def _try(self) -> list[str]:
        depth, in_loop = self._depth - 1, self._in_loop
        rows = ["try:", "    echo(1)", *self.body(depth, "    ", in_loop=in_loop)]
        caught = self.random.sample(["Small", "Problem", "Other", "Exception"], 2)
        caught.sort(key=["Small", "Problem", "Other", "Exception"].index)
        for name in caught:
            uses = self.random.random() < 0.5 and name != "Exception"
            rows += [f"except {name} as err:" if uses else f"except {name}:"]
            rows += ['    say(f"{err}")'] if uses else ["    say('caught')"]
            body = self.body(depth, "    ", in_loop=in_loop)
            rows += ["    raise"] if self.random.random() < 0.2 else body
        return rows

    def _undo(self) -> list[str]:
        if self.is_branch:
            return self._task()
        depth, in_loop = self._depth - 1, self._in_loop
        self.names += 1
        undo = f"undo{self.names}"
        rows = [f"with compensating() as {undo}:"]
        rows += [f"    {undo}(undo_it, {self.expression('int')})"]
        rows += [f"    {undo}(undo_it, {self.expression('int')})"]
        return rows + self.body(depth, "    ", in_loop=in_loop)

    def _branches(self) -> list[str]:
        depth = self._depth - 1
        self.names += 1
        name = f"branch{self.names}"
        kept, was, self.is_branch = dict(self.variables), self.is_branch, True
        source = self.random.choice(["list[int]", "list[Line]"])
        items = self.expression(source)
        self.variables = dict(kept)
        parameter = self._new(_ELEMENTS[source])
        inner = self._inner_body(depth)
        self.variables, self.is_branch = kept, was
        rows = [f"def {name}({parameter}: {_ELEMENTS[source]}) -> int:", *inner]
        total = self._new("list[int]")
        rows += [f"{total} = each({items}, {name}, concurrency=1)"]
        left, right = self._new("int"), self._new("str")
        # A failing branch ends its siblings wherever they are: only one of these can fail.
        value = self.random.choice(LITERALS["str"])
        return [*rows, f"{left}, {right} = parallel(lambda: echo({total}[0]), lambda: {value})"]

    def _inner_body(self, depth: int) -> list[str]:
        """Branches read outer variables and assign only their own."""
        outer = dict(self.variables)
        copies = {name: self._new(type_) for name, type_ in outer.items() if name in ("n", "s")}
        rows = [f"    {new} = {old}" for old, new in copies.items()]
        self.variables = {new: outer[old] for old, new in copies.items()}
        inner = self.body(depth, "    ")
        if _never_falls_through([row[4:] for row in inner]):
            return rows + inner
        rows += inner
        return [*rows, f"    return {self.expression('int')}"]

    def _result(self) -> str:
        return "n"


def _never_falls_through(rows: list[str]) -> bool:
    """Whether a statement of these rows, or the last one of a block, ends the block."""
    heads = [row for row in rows if not row.startswith(" ")]
    if heads[-1].startswith(("return", "raise", "break", "continue")):
        return True
    parts: list[list[str]] = []
    for row in rows:
        if row.startswith("    "):
            parts[-1].append(row[4:])
        else:
            parts.append([])
    starts = ("if", "try", "with")
    is_total = heads[0].startswith(("try", "with")) or heads[-1].startswith("else")
    return heads[0].startswith(starts) and is_total and all(map(_never_falls_through, parts))


_KINDS = {
    "int": "int",
    "bool": "bool",
    "str": "str",
    "str | None": "optional",
    "list[int]": "ints",
    "list[str]": "strs",
    "list[list[int]]": "rows",
    "dict[str, int]": "dict",
    "Line": "line",
    "list[Line]": "lines",
}
_ELEMENTS = {
    "list[int]": "int",
    "list[str]": "str",
    "list[list[int]]": "list[int]",
    "list[Line]": "Line",
}
_SIZED = ["str", "list[int]", "list[list[int]]", "dict[str, int]", "list[Line]"]
_ORDERS = ["<", "<=", ">", ">="]
_ERRORS = ['"Problem"', '"Small"', '"Other"', '"ValueError"', '"none"', '"none"', '"none"', "s"]


def program(seed: int) -> str:
    """The source of `flow`, which returns everything it can see at its end."""
    programs = Programs(Random(seed))
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in PARAMETERS.items())
    rows: list[str] = []
    for _ in range(programs.random.randint(2, 4)):
        rows += ["    " + row for row in programs._statement(2, in_loop=False)]
    visible = [f'"{name}": {name}' for name in PARAMETERS]
    end = f"    return {{{', '.join(visible)}}}"
    return "\n".join(["@workflow", f"def flow({parameters}) -> Any:", *rows, end, ""])
