"""The cost of the worst run at list price, with the prices of holdfast/cost.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.cost import Usage, receipt, step_functions_usd
from holdfast.proofs.amounts import Bound, number, plus, times
from holdfast.proofs.bounds import Worst

EXECUTIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Costs:
    """The price in dollars of EXECUTIONS worst cases, without the cost of the tasks themselves.

    `holdfast` counts each record as up to 1 KB, and each wait as one more delivery.
    """

    holdfast: Bound
    step_functions: Bound


def costs_of(worst: Worst) -> Costs:
    record = Usage(write_units=1, commits=1)
    delivery = Usage(sqs_send_requests=1, sqs_deliveries=1, lambda_requests=1, read_units=1)
    of_record, of_delivery = (number(receipt(used).total_usd) for used in (record, delivery))
    of_run = plus(
        times(plus(number(1), worst.steps), of_record),
        times(plus(number(1), worst.messages), of_delivery),
    )
    of_transition = number(step_functions_usd(1))
    return Costs(
        holdfast=times(of_run, number(EXECUTIONS)),
        step_functions=times(times(worst.transitions, of_transition), number(EXECUTIONS)),
    )
