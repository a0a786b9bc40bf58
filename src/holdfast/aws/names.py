"""The physical names of one stack's resources. Its functions read them from their environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from holdfast import resources
from holdfast.errors import ServiceFault
from holdfast.lazy_dataclass import dataclass
from holdfast.runtime.effects import QueueName, TableName
from holdfast.runtime.storage import tables


@dataclass(frozen=True, slots=True)
class ResourceNames:
    executions_table: str
    mail_table: str
    blobs_bucket: str
    work_queue_url: str
    single_queue_url: str
    starts_queue_url: str
    work_dlq_url: str = ""
    single_dlq_url: str = ""
    starts_dlq_url: str = ""
    archive_bucket: str = ""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ResourceNames:
        """Read the names. Only the sweeper has the dead-letter queues in its environment, and only
        a stack with an archive has its bucket.
        """

        def need(variable: str) -> str:
            if not environ.get(variable):
                raise ServiceFault(
                    "HF325", f"environment variable {variable} is not set", retry="never"
                )
            return environ[variable]

        return cls(
            executions_table=need(resources.ENV_EXECUTIONS_TABLE),
            mail_table=need(resources.ENV_MAIL_TABLE),
            blobs_bucket=need(resources.ENV_BLOBS_BUCKET),
            work_queue_url=need(resources.ENV_WORK_QUEUE_URL),
            single_queue_url=need(resources.ENV_SINGLE_QUEUE_URL),
            starts_queue_url=need(resources.ENV_STARTS_QUEUE_URL),
            work_dlq_url=environ.get(resources.ENV_WORK_DLQ_URL, ""),
            single_dlq_url=environ.get(resources.ENV_SINGLE_DLQ_URL, ""),
            starts_dlq_url=environ.get(resources.ENV_STARTS_DLQ_URL, ""),
            archive_bucket=environ.get(resources.ENV_ARCHIVE_BUCKET, ""),
        )

    def to_environment(self) -> dict[str, str]:
        """Return the variables that `from_environment` reads."""
        return {
            resources.ENV_EXECUTIONS_TABLE: self.executions_table,
            resources.ENV_MAIL_TABLE: self.mail_table,
            resources.ENV_BLOBS_BUCKET: self.blobs_bucket,
            resources.ENV_WORK_QUEUE_URL: self.work_queue_url,
            resources.ENV_SINGLE_QUEUE_URL: self.single_queue_url,
            resources.ENV_STARTS_QUEUE_URL: self.starts_queue_url,
            resources.ENV_WORK_DLQ_URL: self.work_dlq_url,
            resources.ENV_SINGLE_DLQ_URL: self.single_dlq_url,
            resources.ENV_STARTS_DLQ_URL: self.starts_dlq_url,
            resources.ENV_ARCHIVE_BUCKET: self.archive_bucket,
        }

    def table(self, name: TableName) -> str:
        return self.executions_table if name == tables.EXECUTIONS else self.mail_table

    def queue_url(self, name: QueueName) -> str:
        match name:
            case "work":
                return self.work_queue_url
            case "single":
                return self.single_queue_url
            case "starts":
                return self.starts_queue_url
            case _:
                assert_never(name)

    def dead_letter_url(self, name: QueueName) -> str:
        match name:
            case "work":
                return self.work_dlq_url
            case "single":
                return self.single_dlq_url
            case "starts":
                return self.starts_dlq_url
            case _:
                assert_never(name)
