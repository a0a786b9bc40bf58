"""Calls of AWS services and of HTTP endpoints that the tasks of state machines request."""

from __future__ import annotations

from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.dispatch import Integrations, StatesCall

__all__ = ["Integrations", "ServiceClients", "StatesCall"]
