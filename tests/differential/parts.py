"""Statements that change parts of models in place, with and without a second name of the part."""

from __future__ import annotations

from typing import Final

from tests.differential.drawing import Drawing, Rows

_MAKERS: Final = (
    "Basket()",
    "Basket(lines=[Line(sku=<str>, qty=<int>), Line(sku='b')], notes={{'a': <int>}})",
    "basket_of(<int>)",
    "copy.deepcopy(Basket(best=Line(sku=<str>), status=<str>))",
)
#: `{x}` is a basket, `{v}` a number, `{w}` a name for whatever else.
_CHANGES: Final = (
    "{x}.status = <str>",
    "{x}.status += <str.>",
    "{x}.tally.count += <int>",
    "{x}.tally.by_name[<str.>] = <int>",
    "{x}.tally = replace({x}.tally, count=<int>)",
    "if {x}.tally.is_empty(): {x}.tally.best = Line(sku=<str>)",
    "{x}.lines.append(Line(sku=<str>, qty=<int>))",
    "{x}.lines += [Line(sku=<str>)]",
    "{x}.lines[0].qty = <int>",
    "{x}.lines[-1].qty += <int.>",
    "{x}.lines[0].tags.append(<str>)",
    "{x}.lines[0].qty = echo(<int.>)",
    "{x}.lines[0:1] = []",
    "{x}.lines.sort(key=lambda one: one.sku)",
    "if {x}.lines: {v} = {x}.lines.pop(0).qty",
    "if {x}.lines: {x}.lines[0] = Line(sku=<str>, tags=<list[str]>)",
    "{x}.lines = [one for one in {x}.lines if one.qty > <int.>]",
    "{x}.lines = sorted({x}.lines, key=lambda one: one.sku)",
    "{x}.lines = {x}.lines + [Line(sku=<str>)]",
    "{x}.lines = [Line(sku=<str>), *{x}.lines[1:]]",
    "{x}.lines.extend(Line(sku=str(one)) for one in range(3))",
    "if {x}.lines: {x}.lines.append({x}.lines.pop(0))",
    "del {x}.lines[0]",
    "del {x}.lines[<int.>:<int.>]",
    "{x}.notes[<str.>] = <int>",
    "{x}.notes[<str.>] = echo(<int>)",
    "{x}.notes[<str.>] = {x}.notes.pop(<str.>, <int>) + <int.>",
    "{x}.notes['a'] += <int>",
    "{x}.notes.update({{'q': <int>}})",
    "{x}.notes |= <dict[str, int]>",
    "del {x}.notes['a']",
    "{v} = {x}.notes.setdefault(<str.>, <int>)",
    "{x}.groups.setdefault(<str.>, []).append(<int>)",
    "{x}.groups[<str.>] = [<int>]",
    "{x}.groups[<str.>].append(<int>)",
    "{x}.best = Line(sku=<str>, qty=<int>)",
    "if {x}.best is not None: {x}.best.qty += <int>",
    "{v} = {x}.total() + {x}.size",
    "{v} = {x}.largest() - <int.>",
    "{v} = len(Basket.label({x}.size))",
    "{x} = {x}.model_copy(deep=True)",
    "{v} = sum(one.qty for one in {x}.lines)",
    "if {x}.total() > <int.>: raise Rejected(<str>)",
    "if {x}.size > 0: raise Rejected(number=<int>, reason=<str>)",
)
#: A second name of a part: a later change of this part is refused.
_SHARED: Final = (
    "if {x}.lines: {w} = {x}.lines.pop(0); {w}.qty += <int>",
    "if {x}.lines: {x}.best = {x}.lines.pop()",
    "{x} = {x}.model_copy(update={{'status': <str>}})",
    "for {w} in {x}.lines: {v} += {w}.qty; {x}.status = {w}.sku",
    "{w} = {x}.lines",
    "{w} = {x}.best",
    "{w} = {x}.notes",
    "{w} = {x}.groups",
    "{w} = {x}.tally",
    "{w} = {x}",
    "{w} = [{x}]",
    "{w} = {x}.itself()",
    "{w} = {x}.first_line()",
    "{w} = {x}.model_copy()",
    "{w} = list({x}.lines)",
    "{w} = [one for one in {x}.lines if one.qty > 0]",
    "{w} = {x}.lines[0:2]",
    "{w} = {x}.lines if <bool> else []",
    "for {w} in {x}.lines: {v} += 1",
    "{x}.lines.append({x}.lines[0])",
    "if {x}.lines: {x}.best = {x}.lines[0]",
    "{x}.groups[<str.>] = {x}.groups.get(<str>, [])",
    "{w} = Basket(lines={x}.lines)",
    "{w} = Tally(best={x}.best)",
    "{w} = copy.deepcopy({x})",
    "{w}_0 = basket_of(<int>); {w} = {w}_0; {w}.status = <str>; look([{w}, {w}_0])",
    "{w} = {x}.tags(); {x}.lines[0].tags.append(<str>); look([{w}, {x}])",
)
#: Steps in comprehensions, assignments in expressions, the rest of a list, mixed dicts.
_HABITS: Final = (
    "{v} = sum(echo(one) for one in <list[int]>)",
    "{v} = sum([echo(one) + <int.> for one in <list[int]> if one > 0])",
    "{v} = len([flaky(one.qty) for one in <list[Line]> if one.qty != <int>])",
    "{v} = sum({{str(one): echo(one) for one in <list[int]>}}.values())",
    "{v}: int = <Line>.model_dump()['qty']",
    "row: dict[str, Any] = order.model_dump(mode='json'); {v} = len(row)",
    "{v} = len({{echo(one) % 2 for one in <list[int]>}})",
    "{v} = 1 if any(echo(one) > 1 for one in <list[int]>) else 0",
    "{v} = 1 if all(echo(one) < 5 for one in xs if one != <int.>) else 0",
    "{v} = [(one, two, echo(two)) for one in <list[int]> for two in range(one)][0][2]",
    "{v} = echo(<int>) + max((echo(one) for one in <list[int]>), default=<int.>)",
    "if ({w} := echo(<int>)) > 1: {v} = {w}",
    "{v} = ({w} := <int>) + {w}",
    "while ({w} := echo(<int>)) < 2: {v} += 1; {v} += {w}",
    "{v}, *{w} = <list[int]>; {v} += len({w}); {w}.append(1)",
    "*{w}, {v} = [*<list[int]>, <int>]; {v} += sum({w})",
    "{w} = {{'n': <int>, 's': <str>, 'l': [<int>]}}; {w}['n'] += 1; {v} = {w}['n']",
    "{w} = {{'n': <int>, 's': <str>}}; {w}['n'] = echo(<int>); {v} = len({w}['s']) + {w}['n']",
    "{w} = {{'l': [<int>], 's': None}}; {w}['l'].append(<int>); {v} = {w}['l'][-1]",
    "{w} = [1, 2]; {w}[0] += echo(<int>); {v} = {w}[0]",
    "{w} = set(<list[int]>) ^ {{<int>, 1}}; {w} ^= {{2}}; {v} = sum({w})",
    "{w} = lambda one: one + <int>; {v} = {w}(<int>)",
    "{w} = re.match('(a|k)(.)?', <str>)\nif {w}: {v} = len({w}.group(1)) + len({w}[2] or '')",
    "{w} = LETTER.search(<str>)\n{v} = len({w}['q']) if {w} is not None else -1",
    "if ({w} := re.fullmatch('(.)(,(.))?', <str>)) and <bool>: {v} = len({w}.groups()[0])",
    "{w} = list(<list[int]>)\nkeep_in({w}, <int>)\n{v} = keep_in({w}, echo(<int.>))\nlook({w})",
    (
        "{w} = [<int>]\ndef {w}add(one: int) -> int:\n    nonlocal {v}\n    {v} += one\n"
        "    {w}.append(one)\n    return echo({v})\n{w}add(<int>)\n{w}add(len({w}))\nlook({w})"
    ),
    (
        "{w} = Basket(notes={{'a': <int>}})\n{w}.put(Line(sku=<str>), <int>)\n"
        "{v} = {w}.put(Line(sku='z'), echo(<int.>))\nlook({w})"
    ),
    (
        "{w} = list(<list[int]>)\ntry:\n    {v} = keep_in({w}, 10 // <int.>)\n"
        "    keep_in({w}, flaky(1))\nexcept Exception:\n    {w}.append(7)\nlook({w})"
    ),
    "try:\n    while True:\n        {v} += echo([1, 2, 3][{v}])\nexcept Exception:\n    {v} += 10",
    "try:\n    {v} = d[<str.>] + xs[<int.>]\nexcept LookupError as err:\n    say(f'{{err}}!')",
    "try:\n    {v} += 7 // (n - <int.>)\nexcept ArithmeticError as err:\n    say(str(err))",
    "try:\n    {v} = int(<str>) % 9\nexcept ValueError as err:\n    say(str(err))",
    "try:\n    {v} = max(<list[int]>) - min(xs)\nexcept ValueError as err:\n    say(str(err))",
    (
        "{w} = list(<list[int]>)\ntry:\n    {v} = {w}.pop(<int.>)\n    del {w}[<int.>]\n"
        "    {v} += {w}.pop()\nexcept IndexError as err:\n    say(f'{{err}}')\nlook({w})"
    ),
    (
        "{w} = dict(d)\ntry:\n    del {w}[<str.>]\n    {v} += {w}.pop(<str.>)\n"
        "    {v} += max({w}.pop('a', 1), max(<list[int]>))\n"
        "except Exception as err:\n    say(f'{{type(err).__name__}} {{err}}')\nlook({w})"
    ),
    "{w} = {{'a': [1]}}\ntry:\n    {w}[<str.>].append(<int>)\nexcept KeyError:\n    say('none')",
    (
        "{w}: dict[str, int] = {{}}\nfor one in ['a', <str.>, 'a']:\n    try:\n"
        "        {w}[one] += d[one]\n    except KeyError:\n        {w}[one] = {v}\nlook({w})"
    ),
    "try:\n    {v} = d[<str.>] + 9 // xs[<int.>]\nexcept Exception as err:\n    say(f'{{err}}!')",
    "try:\n    {v} = TOOLS[<str>](value=<int>)\nexcept KeyError as err:\n    say(f'no {{err}}')",
    (
        "{w} = <str>\ntry:\n    {v} = TOOLS[{w}](value=<int>) if {w} in TOOLS else 7\n"
        "except Exception as err:\n    say(f'{{type(err).__name__}} {{err}}')"
    ),
    (
        "try:\n    {v} = picky_part(<int>)\nexcept IndexError as err:\n    say(f'{{err}}')\n"
        "except Exception as err:\n    say(f'{{type(err).__name__}} {{err}}')"
    ),
    (
        "try:\n    {v} = picky_part(<int>) + [0, 1][{v}]\n"
        "except (LookupError, Small) as err:\n    say(f'{{err}}')"
    ),
    (
        "try:\n    {v} = TOOLS[<str>](value=echo(<int>) // n)\n"
        "except LookupError as err:\n    say(f'{{err}}')"
    ),
    (
        "for {w} in each([<int>, 4], lambda one: picky_part(one), return_exceptions=True):\n"
        "    say(f'{{{w}}} {{isinstance({w}, IndexError)}}' if isinstance({w}, Exception) else '')"
    ),
    "try:\n    while True:\n        {v} += echo(1)\nexcept Problem:\n    {v} += <int.>",
    "{v} = first(lambda: echo(<int>), lambda: ticking(<int>))",
    (
        "try:\n    {v} = first(lambda: ticking(<int>), lambda: flaky(<int>))\n"
        "except Small:\n    {v} = 2"
    ),
    "{w} = Wrapped(what=<list[int]>); look({w}); {v} = {w}.number",
    "{w} = Wrapped(what=<str>).what; look({w})",
    "{w}_0 = basket_of(<int>); {w} = {w}_0; {w}.lines.append(Line(sku=<str>)); look({w})",
    "{w}_0 = basket_of(<int>); {w} = {w}_0.lines; {w}.append(Line(sku=<str>)); look({w})",
    "{w}_0 = basket_of(<int>); {w} = {w}_0.model_copy(); {w}.lines.clear(); look({w})",
    "for _ in '12':\n    {w}_0 = basket_of(<int>); {w} = {w}_0 or Basket(); {w}.notes['a'] = 1",
    "{w}_0 = basket_of(<int>); {w} = {w}_0.skus(); {w}_0.lines.clear(); {w} += ['']; look({w})",
    "{w}_0 = basket_of(<int>)\nmatch {w}_0:\n    case Basket() as {w}: {w}.lines = []; look({w})",
    "for {w} in {{'a': <bool>, 'b': <int>, 'c': <str>}}.values():\n    {v} += 1 if {w} else 2",
)


