"""The CDK app: `cdk deploy` builds the Lambda asset and the one stack. Settings are in cdk.json."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from aws_cdk import App

from holdfast.deployment import Deployment
from holdfast.errors import HoldfastError
from infra.bundle import build_asset
from infra.settings import Settings, require_key
from infra.stack import HoldfastStack


def main() -> None:
    app = App()
    try:
        settings = Settings.from_context(app.node.try_get_context)
        # A workflow that is not compiled, or lacks its key, must fail here, not in Lambda.
        require_key(settings, Deployment.from_modules(settings.modules).secrets)
        with tempfile.TemporaryDirectory() as directory:
            asset = Path(directory)
            build_asset(asset, project=Path(__file__).parent, settings=settings)
            name = str(app.node.get_context("stack"))
            HoldfastStack(app, name, settings=settings, asset=asset)
            app.synth()
    except HoldfastError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
