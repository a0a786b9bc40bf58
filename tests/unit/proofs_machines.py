"""Random machines with loops, lanes, retries and handlers, and one random run of each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from holdfast.core.facts import FailedWith, StopRequested, Succeeded, Tick
from holdfast.core.state import Attempt, Awaiting
from tests.unit.core_kit import Case

Json = dict[str, Any]
_Part = Callable[[int, str | None], tuple[Json, str]]
ERRORS = ["Broken", "Busy", "States.Timeout"]
ATTEMPTS_OF_A_RUN_MAX = 3_000


class Machines:
    """Draws one machine; names of states and variables are unique in it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0
        #: Innermost first, as they are drawn from the inside.
        self.undos: list[Json] = []
        self.deadlines: list[Json] = []
        self.shielded: list[list[str]] = []

    def machine(self) -> Json:
        states, start = self.block(depth=3, after=None)
        extension = {"Undo": self.undos, "Deadlines": self.deadlines, "Shielded": self.shielded}
        top = {"QueryLanguage": "JSONata", "StartAt": start, "States": states}
        used = {name: parts for name, parts in extension.items() if parts}
        return {**top, "Holdfast": used} if used else top

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def block(self, depth: int, after: str | None) -> tuple[Json, str]:
        """Some states in a row, from the last to the first. -> them, and where they begin."""
        states: Json = {}
        for _ in range(self.random.randint(1, 3)):
            made, after = self.part(depth, after)
            states |= made
        assert after is not None
        return states, after

    def part(self, depth: int, after: str | None) -> tuple[Json, str]:
        draws: list[_Part] = [self.task, self.task, self.wait]
        if depth > 0:
            draws += [self.loop, self.counted, self.choice, self.parallel, self.mapped]
            draws += [self.undone, self.timed, self.in_shield]
        return self.random.choice(draws)(depth - 1, after)

    def _goes(self, after: str | None) -> Json:
        return {"End": True} if after is None else {"Next": after}

    def _retry(self) -> list[Json]:
        errors = self.random.sample([*ERRORS, "States.TaskFailed"], 2)
        return [
            {"ErrorEquals": [error], "MaxAttempts": self.random.randint(0, 2)}
            for error in errors[: self.random.randint(0, 2)]
        ]

    def _handled(self, after: str | None) -> tuple[Json, Json]:
        """Return fields of a state that may fail, and the states that they lead to."""
        fields: Json = {"Retry": self._retry()}
        if self.random.random() < 0.5:
            return fields, {}
        name = self.name("caught")
        fields["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": name}]
        return fields, {name: {"Type": "Pass", **self._goes(after)}}

    def task(self, depth: int, after: str | None) -> tuple[Json, str]:
        name = self.name("task")
        fields, more = self._handled(after)
        assign = {self.name("v"): self.random.choice(["{% $states.result %}", "{% 1/0 %}", 1])}
        task = {"Type": "Task", "Resource": "holdfast:task:t", "Assign": assign, **fields}
        return {name: {**task, **self._goes(after)}, **more}, name

    def wait(self, depth: int, after: str | None) -> tuple[Json, str]:
        name = self.name("wait")
        return {name: {"Type": "Wait", "Seconds": 5, **self._goes(after)}}, name

    def choice(self, depth: int, after: str | None) -> tuple[Json, str]:
        name = self.name("choice")
        left, left_at = self.block(depth, after)
        right, right_at = self.block(depth, after)
        rule = {"Condition": "{% $random() < 0.5 %}", "Next": left_at}
        choice = {"Type": "Choice", "Choices": [rule], "Default": right_at}
        return {name: choice, **left, **right}, name

    def loop(self, depth: int, after: str | None) -> tuple[Json, str]:
        """Through the list of the input, as the compiler writes it."""
        index, head, setup = self.name("i"), self.name("for"), self.name("setup")
        body, body_at = self.block(depth, head)
        items = self.name("items")
        rule = {
            "Condition": f"{{% ${index} < $count(${items}) %}}",
            "Assign": {index: f"{{% ${index} + 1 %}}"},
            "Next": body_at,
        }
        given = "{% $states.context.Execution.Input.xs %}"
        end, states = self._behind(after)
        return {
            setup: {"Type": "Pass", "Assign": {index: 0, items: given}, "Next": head},
            head: {"Type": "Choice", "Choices": [rule], "Default": end},
            **body,
            **states,
        }, setup

    def counted(self, depth: int, after: str | None) -> tuple[Json, str]:
        """`while n < limit:` with the step in the body."""
        number, head, setup, step = (self.name(stem) for stem in ("n", "while", "set", "step"))
        body, body_at = self.block(depth, step)
        operator = self.random.choice(["<", "<="])
        test = f"${number} {operator} {self.random.randint(0, 4)}"
        end, states = self._behind(after)
        rules = [{"Condition": f"{{% $not({test}) %}}", "Next": end}]
        default = body_at
        if self.random.random() < 0.5:
            rules, default = [{"Condition": f"{{% {test} %}}", "Next": body_at}], end
        more = f"{{% ${number} + {self.random.randint(1, 2)} %}}"
        return {
            setup: {"Type": "Pass", "Assign": {number: self.random.randint(-2, 2)}, "Next": head},
            head: {"Type": "Choice", "Choices": rules, "Default": default},
            step: {"Type": "Pass", "Assign": {number: more}, "Next": head},
            **body,
            **states,
        }, setup

    def undone(self, depth: int, after: str | None) -> tuple[Json, str]:
        """A part with something to take back, when it is cancelled."""
        body, start = self.block(depth, after)
        begin, end = self.name("undo"), self.name("undone")
        self.undos.append({"States": list(body), "Begin": begin, "End": end})
        task = {"Type": "Task", "Resource": "holdfast:task:undo", "Retry": self._retry()}
        catch = [{"ErrorEquals": ["States.ALL"], "Next": end}]
        undo = {begin: {**task, "Catch": catch, "Next": end}, end: {"Type": "Fail"}}
        return {**body, **undo}, start

    def timed(self, depth: int, after: str | None) -> tuple[Json, str]:
        body, start = self.block(depth, after)
        begin = self.name("timeout")
        block = {"Begin": begin, "Seconds": 60, "States": list(body)}
        states, end = {begin: {"Type": "Pass", "Next": start}, **body}, self.name("late")
        if self.random.random() < 0.7:
            block["Next"] = end
            states[end] = {"Type": "Pass", **self._goes(after)}
        self.deadlines.append(block)
        return states, begin

    def in_shield(self, depth: int, after: str | None) -> tuple[Json, str]:
        body, start = self.block(depth, after)
        self.shielded.append(list(body))
        return body, start

    def _behind(self, after: str | None) -> tuple[str, Json]:
        if after is not None:
            return after, {}
        name = self.name("end")
        return name, {name: {"Type": "Succeed"}}

    def parallel(self, depth: int, after: str | None) -> tuple[Json, str]:
        name = self.name("parallel")
        fields, more = self._handled(after)
        branches = []
        for _ in range(self.random.randint(1, 3)):
            states, start = self.block(depth, None)
            branches.append({"StartAt": start, "States": states})
        extension = {}
        if self.random.random() < 0.3:
            extension = {"Holdfast": {"Needed": 1, "Tolerated": self.random.randint(0, 1)}}
        state = {"Type": "Parallel", "Branches": branches, **fields, **extension}
        return {name: {**state, **self._goes(after)}, **more}, name

    def mapped(self, depth: int, after: str | None) -> tuple[Json, str]:
        name = self.name("map")
        fields, more = self._handled(after)
        states, start = self.block(depth, None)
        state = {
            "Type": "Map",
            "Items": self.random.choice(["{% $states.context.Execution.Input.xs %}", [1, 2]]),
            "MaxConcurrency": self.random.randint(0, 2),
            "ItemProcessor": {"StartAt": start, "States": states},
            **fields,
        }
        return {name: {**state, **self._goes(after)}, **more}, name


def random_run(definition: Json, data: Any, random: Random) -> Case:
    """Started, and driven to its end by random results, failures, and sometimes a stop."""
    case = Case(definition)
    case.start(data)
    for _ in range(ATTEMPTS_OF_A_RUN_MAX):
        if case.status != "RUNNING":
            return case
        if random.random() < 0.005:
            case.offer(StopRequested(f"control-{len(case.events)}", "Stopped", None))
            continue
        open_ = [
            frame.waiting
            for frame in case.state.frames.values()
            if isinstance(frame.waiting, Attempt | Awaiting)
        ]
        if not open_ or random.random() < 0.2:
            case.now_ms += 100_000
            case.offer(Tick())
        if open_:
            waiting = random.choice(open_)
            outcome: Any = Succeeded(waiting.entry, waiting.attempt, 1)
            if random.random() < 0.3:
                error = random.choice(ERRORS)
                outcome = FailedWith(waiting.entry, waiting.attempt, error, None)
            case.offer(outcome)
    raise AssertionError("the run does not end")
