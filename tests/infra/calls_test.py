"""The rights of each function against the calls that its code makes.

Simulated schedules give the effects that each function performs. The adapters of AWS turn every
effect into its calls, which a recorder answers. So a new effect in a function, or a new call in an
adapter, fails here when the template does not grant it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from botocore.session import Session

from holdfast.aws.clients import _KINDS, Clients
from holdfast.aws.names import ResourceNames
from holdfast.aws.ports import AwsPorts
from holdfast.runtime.effects import QueueName, RunTask, SetVisibility, TaskFailed
from holdfast_simulator.levels import scheduled
from holdfast_simulator.simulation import Simulation
from tests.infra.roles_test import ACTIONS
from tests.infra.template import Template, as_list, target_of

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

#: How many schedules are simulated, and the workflows for some of them.
SCHEDULES = 40
STATEMACHINES = Path(__file__).parents[2] / "statemachines"
NAMES = ResourceNames(
    executions_table="StorageExecutions",
    mail_table="StorageMail",
    blobs_bucket="StorageBlobs",
    work_queue_url="MessagingWork",
    single_queue_url="MessagingSingle",
    starts_queue_url="MessagingStarts",
    work_dlq_url="MessagingWorkDead",
    single_dlq_url="MessagingSingleDead",
    starts_dlq_url="MessagingStartsDead",
    archive_bucket="StorageArchive",
)
#: The functions whose code runs in a simulated process, by the name of its host. All other hosts
#: are those of requests to the API.
FUNCTIONS = {"worker": ("Worker", "WorkerSingle"), "sweeper": ("Sweeper",), "bus": ("Events",)}
CONSUMED: dict[str, tuple[QueueName, ...]] = {
    "Worker": ("work", "starts"),
    "WorkerSingle": ("single",),
}
#: A request of the adapter does not name the bus: an event goes to the default one.
BUS = "the default bus"

#: An action of IAM and its resource.
Call = tuple[str, str]


class Recorder(Clients):
    """Answers every call, and records it."""

    def __init__(self, calls: set[Call]) -> None:
        super().__init__()
        self.calls = calls

    def get(self, name: Any) -> Any:
        return _Client(_KINDS[name].service, self.calls)


@dataclass
class _Client:
    service: str
    calls: set[Call]

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        model = Session().get_service_model(self.service)
        [name] = [one for one in model.operation_names if xform_name(one) == operation]
        call = f"{self.service}:{name}"

        def answer(**request: Any) -> Any:
            self.calls.add((ACTIONS.get(call, call), _resource_of(request)))
            return {
                "Items": [],
                "Responses": {},
                "Attributes": {},
                "Contents": [{"Key": "any"}],
                "Body": io.BytesIO(),
            }

        return answer


def _resource_of(request: dict[str, Any]) -> str:
    match request:
        case {"TableName": table, "IndexName": index}:
            return f"{table}/index/{index}"
        case {"TableName": name} | {"QueueUrl": name}:
            return str(name)
        case {"RequestItems": items}:
            [table] = items
            return str(table)
        case {"Bucket": bucket, "Key": _}:
            return f"{bucket}/*"
        case {"Bucket": bucket}:
            return str(bucket)
        case {"Entries": [{"DetailType": _}]}:
            return BUS
    raise AssertionError(request)


def _ports(recorder: Recorder) -> AwsPorts:
    def run_task(_: RunTask) -> TaskFailed:
        return TaskFailed("Any", "no task runs here")

    return AwsPorts(
        recorder, NAMES, tasks=run_task, clock=lambda: 0, metrics=lambda _: None, has_threads=False
    )


@pytest.fixture(scope="module")
def called() -> dict[str, set[Call]]:
    """Return the calls of each function in the simulated schedules."""
    found: dict[str, set[Call]] = {}
    seen: set[Any] = set()
    perform = Simulation._do

    def do(self: Simulation, process: Any, effect: Any, **options: Any) -> Any:
        kind = process.host.name.rstrip("0123456789")
        for function in FUNCTIONS.get(kind, ("Api",)):
            _record(function, effect, found.setdefault(function, set()), seen)
        return perform(self, process, effect, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Simulation, "_do", do)
        for seed in range(SCHEDULES):
            scheduled(seed, STATEMACHINES)
    for name, queues in CONSUMED.items():
        found[name] |= {("sqs:ChangeMessageVisibility", NAMES.queue_url(one)) for one in queues}
    return found


def _record(function: str, effect: Any, calls: set[Call], seen: set[Any]) -> None:
    """Record the calls of an effect. The calls follow from its kind and its table or queue, so one
    effect of each is performed.
    """
    place = getattr(effect, "table", None) or getattr(effect, "queue", None)
    if (function, type(effect), place) in seen or isinstance(effect, SetVisibility):
        return
    seen.add((function, type(effect), place))
    ports = _ports(Recorder(calls))
    if type(effect) in ports._performers:
        ports.perform(effect)


def _granted(template: Template, function: str) -> Iterator[Call]:
    for policy in template.properties("AWS::IAM::Role")[f"{function}FunctionRole"]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            for action in as_list(statement["Action"]):
                for resource in as_list(statement["Resource"]):
                    yield action, BUS if action == "events:PutEvents" else target_of(resource)


@pytest.mark.parametrize("function", ["Worker", "WorkerSingle", "Events", "Sweeper", "Api"])
def test_a_function_may_make_every_call_that_its_code_makes(
    chosen: Template, called: dict[str, set[Call]], function: str
) -> None:
    assert called[function]
    assert called[function] <= {*_granted(chosen, function)}
