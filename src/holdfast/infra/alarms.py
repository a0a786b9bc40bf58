"""Alarms: for work that has stopped without an error, for failures and retries, and for cost.

A description ends with its line of *What to watch* in docs/how-to/operate.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import limits, resources

from .bounds import AlarmBounds
from .spending import Billed, spending

_MINUTE = Duration.minutes(1)
# The greatest age of a message in a queue that works as it should: the longest delay, and one whole
# delivery.
_MESSAGE_AGE_SECONDS_MAX = limits.SQS_DELAY_SECONDS_MAX + resources.WORK.visibility_seconds
_SWEEP_LAG_SECONDS_MAX = 3 * limits.SWEEP_SECONDS
# The queues of dead letters that the sweeper empties every minute. If a letter stays visible for
# five minutes, the sweeper does not run. The sweeper hides an unreadable letter each time it
# receives it, so this alarm does not see it; the alarm SweepRefused does.
_DRAINED = ("Work", "Single", "Starts")
_DRAINED_MINUTES = 5
_LIMIT_WAIT_SECONDS_MAX = 900
_RUNBOOK: Final = "Runbook: docs/how-to/operate.md, What to watch, "
_FIVE_MINUTES: Final = Duration.minutes(5)
_DAY: Final = Duration.days(1)


class Alarms(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        queues: Mapping[str, sqs.IQueue],
        dead_letters: Mapping[str, sqs.IQueue],
        topic_arn: str | None,
        bounds: AlarmBounds,
        billed: Billed,
        groups: Mapping[str, lambda_.IFunction],
    ) -> None:
        super().__init__(scope, construct_id)
        self._name = name
        self._action = None if topic_arn is None else _notify(self, topic_arn)
        self._on_queues(queues, dead_letters)
        self._on_engine()
        self._on_bounds(bounds, billed)
        for group, function in groups.items():
            self._on_group(group, function)

    def _on_queues(
        self, queues: Mapping[str, sqs.IQueue], dead_letters: Mapping[str, sqs.IQueue]
    ) -> None:
        for kind, queue in dead_letters.items():
            self._alarm(
                f"{kind}DeadLetters",
                "messages wait in a dead-letter queue",
                "Dead letters",
                queue.metric_approximate_number_of_messages_visible(period=_MINUTE),
                threshold=0,
                minutes=_DRAINED_MINUTES if kind in _DRAINED else 1,
            )
        for kind, queue in queues.items():
            self._alarm(
                f"{kind}OldestMessage",
                "work is not taken from the queue: the worker is throttled, broken or overrun",
                "Oldest message",
                queue.metric_approximate_age_of_oldest_message(period=_MINUTE),
                threshold=_MESSAGE_AGE_SECONDS_MAX,
                minutes=3,
            )

    def _on_engine(self) -> None:
        self._alarm(
            "Quarantined",
            "a message failed in every way",
            "Quarantined",
            self._metric(resources.METRIC_EXECUTIONS_QUARANTINED, cloudwatch.Stats.SUM),
            threshold=0,
            minutes=1,
            # The metric counts events and does not show a state. A minute without an event does not
            # mean that all is well, so the alarm must not report that.
            tells_ok=False,
        )
        self._alarm(
            "LimitSaturated",
            "work waits at a limit for a quarter of an hour: see `holdfast limits`",
            "Limit saturated",
            self._metric(resources.METRIC_LIMIT_WAIT, cloudwatch.Stats.MAXIMUM),
            threshold=_LIMIT_WAIT_SECONDS_MAX,
            minutes=5,
        )
        self._alarm(
            "SweepRefused",
            "the sweeper could not work off a row or a dead letter: damaged, or of newer code",
            "Sweep refused",
            self._metric(resources.METRIC_SWEEP_REFUSED, cloudwatch.Stats.SUM),
            threshold=0,
            minutes=1,
        )
        self._alarm(
            "SweepLag",
            "timers and recovery are late, or the sweeper does not run at all",
            "Sweep lag",
            self._metric(resources.METRIC_SWEEP_LAG, cloudwatch.Stats.MAXIMUM),
            threshold=_SWEEP_LAG_SECONDS_MAX,
            minutes=3,
            # A sweeper that never finishes a sweep reports no lag. So missing data must raise the
            # alarm.
            missing=cloudwatch.TreatMissingData.BREACHING,
        )

    def _on_group(self, name: str, function: lambda_.IFunction) -> None:
        words = "".join(word.capitalize() for word in name.split("-"))
        self._alarm(
            f"Group{words}Throttled",
            f"attempts of the group {name} wait for a place in its function, and workers with them",
            "Group throttled",
            function.metric_throttles(period=_MINUTE),
            threshold=0,
            minutes=5,
        )

    def _on_bounds(self, bounds: AlarmBounds, billed: Billed) -> None:
        if bounds.failed is not None:
            self._alarm(
                "FailedExecutions",
                "more executions of one workflow have failed in five minutes than are allowed; the "
                "alarm's contributors name the workflows",
                "Failed executions",
                _by_workflow(self._name, resources.METRIC_EXECUTIONS_FAILED),
                threshold=bounds.failed,
                minutes=1,
                # The metric counts failures. A minute without a failure does not mean that the
                # earlier ones are mended, so the alarm must not report that all is well.
                tells_ok=False,
            )
        if bounds.retries is not None:
            retries = self._metric(resources.METRIC_TASK_RETRIES, cloudwatch.Stats.SUM)
            self._alarm(
                "RetryStorm",
                "tasks fail and are tried again far too often: a dependency may be down",
                "Retry storm",
                retries.with_(period=_FIVE_MINUTES),
                threshold=bounds.retries,
                minutes=1,
            )
        if bounds.oldest_wait_days is not None:
            self._alarm(
                "OldestWait",
                "an execution has waited for longer than the bound",
                "Oldest wait",
                self._metric(resources.METRIC_OLDEST_WAIT, cloudwatch.Stats.MAXIMUM),
                threshold=bounds.oldest_wait_days * _DAY.to_seconds(),
                minutes=1,
                # The next check of that execution may be days away, so a minute without data does
                # not mean that all is well.
                tells_ok=False,
            )
        if bounds.dollars_per_day is not None:
            self._alarm(
                "DailyCost",
                "the use of a day costs more than the bound, as estimated from its metrics",
                "Daily cost",
                spending(billed, _DAY),
                threshold=bounds.dollars_per_day,
                minutes=1,
            )

    def _metric(self, name: str, statistic: str) -> cloudwatch.Metric:
        return engine_metric(self._name, name, statistic)

    def _alarm(
        self,
        construct_id: str,
        description: str,
        line: str,
        metric: cloudwatch.Metric | cloudwatch.MathExpression,
        *,
        threshold: float,
        minutes: int,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
        tells_ok: bool = True,
    ) -> None:
        alarm = metric.create_alarm(
            self,
            construct_id,
            alarm_description=f"Holdfast: {description}. {_RUNBOOK}{line}",
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            threshold=threshold,
            evaluation_periods=minutes,
            treat_missing_data=missing,
        )
        if self._action is not None:
            alarm.add_alarm_action(self._action)
            if tells_ok:
                alarm.add_ok_action(self._action)


def engine_metric(
    holdfast: str,
    name: str,
    statistic: str,
    period: Duration = _MINUTE,
    workflow: str | None = None,
) -> cloudwatch.Metric:
    """Return a metric that the functions of one Holdfast write. `holdfast` is its name. `workflow`
    selects one workflow, for a metric of `resources.METRICS_BY_WORKFLOW`.
    """
    by_workflow = {} if workflow is None else {resources.METRICS_WORKFLOW_DIMENSION: workflow}
    return cloudwatch.Metric(
        namespace=resources.METRICS_NAMESPACE,
        metric_name=name,
        dimensions_map={resources.METRICS_DIMENSION: holdfast, **by_workflow},
        period=period,
        statistic=statistic,
    )


def _by_workflow(holdfast: str, metric: str) -> cloudwatch.MathExpression:
    """Return the sum over five minutes for each workflow, also for those that are deployed later.

    Source: CloudWatch user guide, alarms on Metrics Insights queries: each time series that the
    query returns is a contributor to the alarm.
    """
    stack, workflow = resources.METRICS_DIMENSION, resources.METRICS_WORKFLOW_DIMENSION
    query = " ".join(
        [
            f"SELECT SUM({metric})",
            f'FROM SCHEMA("{resources.METRICS_NAMESPACE}", {stack}, {workflow})',
            f"WHERE {stack} = '{holdfast}'",
            f"GROUP BY {workflow}",
            "ORDER BY SUM() DESC",
        ]
    )
    return cloudwatch.MathExpression(
        expression=query,
        using_metrics={},
        label="Failed",
        period=_FIVE_MINUTES,
    )


def _notify(scope: Construct, topic_arn: str) -> actions.SnsAction:
    return actions.SnsAction(sns.Topic.from_topic_arn(scope, "Topic", topic_arn))
