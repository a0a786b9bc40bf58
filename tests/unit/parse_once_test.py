"""A definition is parsed once per process, however many executions name it."""

from __future__ import annotations

from unittest import mock

from holdfast.asl.parsing.parse import read_program
from holdfast.runtime.storage import definitions
from tests.builders import Shop, chain

EXECUTIONS = 100


def test_a_hundred_executions_parse_their_definition_once() -> None:
    with mock.patch.object(definitions, "read_program", wraps=read_program) as read:
        shop = Shop(chain(2))
        runs = [shop.start({"n": 0}, name=f"order-{number}") for number in range(EXECUTIONS)]
        shop.world.run()
    assert {shop.describe(run)["status"] for run in runs} == {"SUCCEEDED"}
    assert read.call_count == 1
