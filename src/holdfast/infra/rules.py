"""The EventBridge rules that invoke the functions of events and of the sweeper."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sns as sns
from constructs import Construct

from holdfast import limits, resources

from .compute import HoldfastFunction
from .messaging import Messaging


def wake_by_events(scope: Construct, handler: HoldfastFunction, messaging: Messaging) -> None:
    events.Rule(
        scope,
        "EventsRule",
        description="Events for executions that wait by business key",
        event_bus=messaging.bus,
        event_pattern=events.EventPattern(detail_type=[resources.EVENT_DETAIL_TYPE]),
        targets=[
            targets.LambdaFunction(
                handler.function,
                dead_letter_queue=messaging.events_dead,
                retry_attempts=resources.EVENT_RETRY_ATTEMPTS_MAX,
                max_event_age=Duration.seconds(resources.EVENT_RETRY_AGE_SECONDS_MAX),
            )
        ],
    )


def notify_of_questions(scope: Construct, topic: sns.ITopic, name: str, *, has_links: bool) -> None:
    """Send a line of text to the topic when a question of this Holdfast opens, and for each
    reminder. `name` is its own: other stacks of the account use the same bus.
    """
    names = ("assignee", "title", "until", "link" if has_links else "question")
    assignee, title, until, end = (events.EventField.from_path(f"$.detail.{key}") for key in names)
    asked = f"{assignee}: {title} - {'answer it at' if has_links else 'its id is'} {end}"
    opened, reminder = resources.QUESTION_DETAIL_TYPE, resources.QUESTION_REMINDER_TYPE
    _send_lines(scope, "QuestionsRule", topic, (name, opened), f"Question for {asked}")
    line = f"Reminder, until {until}, for {asked}"
    _send_lines(scope, "RemindersRule", topic, (name, reminder), line)


def _send_lines(
    scope: Construct, construct_id: str, topic: sns.ITopic, of: tuple[str, str], line: str
) -> None:
    """Send each event of one type to the topic as a line of text. `of`: the name of the Holdfast
    stack, and the type of the events.
    """
    name, detail_type = of
    events.Rule(
        scope,
        construct_id,
        description="Tells a topic of questions to people",
        event_pattern=events.EventPattern(
            source=[resources.QUESTION_SOURCE],
            detail_type=[detail_type],
            detail={"stack": [name]},
        ),
        targets=[
            targets.SnsTopic(
                topic,
                message=events.RuleTargetInput.from_text(line),
                retry_attempts=resources.EVENT_RETRY_ATTEMPTS_MAX,
                max_event_age=Duration.seconds(resources.EVENT_RETRY_AGE_SECONDS_MAX),
            )
        ],
    )


def wake_each_minute(scope: Construct, sweeper: HoldfastFunction, messaging: Messaging) -> None:
    # Do not retry a failed sweep. The retry would run late, and the next sweep does its work.
    sweeper.function.configure_async_invoke(
        retry_attempts=0, max_event_age=Duration.seconds(limits.SWEEP_SECONDS)
    )
    events.Rule(
        scope,
        "SweepRule",
        description="Wakes the sweeper",
        schedule=events.Schedule.rate(Duration.seconds(limits.SWEEP_SECONDS)),
        targets=[
            targets.LambdaFunction(
                sweeper.function,
                dead_letter_queue=messaging.sweeper_dead,
                retry_attempts=0,
                max_event_age=Duration.seconds(limits.SWEEP_SECONDS),
            )
        ],
    )
