"""`holdfast demo`: runs real orders through the order workflow, on the local cloud with a virtual
clock.

Each order is an execution of its own, which the API starts under the number of the order. The
simulated bank sends events through the event bus. The report is read back from the stored data: the
list, the executions and their histories. A hook in botocore counts the calls and their cost.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast import cost
from holdfast.core.events import DURABLE_EVENTS, Event
from holdfast.core.state import STATUSES, Execution
from holdfast.deployment import Deployment
from holdfast.errors import RequestError
from holdfast.local.clock import VirtualClock
from holdfast.local.cloud import LocalCloud
from holdfast.local.stack import LocalStack, local_stack
from holdfast.remote.client import Client
from holdfast.remote.connecting import Api
from holdfast.runtime.effects import Effect, Measure, Query, QueryList
from holdfast.runtime.listing import partitions_of, read_entry
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import Reader
from holdfast.runtime.storage.log import fetch_blobs

if TYPE_CHECKING:
    from statemachines.orders import OrderRequest

MODULE: Final = "statemachines.order_fulfilment"
WORKFLOW: Final = "order_fulfilment"
#: The folder that contains the workflow when Holdfast runs from its source. It does not depend on
#: the current folder.
CHECKOUT: Final = str(Path(__file__).parents[3])
SAMPLE: Final = "orders-sample.jsonl"
START_MS: Final = 1_772_442_000_000  # 2026-03-02 09:00 UTC; the outcomes do not depend on it
LISTED_MAX: Final = 1_000_000


class OrderFileError(RequestError):
    """All bad lines of a file. No order was started."""

    def __init__(self, errors: list[RequestError]) -> None:
        super().__init__(errors[0].code, errors[0].message, help=errors[0].help)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


@dataclass(frozen=True, slots=True)
class EndedExecution:
    """One ended execution, as stored."""

    name: str
    status: str
    #: True when the list of executions shows this one with its final status.
    is_listed: bool
    #: The status and the reason that the workflow returned, or None when it returned neither.
    outcome: tuple[str, str] | None
    error: str | None

    @property
    def reason(self) -> str:
        if self.outcome is not None:
            return self.outcome[1]
        return f"{self.status}: {self.error}" if self.error else self.status


@dataclass(frozen=True, slots=True)
class DemoReport:
    accepted: int
    executions: tuple[EndedExecution, ...]
    #: For each type of event, the number of such events in all histories.
    events: Counter[str]
    retries: int
    calls: dict[str, int]
    receipt: cost.Receipt
    virtual_seconds: int
    wall_seconds: float

    @property
    def ended(self) -> int:
        return sum(execution.is_listed for execution in self.executions)

    @property
    def lost(self) -> int:
        return self.accepted - self.ended

    @property
    def durable_steps(self) -> int:
        return sum(self.events[kind] for kind in DURABLE_EVENTS)

    @property
    def transitions(self) -> int:
        """Return the number of transitions as Step Functions counts them: each entered state, and
        each retry.
        """
        entered = sum(n for kind, n in self.events.items() if kind.endswith("StateEntered"))
        return entered + self.retries

    @property
    def task_requests(self) -> cost.Receipt:
        """Return the cost of the requests for tasks. On Step Functions each attempt is a request to
        Lambda; the cost of its duration depends on the user's code and is not included.
        """
        return cost.receipt(cost.Usage(lambda_requests=self.events["TaskStarted"]))

    @property
    def step_functions_usd(self) -> float:
        return cost.step_functions_usd(self.transitions) + self.task_requests.total_usd

    @property
    def is_good(self) -> bool:
        """Return True when every accepted order has ended with a result that the workflow
        returned.
        """
        return self.lost == 0 and all(
            execution.status == "SUCCEEDED" and execution.outcome is not None
            for execution in self.executions
        )

    def per_million_steps(self, usd: float) -> float:
        return usd / self.durable_steps * 1e6 if self.durable_steps else 0.0

    def to_json(self) -> dict[str, Any]:
        outcomes = Counter(execution.reason for execution in self.executions)
        statuses = Counter(execution.status for execution in self.executions)
        return {
            "orders": self.accepted,
            "outcomes": dict(sorted(outcomes.items())),
            "lost": self.lost,
            "durable_steps": self.durable_steps,
            "calls": dict(sorted(self.calls.items())),
            "usd_per_million_steps": round(self.per_million_steps(self.receipt.total_usd), 4),
            "step_functions_usd_per_million_steps": round(
                self.per_million_steps(self.step_functions_usd), 4
            ),
            "usd": round(self.receipt.total_usd, 6),
            "step_functions_usd": round(self.step_functions_usd, 6),
            "transitions": self.transitions,
            "retries": self.retries,
            "statuses": dict(sorted(statuses.items())),
            "virtual_seconds": self.virtual_seconds,
            "wall_seconds": round(self.wall_seconds, 1),
        }


def read_orders(path: Path | None) -> tuple[OrderRequest, ...]:
    """Return every order of a file (by default the sample). Raises OrderFileError with all
    errors.
    """
    if CHECKOUT not in sys.path:
        sys.path.append(CHECKOUT)
    try:
        from statemachines import orders  # noqa: PLC0415
    except ModuleNotFoundError:
        raise RequestError(
            "HF280",
            "the demo's workflow is not here: there is no package `statemachines`",
            help="run the demo in a checkout of Holdfast",
        ) from None
    path = path or Path(orders.__file__).with_name(SAMPLE)
    found = orders.read_orders(path)
    errors = [*found.errors, *_unusable_names(found.requests, path)]
    if errors:
        raise OrderFileError(errors)
    return found.requests


def _unusable_names(orders: Iterable[OrderRequest], path: Path) -> Iterator[RequestError]:
    """Yield an error for each order whose id cannot be the name of an execution."""
    for order in orders:
        try:
            keys.require_name(order.name, f"{path}: id:")
        except RequestError as error:
            yield error


def run_demo(
    deployment: Deployment, orders: Iterable[OrderRequest], measured: Callable[[Measure], None]
) -> DemoReport:
    began = time.perf_counter()
    clock = VirtualClock(START_MS)
    with local_stack(deployment, clock, measured=measured) as stack:
        client = Client.of(Api(partial(_carry, stack), "the demo"))
        accepted = {order.name: _start(stack, client, order) for order in orders}
        stack.pump.run_until_idle()
        # Copy these counts first, because the reads for the report must not count as cost.
        usage, calls = stack.cloud.meter.usage.copy(), dict(stack.cloud.meter.calls)
        listed = _listed(stack)
        logs = {name: _log(stack, run) for name, run in accepted.items()}
    states = [(name, accepted[name], state) for name, (state, _) in logs.items()]
    events = [event for _, found in logs.values() for event in found]
    return DemoReport(
        accepted=len(accepted),
        executions=tuple(_ended(name, state, listed.get(run)) for name, run, state in states),
        events=Counter(event.type for event in events),
        retries=sum(map(_is_retry, events)),
        calls=calls,
        receipt=cost.receipt(usage),
        virtual_seconds=(max((e.at_ms for e in events), default=START_MS) - START_MS) // 1_000,
        wall_seconds=time.perf_counter() - began,
    )


def _start(stack: LocalStack[LocalCloud], client: Client, order: OrderRequest) -> str:
    """Start the order, schedule the bank's answer, and return the id of the execution."""
    from statemachines.bank import bank_messages  # noqa: PLC0415

    later = []
    for message in bank_messages(order.order):
        tell = partial(
            stack.cloud.put_event, message.name, message.key, message.data, message.event_id
        )
        if message.delay_seconds == 0:
            tell()  # This event comes before any execution waits for it
        else:
            later.append((message.delay_seconds, tell))
    run = client.start(WORKFLOW, order.input, name=order.name).execution
    for delay_seconds, tell in later:
        stack.pump.at(stack.cloud.clock() + delay_seconds * 1_000, tell)
    return run


