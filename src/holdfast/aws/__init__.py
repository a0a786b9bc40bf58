"""AWS: the effects performed by botocore, and the bodies of the Lambda functions."""

from __future__ import annotations
