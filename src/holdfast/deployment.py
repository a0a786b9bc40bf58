"""One deployment: the user's modules, their compiled definitions, and how to run their tasks.

It wires the authoring side (`dsl`) to the engine (`runtime`); Lambda functions and the laptop build
the same one. Nothing is compiled in Lambda: definitions are read from the files beside the modules.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.api import payloads
from holdfast.api.boundary import Misfit, normalise_payload, schema_of
from holdfast.api.limits import Limit, Trip
from holdfast.api.registry import DeclaredLimits, Registry
from holdfast.api.runs_on import Lambda
from holdfast.api.schedules import Schedule
from holdfast.api.sealing import NO_VAULT, Seals, Vault
from holdfast.api.surface import InvalidResult, Task, TaskContext, TaskError, Workflow, running_task
from holdfast.api.tasks import Beats, HeartbeatMissed, Pulse
from holdfast.api.throttling import retry_after
from holdfast.api.tracebacks import error_name, error_text, secrets_near, traceback_of
from holdfast.asl import error_names
from holdfast.asl.parsing.parse import definition_hash
from holdfast.asl.program import Json
from holdfast.core.schedules import Rule
from holdfast.errors import GoneTypeError, RequestError, VaultFault, WorkflowError
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX
from holdfast.runtime.child_workflows import SECRET_UNAVAILABLE, Workflows
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded, TaskThrottled
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.gates.rules import (
    BatchRule,
    Breaker,
    LimitBook,
    LimitRule,
    LimitUse,
    interval_us_of,
)
from holdfast.runtime.schedules import Plan
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.json_values import plain_text, printable
from holdfast.runtime.worker.config import WorkerConfig

if TYPE_CHECKING:
    from holdfast.runtime.commands.api import Front

#: The logger of tasks. `serve` and the worker function show its lines; other programs must
#: configure `logging`.
_logger: Final = logging.getLogger("holdfast.tasks")
_logger.addHandler(logging.NullHandler())
_LOGGED_CHARACTERS_MAX: Final = 1_000

#: A function that returns the ASL and the map of a workflow.
Load = Callable[[Workflow[..., Any]], tuple[Json, dict[str, Any]]]


def load_compiled(workflow: Workflow[..., Any]) -> tuple[Json, dict[str, Any]]:
    """Reads `<workflow>.asl.json` and `<workflow>.map.json` beside the module."""
    module_file = sys.modules[workflow.function.__module__].__file__
    assert module_file is not None
    found = []
    for ending in ("asl", "map"):
        path = Path(module_file).with_name(f"{workflow.name}.{ending}.json")
        if not path.exists():
            raise WorkflowError(
                "HF102",
                f"workflow {workflow.name} has no {path.name}",
                help=f"run `holdfast compile {workflow.function.__module__}` and ship the files",
            )
        found.append(json.loads(path.read_text()))
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class Outside:
    """The engine as an attempt sees it that runs in another process. `pulse` takes the attempt's
    heartbeats; `is_over` returns True once the engine no longer waits for the attempt.
    """

    pulse: Beats | None
    is_over: Callable[[], bool]


@dataclass(frozen=True)
class Deployment:
    """`vault` seals the secrets of its tenants. `takes_sealed`: the data may hold secrets that are
    sealed already, because it comes from workflows.
    """

    registry: Registry
    definitions: Mapping[str, Definition]
    vault: Vault = NO_VAULT
    takes_sealed: bool = False

    @classmethod
    def from_modules(
        cls, names: Iterable[str], load: Load = load_compiled, vault: Vault = NO_VAULT
    ) -> Deployment:
        registry = Registry.from_modules(names)
        definitions = {}
        for name, workflow in registry.workflows.items():
            asl, source_map = load(workflow)
            called = source_map.get("tasks", ()), source_map.get("workflows", {})
            registry.require_known(name, *called, source_map.get("task_modules", {}))
            definitions[name] = Definition(asl, source_map, definition_hash(asl))
        return cls(registry, definitions, vault)

    @property
    def secrets(self) -> dict[str, tuple[str, ...]]:
        """The values of each workflow that are or hold secrets."""
        found = self.definitions.items()
        return {name: tuple(one.source_map.get("secrets", ())) for name, one in found}

    def programs(self) -> Programs:
        programs = Programs()
        for definition in self.definitions.values():
            programs.add(definition)
        return programs

    def setting(
        self, programs: Programs, keys: Callable[[], SigningKeys], status_source: str | None = None
    ) -> WorkerConfig:
        workflows = Workflows(self.definitions, replace(self, takes_sealed=True))
        gates = GateMemory(self.limits)
        return WorkerConfig(programs, self.knows, keys, status_source, workflows, gates=gates)

    @cached_property
    def limits(self) -> LimitBook:
        """The limits of the deployment's tasks."""
        of_task, of_workflow = map(_uses_of, self.registry.limits())
        found = {name: _batch_of(name, task) for name, task in self.registry.tasks.items()}
        batches = {name: batch for name, batch in found.items() if batch is not None}
        return LimitBook(of_task, of_workflow, batches)

    @property
    def schedules(self) -> dict[str, Plan]:
        """The schedules that the code declares, by the names of their workflows."""
        found = self.registry.workflows.items()
        return {
            name: _plan_of(name, one.schedule) for name, one in found if one.schedule is not None
        }

    def front(self, programs: Programs, keys: SigningKeys) -> Front:
        from holdfast.registration import DeployedGraphs  # noqa: PLC0415
        from holdfast.runtime.commands.api import Front  # noqa: PLC0415

        graphs = DeployedGraphs(self.registry, self.vault)
        return Front(programs, self.definitions, self, keys, limit_book=self.limits, graphs=graphs)

    # -- tasks -------------------------------------------------------------------------------------

    def knows(self, name: str, is_pure: bool) -> bool:
        return any(task.is_pure == is_pure for task in self.registry.called(name))

    def _task(self, name: str, workflow: str) -> Task[..., Any]:
        """Return the task that the workflow calls by this name."""
        task = self.registry.task(name, self._module_of(name, workflow))
        if task is None:
            raise KeyError(name)
        return task

    def _module_of(self, task: str, workflow: str) -> str:
        """Return the module whose task of this name the workflow calls; "" for a state machine."""
        found = self.registry.workflows.get(workflow)
        if found is None or workflow not in self.definitions:
            return ""
        modules: Mapping[str, str] = self.definitions[workflow].source_map.get("task_modules", {})
        return modules.get(task, found.function.__module__)

    def runs_on_function(self, effect: RunTask) -> Task[..., Any] | None:
        """Return the task that this attempt runs on a function of its own; None when it runs
        here.
        """
        if not self._has_functions or effect.kind != "task":
            return None
        task = self.registry.task(effect.name, self._module_of(effect.name, effect.workflow))
        return task if task is not None and isinstance(task.runs_on, Lambda) else None

    @cached_property
    def _has_functions(self) -> bool:
        tasks = (*self.registry.tasks.values(), *self.registry.namesakes.values())
        return any(isinstance(task.runs_on, Lambda) for task in tasks)

    def in_group(self, effect: RunTask) -> Task[..., Any] | None:
        """Return the task that this attempt runs in the function of its group; None when it runs
        here.
        """
        if not self.groups or effect.kind != "task":
            return None
        task = self.registry.task(effect.name, self._module_of(effect.name, effect.workflow))
        return task if task is not None and task.group is not None else None

    @cached_property
    def groups(self) -> frozenset[str]:
        """The groups of the tasks."""
        return frozenset(self.registry.modules_of_groups())

    def run_task(
        self, effect: RunTask, outside: Outside | None = None
    ) -> TaskSucceeded | TaskFailed | TaskThrottled:
        """Run the task that the workflow calls. `outside`: see `run`."""
        return self.run(self._task(effect.name, effect.workflow), effect, outside)

    def run(
        self, task: Task[..., Any], effect: RunTask, outside: Outside | None = None
    ) -> TaskSucceeded | TaskFailed | TaskThrottled:
        """Runs user code. Whatever it raises becomes the error of the attempt.

        Error: the exception's class name. Cause: its text. The idempotency key is that of the
        entry, so every attempt and every repetition of one step has the same. `outside`: how the
        attempt and the engine hear of each other when the engine is in another process.
        """
        seals = Seals(self.vault, effect.tenant)
        context = context_of(effect)
        if outside is not None:
            context = replace(context, is_over=outside.is_over)
        try:
            pulse = _pulse_of(effect) if outside is None else outside.pulse
            with running_task(context, pulse):
                # A copy, so that a task that changes its arguments does not change the state.
                arguments = json.loads(json.dumps(effect.arguments))
                if effect.is_batch:
                    found = task.call_batch_json(arguments, seals)
                    return TaskSucceeded([_outcome(one, effect.name, seals) for one in found])
                output = task.call_json(arguments, seals)
                if pulse is not None:
                    pulse.beat()
        except KeyboardInterrupt:
            raise  # the user pressed Ctrl-C, so the task has not failed
        except VaultFault as fault:
            return TaskFailed(SECRET_UNAVAILABLE, fault.message)
        except HeartbeatMissed as missed:
            return TaskFailed(error_names.HEARTBEAT_TIMEOUT, str(missed))
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            # asyncio's CancelledError is a BaseException, too: it must not end the whole batch.
            with running_task(context):
                return self._failure(error, task, seals)
        try:
            plain_text(output, f"the result of {effect.name}")
        except RequestError as error:
            # A value that cannot be stored would fail every delivery of the message.
            return TaskFailed(InvalidResult.__name__, error.message)
        except ValueError:
            return TaskFailed(
                InvalidResult.__name__, "the result holds a number of too many digits"
            )
        return TaskSucceeded(output)

    def _failure(
        self, error: BaseException, task: Task[..., Any], seals: Seals
    ) -> TaskFailed | TaskThrottled:
        secrets = secrets_near(error)

        def shown(text: str) -> str:
            return printable(seals.scrubbed(text, secrets))

        cause = shown(error_text(error))[:CAUSE_CHARACTERS_MAX]
        frames = traceback_of(error, self._packages)
        traceback = None if frames is None else shown(frames)
        pause = retry_after(error, task.limits, datetime.now(UTC))
        if pause is not None:
            return TaskThrottled(int(pause / timedelta(milliseconds=1)), cause, traceback)
        name = printable(error_name(error))[:ERROR_CHARACTERS_MAX]
        _logger.warning(
            "the attempt failed: %s: %s",
            name,
            cause[:_LOGGED_CHARACTERS_MAX],
            extra={"exception_name": name, "exception": traceback or ""},
        )
        return TaskFailed(name, cause, traceback)

    @cached_property
    def _packages(self) -> frozenset[str]:
        """The top-level packages of the author."""
        tasks = self.registry.tasks.values()
        return frozenset(task.function.__module__.partition(".")[0] for task in tasks)

    # -- types (runtime.commands.api.Types) --------------------------------------------------------

    def normalise_input(self, tenant: str, workflow: str, value: Json) -> Json:
        with payloads.validating("HF210", f"the input of {workflow}"):
            seals = Seals(self.vault, tenant, may_open=self.takes_sealed)
            return self.registry.workflows[workflow].normalise_input(value, seals)

    def schema_of(self, reference: str) -> dict[str, Any]:
        return schema_of(payloads.resolve(reference))

    def normalise_payload(self, tenant: str, reference: str, value: Json, what: str) -> Json:
        with payloads.validating("HF211", f"the {what}"):
            seals = Seals(self.vault, tenant, may_open=self.takes_sealed)
            try:
                return normalise_payload(payloads.resolve(reference), value, seals)
            except Misfit as misfit:
                raise RequestError(
                    "HF211",
                    f"the {what} does not fit {payloads.display(reference)}: {misfit}",
                ) from None

    def normalise_result(self, tenant: str, name: str, value: Json, is_workflow: bool) -> Json:
        functions = self.registry.workflows if is_workflow else self.registry.tasks
        function = functions.get(name)
        if function is None or (not is_workflow and self.registry.has_namesakes(name)):
            raise GoneTypeError(name)
        with payloads.validating("HF211", f"the result of {name}"):
            seals = Seals(self.vault, tenant, may_open=self.takes_sealed)
            try:
                return function.boundary.dump_result(value, seals)
            except Misfit as misfit:
                raise RequestError(
                    "HF211", f"the result does not fit what {name} returns: {misfit}"
                ) from None


