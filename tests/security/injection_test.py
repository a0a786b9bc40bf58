"""Names, errors and outputs that mean something to a page, a diagram, a terminal or a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from holdfast.cli import execution_screen, main, screen
from holdfast.cli.console import harmless, print_json
from holdfast.cli.texts import JsonRow
from holdfast.pictures.mermaid import draw_mermaid
from holdfast.pictures.model import Look, Mark
from holdfast.pictures.read import read_drawing
from holdfast.pictures.svg import draw_svg
from tests.builders import Machine, call, machine
from tests.security.cases import Outcome, generator, run_generated

NOW: Final = datetime(2026, 3, 2, tzinfo=UTC)
TEXTS: Final = [
    "<script>alert(1)</script>",
    "</text></svg><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "<![CDATA[<script>]]>",
    "]]><script>",
    "<!-- -->",
    "<!DOCTYPE svg [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
    "&x;&lt;&#60;script&#62;",
    "javascript:alert(1)",
    "data:text/html,<script>",
    "<foreignObject><body onload=alert(1)>",
    "<use href='data:image/svg+xml,x'/>",
    "<a href='javascript:alert(1)'>x</a>",
    "<cwdb-action action='call' endpoint='arn'>",
    "{{constructor.constructor('alert(1)')()}}",
    "${7*7} #{7*7} <%= 7*7 %>",
    '"]; click s0 href "javascript:alert(1)" "',
    '"]\n    s0 --> s0\n    x["',
    "%%{init: {'securityLevel': 'loose'}}%%",
    "end",
    "subgraph evil",
    "classDef x fill:#f00",
    "A-->B",
    "#quot;]#lt;b#gt;",
    "`**markdown**`",
    "[link](javascript:alert(1))",
    "![x](http://127.0.0.1/x.png)",
    "```\ncode\n```",
    "| a | b |\n|---|---|",
    "# heading",
    "=cmd|'/C calc'!A0",
    "+SUM(1+1)*cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "\t=1+1",
    '=HYPERLINK("http://127.0.0.1")',
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]8;;http://127.0.0.1\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[31mFAILED\x1b[0m",
    "\x9b2J",
    "\x9d0;title\x9c",
    "safe\rforged",
    "safe\x08\x08\x08\x08evil",
    "line\nSUCCEEDED  order-2",
    "\u202eevil\u202c",
    "\u2066hidden\u2069",
    "\u200fright",
    "zero\u200bwidth",
    "\u2028line\u2029paragraph",
    "\x00nul\x00",
    "\ud800 alone",
    "\ufffe\uffff",
    "[bold red]markup[/]",
    "[link=http://127.0.0.1]x[/link]",
    ":warning: :bomb:",
    "%s%s%n {0} {x}",
    "$(touch x) `touch x` ; touch x",
    "'; DROP TABLE executions; --",
    "../../../../etc/passwd",
    "a" * 5_000,
    "e\u0301" * 200,
    "\U0001f600" * 300,
    "",
    " ",
]  # fmt: skip
IDS: Final = [f"{number}-{text[:12]!a}" for number, text in enumerate(TEXTS)]
each_text = pytest.mark.parametrize("text", TEXTS, ids=IDS)

OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
SVG: Final = "{http://www.w3.org/2000/svg}"
ELEMENTS: Final = {
    "svg",
    "title",
    "desc",
    "style",
    "rect",
    "text",
    "g",
    "path",
    "circle",
    "a",
    "polygon",
}
ATTRIBUTES: Final = re.compile("on.*|href|style|src|.*}href")


# -- pictures --------------------------------------------------------------------------------------


def pictured(text: str) -> tuple[Machine, dict[str, Any]]:
    """The text wherever a definition and its map have any."""
    name = text or "empty"
    states: Machine = {
        name: call("x", "choice", Comment=text, Catch=[{"ErrorEquals": [name], "Next": "wait"}]),
        "choice": {
            "Type": "Choice",
            "Choices": [{"Condition": f"{{% {text} %}}", "Next": "fail", "Comment": text}],
            "Default": "wait",
        },
        "wait": {"Type": "Wait", "Timestamp": text, "Next": "parts"},
        "parts": {
            "Type": "Parallel",
            "End": True,
            "Branches": [machine({f"{name} 2": {"Type": "Pass", "End": True, "Comment": text}})],
        },
        "fail": {"Type": "Fail", "Error": text, "Cause": text},
    }
    states[name]["Resource"] = f"holdfast:task:{text}"
    source = {"file": text, "line": 3, "text": text}
    return machine(states, Comment=text), {"sources": {name: source, "wait": source}}


def drawn(text: str) -> tuple[str, str]:
    definition, source_map = pictured(text)
    drawing = read_drawing(definition, source_map, title=text)
    marks = {text or "empty": Mark("failed", 2)}
    look = Look(marks=marks, link_prefix="https://127.0.0.1/blob/")
    return draw_svg(drawing, look), draw_mermaid(drawing)


def shape(svg: str) -> list[str]:
    """The elements without their texts; a label may be broken into more lines."""
    tags = [element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()]
    return [tag for tag in tags if tag not in {"text", "rect"}]


PLAIN: Final = drawn("plain")


def require_safe_svg(svg: str) -> None:
    for element in ET.fromstring(svg).iter():
        tag = element.tag.removeprefix(SVG)
        assert tag in ELEMENTS, tag
        for name, value in element.attrib.items():
            if tag == "a" and name == "href":
                assert value.startswith("https://127.0.0.1/blob/")
                assert not re.search(r"[<>\"'\s]", value)
            else:
                assert not ATTRIBUTES.fullmatch(name), name
    assert shape(svg) == shape(PLAIN[0])
    (style,) = re.findall("<style>(.*?)</style>", svg, re.DOTALL)
    assert style in PLAIN[0]


def require_safe_mermaid(text: str) -> None:
    """Check that every line is also in the plain drawing, except for the text between quotes."""
    assert [_skeleton(line) for line in text.split("\n")] == [
        _skeleton(line) for line in PLAIN[1].split("\n")
    ]
    for label in re.findall('"(.*?)"', text):
        assert not re.search(r"[<>`|{}\[\]&\\]", label.replace("<br/>", ""))


def _skeleton(line: str) -> str:
    return re.sub(r'\|?"[^"]*"\|?', "", line)


@each_text
def test_a_picture_shows_a_text_and_never_obeys_it(text: str) -> None:
    svg, mermaid = drawn(text)

    require_safe_svg(svg)
    require_safe_mermaid(mermaid)
    assert not OBEYED.search(svg + mermaid)


# -- screens ---------------------------------------------------------------------------------------


def _execution(text: str) -> dict[str, Any]:
    times = {"started": "2026-03-01T00:00:00.000Z", "stopped": "2026-03-01T00:01:00.000Z"}
    wait = {"since": times["started"], "state": text}
    source = {"file": text, "line": 1, "text": text}
    return {
        "execution": "0" * 26,
        "name": text,
        "workflow": text,
        "status": "FAILED",
        **times,
        "input": {text: text},
        "output": text,
        "error": text,
        "cause": text,
        "waits": [
            {"kind": "event", "event": text, "key": text, **wait, "source": source},
            {"kind": "ask", "title": text, "assignee": text, "details": text, "token": "t", **wait},
            {"kind": "unknown_task", "task": text, **wait},
            {"kind": text, **wait},
        ],
    }


def _history(text: str) -> list[JsonRow]:
    row = {"id": 1, "timestamp": "2026-03-01T00:00:00.000Z", "type": "TaskFailed"}
    details = {"name": text, "error": text, "cause": text, "output": text, "resource": text}
    return [{**row, "taskFailedEventDetails": details}, {**row, "id": 2, "xEventDetails": details}]


def _events(text: str) -> list[JsonRow]:
    times = {"at": "2026-03-01T00:00:00.000Z", "expires": "2026-03-09T00:00:00.000Z"}
    texts = dict.fromkeys(("name", "key", "event", "type", "execution", "refused"), text)
    return [{**texts, **times}]


SCREENS: Final[dict[str, Callable[[str], None]]] = {
    "show": lambda text: execution_screen.put_execution(_execution(text), NOW),
    "list": lambda text: screen.put(screen.executions([_execution(text)], NOW)),
    "events": lambda text: screen.put(screen.events(_events(text), NOW)),
    "history": lambda text: screen.put(execution_screen.history(_history(text))),
    "json": lambda text: print_json(_execution(text)),
}


@each_text
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_shows_a_text_and_the_terminal_never_obeys_it(
    name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    SCREENS[name](text)
    printed = capsys.readouterr().out

    assert not OBEYED.search(printed)
    if name == "json":
        assert json.loads(printed) == _execution(text)
        assert printed.count("\n") == 1
    if name in {"list", "events"}:
        assert printed.count("\n") == 2


def test_markup_and_emoji_names_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    SCREENS["list"]("[bold]x[/] :bomb:")

    assert "[bold]x[/] :bomb:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", [t for t in TEXTS if "\x00" not in t and t.strip()], ids=str.__repr__
)
def test_an_error_on_the_command_line_is_shown_and_never_obeyed(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["check", f"{text}.json"])
    told = capsys.readouterr()

    assert status != 0
    assert not OBEYED.search(told.out + told.err)
    assert "Traceback" not in told.out + told.err


def test_a_harmless_text_stays_as_it_is() -> None:
    value = {"a": ["é\n\t", 5, None, True, 1.5], "\U0001f600": {}}

    assert harmless(value) == value


# -- generated -------------------------------------------------------------------------------------


@generator("injection", full=10_000)
def injection(draw: Random) -> Outcome:
    """Two or three of the texts, cut and joined, in a picture or on a screen."""
    parts = [draw.choice(TEXTS)[:80] for _ in range(draw.randrange(1, 4))]
    text = draw.choice(["", " ", "\n", '"', "<"]).join(parts)
    at = draw.randrange(len(text) + 1)
    text = (text[:at] + chr(draw.randrange(0x3000)) + text[at:])[:200]
    if draw.random() < 0.5:
        svg, mermaid = drawn(text)
        require_safe_svg(svg)
        require_safe_mermaid(mermaid)
        printed = svg + mermaid
    else:
        printed = "".join(_printed(draw.choice(list(SCREENS)), text))
    assert not OBEYED.search(printed)
    return "accepted"


def _printed(name: str, text: str) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        written: list[str] = []
        patch.setattr("sys.stdout", _Paper(written))
        SCREENS[name](text)
    yield from written


class _Paper:
    """Where text is written, and no terminal."""

    encoding = "utf-8"

    def __init__(self, written: list[str]) -> None:
        self.write = written.append

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        pass


def test_no_generated_text_is_obeyed() -> None:
    assert run_generated("injection", 100, seed=1).accepted == 100
