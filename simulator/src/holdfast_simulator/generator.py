"""Random programs: machines with every extension in one another, and all that they meet.

A machine is laid out as the compiler lays it out: each part names its states anew, a step that is
taken back stands before the part that its undo covers, and an error in that part leads to the undo,
and from its end to the next one around it. A machine whose own language is JSONPath says so of each
state that is written in JSONata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

from holdfast.asl import error_names
from holdfast_simulator.generated_maps import distributed
from holdfast_simulator.scenarios import AttemptOutcome, Brought, Scenario

MachineJson: TypeAlias = dict[str, Any]

SECONDS_MAX: Final = 100
#: The approximate maximum of one machine: larger machines find no faults that two small ones do
#: not.
STATES_MAX: Final = 40
_DEPTH_MAX: Final = 4
_LANES_MAX: Final = 3
#: How often one state may run, in loops and Maps inside of each other; then the same for a state
#: that starts a child.
_TIMES_MAX: Final = 8
_CHILD_TIMES_MAX: Final = 2
_ALL: Final = [error_names.ALL]
_TASKS: Final = ("work", "ship", "charge")
#: Event names and keys are few, so that waits collide.
_EVENTS: Final = (("paid", "k1"), ("paid", "k2"), ("paid", "k1"), ("signed", "k1"))
#: Of the tasks with a number that this divides, those that wait for an event take no kept one. No
#: chance is drawn for it, so the other parts of a seed's machine stay as they are.
_OLD_REFUSED_EVERY: Final = 3
_ERRORS: Final = ("Broken", "Busy", error_names.TIMEOUT)
_RETRIED: Final = (["Broken"], [error_names.TASK_FAILED], ["Busy", error_names.TIMEOUT])

_OUTPUTS: Final = (
    "{% {'at': $states.context.State.Name, 'of': $string($states.input) ~> $length()} %}",
    "{% $type($states.input) %}",
    "{% [$states.context.State.Name, $count($states.input)] %}",
    "{% $states.input %}",
    "{% $states.context.Execution.Input %}",
    "{% $exists($tries) ? $tries : 'no tries' %}",
    "{% $exists($states.context.Map) ? $states.context.Map.Item : [] %}",
)
#: Undefined outside of a Map, so this always fails.
_FAILING: Final = ("{% $states.context.Map.Item.Index %}", "{% $error('no') %}")
_RESULTS: Final = ("{% $states.result %}", "{% {'got': $type($states.result)} %}", *_OUTPUTS)
_CONDITIONS: Final = (
    "{% $type($states.input) = 'object' %}",
    "{% $exists($states.input.got) %}",
    "{% $count($states.input) > 1 %}",
    "{% $length($string($states.input)) % 2 = 0 %}",
)
_PATH_TASK: Final[tuple[MachineJson, ...]] = (
    {},
    {"ResultPath": "$.result"},
    {"ResultPath": None},
    {"InputPath": "$.at"},
    {"Parameters": {"whole.$": "$", "state.$": "$$.State.Name"}},
    {"Parameters": {"n.$": "$.missing"}},
    {"ResultSelector": {"got.$": "$"}, "ResultPath": "$.inner.got"},
    {"OutputPath": "$.got"},
)
_PATH_PASS: Final[tuple[MachineJson, ...]] = (
    {"Result": {"at": "here"}},
    {"Result": [1, 2], "ResultPath": "$.list"},
    {"Parameters": {"in.$": "$", "size.$": "States.ArrayLength(States.Array(1, 2))"}},
    {"InputPath": "$.at"},
    {"OutputPath": None},
)
_PATH_RULES: Final[tuple[MachineJson, ...]] = (
    {"Variable": "$.at", "IsPresent": True},
    {"Variable": "$", "IsNull": True},
    {"And": [{"Variable": "$.got", "IsPresent": True}, {"Variable": "$.got", "IsString": True}]},
    {"Variable": "$.at", "StringEquals": "here"},  # It fails without such a field
)


@dataclass
class GeneratedLine:
    """The states of one line. `handler`: where an error goes, None: to the state that opened it."""

    states: dict[str, MachineJson] = field(default_factory=dict)
    handler: str | None = None


@dataclass
class Generator:
    """`machine()` gives one. `called` are the workflows that its tasks may call. `has_data`: states
    work on what flows, and so may fail by themselves and leave a part without its undo.
    `has_map_runs`: items of some Maps are executions of their own.
    """

    random: Random
    called: tuple[str, ...] = ()
    has_data: bool = False
    has_map_runs: bool = False
    undo: list[MachineJson] = field(default_factory=list)
    deadlines: list[MachineJson] = field(default_factory=list)
    shielded: list[list[str]] = field(default_factory=list)
    count: int = 0
    lanes: int = 0
    times: int = 1
    asked: list[str] = field(default_factory=list)
    has_paths: bool = False

    def machine(self) -> MachineJson:
        self.has_paths = self.has_data and self.random.random() < 0.3
        level = GeneratedLine()
        end = self._end(level)
        if self.has_data and self.random.random() < 0.6:
            level.handler = self._add(level, self._name("rescue"), {"Type": "Pass", "Next": end})
        start = self._parts(level, 0, end)
        extension = {"Undo": self.undo, "Deadlines": self.deadlines, "Shielded": self.shielded}
        top: MachineJson = {"Holdfast": {name: one for name, one in extension.items() if one}}
        if self.random.random() < 0.2:
            top["TimeoutSeconds"] = self.random.randint(1, 3 * SECONDS_MAX)
        language = "JSONPath" if self.has_paths else "JSONata"
        return {"QueryLanguage": language, "StartAt": start, "States": level.states, **top}

    # -- parts: each adds its states to the level, and gives the name of the first -----------------

    def _parts(self, level: GeneratedLine, depth: int, target: str) -> str:
        for _ in range(1 if self._is_full() else self.random.randint(1, 3)):
            target = self._part(level, depth, target)
        return target

    def _part(self, level: GeneratedLine, depth: int, target: str) -> str:
        simple: list[Callable[[GeneratedLine, str], str]] = [
            self._task,
            self._task,
            self._pass,
            self._wait,
        ]
        if self.has_data:
            simple += [self._task, self._choice]
        if depth >= _DEPTH_MAX or self._is_full() or self.random.random() < 0.3:
            return self.random.choice(simple)(level, target)
        nested = [self._undone, self._undone, self._shield, self._block]
        if self.lanes < _LANES_MAX:
            nested.append(self._branches)
        if self.lanes < _LANES_MAX and self.times < _TIMES_MAX:
            nested.append(self._items)
        if self.has_map_runs and self.lanes < _LANES_MAX and self.times <= _CHILD_TIMES_MAX:
            nested.append(self._map_run)
        if self.has_data and self.times < _TIMES_MAX:
            nested.append(self._loop)
        return self.random.choice(nested)(level, depth, target)

    def _is_full(self) -> bool:
        """Return True when the parts that are still open need all remaining states."""
        return self.count > STATES_MAX // 2

    def _task(self, level: GeneratedLine, target: str) -> str:
        name = self._name("task")
        resource, arguments = self._work(name)
        body: MachineJson = {"Type": "Task", "Resource": resource, "Next": target}
        if arguments is None and self._is_in_paths():
            body |= self.random.choice(_PATH_TASK)
        else:
            body |= self._written({"Arguments": arguments or {}})
            if self.has_data and self.random.random() < 0.3:
                body |= {"Output": self._expression(_RESULTS)}
            elif self.has_data and self.random.random() < 0.2:
                body |= {"Assign": {"tries": "{% $states.context.State.RetryCount %}"}}
        if "waitForTaskToken" in resource or self.random.random() < 0.2:
            body["TimeoutSeconds"] = self.random.choice([5, SECONDS_MAX])
        return self._add(level, name, body | self._retried() | self._handled(level))

    def _work(self, name: str) -> tuple[str, Any]:
        """Return a Task's Resource and its Arguments; None where any will do."""
        chance = self.random.random()
        if chance < 0.2:
            event, key = self.random.choice(_EVENTS)
            arguments: MachineJson = {"event": event, "key": key}
            if self.count % _OLD_REFUSED_EVERY == 0:
                arguments["kept"] = False
            return "holdfast:event.waitForTaskToken", arguments
        if chance < 0.3:
            self.asked.append(name)
            asked = {"title": "Approve?", "assignee": "role:clerk"}
            return "holdfast:ask.waitForTaskToken", asked
        if chance < 0.45 and self.called and self.times <= _CHILD_TIMES_MAX:
            return f"holdfast:workflow:{self.random.choice(self.called)}", {}
        return f"holdfast:task:{self.random.choice(_TASKS)}", None

    def _pass(self, level: GeneratedLine, target: str) -> str:
        body: MachineJson = {"Type": "Pass", "Next": target}
        if self._is_in_paths():
            body |= self.random.choice(_PATH_PASS)
        elif self.has_data and self.random.random() < 0.6:
            body |= self._written({"Output": self._expression(_OUTPUTS)})
        return self._add(level, self._name("pass"), body)

    def _wait(self, level: GeneratedLine, target: str) -> str:
        seconds = self.random.randint(0, SECONDS_MAX)
        body: MachineJson = {"Type": "Wait", "Seconds": seconds, "Next": target}
        if self.has_data and self.random.random() < 0.2:
            body |= self._written({"Seconds": f"{{% $count($states.input) + {seconds} %}}"})
        return self._add(level, self._name("wait"), body)

    def _choice(self, level: GeneratedLine, target: str) -> str:
        """Add a Choice whose other branch fails, or has one more step."""
        other = self._add(level, self._name("fail"), {"Type": "Fail", "Error": "Chosen"})
        if self.random.random() < 0.8:
            other = self._task(level, target)
        if self._is_in_paths():
            rule = {**self.random.choice(_PATH_RULES), "Next": other}
            body: MachineJson = {"Type": "Choice", "Choices": [rule]}
        else:
            rule = {"Condition": self._expression(_CONDITIONS), "Next": other}
            body = self._written({"Type": "Choice", "Choices": [rule]})
        if self.random.random() < 0.9:
            body["Default"] = target
        return self._add(level, self._name("choice"), body)

    def _end(self, level: GeneratedLine) -> str:
        return self._add(level, self._name("end"), {"Type": "Succeed"})

    def _undone(self, level: GeneratedLine, depth: int, target: str) -> str:
        """Add a step and a part after it, as `with compensating(undo): …` compiles to."""
        begin, end = self._name("undo"), self._name("undone")
        outer = level.handler
        after: MachineJson = {"Type": "Fail", "Error": "Again"}
        if outer is not None:
            after = {"Type": "Pass", "Next": outer}
        catch = [{"ErrorEquals": _ALL, "Next": end}]
        inside = self._inside(level, depth, target, handler=begin)
        undo = {"Type": "Task", "Resource": "holdfast:task:undo", "Next": end, "Catch": catch}
        self._add(level, begin, undo)
        self._add(level, end, after)
        self.undo.append({"States": inside[1], "Begin": begin, "End": end})
        return self._task(level, inside[0])

    def _shield(self, level: GeneratedLine, depth: int, target: str) -> str:
        start, names = self._inside(level, depth, target, handler=level.handler)
        self.shielded.append(names)
        return start

    def _block(self, level: GeneratedLine, depth: int, target: str) -> str:
        begin, late = self._name("block"), self._task(level, target)
        start, names = self._inside(level, depth, target, handler=level.handler)
        self._add(level, begin, {"Type": "Pass", "Next": start})
        seconds = self.random.randint(1, SECONDS_MAX)
        block: MachineJson = {"Begin": begin, "Seconds": seconds, "States": names, "Next": late}
        # Definitions of earlier releases do not have the field.
        self.deadlines.append({**block, **({"Cuts": "steps"} if seconds % 3 else {})})
        return begin

    def _loop(self, level: GeneratedLine, depth: int, target: str) -> str:
        """Add a loop: for turns in range(…): …"""
        start, again, count = self._name("loop"), self._name("again"), self.random.randint(1, 2)
        turns = f"turns_{self.count}"
        self.times *= count
        body, _ = self._inside(level, depth, again, handler=level.handler)
        self.times //= count
        rule = {
            "Condition": f"{{% ${turns} < {count} %}}",
            "Next": body,
            "Assign": {turns: f"{{% ${turns} + 1 %}}"},
        }
        turn = self._written({"Type": "Choice", "Choices": [rule], "Default": target})
        self._add(level, again, turn)
        begin: MachineJson = {"Type": "Pass", "Next": again, "Assign": {turns: 0}}
        return self._add(level, start, self._written(begin))

    def _branches(self, level: GeneratedLine, depth: int, target: str) -> str:
        count = self.random.randint(1, 3)
        body: MachineJson = {
            "Type": "Parallel",
            "Branches": [self._lane(depth) for _ in range(count)],
        }
        extension = self._quorum(count)
        if self.random.random() < 0.3:
            extension["After"] = [
                [other for other in range(lane) if self.random.random() < 0.5]
                for lane in range(count)
            ]
        if self.random.random() < 0.2:
            body |= self._written(
                {"Arguments": {"tries": "{% $states.context.State.RetryCount %}"}}
            )
        return self._opened(level, body, extension, target)

    def _items(self, level: GeneratedLine, depth: int, target: str) -> str:
        count = self.random.randint(0, 4)
        self.times *= max(count, 1)
        body: MachineJson = {
            "Type": "Map",
            "Items": list(range(count)),
            "ItemProcessor": self._lane(depth),
            "MaxConcurrency": self.random.randint(1, 3),
        }
        self.times //= max(count, 1)
        if self.random.random() < 0.2:
            body["ItemSelector"] = "{% $states.context.Map.Item.Index = 1 ? $error('no') : 1 %}"
        return self._opened(level, self._written(body), self._quorum(max(count, 1)), target)

    def _map_run(self, level: GeneratedLine, depth: int, target: str) -> str:
        times, self.times = self.times, _CHILD_TIMES_MAX + 1  # An item must not start a child
        body = self._written(distributed(self.random, self._lane(depth)))
        self.times = times
        return self._opened(level, body, {}, target)

    def _opened(
        self, level: GeneratedLine, body: MachineJson, extension: MachineJson, target: str
    ) -> str:
        if extension:
            body["Holdfast"] = extension
        if self.random.random() < 0.3:
            body["Retry"] = [{"ErrorEquals": _ALL, "MaxAttempts": 1, "IntervalSeconds": 2}]
        return self._add(
            level, self._name("lanes"), {**body, "Next": target} | self._handled(level)
        )

    # -- what they are made of ---------------------------------------------------------------------

    def _inside(
        self, level: GeneratedLine, depth: int, target: str, *, handler: str | None
    ) -> tuple[str, list[str]]:
        """Return the first state of the parts in another one, and the names of all on this line."""
        inner = GeneratedLine(level.states, handler)
        before = set(level.states)
        start = self._parts(inner, depth + 1, target)
        return start, [name for name in level.states if name not in before]

    def _lane(self, depth: int) -> MachineJson:
        level = GeneratedLine()
        self.lanes += 1
        start = self._parts(level, depth + 1, self._end(level))
        self.lanes -= 1
        return {"StartAt": start, "States": level.states}

    def _quorum(self, count: int) -> MachineJson:
        extension: MachineJson = {}
        if self.random.random() < 0.4:
            extension["Needed"] = self.random.randint(1, count)
        if self.random.random() < 0.4:
            extension["Tolerated"] = self.random.randint(0, count)
        return extension

    def _handled(self, level: GeneratedLine) -> MachineJson:
        if level.handler is None:
            return {}
        return {"Catch": [{"ErrorEquals": _ALL, "Next": level.handler}]}

    def _retried(self) -> MachineJson:
        if self.random.random() < 0.7:
            return {}
        last: MachineJson = {"ErrorEquals": _ALL, "MaxAttempts": self.random.randint(0, 2)}
        first: MachineJson = {
            "ErrorEquals": self.random.choice(_RETRIED),
            "MaxAttempts": self.random.randint(0, 3),
            "IntervalSeconds": self.random.randint(1, 20),
            "BackoffRate": self.random.choice([1.0, 2.0, 10.0]),
        }
        if self.random.random() < 0.3:
            first |= {"MaxDelaySeconds": 30, "JitterStrategy": "FULL"}
        return {"Retry": self.random.choice([[first], [last], [first, last]])}

    def _expression(self, choices: tuple[str, ...]) -> str:
        """Return one of the expressions; sometimes one that fails or has another type than
        required.
        """
        return self.random.choice(_FAILING if self.random.random() < 0.05 else choices)

    def _is_in_paths(self) -> bool:
        return self.has_paths and self.random.random() < 0.5

    def _written(self, state: MachineJson) -> MachineJson:
        return {**state, "QueryLanguage": "JSONata"} if self.has_paths else state

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind} {self.count}"

    def _add(self, level: GeneratedLine, name: str, state: MachineJson) -> str:
        level.states[name] = state
        return name


