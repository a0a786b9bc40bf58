"""A task in a container of Fargate or Batch, on the emulated ECS and Batch of `serve`.

The emulated services start no container: the test plays it, with the environment that the engine
gave.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


JOBS = """
from __future__ import annotations

from holdfast import BatchJob, WaitTimeout, hours, seconds, task, task_context, workflow

GPU = BatchJob(queue="gpu", definition="grade")


@task(runs_on=GPU, timeout=hours(2))
def grade(film: str) -> str:
    return f"{film} {task_context().workflow} {task_context().attempt}"


@task(runs_on=GPU, timeout=seconds(1))
def glance(film: str) -> str:
    return film


@workflow
def graded(film: str) -> str:
    return grade(film)


@workflow
def glanced(film: str) -> str:
    try:
        return glance(film)
    except WaitTimeout:
        return "too late"
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


class Batch:
    """The emulated Batch with the queue and the job definition that the tasks name."""

    def __init__(self, url: str, module: str) -> None:
        self.url, self.module = url, module
        self.client = holdfast.Client(url)
        self.jobs = client_of("batch", url)
        role = client_of("iam", url).create_role(RoleName="b", AssumeRolePolicyDocument="{}")
        machines = self.jobs.create_compute_environment(
            computeEnvironmentName="any",
            type="UNMANAGED",
            state="ENABLED",
            serviceRole=role["Role"]["Arn"],
        )["computeEnvironmentArn"]
        self.jobs.create_job_queue(
            jobQueueName="gpu",
            state="ENABLED",
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": machines}],
        )
        self.jobs.register_job_definition(
            jobDefinitionName="grade",
            type="container",
            containerProperties={"image": "films:1", "vcpus": 1, "memory": 512},
        )

    def token(self, handle: Any) -> str:
        """Wait for the job that the engine submits; return the token in its environment."""
        while not (submitted := self.jobs.list_jobs(jobQueue="gpu")["jobSummaryList"]):
            assert handle.describe()["status"] == "RUNNING", handle.describe()
        (job,) = self.jobs.describe_jobs(jobs=[submitted[0]["jobId"]])["jobs"]
        assert job["jobQueue"].endswith("/gpu")
        variables = {one["name"]: one["value"] for one in job["container"]["environment"]}
        return str(variables["HOLDFAST_TOKEN"])

    def run(self, token: str, monkeypatch: pytest.MonkeyPatch) -> int:
        """Run the container's command in this process; return its exit status."""
        monkeypatch.setenv("HOLDFAST_TOKEN", token)
        monkeypatch.setenv("HOLDFAST_API", self.url)
        return main(["worker", "--once", "--modules", self.module])


@contextmanager
def batch_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[Batch]:
    # The thread of a job of moto starts a container with Docker.
    monkeypatch.setattr("moto.batch.models.Job.run", lambda _: None)
    module = written(tmp_path, monkeypatch, name, JOBS)
    with serving(deployment_of([module]), port=0) as served:
        yield Batch(served.url, module)


def test_a_job_of_batch_fetches_its_attempt_and_gives_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with batch_in(tmp_path, monkeypatch, "graded_on_batch") as batch:
        handle = batch.client.start("graded", {"film": "Alien"}, name="g1")
        assert batch.run(batch.token(handle), monkeypatch) == 0
        assert handle.result(timeout=20) == "Alien graded 1"


def test_a_job_of_batch_that_comes_after_the_time_out_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with batch_in(tmp_path, monkeypatch, "late_on_batch") as batch:
        handle = batch.client.start("glanced", {"film": "Alien"}, name="g1")
        assert handle.result(timeout=30) == "too late"
        assert batch.run(batch.token(handle), monkeypatch) != 0


def test_a_job_of_batch_of_a_stopped_execution_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with batch_in(tmp_path, monkeypatch, "stopped_on_batch") as batch:
        handle = batch.client.start("graded", {"film": "Alien"}, name="g1")
        token = batch.token(handle)
        handle.stop()
        while handle.describe()["status"] == "RUNNING":
            pass
        assert handle.describe()["status"] == "ABORTED"
        assert batch.run(token, monkeypatch) != 0
