"""Definitions for AWS Step Functions itself."""

from __future__ import annotations