def context_of(effect: RunTask) -> TaskContext:
    """Return the context of an attempt. Every attempt of one step has the same idempotency key."""
    return TaskContext(
        execution=effect.run,
        name=effect.run_name,
        workflow=effect.workflow,
        task=effect.name,
        attempt=effect.attempt,
        idempotency_key=f"{effect.run}.{effect.entry}",
    )


def _batch_of(name: str, task: Task[..., Any]) -> BatchRule | None:
    batch = task.batch
    if batch is None:
        return None
    seconds = None if task.timeout is None else int(task.timeout.total_seconds())
    wait_ms = int(batch.wait / timedelta(milliseconds=1))
    return BatchRule(name, batch.max, wait_ms, seconds)


def rule_of(schedule: Schedule) -> Rule:
    millisecond = timedelta(milliseconds=1)
    return Rule(
        schedule.cron or "",
        schedule.zone,
        0 if schedule.every is None else schedule.every // millisecond,
        schedule.missing,
        schedule.repeated,
        schedule.jitter // millisecond,
    )


def _plan_of(workflow: str, schedule: Schedule) -> Plan:
    millisecond = timedelta(milliseconds=1)
    return Plan(
        workflow,
        rule_of(schedule),
        dict(schedule.input),
        schedule.time_as or "",
        schedule.overlap,
        schedule.catch_up // millisecond,
        schedule.pause_on_failure,
    )


