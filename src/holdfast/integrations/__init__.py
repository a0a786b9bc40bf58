"""Calls of AWS services and of HTTP endpoints, as a state machine's tasks ask for them."""

from __future__ import annotations

from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.dispatch import Integrations, StatesCall

__all__ = ["Integrations", "ServiceClients", "StatesCall"]
