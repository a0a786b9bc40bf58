"""Tasks of groups on a local machine: the messages of a deployed stack, in the process of `serve`.

An attempt and its result are converted to JSON and back. So a task gets here what it gets in the
function of its group: all arguments, no key for secrets, and the limit of 6 MB. It runs in the
process of `serve`, because the services of AWS that `serve` emulates are in it: a task in another
process would call AWS itself.
"""

from __future__ import annotations

import json

from holdfast.aws.group_function import runs_attempt
from holdfast.aws.group_tasks import CallsGroup, GroupTasks
from holdfast.aws.tasks import TaskPerformer
from holdfast.deployment import Deployment


def own_tasks(deployment: Deployment) -> TaskPerformer:
    if not deployment.groups:
        return deployment.run_task
    return GroupTasks(deployment, local_call(deployment)).perform


def local_call(deployment: Deployment) -> CallsGroup:
    run = runs_attempt(deployment.registry)

    def call(group: str, payload: bytes) -> tuple[bool, bytes]:
        del group
        return False, json.dumps(run(json.loads(payload))).encode()

    return call
