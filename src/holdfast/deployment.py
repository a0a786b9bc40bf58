"""One deployment: the user's modules, their compiled definitions, and how to run their tasks.

It connects the code for authors (`api`, `compiler`) with the engine (`runtime`). Lambda functions
and local stacks create the same deployment. Nothing is compiled in Lambda: definitions are read
from files next to the modules.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.api import payloads
from holdfast.api.boundary import Boundary, Misfit, normalise_payload, schema_of
from holdfast.api.limits import Limit, Trip
from holdfast.api.registry import DeclaredLimits, Registry, require_one_receiver
from holdfast.api.runs_on import Lambda
from holdfast.api.schedules import Schedule
from holdfast.api.sealing import NO_VAULT, Seals, Vault
from holdfast.api.surface import Task, Workflow
from holdfast.asl.parsing.parse import definition_hash
from holdfast.asl.program import Json
from holdfast.core.schedules import Rule
from holdfast.errors import GoneTypeError, HoldfastError, RequestError, ServiceFault, WorkflowError
from holdfast.limits import EVENT_RETENTION_SECONDS
from holdfast.runtime.child_workflows import Workflows
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.driver import Perform, run
from holdfast.runtime.effects import Clock, OwnResult, RunTask
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
from holdfast.runtime.worker.config import CacheRule, WorkerConfig
from holdfast.task_runs import Outside, StoredPulse, packages_of, run_attempt

if TYPE_CHECKING:
    from holdfast.runtime.commands.api import Front

#: A function that returns the ASL and the source map of a workflow.
Load = Callable[[Workflow[..., Any]], tuple[Json, dict[str, Any]]]


def load_compiled(workflow: Workflow[..., Any]) -> tuple[Json, dict[str, Any]]:
    """Read `<workflow>.asl.json` and `<workflow>.map.json` from the folder of the module."""
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


@dataclass(frozen=True)
class Deployment:
    """A deployment. `vault` encrypts the secrets of its tenants. `takes_sealed`: the data comes
    from workflows, so its secrets may already be encrypted. `perform` performs the effects that
    store and load the progress of the tasks in this process; None: it is not stored.
    """

    registry: Registry
    definitions: Mapping[str, Definition]
    vault: Vault = NO_VAULT
    takes_sealed: bool = False
    perform: Perform | None = None

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
        keyed = {name: one.source_map.get("keyed") or {} for name, one in definitions.items()}
        starts = {name: one.get("starts_on") for name, one in keyed.items()}
        require_one_receiver({name: event for name, event in starts.items() if event})
        events = {name: one.source_map.get("events", {}) for name, one in definitions.items()}
        payloads.require_one_type(events)
        return cls(registry, definitions, vault)

    @property
    def secrets(self) -> dict[str, tuple[str, ...]]:
        """Return, by workflow, the names of the values that are secrets or contain one."""
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
        cache_of = self.cache_of if self._has_caches else None
        return WorkerConfig(
            *(programs, self.knows, keys, status_source, workflows), gates=gates, cache_of=cache_of
        )

    @cached_property
    def limits(self) -> LimitBook:
        """Return the limits of the deployment's tasks."""
        of_task, of_workflow = map(_uses_of, self.registry.limits())
        found = {name: _batch_of(name, task) for name, task in self.registry.tasks.items()}
        batches = {name: batch for name, batch in found.items() if batch is not None}
        return LimitBook(of_task, of_workflow, batches)

    def cache_of(self, workflow: str, name: str) -> CacheRule | None:
        """Return the cache of the task that the workflow calls by this name."""
        task = self.registry.task(name, self._module_of(name, workflow))
        if task is None or task.cache is None:
            return None
        scope = json.dumps([task.function.__module__, task.name, task.cache_version])
        return CacheRule(int(task.cache.total_seconds()), scope, task.cache_key)

    @cached_property
    def _has_caches(self) -> bool:
        tasks = (*self.registry.tasks.values(), *self.registry.namesakes.values())
        return any(task.cache is not None for task in tasks)

    @property
    def schedules(self) -> dict[str, Plan]:
        """Return the schedules that the code declares, by the names of their workflows."""
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
        """Return the task if this attempt runs on a Lambda function of its own; None when it runs
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
        """Return the task if this attempt runs in the function of its group; None when it runs
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

    def run_task(self, effect: RunTask, outside: Outside | None = None) -> OwnResult:
        """Run the task that the workflow calls. `outside`: see `run_attempt`."""
        task = self._task(effect.name, effect.workflow)
        if outside is None and self.perform is not None and not effect.is_batch:
            outside = _stored_progress(effect, self.perform)
        return run_attempt(task, effect, self.vault, self._packages, outside)

    @cached_property
    def _packages(self) -> frozenset[str]:
        return packages_of(self.registry.tasks.values())

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

    def convert(self, tenant: str, function: str, values: Mapping[str, Json]) -> Json:
        # A migration function neither reads nor gives a secret, so no tenant is needed.
        del tenant
        module, _, name = function.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
            boundary = Boundary(found)
            return boundary.dump_result(found(**boundary.parse_arguments(values)))
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            # Show only the class of the error. Its text may contain values of the execution.
            raise RequestError(
                "HF373",
                f"the migration function {function} failed: {type(error).__name__}",
                status=409,
                help="the execution stays on its version; mend the function, and deploy it",
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


def _stored_progress(effect: RunTask, perform: Perform) -> Outside | None:
    """Return the engine for an attempt in this process; None for a task without heartbeats."""
    seconds = effect.heartbeat_seconds
    if seconds is None:
        return None
    # Imported here because most workers have no task with heartbeats. Each module that is imported
    # makes the start of a Lambda function slower.
    from holdfast.runtime import heartbeats  # noqa: PLC0415

    step = heartbeats.Step(effect.tenant, effect.run, effect.entry)

    def store(progress: Any) -> bool:
        now_ms = perform(Clock())
        expiry = now_ms // 1_000 + EVENT_RETENTION_SECONDS
        try:
            return bool(run(heartbeats.store(step, now_ms, expiry, progress), perform))
        except ServiceFault:
            # Progress only saves work, so the task goes on without it.
            return False

    @functools.cache
    def load() -> Any:
        try:
            return run(heartbeats.progress_of(step), perform)
        except HoldfastError:
            # An outage, or an item that this code cannot read: the task begins from its start.
            return None

    def look() -> bool:
        try:
            return bool(run(heartbeats.is_over(step, effect.attempt), perform))
        except HoldfastError:
            # An outage: the task goes on, as it does without this look.
            return False

    pulse = StoredPulse(seconds, time.monotonic, store, look)
    return Outside(pulse, pulse.is_over, load, pulse.save)


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
