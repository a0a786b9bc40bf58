"""Durable workflows for AWS, written as plain typed Python."""

from __future__ import annotations
