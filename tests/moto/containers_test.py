"""A task in a container of Fargate, on the emulated ECS of `serve`.

The emulated ECS starts no container: the test plays it, with the environment that the engine gave.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

import holdfast
from holdfast.cli import main
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.moto.schedules_test import written

# One local cloud at a time in a process, and one group runs in one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serve")]

MODULE = """
from __future__ import annotations

from holdfast import Fargate, hours, task, task_context, workflow


@task(
    runs_on=Fargate("films", "mix", "main", subnets=("subnet-1",), security_groups=("sg-1",)),
    timeout=hours(2),
)
def mix(film: str) -> str:
    return f"{film} {task_context().workflow} {task_context().attempt}"


@workflow
def mixed(film: str) -> str:
    return mix(film)
"""


def client_of(service: str, url: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


def test_a_task_runs_in_a_container_of_fargate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = written(tmp_path, monkeypatch, "mixed_on_fargate", MODULE)
    with serving(deployment_of([name]), port=0) as served:
        network = client_of("ec2", served.url)
        vpc = network.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        network.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
        # The task names its subnet and its group before they exist.
        with monkeypatch.context() as named:
            named.setattr("moto.ec2.models.subnets.random_subnet_id", lambda: "subnet-1")
            network.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
        with monkeypatch.context() as named:
            of_groups = "moto.ec2.models.security_groups.random_security_group_id"
            named.setattr(of_groups, lambda: "sg-1")
            network.create_security_group(VpcId=vpc, GroupName="films", Description="films")
        ecs = client_of("ecs", served.url)
        ecs.create_cluster(clusterName="films")
        ecs.register_task_definition(
            family="mix",
            networkMode="awsvpc",
            requiresCompatibilities=["FARGATE"],
            cpu="256",
            memory="512",
            containerDefinitions=[{"name": "main", "image": "films:1", "memory": 512}],
        )
        client = holdfast.Client(served.url)
        handle = client.start("mixed", {"film": "Alien"}, name="m1")
        while not (tasks := ecs.list_tasks(cluster="films")["taskArns"]):
            assert handle.describe()["status"] == "RUNNING", handle.describe()
        (started,) = ecs.describe_tasks(cluster="films", tasks=tasks)["tasks"]
        (override,) = started["overrides"]["containerOverrides"]
        assert (override["name"], started["launchType"]) == ("main", "FARGATE")
        (variable,) = override["environment"]
        monkeypatch.setenv(variable["name"], variable["value"])
        monkeypatch.setenv("HOLDFAST_API", served.url)
        assert main(["worker", "--once", "--modules", name]) == 0
        assert handle.result(timeout=20) == "Alien mixed 1"
