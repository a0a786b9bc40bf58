"""The proof: may an execution at a position move from the old definition to the new one?

Each rule, with the failure that it prevents:

    step       each line is at a step that the new definition has, of the same kind, in the same
               branch of the same block: otherwise no code could take the result of the open wait
    arguments  an open task or event has the arguments that the new definition gives it: otherwise
               the registration or the call would be another one
    branches   a block has as many branches, and those that have ended are unchanged: otherwise
               their results would have another meaning
    scopes     the same time limits and undo scopes surround the line, and each registered undo step
               exists: otherwise a time limit would be missing, or an undo step would be lost
    variables  each variable that may be read later has a value, in the form that the new version
               has: otherwise a later step would fail
    passed     no step of the new definition that may come before this place is left out
    again      no step that may have run is run again

All of this is decided from names and the two definitions. So equal positions have one proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from holdfast.asl.documents import StateJson
from holdfast.asl.resources import CHOSEN_POOL, POOL, is_polled
from holdfast.core.migrating import keeps_key
from holdfast.migration.matching import Matching, Renames, branch_text, contents_differ, match
from holdfast.migration.model import Line, Obstacle, Plan, Position, Source, Verdict
from holdfast.migration.shapes import ShapeComparison
from holdfast.migration.version import Place, Version, task_of

#: For each kind of wait, the fields of the state that were evaluated before it began. A new
#: definition may change them, because that has no effect on the wait.
_ASKED: Final[Mapping[str, tuple[str, ...]]] = {
    "running": ("Arguments", "Credentials"),
    "retry": ("Arguments", "Credentials"),
    "limit": ("Arguments", "Credentials"),
    "answer": ("Arguments", "Credentials"),
    "event": ("Arguments",),
}
_NAMES_SHOWN_MAX: Final = 5


class Migration:
    """The moves from one definition to another. It stores what the proofs of several positions
    need.
    """

    def __init__(self, old: Version, new: Version) -> None:
        self.old = old
        self.new = new
        self.renames = Renames.between(old, new)
        self.matching: Matching = match(old, new, self.renames)
        self._variables = self.renames.variables(old, new)
        self._origin = {to: name for name, to in self.matching.states.items()}

    def judge(self, position: Position) -> Verdict:
        """Return the plan of the move, or every reason against it."""
        if position.unready:
            return Verdict(
                [Obstacle(position.lines[0].state if position.lines else "", position.unready)],
                None,
            )
        if not keeps_key(self.old.source_map, self.new.source_map):
            why = "the new version has another key, or starts on another event"
            return Verdict([Obstacle(position.lines[0].state if position.lines else "", why)], None)
        found = [one for line in position.lines for one in self._obstacles(line)]
        found = list(dict.fromkeys(found))
        return Verdict(found, None) if found else Verdict([], self._plan(position))

    # -- one line ----------------------------------------------------------------------------------

    def _obstacles(self, line: Line) -> Iterator[Obstacle]:
        to = self.matching.states.get(line.state)
        if to is None:
            yield self._missing_step(line)
            return
        place, target = self.old.places[line.state], self.new.places[to]
        found = [*self._of_step(line, place, target), *self._of_branches(line, place, target)]
        found += [*self._of_scopes(line, place, target)]
        # If there is a reason already, skip the other rules. They would report the same in other
        # words.
        if not found:
            found = [*self._of_variables(line, target), *self._of_steps(line, target)]
        yield from found

    def _say(self, line: Line, why: str, new: str | None = None) -> Obstacle:
        at = Source() if new is None else self.new.source(new)
        return Obstacle(line.state, why, self.old.source(line.state), at)

    def _missing_step(self, line: Line) -> Obstacle:
        candidates = self.matching.ambiguous.get(line.state, ())
        if not candidates:
            why = f"the new version has no step `{line.state}`"
            return self._say(line, f"{why}; if it has another name, say so with `renamed=`")
        names = ", ".join(f"`{name}`" for name in candidates[:_NAMES_SHOWN_MAX])
        why = f"`{line.state}` may be any of {names} in the new version; say which with `renamed=`"
        return self._say(line, why, candidates[0])

    def _of_step(self, line: Line, place: Place, target: Place) -> Iterator[Obstacle]:
        old, new = _kind_of(place), _kind_of(target)
        if old != new:
            yield self._say(line, f"`{line.state}` is {old} and becomes {new}", target.name)
            return
        owner = None if place.owner is None else self.matching.states.get(place.owner)
        if owner != target.owner or place.branch != target.branch:
            yield self._say(
                line, f"`{target.name}` stands in another block of branches", target.name
            )
        renamed = self._task_renamed(place, target)
        if renamed is not None:
            yield self._say(line, renamed, target.name)
        asked = _ASKED.get(line.standing, ())
        pair = place.state, target.state
        if contents_differ(pair, asked, self.renames, self._variables):
            yield self._say(
                line,
                f"`{line.state}` has begun with other arguments than `{target.name}` has now",
                target.name,
            )
        if line.standing in ("ask", "token"):
            before, after = (one.source_map.get("answers", {}) for one in (self.old, self.new))
            if before.get(line.state) != after.get(target.name):
                why = f"the answer to `{line.state}` has another type"
                yield self._say(line, why, target.name)
        if line.standing == "limit" and task_of(place.state) != task_of(target.state):
            why = f"`{line.state}` waits at the limit of its old name: ask again when it has begun"
            yield self._say(line, why, target.name)
        if line.standing == "answer" and task_of(place.state) != task_of(target.state):
            # A worker of the new code does not have the old name, so it could not run this attempt.
            why = f"`{line.state}` is in a pool by its old name: ask again when it has ended"
            yield self._say(line, why, target.name)

    def _task_renamed(self, place: Place, target: Place) -> str | None:
        """Return why the step would call another function; None when it would not."""
        old, new = task_of(place.state), task_of(target.state)
        if self.renames.tasks.get(old, old) == new:
            return None
        why = f"`{place.name}` calls {old} and would call {new}"
        return f"{why}; if the task was renamed, say so with `@task(renamed=…)`"

    def _of_branches(self, line: Line, place: Place, target: Place) -> Iterator[Obstacle]:
        if line.standing != "lanes" or _kind_of(place) != _kind_of(target):
            return
        before = place.level.inner[place.name]
        after = target.level.inner[target.name]
        if len(before) != len(after):
            why = f"`{line.state}` has {len(before)} branches and would have {len(after)}"
            yield self._say(line, why, target.name)
            return
        if line.ended and _returns_errors(place.state) != _returns_errors(target.state):
            why = f"`{line.state}` has results, and errors are results in one of the versions only"
            yield self._say(line, why, target.name)
        is_map = place.state["Type"] == "Map"
        for number in sorted({0 if is_map else one for one in line.ended}):
            old = branch_text(self.old, place.name, number, self.renames, self._variables)
            new = branch_text(self.new, target.name, number, Renames(), {})
            if old != new:
                what = "iterations" if is_map else f"branch {number + 1}"
                why = f"{what} of `{line.state}` ended with results of the old code"
                yield self._say(line, f"{why}, and that code has changed", target.name)

    def _of_scopes(self, line: Line, place: Place, target: Place) -> Iterator[Obstacle]:
        limits = self.new.deadlines(target.name)
        if limits and len(limits) != len(line.deadlines):
            clocks = f"the clocks of {len(line.deadlines)} run"
            why = f"{len(limits)} time limits surround `{target.name}`, and {clocks}"
            yield self._say(line, why, target.name)
        before, after = self.old.undo_scopes(place.name), self.new.undo_scopes(target.name)
        if len(before) != len(after):
            why = f"{len(before)} undo scopes surround `{line.state}`, and {len(after)} would"
            yield self._say(line, why, target.name)
            return
        known = frozenset().union(*(self.new.undone_by(undo, target.level) for undo in after))
        lost = [task for task in line.undo if self.renames.tasks.get(task, task) not in known]
        if lost:
            why = (
                f"the undo step {_names(lost)} is registered, and the new version does not know it"
            )
            yield self._say(line, why, target.name)

    def _of_variables(self, line: Line, target: Place) -> Iterator[Obstacle]:
        lists = self._undo_lists(line)
        taken = set(self._variables.values())
        kept = (name for name in line.variables if name in self._variables or name not in taken)
        of = {self._variables.get(name, name): name for name in kept}
        has = {*of, *lists.values()}
        forms = ShapeComparison(
            self.old.source_map.get("shapes", {}), self.new.source_map.get("shapes", {})
        )
        is_anew = line.standing == "again"
        missing: dict[str, list[str]] = {}
        computed = self._computable(line.variables)
        for name, reader in self.new.read_from(target.name, from_the_start=is_anew).items():
            if name in computed:
                why = self._misread(computed[name])
                if why is not None:
                    told = f"the migration function `{name}` reads another form: {why}"
                    yield self._say(line, told, reader)
            elif name not in has:
                missing.setdefault(reader, []).append(name)
            elif name in of and (misfit := forms.misfit(of[name], name)) is not None:
                yield self._say(line, f"`{reader}` reads another form: {misfit}", reader)
        for reader, names in sorted(missing.items()):
            why = f"`{reader}` reads {_names(sorted(names))}, which this execution has not computed"
            yield self._say(line, why, reader)

    def computed(self, state: str, variables: Iterable[str], *, is_anew: bool) -> dict[str, Any]:
        """Return the rules of the variables that migration functions compute for a line.

        `variables`: those that the line can read. `is_anew`: the state is entered again.
        """
        to = self.matching.states[state]
        needed = self.new.read_from(to, from_the_start=is_anew)
        found = self._computable(variables)
        return {name: rule for name, rule in found.items() if name in needed}

    def _computable(self, variables: Iterable[str]) -> dict[str, Any]:
        """Return the rules whose inputs the line has."""
        has = frozenset(variables)
        rules: Mapping[str, Any] = self.new.hints.get("computed", {})
        return {name: rule for name, rule in rules.items() if has.issuperset(rule["reads"])}

    def _misread(self, rule: Mapping[str, Any]) -> str | None:
        forms = ShapeComparison(self.old.source_map.get("shapes", {}), rule["shapes"])
        found = (forms.misfit(name, name) for name in rule["reads"])
        return next((why for why in found if why is not None), None)

    def _undo_lists(self, line: Line) -> dict[str, str]:
        """Return the variables with undo steps, old name to new name, for each undo scope around
        the line.
        """
        to = self.matching.states[line.state]
        pairs = zip(self.old.undo_scopes(line.state), self.new.undo_scopes(to), strict=True)
        names = ((self.old.undo_list(old), self.new.undo_list(new)) for old, new in pairs)
        return {
            old: new
            for old, new in names
            if old is not None and new is not None and old in line.variables
        }

    def _of_steps(self, line: Line, target: Place) -> Iterator[Obstacle]:
        """Yield the steps that would be left out, and those that would run again."""
        done, ahead = self.old.before(line.state), self.new.after(target.name)
        for step in sorted(self.new.before(target.name)):
            origin = self._origin.get(step)
            if origin in done or self._is_assumed(step):
                continue
            why = f"`{step}` may stand before `{target.name}` in the new version"
            why = f"{why}, and this execution has not run it"
            yield self._say(line, f"{why}; if that is right, say so with `assumed_done=`", step)
        before = self.new.before(target.name)
        again = self.old.after(line.state)
        for step in sorted(done - again):
            to = self.matching.states.get(step)
            if to is not None and to in ahead and to not in before:
                yield self._say(line, f"`{to}` may have run, and would run again", to)

    def _is_assumed(self, step: str) -> bool:
        named = {step, task_of(self.new.places[step].state)}
        return bool(named & self.renames.assumed_done)

    # -- the plan ----------------------------------------------------------------------------------

    def _plan(self, position: Position) -> Plan:
        states = {line.state: self.matching.states[line.state] for line in position.lines}
        variables = dict(self._variables)
        deadlines: dict[int, int | None] = {}
        for line in position.lines:
            variables |= {old: new for old, new in self._undo_lists(line).items() if old != new}
            limits: list[int | None] = [*self.new.deadlines(states[line.state])]
            pairs = zip(line.deadlines, limits or [None] * len(line.deadlines), strict=True)
            deadlines |= {old: new for old, new in pairs if old != new}
        tasks = self._tasks()
        lists = {name for line in position.lines for name in self._undo_lists(line).values()}
        undo = sorted(lists) if tasks else []
        return Plan(states, variables, tasks, deadlines, self._retries(states), undo)

    def _tasks(self) -> dict[str, str]:
        known = {task_of(place.state) for place in self.old.places.values()}
        return {old: new for old, new in self.renames.tasks.items() if old in known}

    def _retries(self, states: Mapping[str, str]) -> dict[str, dict[int, int]]:
        """Return, for each state whose retry rules differ, the rules that are unchanged. Retries by
        other rules are not counted any longer.
        """
        found = {}
        for old, new in states.items():
            before, after = (
                [rule.get("ErrorEquals") for rule in place.state.get("Retry", ())]
                for place in (self.old.places[old], self.new.places[new])
            )
            if before != after:
                found[new] = {
                    number: after.index(errors)
                    for number, errors in enumerate(before)
                    if errors in after
                }
        return found


def _returns_errors(state: StateJson) -> bool:
    return bool(state.get("Holdfast", {}).get("ReturnErrors", False))


def _kind_of(place: Place) -> str:
    """Return what kind of step it is, for a message."""
    state = place.state
    match state["Type"]:
        case "Task":
            resource = str(state["Resource"])
            return {
                "holdfast:event.waitForTaskToken": "a wait for an event",
                "holdfast:ask.waitForTaskToken": "a question",
                "holdfast:token.waitForTaskToken": "a wait for a callback",
            }.get(resource, _kind_of_call(resource, task_of(state)))
        case "Wait":
            return "a timer"
        case "Parallel":
            return "a block of branches"
        case "Map":
            return "a loop of branches"
        case other:
            return f"a {other}"


def _kind_of_call(resource: str, task: str) -> str:
    if resource == CHOSEN_POOL:
        return "a task of a pool that the workflow chooses"
    if resource.startswith(POOL):
        return f"a task of the pool {resource.removeprefix(POOL)}"
    if is_polled(resource):
        # A polled task never gives null to the next steps, while another task may. So the proof
        # treats them as different kinds of tasks.
        return "a task that is called until it returns a value"
    return "a task" if task else f"a call of {resource}"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN_MAX} more" if len(names) > _NAMES_SHOWN_MAX else ""
    return ", ".join(f"`{name}`" for name in names[:_NAMES_SHOWN_MAX]) + more
