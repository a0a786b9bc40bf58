"""The CPU of a worker's cold start: `uv run python benchmarks/cold_start.py --rounds 10`.

Fresh processes take turns: one that makes a DynamoDB client with boto3, one that imports the
worker, and one that also executes its first message, the start of a workflow of one task, against
an AWS whose answers are canned. The least of all rounds counts, because other work only adds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from holdfast import resources
from holdfast.local import build
from holdfast.local.stack import deployment_of

ROOT: Final = Path(__file__).parents[1]
MODULE: Final = "cold_flows"
SOURCE: Final = """
from holdfast import task, workflow

@task
def add(number: int) -> int:
    return number + 1

@workflow
def chain(number: int) -> int:
    return add(number)
"""
CANNED: Final = """
from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session

def send(self, request):
    response = AWSResponse(request.url, 200, {}, None)
    response._content = b'{"Items": [], "Count": 0}'
    return response

URLLib3Session.send = send
"""
PROGRAMS: Final = {
    "nothing": "",
    "a boto3 client": "import boto3; boto3.client('dynamodb')",
    "import the worker": "import functions.worker.app",
    "import and first call": """
import json, os
import functions.worker.app, canned
class Context:
    aws_request_id = "1"
    get_remaining_time_in_millis = lambda self: 800_000
failed = functions.worker.app.handler(json.loads(os.environ["EVENT"]), Context())
assert failed == {"batchItemFailures": []}, failed
""",
}
NAMES: Final = (
    *(resources.ENV_EXECUTIONS_TABLE, resources.ENV_MAIL_TABLE, resources.ENV_BLOBS_BUCKET),
    *(resources.ENV_STACK, resources.ENV_ACCOUNT, resources.ENV_TASKS_ROLE),
    resources.ENV_SECRET_ID,
)
URLS: Final = (
    *(resources.ENV_WORK_QUEUE_URL, resources.ENV_SINGLE_QUEUE_URL),
    *(resources.ENV_STARTS_QUEUE_URL, resources.ENV_WORK_DLQ_URL),
    *(resources.ENV_SINGLE_DLQ_URL, resources.ENV_STARTS_DLQ_URL),
)


def environment(folder: Path, definition: str) -> dict[str, str]:
    message = {
        "f": 1,
        "k": "start",
        "t": "default",
        "run": "01mcc5rm00xb71embhf65t1j5m",
        "workflow": "chain",
        "definition": definition,
        "t0": 1_800_000_000_000,
        "input": {"v": '{"number":1}'},
    }
    record = {
        "messageId": "1",
        "receiptHandle": "r",
        "body": json.dumps(message),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1"},
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:1:{resources.ENV_STARTS_QUEUE_URL}",
    }
    keys = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    return {
        **os.environ,
        **dict.fromkeys(NAMES, "x"),
        **{name: f"https://sqs.eu-west-1.amazonaws.com/1/{name}" for name in URLS},
        **dict(zip(keys, ("eu-west-1", "eu-west-1", "x", "x"), strict=True)),
        resources.ENV_MODULES: MODULE,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
        "EVENT": json.dumps({"Records": [record]}),
    }


def cpu_ms(program: str, variables: dict[str, str]) -> float:
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=variables, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, program
    return (used.ru_utime + used.ru_stime) * 1_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / f"{MODULE}.py").write_text(SOURCE)
        (folder / "canned.py").write_text(CANNED)
        sys.path.insert(0, made)
        for output in build.compile_modules([MODULE]):
            output.write()
        definition = deployment_of([MODULE]).definitions["chain"].hash
        variables = environment(folder, definition)
        least = dict.fromkeys(PROGRAMS, float("inf"))
        for _ in range(rounds):
            for name, program in PROGRAMS.items():
                least[name] = min(least[name], cpu_ms(program, variables))
    print(json.dumps({name: round(milliseconds) for name, milliseconds in least.items()}, indent=1))


if __name__ == "__main__":
    main()
