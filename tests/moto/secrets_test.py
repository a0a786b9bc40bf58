"""Secrets on the laptop cloud, by the command line: start, show, list, stop, and the printed
output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.moto.conftest import Shell
from tests.security import secret_flows

pytestmark = pytest.mark.xdist_group("serve")

CANARY = "canary-on-the-shell"
SHOWN = f"<secret {len(CANARY)} bytes>"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(deployment_of([secret_flows.__name__]), port=0) as served:
        yield served.url


def test_the_command_line_prints_the_size_of_a_secret_wherever_it_would_stand(shell: Shell) -> None:
    secret_flows.seen.clear()
    given = json.dumps({"token": CANARY})
    printed = []
    for command in (
        ("start", "lend", "--name", "lent", "--input", given, "--wait", "10"),
        ("start", "fail", "--name", "failed", "--input", given, "--wait", "10"),
        *(("show", name) for name in ("lent", "failed")),
        *(("history", name) for name in ("lent", "failed")),
        *(("history", name, "--json") for name in ("lent", "failed")),
        ("list",),
    ):
        shell(*command)
        printed.append(shell.printed + shell.complaints)
    told = "".join(printed)
    assert secret_flows.seen == [CANARY]
    assert told.count(SHOWN) > 4
    assert f"the door does not take {SHOWN}" in told
    assert CANARY not in told
    assert "holdfast.secret" not in told


def test_an_unfit_secret_is_refused_without_being_quoted(shell: Shell) -> None:
    assert shell("start", "lend", "--input", json.dumps({"token": [CANARY]})) != 0
    assert "HF210" in shell.complaints
    assert CANARY not in shell.printed + shell.complaints
