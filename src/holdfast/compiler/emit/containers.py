"""The calls that start containers, as a Task's Arguments have them.

The container gets the token of its attempt and nothing else: it fetches the rest from the API, at
`POST /pools/containers/fetch`. So arguments have the bound of every task, and not the 8 KB of ECS
for all overrides.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.api.runs_on import BatchJob, Fargate

TOKEN_VARIABLE: Final = "HOLDFAST_TOKEN"  # noqa: S105  # the name, no secret
_ENVIRONMENT: Final = [{"Name": TOKEN_VARIABLE, "Value": "{% $states.context.Task.Token %}"}]


def fargate_request(where: Fargate) -> dict[str, Any]:
    network = {
        "Subnets": list(where.subnets),
        "AssignPublicIp": "ENABLED" if where.public_ip else "DISABLED",
    }
    if where.security_groups:
        network["SecurityGroups"] = list(where.security_groups)
    override = {"Name": where.container, "Environment": _ENVIRONMENT}
    return {
        "Cluster": where.cluster,
        "TaskDefinition": where.task_definition,
        "LaunchType": "FARGATE",
        "NetworkConfiguration": {"AwsvpcConfiguration": network},
        "Overrides": {"ContainerOverrides": [override]},
    }


def batch_request(task: str, where: BatchJob) -> dict[str, Any]:
    return {
        "JobName": task,
        "JobQueue": where.queue,
        "JobDefinition": where.definition,
        "ContainerOverrides": {"Environment": _ENVIRONMENT},
    }
