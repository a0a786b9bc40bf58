"""One dashboard with four graphs: running work, throughput, delays, stuck work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import resources

from .alarms import engine_metric

_WIDTH: Final = 12
_HEIGHT: Final = 6
_MINUTE: Final = Duration.minutes(1)


class Dashboard(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        queues: Mapping[str, sqs.IQueue],
        dead_letters: Mapping[str, sqs.IQueue],
    ) -> None:
        super().__init__(scope, construct_id)
        self._name = name
        board = cloudwatch.Dashboard(
            self,
            "Dashboard",
            default_interval=Duration.hours(3),
            dashboard_name=name,
        )
        board.add_widgets(self._executions(), self._steps())
        board.add_widgets(self._lag(), _queues(queues, dead_letters))

    def _executions(self) -> cloudwatch.GraphWidget:
        names = (
            resources.METRIC_EXECUTIONS_STARTED,
            resources.METRIC_EXECUTIONS_ENDED,
            resources.METRIC_EXECUTIONS_FAILED,
        )
        return _graph("Executions", [self._sum(name) for name in names])

    def _steps(self) -> cloudwatch.GraphWidget:
        return _graph("Durable steps", [self._sum(resources.METRIC_DURABLE_STEPS)])

    def _lag(self) -> cloudwatch.GraphWidget:
        lag = engine_metric(self._name, resources.METRIC_SWEEP_LAG, cloudwatch.Stats.MAXIMUM)
        waits = engine_metric(self._name, resources.METRIC_LIMIT_WAIT, cloudwatch.Stats.MAXIMUM)
        return _graph("Sweep lag, waits at limits (seconds)", [lag, waits])

    def _sum(self, name: str) -> cloudwatch.Metric:
        return engine_metric(self._name, name, cloudwatch.Stats.SUM)


def _queues(
    queues: Mapping[str, sqs.IQueue], dead_letters: Mapping[str, sqs.IQueue]
) -> cloudwatch.GraphWidget:
    return _graph(
        "Queues: oldest work (seconds), dead letters (right)",
        [
            queue.metric_approximate_age_of_oldest_message(
                period=_MINUTE, statistic=cloudwatch.Stats.MAXIMUM, label=f"Oldest in {name}"
            )
            for name, queue in queues.items()
        ],
        right=[
            queue.metric_approximate_number_of_messages_visible(
                period=_MINUTE, statistic=cloudwatch.Stats.MAXIMUM, label=f"{name} dead letters"
            )
            for name, queue in dead_letters.items()
        ],
    )


def _graph(
    title: str, left: list[cloudwatch.Metric], right: list[cloudwatch.Metric] | None = None
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title, left=left, right=right or [], width=_WIDTH, height=_HEIGHT
    )
