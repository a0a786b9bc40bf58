"""The CDK app: `cdk deploy` builds the Lambda asset and the one stack. Settings are in cdk.json."""

from __future__ import annotations

import sys
from pathlib import Path

from aws_cdk import App

from holdfast.errors import HoldfastError
from holdfast.infra.settings import Settings
from infra.stack import HoldfastStack


def main() -> None:
    app = App()
    try:
        settings = Settings.from_context(app.node.try_get_context)
        name = str(app.node.get_context("stack"))
        HoldfastStack(app, name, settings=settings, project=Path(__file__).parent)
        app.synth()
    except HoldfastError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
