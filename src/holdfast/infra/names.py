"""The names that must differ between several Holdfasts in one account."""

from __future__ import annotations

import re
from typing import Final

from aws_cdk import Stack
from constructs import Construct

# A construct with this id does not appear in logical ids, because CDK leaves it out.
UNNAMED: Final = "Default"


def name_of(holdfast: Construct) -> str:
    """Return the name of event bus, dashboard and metrics: the stack's name and, in a user's own
    stack, also the construct's path.
    """
    stack = Stack.of(holdfast)
    inner = [part.node.id for part in holdfast.node.scopes[len(stack.node.scopes) :]]
    parts = [re.sub(r"[^A-Za-z0-9._-]", "-", part) for part in inner if part != UNNAMED]
    return "-".join([stack.stack_name, *parts])


def output_name(construct_id: str, name: str) -> str:
    """Return the name of an output, such as `FlowsApiUrl`. CloudFormation allows letters and digits
    alone.
    """
    own = "" if construct_id == UNNAMED else re.sub(r"[^A-Za-z0-9]", "", construct_id)
    return f"{own}{name}"


def default_bus_arn(scope: Construct) -> str:
    return Stack.of(scope).format_arn(
        service="events", resource="event-bus", resource_name="default"
    )
