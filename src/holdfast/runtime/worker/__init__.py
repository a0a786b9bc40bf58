"""The worker: one delivery of one message, from load to acknowledgement."""

from __future__ import annotations
