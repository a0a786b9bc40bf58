"""The CDK stack of this repository, made of the construct in `holdfast.infra`."""

from __future__ import annotations