def _carry(
    stack: LocalStack[LocalCloud], method: str, target: str, body: bytes
) -> tuple[int, bytes]:
    answer = stack.request(method, target, body)
    return answer.status, answer.body


# -- reading the results ---------------------------------------------------------------------------


def _listed(stack: LocalStack[LocalCloud]) -> dict[str, str]:
    """Return the final status of every execution that has ended according to the list."""
    ended = [status for status in STATUSES if status != "RUNNING"]
    found: dict[str, str] = {}
    for partition in partitions_of(keys.TENANT_DEFAULT, stack.host.setting.spread, ended):
        page = stack.host.ports.perform(QueryList(partition, LISTED_MAX))
        found |= {entry.run: entry.status for entry in map(read_entry, page.items)}
    return found


def _log(stack: LocalStack[LocalCloud], run: str) -> tuple[Execution | None, list[Event]]:
    """Return the execution, folded from its stored history, and that history."""

    def read() -> Generator[Effect, Any, tuple[Execution | None, list[Event]]]:
        items = yield Query(tables.EXECUTIONS, keys.execution(keys.TENANT_DEFAULT, run))
        reader = Reader((yield from fetch_blobs(keys.TENANT_DEFAULT, run, items)))
        events = [event for record in map(reader.record, items) for event in record.events]
        return reader.state, events

    state, events = stack.host.perform(read())
    return state, events


def _ended(name: str, state: Execution | None, listed: str | None) -> EndedExecution:
    status = "RUNNING" if state is None else state.status
    output = None if state is None else state.output
    outcome = None
    if isinstance(output, dict) and output.get("reason"):
        outcome = str(output["status"]), str(output["reason"])
    return EndedExecution(
        name=name,
        status=status,
        is_listed=status != "RUNNING" and listed == status,
        outcome=outcome,
        error=None if state is None else state.error,
    )


def _is_retry(event: Event) -> bool:
    is_attempt = event.type == "TaskScheduled" and event.holdfast["attempt"] > 1
    return is_attempt or event.type == "RetryDelayed"