# -- results of attempts ---------------------------------------------------------------------------


def scenario(random: Random, name: str) -> Scenario:
    """A family of machines, the results of their tasks, the answers and the events."""
    outer = Generator(random, called=("inner", "short"), has_data=True, has_map_runs=True)
    inner = Generator(random, called=("short",), has_data=True)
    short = Generator(random, has_data=True)
    machines = {"outer": outer.machine(), "inner": inner.machine(), "short": short.machine()}
    asked = [*outer.asked, *inner.asked, *short.asked]
    return Scenario(
        name=name,
        about="A random one.",
        machines=machines,
        input=_value(random),
        tasks={
            task: tuple(_outcome(random) for _ in range(random.randint(1, 3)))
            for task in (*_TASKS, "undo")
        },
        events=_events(random),
        answers={state: _outcome(random) for state in asked if random.random() < 0.8},
        stops=True,
    )


def _outcome(random: Random) -> AttemptOutcome:
    seconds = random.choice([0, 0, 0, 1, 7])
    if random.random() < 0.25:
        return AttemptOutcome(error=random.choice(_ERRORS), cause="why", seconds=seconds)
    if random.random() < 0.3:
        return AttemptOutcome(echo=True, seconds=seconds)
    return AttemptOutcome(output=_value(random), seconds=seconds)


def _events(random: Random) -> tuple[Brought, ...]:
    return tuple(
        Brought(random.randint(0, 3 * SECONDS_MAX), *random.choice(_EVENTS), number, f"e{number}")
        for number in range(random.randint(0, 12))
    )


def _value(random: Random) -> Any:
    values = [None, True, 1.5, "here", [1, 2, 3], {"at": "here"}, {"got": "it", "n": {"m": [0]}}]
    return random.choice(values)
