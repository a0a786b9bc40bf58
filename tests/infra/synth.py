"""Synthesises two stacks: "Default" as cdk.json has it, "Chosen" with every other choice made.

A program of its own, because the CDK starts a Node process and takes seconds: tests run it once
and read the templates. The asset is a stand-in; bundle_test.py looks at the real one.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from aws_cdk import Acknowledgment, App, Validations
from cdk_nag import AwsSolutionsChecks

from holdfast.infra.settings import JwtIssuer, Settings
from holdfast.infra.sizes import read_sizes
from infra.stack import HoldfastStack
from tests.infra.template import SIZES, TASK_POLICY_ARNS, TOPIC_ARN

ROOT = Path(__file__).parents[2]


def main(asset: str, directory: str) -> None:
    app = App(outdir=directory)
    # Its findings go into the assembly's validation report, and fail the synthesis.
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    settings = Settings.from_context(app.node.try_get_context)
    chosen = dataclasses.replace(
        settings,
        architecture="x86_64",
        python="3.14",
        caps_concurrency=False,
        jwt=JwtIssuer("https://issuer.example", "holdfast"),
        alarm_topic_arn=TOPIC_ARN,
        task_policies=TASK_POLICY_ARNS,
        tells_status=True,
        seals_secrets=True,
        owns_key=True,
        functions=read_sizes(SIZES),
        work_batch=4,
        log_retention_days=400,
    )
    HoldfastStack(app, "Default", settings=settings, project=ROOT, asset=Path(asset))
    made = HoldfastStack(app, "Chosen", settings=chosen, project=ROOT, asset=Path(asset))
    for policy in TASK_POLICY_ARNS:
        # The user decides on the tasks' rights, also with a policy of AWS's own.
        Validations.of(made).acknowledge(
            Acknowledgment(id=f"AwsSolutions-IAM4[Policy::{policy}]", reason="chosen by the user")
        )
    app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
