"""Tables and styled text of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from holdfast.cli import tables
from holdfast.cli.tables import Column, Table, Text, columns_of, plain_table, put
from holdfast.remote import Client
from tests.unit.client_kit import MemoryStack, served


def _lines(table: Table, width: int) -> list[str]:
    return [line.plain.rstrip() for line in table.lines(width)]


def test_columns_are_as_wide_as_their_texts_and_numbers_stand_to_the_right() -> None:
    table = plain_table("name", "took", right=("took",))
    table.add_row("order-17", "3 s")
    table.add_row("x", Text("12 s", "red"))
    assert _lines(table, 80) == ["name      took", "order-17   3 s", "x         12 s"]


def test_a_wide_character_takes_two_columns_and_a_combining_one_none() -> None:
    assert [columns_of(text) for text in ("a", "日本", "e\u0301")] == [1, 4, 1]
    table = plain_table("a", "b")
    table.add_row("日本", "x")
    assert _lines(table, 80)[1] == "日本  x"


def test_in_a_narrow_terminal_the_widest_column_is_cut_and_a_wrapping_one_wraps() -> None:
    cut = plain_table("name", "error")
    cut.add_row("order-17", "the bank has refused the card")
    assert _lines(cut, 24)[1] == "order-17  the bank has …"
    wrapped = Table([Column(style="dim"), Column(wraps=True)])
    wrapped.add_row("cause", "the bank has refused the card")
    assert _lines(wrapped, 24) == ["cause  the bank has", "       refused the card"]


def test_no_line_is_wider_than_the_terminal_and_no_wrapped_text_is_lost() -> None:
    seed = 20_270_115
    random = Random(seed)
    for _ in range(300):
        table = Table([Column("a", is_right=True), Column("b", wraps=True)])
        texts = [
            "".join(random.choice("ab日 \n-") for _ in range(random.randrange(40))) for _ in "ab"
        ]
        table.add_row(texts[0].replace("\n", ""), texts[1])
        width = random.randrange(60, 70)
        lines = [line.plain.rstrip() for line in table.lines(width)]
        assert all(columns_of(line) <= width for line in lines), f"seed {seed}: {texts}"
        kept = "".join("".join(lines).split())
        assert sorted(kept) == sorted("".join(("ab", *texts)).replace(" ", "").replace("\n", "")), (
            f"seed {seed}: {texts}"
        )


@pytest.mark.parametrize(("variable", "is_styled"), [("LANG", True), ("NO_COLOR", False)])
def test_a_terminal_gets_styles_unless_it_wants_none(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    is_styled: bool,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, "1")
    put(Text("order", "bold") + Text(" ") + Text("FAILED", "red"))
    styled = "\x1b[1morder\x1b[0m \x1b[31mFAILED\x1b[0m\n"
    assert capsys.readouterr().out == (styled if is_styled else "order FAILED\n")


def test_a_pipe_gets_long_lines_and_no_styles(capsys: pytest.CaptureFixture[str]) -> None:
    put(Text("x" * 150, "red"), Text("y" * 300), is_wrapped=False)
    assert capsys.readouterr().out == f"{'x' * 150}\n{'y' * 300}\n"
    assert tables.PIPE_COLUMNS == 200


#: What the wheel brings without extras has neither of the two.
WITHOUT_EXTRAS = """
import sys
sys.modules |= {"rich": None, "moto": None}
from holdfast.cli import main
for words in ("list", "show order-17", "history order-17", "limits"):
    assert main([*words.split(), "--endpoint", sys.argv[1]]) == 0
"""


def test_commands_that_call_an_api_need_no_extras(tmp_path: Path) -> None:
    stack = MemoryStack("tests.unit.client_flows")
    order = {"id": "17", "cents": 1_250, "due": "2027-01-15"}
    Client.of(stack.api).start("fulfil", {"order": order}, name="order-17")
    with served(stack) as api:
        ran = subprocess.run(
            [sys.executable, "-c", WITHOUT_EXTRAS, api.url],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {"order-17", "SUCCEEDED", "TaskSucceeded"} <= set(ran.stdout.split())
