"""What a later release has left of `registered_flows`."""

from __future__ import annotations

from holdfast import task


@task
def validate(order: str) -> str:
    return order