class PartStatements(Drawing):
    """A model of the workflow's own, and several changes of its parts."""

    def _parts(self, _depth: int) -> tuple[Rows, bool]:
        name, number, other = (self.expressions.new_name() for _ in range(3))
        maker = self._filled(self.choices.pick(_MAKERS), name, number, other)
        rows = [f"{name} = {maker}", f"{number} = 0", f"{other}: Any = 0"]
        shared = self.choices.pick([*[0] * 15, 12])
        inner: Rows = []
        for _ in range(2 + self.choices.below(5)):
            patterns = _SHARED if shared and self.choices.chance(shared) else _CHANGES
            pattern = self.choices.pick(patterns)
            self.counts[f"part {pattern}"] += 1
            inner.append(self._filled(pattern, name, number, other))
        if self.choices.chance(30):
            inner = ["for _ in range(2):", *(f"    {row}" for row in inner)]
        if any("raise Rejected" in row for row in inner) and self.choices.chance(70):
            caught = self.expressions.new_name()
            text = f"f'{{{caught}}} {{{caught}.reason}} {{{caught}.number + 1}}'"
            inner = ["try:", *(f"    {row}" for row in inner), f"except Rejected as {caught}:"]
            inner += [f"    {name}.status = {text}"]
        rows += [*inner, f"look([{name}, {other}])"]
        return [*rows, self._assigned("int", number)], True

    def _filled(self, pattern: str, name: str, number: str, other: str) -> str:
        return self.expressions.filled(pattern.format(x=name, v=number, w=other), 1)

    def _habit(self, _depth: int) -> tuple[Rows, bool]:
        """What a first draft has."""
        number, other = self.expressions.new_name(), self.expressions.new_name()
        pattern = self.choices.pick(_HABITS)
        self.counts[f"habit {pattern}"] += 1
        rows = [f"{number} = 0", *self._filled(pattern, "", number, other).split("\n")]
        return [*rows, self._assigned("int", number)], True
