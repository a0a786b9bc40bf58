"""Statements that change a list, dict or set in place, and take items out of it."""

from __future__ import annotations

from typing import Final

from tests.differential.drawing import Drawing, Rows

#: The type of what is changed, how it is made, and what may be done with it. `{x}` is its name,
#: `{v}` another name; holes are those of the expressions.
_CHANGES: Final = (
    (
        "list[int]",
        ("[<int.>, 2, <int.>]", "list(xs)", "[<list[int]::int>]"),
        (
            "{x}.insert(<int.>, <int>)",
            "{x}.insert(0, <int>)",
            "{x}.pop()",
            "{v} = {x}.pop(0)",
            "{v} = {x}.pop(<int.>) + <int>",
            "{v} = {x}.pop() - {x}.pop()",
            "{v} = echo({x}.pop())",
            "{v} = {x}.pop() if {x} else 0",
            "{v} = [{x}.pop(0), <int.>][0]",
            "{x}[0] = {x}.pop()",
            "{x}.remove(<int.>)",
            "if <int.> in {x}: {x}.remove({x}[-1])",
            "{x}.clear()",
            "{x}.reverse()",
            "{x}.sort()",
            "{x}.sort(reverse=True)",
            "{x}.sort(key=lambda one: (-one, one))",
            "del {x}[<int.>]",
            "del {x}[0], {x}[-1]",
            "{x}.extend([<int>])",
            "while {x} and {x}.pop(0) > <int.>: {x}.append(<int.>); break",
            "while {x}: {v} = {x}.pop()",
            "{x}[0], {x}[-1] = {x}[-1], {x}[0]",
            "{x}[<int.>], {x}[0] = {x}[0], {x}[<int.>]",
            "{v}, {x}[0] = <int>, echo({v})",
            "{v}, ({x}[-1], {w}) = <int>, {x}",
            "[{x}[0], *{w}] = <list[int]>",
            "{v} = {x}[0] = <int>",
            "with suppress(ValueError): {v}, {w} = {x}",
            "with suppress(ValueError): {v} = {x}.index(<int.>)",
            "with suppress(ValueError): {x}.remove(<int.>); {v} = 5",
            "with suppress(IndexError): {x}[<int>] = <int.>; {x}[<int.>] += 1",
            "with suppress(ZeroDivisionError): {v} //= <int.>; {x}[0] %= <int.>",
            "{v} = {x}[0] + Line.model_validate(bag).qty",
        ),
    ),
    (
        "list[list[int]]",
        ("[[], <list[int]>, [1, 2]]", "list(xss)"),
        (
            "{x}.insert(<int.>, <list[int]>)",
            "{w} = {x}.pop()",
            "{w} = [*{x}.pop(0), <int>]",
            "{x}.remove([1, 2])",
            "{x}.reverse()",
            "{x}.sort(key=len)",
            "del {x}[<int.>]",
            "{x}[0], {x}[-1] = {x}[-1], {x}[0]",
            "{x}[<int.>], {x}[0] = {x}[0], {x}[<int.>]",
            "{x}[0].append(<int>)",
            "{x}.append({x}[0])",
            "{x} = {x} + {x}",
            "{x} = [*{x}, {x}[-1]]",
            "{w} = copy.deepcopy({x}); {w}[0].append(<int>); {v} = sum({w}[-1])",
            "{x} = copy.deepcopy({x})",
            "{x} = [copy.deepcopy(one) for one in {x}]",
            "{x} = [list(one) for one in {x}]",
            "{w} = [one[:1] for one in {x}]; {w}[0].append(<int>); {x}.extend({w})",
            "{w}, *{x} = {x}",
            "({v}, *{w}), *{x} = {x}",
        ),
    ),
    (
        "dict[str, int]",
        ('{{"a": <int>, "k": 2}}', "dict(d)", "{{}}"),
        (
            "del {x}[<str.>]",
            "{x}.pop('a')",
            "{x}.pop(<str.>, None)",
            "{v} = {x}.pop(<str.>, <int>)",
            "{v} = {x}.pop('k') + <int>",
            "{v} = {x}.setdefault(<str.>, <int>)",
            "{x}.setdefault('q', <int>)",
            "{x}.update(<dict[str, int]>)",
            "{x}.update({{'q': <int>}}, tea=<int>)",
            "{x} |= <dict[str, int]>",
            "{x}.clear()",
        ),
    ),
    (
        "dict[int, int]",
        ("{{1: <int>, <int>: 2}}", "dict(table)", "{{}}"),
        (
            "{x}[<int>] = <int>",
            "{x}[<int.>] += <int>",
            "for {w} in <list[int]>: {x}[{w}] = {x}.get({w}, 0) + 1",
            "del {x}[<int.>]",
            "{x}.pop(<int.>, None)",
            "{v} = {x}.pop(<int.>, <int>)",
            "{v} = {x}.setdefault(<int.>, <int>)",
            "{x}.update(<dict[int, int]>)",
            "{x} |= {{<int>: <int>}}",
            "{v} = sum({w} * 2 for {w} in {x})",
        ),
    ),
    (
        "Counter[str]",
        ("Counter()", "Counter(<list[str]>)", "Counter(<str>)", "Counter({{'a': <int>}})"),
        (
            "{x}[<str>] += <int>",
            "{x}[<str.>] += echo(<int.>)",
            "{x}[<str>] -= flaky(<int.>)",
            "for {w} in <list[str]>: {x}[{w}] += 1",
            "{v} = {x}[<str>] + {x}['k']",
            "{v} = sum(count for _, count in {x}.most_common(<int.>))",
            "{v} = len(''.join(one for one, _ in {x}.most_common()))",
            "{x}.update(<list[str]>)",
            "{x}.update(<dict[str, int]>)",
            "del {x}[<str>]",
            "{v} = {x}.total() if <str> in {x} else len({x})",
            "{v} = sum({x}[one] for one in <list[str]>)",
            "{x}[<str>] = <int>",
        ),
    ),
    (
        "defaultdict[str, int]",
        ("defaultdict(int)", "defaultdict(int, d)"),
        (
            "{x}[<str>] += <int>",
            "{x}[<str>] += flaky(<int.>)",
            "{x}[<str.>] *= <int.>",
            "for {w} in <list[str]>: {x}[{w}] += len({w})",
            "{v} = {x}[<str.>]",
            "{v} = {x}['q'] + <int>",
            "if {x}[<str.>] > <int.>: {v} = 7",
            "{v} = sum({x}[one] for one in sorted({x}))",
            "{v} = {x}.get(<str>, <int.>)",
            "{x}[<str>] = <int>",
            "{x}.pop(<str.>, None)",
            "{v} = 3 if {x} == <dict[str, int]> or <str> in {x} else 4",
        ),
    ),
    (
        "defaultdict[int, list[int]]",
        ("defaultdict(list)",),
        (
            "{x}[<int>].append(<int>)",
            "{x}[<int.> % 2].extend(<list[int]>)",
            "{x}[<int.>] += [<int>]",
            "for {w} in <list[int]>: {x}[{w} % 2].append({w})",
            "{v} = sum(len({x}[one]) for one in {x})",
            "{v} = len({x}) + (1 if <int.> in {x} else 0)",
        ),
    ),
    (
        "set[int]",
        ("set()", "{{<int>, 1, <int.>}}", "set(xs)", "{{<list[int]::int>}}"),
        (
            "{x}.add(<int>)",
            "for {w} in <list[int]>: {x}.add({w})",
            "{x}.discard(<int.>)",
            "{x}.remove(<int.>)",
            "{x}.update(<list[int]>)",
            "{x} |= {{<int>, 2}}",
            "{x} &= set(<list[int]>)",
            "{x} -= {{<int>}}",
            "{x}.clear()",
            "{v} = len({x} | {{<int>}}) + sum({x} & set(xs))",
            "{v} = max({x} - {{<int.>}}, default=<int.>)",
            "{v} = 1 if {x} <= {{1, 2, 3}} and {x} != {{<int.>}} else 0",
            "{v} = 2 if {x} == set(<list[int]>) or <int.> in {x} else 3",
            "{v} = len({{one % 2 for one in {x} if one > 0}})",
            "{v} = 1 if {x}.isdisjoint(<list[int]>) or not {x} else 2",
            "{v} = sum(1 for one in {x} if one in <list[int]>)",
            "{v} = 1 if {x}.union(xs) > {x} or {x}.issuperset(xs) else 0",
        ),
    ),
    (
        "set[str]",
        ("set()", '{{<str>, "a"}}', "set(ss)"),
        (
            "{x}.add(<str>)",
            "{x}.discard(<str.>)",
            "{x}.remove('a')",
            "{v} = len(''.join(sorted({x})))",
            "{v} = 1 if any(one == <str.> for one in {x}) else 0",
            "{x} = {x} | set(<list[str]>)",
        ),
    ),
    (
        "set[tuple[int, str]]",
        ("set()", "{{(<int>, <str>), (1, 'a')}}"),
        (
            "{x}.add((<int>, <str>))",
            "{x}.discard((1, 'a'))",
            "{x}.remove((<int.>, <str.>))",
            "{v} = len({x}) if (1, 'a') in {x} else 0",
            "{x} |= {{(<int.>, <str.>)}}",
            "{v} = len({x} - {{(1, 'a')}})",
        ),
    ),
    (
        "dict[str, set[int]]",
        ("{{}}",),
        (
            "{x}.setdefault(<str.>, set()).add(<int>)",
            "{x}['a'] = set(<list[int]>)",
            "{v} = len({x}['a'])",
            "{v} = 1 if <int.> in {x}.get('a', {{1}}) else 0",
        ),
    ),
)
#: What is left of a set for the statements after it.
_SORTED: Final = {"set[int]": "list[int]", "set[str]": "list[str]"}

