"""JSONPath, the older query language: paths, templates, intrinsic functions, choice rules."""

from __future__ import annotations
