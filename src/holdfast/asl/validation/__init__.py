"""The rules that a definition must follow, with AWS's codes and messages."""

from __future__ import annotations
