"""The rules that a definition must follow, with AWS's codes and words."""

from __future__ import annotations
