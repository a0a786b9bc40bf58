"""The settings of a state machine (logging, tracing, encryption), checked and completed with
defaults.

Executions log what `loggingConfiguration` says (`runtime/execution_logs.py`). The others are stored
and returned, but have no effect: settings of the stack decide how Holdfast traces and encrypts.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.state import LogSetting
from holdfast.runtime.effects import Clock, Effect, RunTask, TaskSucceeded
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault

AWS_OWNED_KEY: Final[Mapping[str, Any]] = {"type": "AWS_OWNED_KEY"}
KEY_REUSE_SECONDS_DEFAULT: Final = 300  # AWS docs, EncryptionConfiguration
_LOG_CHECK_MS: Final = 10_000


def logging_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with its defaults. Any level but OFF needs exactly one
    destination.
    """
    level = given.get("level", "OFF")
    destinations = given.get("destinations")
    if len(destinations or ()) > 1 or (level != "OFF" and not destinations):
        raise _invalid_logging("Must specify exactly one Log Destination.")
    logging = {"level": level, "includeExecutionData": given.get("includeExecutionData", False)}
    return logging if destinations is None else {**logging, "destinations": destinations}


def log_setting_of(logging: Mapping[str, Any]) -> LogSetting | None:
    """Return what the executions of a machine with this stored configuration log; None: nothing."""
    level, destinations = str(logging.get("level", "OFF")), logging.get("destinations")
    if level == "OFF" or not destinations:
        return None
    group = _log_group(str(destinations[0]["cloudWatchLogsLogGroup"]["logGroupArn"]))
    return {"group": group, "level": level, "has_data": bool(logging["includeExecutionData"])}


def require_log_group(service: Service, logging: Mapping[str, Any]) -> Generator[Effect, Any, None]:
    """Raise InvalidLoggingConfiguration when the log group certainly does not exist.

    A stack may not query CloudWatch Logs by default; then the name is accepted.
    """
    for destination in logging.get("destinations", ()):
        arn = str(destination.get("cloudWatchLogsLogGroup", {}).get("logGroupArn", ""))
        name = _log_group(arn)
        now_ms = yield Clock()
        answer = yield _describe_log_groups(service, name, now_ms + _LOG_CHECK_MS)
        if isinstance(answer, TaskSucceeded):
            groups = answer.output.get("LogGroups", [])
            if not any(group.get("LogGroupName") == name for group in groups):
                raise _invalid_logging("Log Destination not found.")


def _log_group(arn: str) -> str:
    """Return NAME of arn:aws:logs:REGION:ACCOUNT:log-group:NAME:*."""
    parts = arn.split(":")
    if len(parts) < 7 or parts[2] != "logs" or parts[5] != "log-group":
        raise _invalid_logging("Log Destination not found.")
    if parts[-1] != "*":
        raise _invalid_logging("Log Group ARN must be provided with '*' qualifier.")
    return ":".join(parts[6:-1])


def _describe_log_groups(service: Service, name: str, deadline_ms: int) -> RunTask:
    return RunTask(
        name="aws-sdk:cloudwatchlogs:describeLogGroups",
        kind="service",
        arguments={"LogGroupNamePrefix": name},
        tenant=service.tenant,
        run="",
        run_name=None,
        workflow="",
        entry=0,
        attempt=0,
        deadline_ms=deadline_ms,
    )


def tracing_of(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"enabled": given.get("enabled", False)}


def encryption_of(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the configuration with its defaults. A customer's key requires the type for customer
    keys.
    """
    if given is None:
        return dict(AWS_OWNED_KEY)
    has_key = "kmsKeyId" in given
    if (given["type"] == "CUSTOMER_MANAGED_KMS_KEY") != has_key:
        wanted = "is required" if not has_key else "cannot be given"
        raise StatesFault(
            "InvalidEncryptionConfiguration",
            f"Invalid Encryption Configuration: a KMS key {wanted} for type {given['type']}",
        )
    if not has_key:
        return dict(AWS_OWNED_KEY)
    return {"kmsDataKeyReusePeriodSeconds": KEY_REUSE_SECONDS_DEFAULT, **given}


def _invalid_logging(reason: str) -> StatesFault:
    return StatesFault("InvalidLoggingConfiguration", f"Invalid Logging Configuration: {reason}")
