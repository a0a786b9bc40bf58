"""An estimate of the cost of a stack's use, from metrics that AWS itself provides.

It is a metric math expression, so nothing is measured or stored for it. The expression of an alarm
may have at most ten metrics (CloudWatch user guide, "Limits that apply to alarms based on metric
math expressions"). So it counts only the parts that grow with the load:

    Lambda      the duration of both workers and of the API, times memory
    DynamoDB    read and write units of both tables, write units of the list
    SQS         what Work and Starts deliver: the requests of a message, and the worker's invocation

That is ten metrics. The dashboard has no such bound and adds the functions of task groups: their
duration times memory, and their calls.

It does not include S3, the event bus, the API's requests and logs, nor the cost of an idle stack.
The prices are list prices of us-east-1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from holdfast import resources
from holdfast.cost import PRICES, SQS_REQUESTS_PER_DELIVERY

from .settings import Settings

#: The price of a GB-second on x86 relative to arm64 (aws.amazon.com/lambda/pricing).
_X86_FACTOR: Final = 16.6667 / 13.3334
_USD_PER_MILLION: Final = {(price.service, price.what): price.usd_per_million for price in PRICES}
_Term = tuple[float, cloudwatch.Metric]


@dataclass(frozen=True, slots=True)
class Billed:
    """The resources of a stack whose use is billed. `functions`, `queues` and `groups`, the
    functions of task groups, are by name.
    """

    settings: Settings
    functions: Mapping[str, lambda_.IFunction]
    executions: dynamodb.ITable
    inbox: dynamodb.ITable
    queues: Mapping[str, sqs.IQueue]
    groups: Mapping[str, lambda_.IFunction] = field(default_factory=dict)


def spending(billed: Billed, period: Duration) -> cloudwatch.MathExpression:
    """Return the cost of each period in dollars."""
    terms = [*_lambda(billed), *_tables(billed), *_queues(billed)]
    names = [f"m{number}" for number in range(len(terms))]
    # Compute in millionths of a dollar, because metric math has no notation for exponents.
    sum_of_terms = " + ".join(
        f"FILL({name},0)*{usd * 1e6:.6f}" for name, (usd, _) in zip(names, terms, strict=True)
    )
    return cloudwatch.MathExpression(
        expression=f"({sum_of_terms})/1000000",
        using_metrics={name: metric for name, (_, metric) in zip(names, terms, strict=True)},
        label="Estimated dollars",
        # CDK gives the period of an expression to each metric in it.
        period=period,
    )


def _usd(service: str, what: str) -> float:
    return _USD_PER_MILLION[service, what] / 1e6


def _lambda(billed: Billed) -> Iterator[_Term]:
    usd = _usd("Lambda", "GB-seconds")
    if billed.settings.architecture == "x86_64":
        usd *= _X86_FACTOR
    for name, function in {**billed.functions, **billed.groups}.items():
        usd_per_ms = usd * billed.settings.functions[name].memory_mb / 1_024 / 1_000
        yield usd_per_ms, function.metric_duration(statistic=cloudwatch.Stats.SUM)
    for function in billed.groups.values():
        yield _usd("Lambda", "requests"), function.metric_invocations()


def _tables(billed: Billed) -> Iterator[_Term]:
    writes, reads = _usd("DynamoDB", "write units"), _usd("DynamoDB", "read units")
    for table in (billed.executions, billed.inbox):
        yield writes, table.metric_consumed_write_capacity_units()
        yield reads, table.metric_consumed_read_capacity_units()
    index = resources.EXECUTIONS.index
    assert index is not None
    in_list = cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name="ConsumedWriteCapacityUnits",
        dimensions_map={
            "TableName": billed.executions.table_name,
            "GlobalSecondaryIndexName": index.name,
        },
        statistic=cloudwatch.Stats.SUM,
    )
    yield writes, in_list


def _queues(billed: Billed) -> Iterator[_Term]:
    """Yield the cost of messages: each costs its send, its delivery and, alone in its batch, an
    invocation.
    """
    usd = _usd("SQS", "send requests") + SQS_REQUESTS_PER_DELIVERY * _usd(
        "SQS", "delivery requests"
    )
    usd += _usd("Lambda", "requests")
    for queue in billed.queues.values():
        yield usd, queue.metric_number_of_messages_received()
