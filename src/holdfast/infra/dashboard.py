"""The dashboard. One row of widgets answers each question of an engineer on call:

Is work flowing?                       starts and ends, ends by workflow, queues
What waits, for what, and how long?    lags, the oldest waits, open executions by workflow and wait
What fails, and with which error?      failures and retries by workflow, task and error
Which limit binds?                     waits at limits and for pools, throttles of the functions
What does it cost today?               an estimate, durable steps
What did people and crashes change?    operator actions, lost workers, dead letters
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import resources

from . import log_queries
from .alarms import engine_metric
from .spending import Billed, spending

_COLUMNS: Final = 24
_MINUTE: Final = Duration.minutes(1)
_MAXIMUM: Final = cloudwatch.Stats.MAXIMUM
_SUM: Final = cloudwatch.Stats.SUM


@dataclass(frozen=True, slots=True)
class Watched:
    """The parts of a stack that the dashboard shows. `functions` and `log_groups` are by the name
    of the function.
    """

    queues: Mapping[str, sqs.IQueue]
    dead_letters: Mapping[str, sqs.IQueue]
    functions: Mapping[str, lambda_.IFunction]
    log_groups: Mapping[str, logs.ILogGroup]
    billed: Billed


class Dashboard(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, name: str, watched: Watched) -> None:
        super().__init__(scope, construct_id)
        self._name = name
        self._watched = watched
        self._board = cloudwatch.Dashboard(
            self, "Dashboard", default_interval=Duration.hours(3), dashboard_name=name
        )
        self._board.add_widgets(_text(self._links(), height=4))
        self._row("Is work flowing?", self._executions(), self._by_workflow(), self._queues())
        self._row(
            "What waits, for what, and how long?",
            self._lags(),
            self._sweep_log("Oldest waits that were checked", log_queries.WAITS),
            self._work_log("Longest lags by workflow (seconds)", log_queries.LAGS),
            self._sweep_log("Open executions by workflow and wait", log_queries.OPEN),
        )
        self._row(
            "What fails, and with which error?",
            self._failures(),
            self._work_log("Failed executions", log_queries.FAILURES),
            self._work_log("Retries", log_queries.RETRIES),
            self._work_log("Log events that were refused", log_queries.LOST_LOG_EVENTS),
        )
        self._row(
            "Which limit binds?",
            self._limits(),
            self._work_log("Waits at limits", log_queries.LIMITS),
            self._sweep_log("Pools: waiting tasks and workers", log_queries.POOLS),
            self._throttles(),
        )
        self._row("What does it cost today?", self._cost_today(), self._cost(), self._steps())
        self._row(
            "What did people and crashes change?",
            self._work_log("Operator actions", log_queries.ACTIONS),
            self._work_log("Lost workers and append conflicts", log_queries.CONTENTION),
            self._stuck(),
            self._sweep_log("Stuck executions", log_queries.STUCK),
        )

    def _row(self, question: str, *widgets: cloudwatch.IWidget) -> None:
        self._board.add_widgets(_text(f"## {question}", height=1))
        self._board.add_widgets(*widgets)

    # -- the widgets -------------------------------------------------------------------------------

    def _links(self) -> str:
        console = f"https://{Aws.REGION}.console.aws.amazon.com"
        logs_page = f"{console}/cloudwatch/home?region={Aws.REGION}#logsV2:log-groups/log-group"
        log_links = [
            f"[{name}]({logs_page}/{group.log_group_name})"
            for name, group in self._watched.log_groups.items()
        ]
        sqs_page = f"{console}/sqs/v3/home?region={Aws.REGION}#/queues"
        host = f"https%3A%2F%2Fsqs.{Aws.REGION}.{Aws.URL_SUFFIX}%2F{Aws.ACCOUNT_ID}%2F"
        queues = {
            **self._watched.queues,
            **{f"{name} dead letters": queue for name, queue in self._watched.dead_letters.items()},
        }
        queue_links = [
            f"[{name}]({sqs_page}/{host}{queue.queue_name})" for name, queue in queues.items()
        ]
        runbook = (
            "Runbook: docs/how-to/operate.md has a line for each alarm in *What to watch*. "
            "`holdfast doctor` says what should move and does not; `holdfast list`, "
            "`holdfast limits` and `holdfast pauses` show the rest."
        )
        return "\n".join(
            [
                f"# Holdfast {self._name}",
                f"{runbook}\n",
                f"Logs: {' · '.join(log_links)}\n",
                f"Queues: {' · '.join(queue_links)}",
            ]
        )

    def _executions(self) -> cloudwatch.GraphWidget:
        names = (
            resources.METRIC_EXECUTIONS_STARTED,
            resources.METRIC_EXECUTIONS_ENDED,
            resources.METRIC_EXECUTIONS_FAILED,
        )
        return _graph("Executions", [self._metric(name, _SUM) for name in names])

    def _by_workflow(self) -> cloudwatch.GraphWidget:
        return _graph("Ends by workflow", [self._search(resources.METRIC_EXECUTIONS_ENDED)])

    def _queues(self) -> cloudwatch.GraphWidget:
        queues = self._watched.queues.items()
        return _graph(
            "Queues: oldest message (seconds), depth (right)",
            [
                queue.metric_approximate_age_of_oldest_message(
                    period=_MINUTE, label=f"Oldest in {name}"
                )
                for name, queue in queues
            ],
            right=[
                queue.metric_approximate_number_of_messages_visible(
                    period=_MINUTE, label=f"Depth of {name}"
                )
                for name, queue in queues
            ],
        )

    def _lags(self) -> cloudwatch.GraphWidget:
        names = (
            resources.METRIC_SCHEDULER_LAG,
            resources.METRIC_TIMER_LAG,
            resources.METRIC_SWEEP_LAG,
        )
        return _graph(
            "Lags, oldest wait checked (right; seconds)",
            [self._metric(name, _MAXIMUM) for name in names],
            right=[self._metric(resources.METRIC_OLDEST_WAIT, _MAXIMUM)],
        )

    def _failures(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Failures by workflow, retries (right)",
            [self._search(resources.METRIC_EXECUTIONS_FAILED)],
            right=[self._metric(resources.METRIC_TASK_RETRIES, _SUM)],
        )

    def _limits(self) -> cloudwatch.GraphWidget:
        waits = self._metric(resources.METRIC_LIMIT_WAIT, _MAXIMUM)
        return _graph("Longest wait at a limit (seconds)", [waits])

    def _throttles(self) -> cloudwatch.GraphWidget:
        functions = self._watched.functions.items()
        return _graph(
            "Functions: throttles, executions at once (right)",
            [function.metric_throttles(period=_MINUTE, label=name) for name, function in functions],
            right=[
                function.metric(
                    "ConcurrentExecutions", period=_MINUTE, statistic=_MAXIMUM, label=name
                )
                for name, function in functions
            ],
        )

    def _cost_today(self) -> cloudwatch.SingleValueWidget:
        return cloudwatch.SingleValueWidget(
            title="Dollars in a day, estimated",
            metrics=[spending(self._watched.billed, Duration.days(1))],
            width=_COLUMNS // 3,
            height=6,
        )

    def _cost(self) -> cloudwatch.GraphWidget:
        return _graph(
            "Dollars in an hour, estimated", [spending(self._watched.billed, Duration.hours(1))]
        )

    def _steps(self) -> cloudwatch.GraphWidget:
        return _graph("Durable steps", [self._metric(resources.METRIC_DURABLE_STEPS, _SUM)])

    def _stuck(self) -> cloudwatch.GraphWidget:
        names = (
            resources.METRIC_EXECUTIONS_STUCK,
            resources.METRIC_EXECUTIONS_QUARANTINED,
            resources.METRIC_SWEEP_REFUSED,
        )
        return _graph(
            "Stuck, quarantined, refused; dead letters (right)",
            [self._metric(name, _SUM) for name in names],
            right=[
                queue.metric_approximate_number_of_messages_visible(
                    period=_MINUTE, label=f"{name} dead letters"
                )
                for name, queue in self._watched.dead_letters.items()
            ],
        )

    # -- parts of the widgets ----------------------------------------------------------------------

    def _metric(self, name: str, statistic: str) -> cloudwatch.Metric:
        return engine_metric(self._name, name, statistic)

    def _search(self, metric: str) -> cloudwatch.MathExpression:
        """Return a line for each workflow, also for those that are deployed later."""
        dimensions = f"{resources.METRICS_DIMENSION},{resources.METRICS_WORKFLOW_DIMENSION}"
        schema = f"{{{resources.METRICS_NAMESPACE},{dimensions}}}"
        which = f'MetricName="{metric}" {resources.METRICS_DIMENSION}="{self._name}"'
        return cloudwatch.MathExpression(
            expression=f"SEARCH('{schema} {which}', 'Sum', {_MINUTE.to_seconds()})",
            using_metrics={},
            label="",
            period=_MINUTE,
        )

    def _work_log(self, title: str, query: str) -> cloudwatch.LogQueryWidget:
        workers = (resources.WORKER.name, resources.WORKER_SINGLE.name)
        return self._log(title, query, workers)

    def _sweep_log(self, title: str, query: str) -> cloudwatch.LogQueryWidget:
        return self._log(title, query, (resources.SWEEPER.name,))

    def _log(self, title: str, query: str, functions: tuple[str, ...]) -> cloudwatch.LogQueryWidget:
        groups = self._watched.log_groups
        return cloudwatch.LogQueryWidget(
            title=title,
            log_group_names=[groups[name].log_group_name for name in functions],
            query_string=query,
            view=cloudwatch.LogQueryVisualizationType.TABLE,
            width=_COLUMNS // 3,
        )


def _text(markdown: str, *, height: int) -> cloudwatch.TextWidget:
    return cloudwatch.TextWidget(markdown=markdown, width=_COLUMNS, height=height)


def _graph(
    title: str,
    left: list[cloudwatch.IMetric],
    right: list[cloudwatch.IMetric] | None = None,
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=left, right=right or [], width=_COLUMNS // 3)