def _breaker_of(trip: Trip) -> Breaker:
    millisecond = timedelta(milliseconds=1)
    return Breaker(trip.failures, int(trip.within / millisecond), int(trip.hold / millisecond))


def _outcome(found: Any, name: str, seals: Seals) -> dict[str, Any]:
    """Return the JSON form of one item of a batch's result."""
    if not isinstance(found, TaskError):
        try:
            plain_text(found, f"a result of {name}")
        except (RequestError, ValueError) as error:
            return {"error": InvalidResult.__name__, "cause": str(error)[:CAUSE_CHARACTERS_MAX]}
        return {"output": found}
    return {
        "error": printable(error_name(found))[:ERROR_CHARACTERS_MAX],
        "cause": printable(seals.scrubbed(error_text(found)))[:CAUSE_CHARACTERS_MAX],
    }


def _uses_of(declared: DeclaredLimits) -> dict[str, tuple[LimitUse, ...]]:
    return {name: tuple(map(_use_of, limits)) for name, limits in declared.items()}


def _use_of(limit: Limit) -> LimitUse:
    interval_us = None if limit.rate is None else interval_us_of(limit.rate.per_second)
    rule = LimitRule(
        limit.name,
        interval_us=interval_us,
        burst=limit.starts_at_once,
        concurrency=limit.concurrency,
        weights=limit.weights,
        trip=None if limit.trip is None else _breaker_of(limit.trip),
    )
    return LimitUse(rule, key=limit.key, fair=limit.fair)


def _pulse_of(effect: RunTask) -> Pulse | None:
    seconds = effect.heartbeat_seconds
    return None if seconds is None else Pulse(seconds, time.monotonic)
