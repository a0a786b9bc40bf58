"""The repository's own stack: one Holdfast with the settings of cdk.json."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from holdfast.infra import Holdfast
from holdfast.infra.settings import Settings
from holdfast.infra.sizes import sizes_of


class HoldfastStack(Stack):
    """`asset` is a folder with the functions' code; None: it is built from `project`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        project: Path,
        asset: Path | None = None,
    ) -> None:
        super().__init__(scope, construct_id, description="Holdfast: durable workflows")
        topic = settings.alarm_topic_arn
        Holdfast(
            self,
            # CDK leaves this name out of logical ids, so that stacks of earlier versions, whose
            # resources stood in the stack itself, keep their tables.
            "Default",
            modules=settings.modules,
            project=project,
            asset=asset,
            architecture=settings.architecture,
            python=settings.python,
            functions=sizes_of(settings.functions),
            reserved_concurrency=settings.caps_concurrency,
            work_batch=settings.work_batch,
            start_concurrency=settings.start_concurrency,
            starts_per_second=settings.starts_per_second,
            task_policies=[
                iam.ManagedPolicy.from_managed_policy_arn(self, f"TaskPolicy{number}", arn)
                for number, arn in enumerate(settings.task_policies, 1)
            ],
            api=settings.jwt,
            alarms=None if topic is None else sns.Topic.from_topic_arn(self, "Topic", topic),
            alarm_bounds=settings.alarm_bounds,
            log_retention_days=settings.log_retention_days,
            status_events=settings.tells_status,
            forms=settings.has_forms,
            question_events=settings.tells_questions,
            payload_limit=settings.limits_payloads,
            history_limit=settings.limits_histories,
            secrets_key=settings.seals_secrets,
            customer_managed_key=settings.owns_key,
            archive=settings.has_archive,
        )
        Tags.of(self).add("application", "holdfast")
