"""A throw-away AWS on loopback that enforces IAM, and callers of what is deployed there.

ministack runs in an environment of its own, since it pins another botocore. It serves TLS because
the stack's own policies refuse plain HTTP, and ministack enforces those too.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import holdfast
from tests.infra.template import as_list

VERSION = "ministack==1.5.33"
ACCOUNT = "000000000000"
REGION = "us-east-1"
ROOT_KEY = Credentials("test", "test")
BATCHED = {"sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"}
START_SECONDS_MAX = 60
WAIT_SECONDS_MAX = 60
POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Ministack:
    endpoint: str
    certificate: Path
    log: Path

    def environment(self) -> dict[str, str]:
        """For programs that are to work on this cloud as its root."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        return {
            **kept,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": str(ROOT_KEY.access_key),
            "AWS_SECRET_ACCESS_KEY": str(ROOT_KEY.secret_key),
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CA_BUNDLE": str(self.certificate),
            "NODE_EXTRA_CA_CERTS": str(self.certificate),
        }

    def client(self, service: str, credentials: Credentials = ROOT_KEY) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            verify=str(self.certificate),
            region_name=REGION,
            aws_access_key_id=credentials.access_key,
            aws_secret_access_key=credentials.secret_key,
        )

    def user(self, name: str, *statements: dict[str, Any]) -> Credentials:
        """Create an IAM user with exactly these rights."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        policy = {"Version": "2012-10-17", "Statement": list(statements)}
        iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return Credentials(key["AccessKeyId"], key["SecretAccessKey"])

    def policy(self, name: str, *statements: dict[str, Any]) -> str:
        """Return the ARN of a new managed policy."""
        document = {"Version": "2012-10-17", "Statement": list(statements)}
        made = self.client("iam").create_policy(
            PolicyName=name, PolicyDocument=json.dumps(document)
        )
        return str(made["Policy"]["Arn"])


def grant_batches(cloud: Ministack, role_prefix: str) -> None:
    """Where a role may do X, let it do XBatch: on AWS one right covers both.

    ministack asks for `sqs:SendMessageBatch`, an action that IAM does not have.
    """
    iam = cloud.client("iam")
    for role in (role["RoleName"] for role in iam.list_roles()["Roles"]):
        if not role.startswith(role_prefix):
            continue
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
            document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            for statement in document["Statement"]:
                actions = as_list(statement["Action"])
                batches = [f"{action}Batch" for action in actions if action in BATCHED]
                statement["Action"] = [*actions, *batches]
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))


def grant_taking_on(cloud: Ministack, role_prefix: str) -> None:
    """Let a role assume the role whose trust policy names it: on AWS the trust policy is enough.

    ministack requires a right of the caller too, as AWS does between accounts.
    """
    iam = cloud.client("iam")
    for role in iam.list_roles()["Roles"]:
        if not role["RoleName"].startswith(role_prefix):
            continue
        take_on = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": role["Arn"]}
        document = json.dumps({"Version": "2012-10-17", "Statement": [take_on]})
        for statement in role["AssumeRolePolicyDocument"]["Statement"]:
            for caller in as_list(statement["Principal"].get("AWS", [])):
                name = caller.rpartition("/")[2]
                iam.put_role_policy(RoleName=name, PolicyName="TakeOn", PolicyDocument=document)


@dataclass(frozen=True)
class Caller:
    """Calls an HTTP API on ministack. Without credentials the requests are not signed."""

    cloud: Ministack
    api_url: str
    credentials: Credentials | None

    def __call__(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, Any]:
        # The API's own host name, which only ministack knows, goes into the header it routes by.
        host = self.api_url.removeprefix("https://")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Host": host, "Content-Type": "application/json"}
        request = AWSRequest(method, f"{self.api_url}{path}", data=data, headers=headers)
        if self.credentials is not None:
            SigV4Auth(self.credentials, "execute-api", REGION).add_auth(request)
        context = ssl.create_default_context(cafile=str(self.cloud.certificate))
        sent = urllib.request.Request(
            f"{self.cloud.endpoint}{path}", data, dict(request.headers.items()), method=method
        )
        try:
            with urllib.request.urlopen(sent, context=context, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.loads(refusal.read())

    def states(self) -> Any:
        """Return `holdfast.client` of the API; its requests go to the same server as
        `__call__`'s.
        """
        assert self.credentials is not None
        made = holdfast.client(
            self.api_url,
            region_name=REGION,
            verify=str(self.cloud.certificate),
            aws_access_key_id=self.credentials.access_key,
            aws_secret_access_key=self.credentials.secret_key,
        )
        made.meta.events.register("before-send.sfn", self._redirect)
        return made

    def _redirect(self, request: Any, **_: Any) -> None:
        """After signing, so that the signature is that of the API's own host."""
        request.headers["Host"] = self.api_url.removeprefix("https://")
        request.url = request.url.replace(self.api_url, self.cloud.endpoint)


@contextmanager
def running(directory: Path) -> Iterator[Ministack]:
    """Started on a free port, stopped in the end; skips where its tools are not installed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make ministack's certificate")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cloud = Ministack(
        endpoint=f"https://127.0.0.1:{port}",
        certificate=directory / "ministack-tls" / "server.crt",
        log=directory / "ministack.log",
    )
    with cloud.log.open("w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable),
                *("--from", VERSION, "--with", "boto3", "ministack"),
            ],
            # Its functions inherit these variables: without an endpoint they get the right one, and
            # without a path they import the content of their asset.
            env={
                key: value
                for key, value in cloud.environment().items()
                if not key.startswith(("AWS_ENDPOINT_URL", "PYTHON"))
            }
            | {
                "BIND_HOST": "127.0.0.1",
                "GATEWAY_PORT": str(port),
                "USE_SSL": "1",
                "AUTH": "true",
                "TMPDIR": str(directory),
            },
            cwd=directory,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            wait_for(lambda: is_listening(port, process), seconds=START_SECONDS_MAX)
            yield cloud
        finally:
            # With its functions, and at once: it would wait for their open connections, and there
            # is nothing to save.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=10)


def is_listening(port: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "ministack ended; see ministack.log"
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], Any], *, seconds: float = WAIT_SECONDS_MAX) -> Any:
    """Return the first result that is true. Another process works meanwhile, so this polls."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if result := condition():
            return result
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"not within {seconds} seconds")
