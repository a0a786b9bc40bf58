"""Work messages: the accepted ones, and those that a worker must give back."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import HoldfastBug, NewerFormatError
from holdfast.runtime import messages
from holdfast.runtime.messages import Hint, hint_of, require_readable

RUN = "0" * 26


@pytest.mark.parametrize(
    "body",
    [
        messages.start("default", RUN, workflow="flow", definition="d1", input={"v": "null"}, t0=5),
        messages.wake_timer("default", RUN, 3, 5_000, Hint(4, 2)),
        messages.wake_mail("default", RUN, "t#3.1"),
        messages.wake_child_ended("default", RUN, "k#3", 5),
        messages.go("default", RUN, "w1", Hint(4, -1)),
        messages.recover("default", RUN, ("m1",)),
    ],
    ids=lambda body: str(body["k"]),
)
def test_every_message_that_is_sent_can_be_read(body: dict[str, Any]) -> None:
    assert require_readable(body) == body


def test_a_hint_comes_back_as_it_was_and_may_be_missing() -> None:
    assert hint_of(messages.go("default", RUN, "w1", Hint(4, -1))) == Hint(4, -1)
    assert hint_of(messages.wake_timer("default", RUN, 3, 5_000, None)) is None


def test_a_newer_message_is_refused_with_its_code() -> None:
    with pytest.raises(NewerFormatError, match="HF301"):
        require_readable({"f": messages.FORMAT_KINDS + 1, "anything": "else"})


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        {},
        {"f": 1, "k": "start"},
        {"f": 1, "k": "start", "t": "default", "run": 5},
        {"f": "1", "k": "start", "t": "default", "run": RUN},
        {"f": 0, "k": "start", "t": "default", "run": RUN},
        {"f": 1, "k": "invented", "t": "default", "run": RUN},
    ],
)
def test_a_foreign_message_is_named_and_refused(body: Any) -> None:
    with pytest.raises(HoldfastBug, match="work message"):
        require_readable(body)
