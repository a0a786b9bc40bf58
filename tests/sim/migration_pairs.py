"""Pairs of versions made by edit scripts, and a second reading of what a move between them means.

A program is a small tree. It is rendered as Python for the compiler, and interpreted here without
compiler and engine. The interpreter can begin at a wait with variables that are carried over. It
can also list every path, with each `if` taken both ways; a reason against a move is true if some
path has the failure that the reason names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias


@dataclass(frozen=True)
class Call:
    number: int
    var: str
    arg: str
    is_renamed: bool = False

    @property
    def name(self) -> str:
        return f"{'again' if self.is_renamed else 'call'}_{self.number}"


@dataclass(frozen=True)
class Wait:
    number: int
    var: str
    key: str = "k1"

    @property
    def name(self) -> str:
        return f"wait for e{self.number}"


@dataclass(frozen=True)
class Add:
    var: str
    arg: str
    more: int


@dataclass(frozen=True)
class If:
    arg: str
    more: int
    then: tuple[Step, ...]
    other: tuple[Step, ...]


Step: TypeAlias = Call | Wait | Add | If
Op: TypeAlias = Call | Wait | Add | str
Block: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Version:
    """`renamed`: variables of the version before, old name to new name."""

    block: Block
    result: str
    renamed: tuple[tuple[str, str], ...] = ()

    def source(self) -> str:
        calls = sorted(
            {op for path in self.paths() for op in path if isinstance(op, Call)}, key=str
        )
        tasks = [
            f"@task{f'(renamed={chr(34)}call_{call.number}{chr(34)})' if call.is_renamed else ''}\n"
            f"def {call.name}(a: int) -> int: ...\n"
            for call in {call.name: call for call in calls}.values()
        ]
        hints = f"(renamed={dict(self.renamed)!r})" if self.renamed else ""
        body = "".join(_rendered(self.block, "    "))
        flow = f"@workflow{hints}\ndef flow(v0: int) -> int:\n{body}    return {self.result}\n"
        head = "from holdfast import task, wait_for_event, workflow\n\n"
        return head + "\n".join(tasks) + "\n\n" + flow

    def paths(self) -> Iterator[list[Op]]:
        """Yield every path. A read of a variable without a value is its name, as a text."""
        for path in _paths(self.block):
            yield [*path, f"read {self.result}"]

    def is_valid(self) -> bool:
        return all(not unbound(path, {"v0"}) for path in self.paths())

    def run(self, env: dict[str, int], seek: int | None) -> tuple[int, list[str], list[int]]:
        """Return the result, the calls and the waits, from the start or from behind a wait.
        Raises KeyError for a variable without a value.
        """
        calls: list[str] = []
        waits: list[int] = []
        _run(self.block, env, seek, calls, waits)
        return env[self.result], calls, waits

    def until(self, number: int, env: dict[str, int]) -> bool:
        """Run up to a wait. Return False when the run does not come there."""
        try:
            _run(self.block, env, None, [], [], stop=number)
        except _StoppedError:
            return True
        return False


class _StoppedError(Exception):
    pass


def value_of(number: int, arg: int) -> int:
    return (arg * 7 + number) % 23


def sent(number: int) -> int:
    return number * 5 % 19


def _rendered(block: Sequence[Step], indent: str) -> Iterator[str]:
    if not block:
        yield f"{indent}pass\n"
    for step in block:
        match step:
            case Call():
                yield f"{indent}{step.var} = {step.name}({step.arg})\n"
            case Wait():
                event = f'wait_for_event("e{step.number}", int, key="{step.key}")'
                yield f"{indent}{step.var} = {event}\n"
            case Add():
                yield f"{indent}{step.var} = {step.arg} + {step.more}\n"
            case If():
                yield f"{indent}if {step.arg} > {step.more}:\n"
                yield from _rendered(step.then, indent + "    ")
                if step.other:
                    yield f"{indent}else:\n"
                    yield from _rendered(step.other, indent + "    ")


def _paths(block: Sequence[Step]) -> Iterator[list[Op]]:
    if not block:
        yield []
        return
    first, *rest = block
    tails = list(_paths(rest))
    if isinstance(first, If):
        for way in (first.then, first.other):
            for head in _paths(way):
                for tail in tails:
                    yield [f"read {first.arg}", *head, *tail]
    else:
        for tail in tails:
            yield [first, *tail]


def unbound(path: Sequence[Op], known: set[str]) -> list[str]:
    """Return the variables that the path reads without a value."""
    known, found = set(known), []
    for op in path:
        arg = op.removeprefix("read ") if isinstance(op, str) else getattr(op, "arg", None)
        if arg is not None and arg not in known:
            found.append(arg)
        if not isinstance(op, str):
            known.add(op.var)
    return found


def _holds(step: Step, number: int) -> bool:
    if isinstance(step, If):
        return any(_holds(one, number) for one in (*step.then, *step.other))
    return isinstance(step, Wait) and step.number == number


def _run(
    block: Sequence[Step],
    env: dict[str, int],
    seek: int | None,
    calls: list[str],
    waits: list[int],
    stop: int | None = None,
) -> None:
    for step in block:
        if seek is not None:
            if not _holds(step, seek):
                continue
            if isinstance(step, If):
                way = step.then if any(_holds(one, seek) for one in step.then) else step.other
                _run(way, env, seek, calls, waits, stop)
            elif isinstance(step, Wait):
                env[step.var] = sent(seek)
            seek = None
            continue
        match step:
            case Call():
                calls.append(step.name)
                env[step.var] = value_of(step.number, env[step.arg])
            case Wait():
                if step.number == stop:
                    raise _StoppedError
                waits.append(step.number)
                env[step.var] = sent(step.number)
            case Add():
                env[step.var] = env[step.arg] + step.more
            case If():
                way = step.then if env[step.arg] > step.more else step.other
                _run(way, env, None, calls, waits, stop)


# -- programs and edit scripts ---------------------------------------------------------------------


class Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.numbers = 0

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def step(self, depth: int = 0) -> Step:
        random = self.random
        var, arg = (f"v{random.randrange(5)}" for _ in range(2))
        kind = random.choice(("call", "call", "wait", "wait", "add", "if" if depth < 2 else "add"))
        if kind == "call":
            return Call(self.number(), var, arg)
        if kind == "wait":
            return Wait(self.number(), var)
        if kind == "add":
            return Add(var, arg, random.randrange(9))
        then = tuple(self.step(depth + 1) for _ in range(random.randint(1, 2)))
        other = tuple(self.step(depth + 1) for _ in range(random.randint(0, 2)))
        return If(arg, random.randrange(20), then, other)

    def program(self) -> Version:
        while True:
            block = tuple(self.step() for _ in range(self.random.randint(4, 7)))
            found = Version(block, f"v{self.random.randrange(5)}")
            has_wait = any(isinstance(op, Wait) for path in found.paths() for op in path)
            if has_wait and found.is_valid():
                return found

    def edited(self, version: Version) -> Version:
        """Return the version after one to three edits that leave it valid."""
        found = version
        for _ in range(self.random.randint(1, 3)):
            for _ in range(20):
                tried = self._edit(found)
                if tried.is_valid() and tried != found:
                    found = tried
                    break
        return found

    def _edit(self, version: Version) -> Version:
        random = self.random
        block = list(version.block)
        at = random.randrange(len(block))
        kind = random.choice(
            ("insert", "insert", "insert", "drop", "swap", "change", "rename", "read")
        )
        if kind == "insert":
            block.insert(random.randrange(len(block) + 1), self.step())
        elif kind == "drop":
            del block[at]
        elif kind == "swap" and at:
            block[at - 1], block[at] = block[at], block[at - 1]
        elif kind == "change":
            block[at] = self._changed(block[at])
        elif kind == "read":
            # a new variable is computed early and read late: in between, it has no value
            block.insert(0, Add("fresh", "v0", 1))
            block.append(Add(version.result, "fresh", random.randrange(9)))
        elif not version.renamed:
            old = random.choice(sorted(_assigned(version) - {"v0"}))
            renamed = _with_name(tuple(block), old, f"{old}_new")
            result = f"{old}_new" if version.result == old else version.result
            return Version(renamed, result, ((old, f"{old}_new"),))
        return replace(version, block=tuple(block))

    def _changed(self, step: Step) -> Step:
        match step:
            case Call():
                return replace(step, is_renamed=True)
            case Wait():
                is_other = self.random.random() < 0.3
                return replace(step, key="k2") if is_other else step
            case Add() | If():
                return replace(step, more=step.more + 3)


def _assigned(version: Version) -> set[str]:
    ops = (op for path in version.paths() for op in path)
    return {op.var for op in ops if not isinstance(op, str)}


def _with_name(block: Block, old: str, new: str) -> Block:
    found: list[Step] = []
    for step in block:
        changed: dict[str, object] = {
            field: new for field in ("var", "arg") if getattr(step, field, None) == old
        }
        if isinstance(step, If):
            changed |= {way: _with_name(getattr(step, way), old, new) for way in ("then", "other")}
        found.append(replace(step, **changed))  # type: ignore[arg-type]
    return tuple(found)