#: Calls that raise errors with fields, and handlers that read them.
_RAISING: Final = (
    "echo(<int>)",
    "flaky(<int>)",
    "part(<int.>)",
    'raise Marked("a little")',
    "raise Marked(f'{{<str!>}} {{<int!>}}')",
    "parallel(lambda: echo(<int.>), lambda: flaky(1))",
)
_HANDLERS: Final = (
    ("Coded", "f'{{{e}.code}} {{{e}.line.qty}} {{{e}}}'"),
    ("Coded", "str(sum({e}.sizes))"),
    ("Marked", "f'{{{e}.level + 1}} {{{e}.place}}'"),
    ("(Marked, Other)", "str({e})"),
    ("Problem", "f'{{{e}}}'"),
    ("TaskError", "f'{{{e}}}'"),
)


class ChangeStatements(Drawing):
    """A list, dict or set of its own, and several changes of it."""

    def _change(self, _depth: int) -> tuple[Rows, bool]:
        kind, makers, patterns = self.choices.pick(_CHANGES)
        name, number, other = (self.expressions.new_name() for _ in range(3))
        declared = f"{name}: {kind} = {self._drawn(self.choices.pick(makers), name, name, name)}"
        rows = [declared, f"{number} = 0"]
        for _ in range(1 + self.choices.below(4)):
            pattern = self.choices.pick(patterns)
            self.counts[f"change {kind} {pattern}"] += 1
            rows.append(self._drawn(pattern, name, number, other))
        if self.choices.chance(40):
            rows += [f"for _ in range(2): {self._drawn(patterns[0], name, number, other)}"]
        left = f"sorted({name})" if kind in _SORTED else name
        if kind in ("Counter[str]", "defaultdict[str, int]"):
            kind, left = "dict[str, int]", f"dict({name})"
        if kind in ("set[tuple[int, str]]", "dict[str, set[int]]", "defaultdict[int, list[int]]"):
            kind, left = "int", f"len({name})"
        rows.append(self._assigned("int", number))
        return [*rows, self._assigned(_SORTED.get(kind, kind), left)], True

    def _fields(self, _depth: int) -> tuple[Rows, bool]:
        """Handlers that read the fields of an error."""
        name, text = self.expressions.new_name(), self.expressions.new_name()
        call = self._drawn(self.choices.pick(_RAISING), name, text, text)
        first = self.choices.below(len(_HANDLERS))
        rows: Rows = [f'{text} = ""', "try:", f"    echo({self.e('int', 0)})", f"    {call}"]
        drawn = dict(_HANDLERS[first : first + 1 + self.choices.below(3)])
        for caught, value in drawn.items():
            self.counts[f"field {caught} {value}"] += 1
            rows += [f"except {caught} as {name}:", f"    {text} = {value.format(e=name)}"]
        return [*rows, self._assigned("str", text)], True

    def _drawn(self, pattern: str, name: str, number: str, other: str) -> str:
        text = pattern.format(x=name, v=number, w=other)
        return self.expressions.filled(text, 1)
