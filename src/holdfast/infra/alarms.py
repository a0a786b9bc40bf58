"""Alarms for work that stands still without a visible error."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import limits, resources

_MINUTE = Duration.minutes(1)
# The greatest age of a message in a healthy queue: the longest delay, then one full delivery.
_MESSAGE_AGE_SECONDS_MAX = limits.SQS_DELAY_SECONDS_MAX + resources.WORK.visibility_seconds
_SWEEP_LAG_SECONDS_MAX = 3 * limits.SWEEP_SECONDS
# The sweeper takes these dead letters up every minute: where they lie for five, it does not run.
# One that it cannot read it hides again and again, so for those there is SweepRefused.
_DRAINED = ("Work", "Single", "Starts")
_DRAINED_MINUTES = 5
_LIMIT_WAIT_SECONDS_MAX = 900


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
    ) -> None:
        super().__init__(scope, construct_id)
        self._action = None if topic_arn is None else _notify(self, topic_arn)
        for kind, queue in dead_letters.items():
            self._alarm(
                f"{kind}DeadLetters",
                "messages wait in a dead-letter queue: see Redrive in docs/how-to/operate.md",
                queue.metric_approximate_number_of_messages_visible(
                    period=_MINUTE, statistic=cloudwatch.Stats.MAXIMUM
                ),
                threshold=0,
                minutes=_DRAINED_MINUTES if kind in _DRAINED else 1,
            )
        for kind, queue in queues.items():
            self._alarm(
                f"{kind}OldestMessage",
                "work is not taken from the queue: the worker is throttled, broken or overrun",
                queue.metric_approximate_age_of_oldest_message(
                    period=_MINUTE, statistic=cloudwatch.Stats.MAXIMUM
                ),
                threshold=_MESSAGE_AGE_SECONDS_MAX,
                minutes=3,
            )
        self._alarm(
            "Quarantined",
            "a message failed in every way: see Quarantine in docs/how-to/operate.md",
            engine_metric(name, resources.METRIC_EXECUTIONS_QUARANTINED, cloudwatch.Stats.SUM),
            threshold=0,
            minutes=1,
            # The metric reports a message, not a state: a minute without a message does not mean
            # that all is well.
            tells_ok=False,
        )
        self._alarm(
            "LimitSaturated",
            "work waits at a limit for a quarter of an hour: see `holdfast limits`",
            engine_metric(name, resources.METRIC_LIMIT_WAIT, cloudwatch.Stats.MAXIMUM),
            threshold=_LIMIT_WAIT_SECONDS_MAX,
            minutes=5,
        )
        self._alarm(
            "SweepRefused",
            "the sweeper could not work off a row or a dead letter: damaged, or of newer code",
            engine_metric(name, resources.METRIC_SWEEP_REFUSED, cloudwatch.Stats.SUM),
            threshold=0,
            minutes=1,
        )
        self._alarm(
            "SweepLag",
            "timers and recovery are late, or the sweeper does not run at all",
            engine_metric(name, resources.METRIC_SWEEP_LAG, cloudwatch.Stats.MAXIMUM),
            threshold=_SWEEP_LAG_SECONDS_MAX,
            minutes=3,
            # A sweeper that never finishes a sweep reports no lag, so missing data must alarm.
            missing=cloudwatch.TreatMissingData.BREACHING,
        )

    def _alarm(
        self,
        construct_id: str,
        description: str,
        metric: cloudwatch.Metric,
        *,
        threshold: int,
        minutes: int,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
        tells_ok: bool = True,
    ) -> None:
        alarm = metric.create_alarm(
            self,
            construct_id,
            alarm_description=f"Holdfast: {description}",
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
    holdfast: str, name: str, statistic: str, period: Duration = _MINUTE
) -> cloudwatch.Metric:
    """A metric that the functions of one Holdfast write; `holdfast` is its name."""
    return cloudwatch.Metric(
        namespace=resources.METRICS_NAMESPACE,
        metric_name=name,
        dimensions_map={resources.METRICS_DIMENSION: holdfast},
        period=period,
        statistic=statistic,
    )


def _notify(scope: Construct, topic_arn: str) -> actions.SnsAction:
    return actions.SnsAction(sns.Topic.from_topic_arn(scope, "Topic", topic_arn))
