"""The groups of matches of regular expressions are the same in Python and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
import re
from typing import Any
from holdfast import task, workflow

ORDER = re.compile(r"(?P<kind>[a-z]+)-(?P<number>\\d+)(-(?P<part>x))?", re.IGNORECASE)
KIND = r"([A-Z]{2})(\\d*)"

WORD = re.compile("[a-z]+")

@task
def size(text: str) -> int:
    return len(text)

def number_of(text: str) -> int:
    found = re.search(r"\\d+", text)
    return int(found.group()) if found else -1

"""
TEXTS: list[dict[str, Any]] = [
    {"text": text}
    for text in ("order-12", "Order-7-x", "none", "", "AB34 cd", "x 42 y", "12-12-31")
]
SAME = {
    "groups by number": """
@workflow
def flow(text: str) -> Any:
    m = re.match(r"(\\w+)-(\\d+)", text)
    if m:
        return [m.group(1), int(m.group(2)) + 1, m.group(), m[0], m.group(0, 2), m.groups()]
    return None
""",
    "groups by name, and groups that may be missing": """
@workflow
def flow(text: str) -> Any:
    m = ORDER.match(text)
    if m is None:
        return "no order"
    part = m["part"]
    more = part.upper() if part is not None else "whole"
    return [m["kind"].lower(), m.group("number"), part, more, m.groupdict(), m.group(3)]
""",
    "several patterns, one after the other": """
@workflow
def flow(text: str) -> Any:
    m = re.fullmatch(KIND, text)
    if m:
        return {"kind": m[1], "rest": m[2]}
    m = re.search(r"(\\d+) (y)?", text, re.I | re.M)
    if not m:
        return size(text)
    return [m[1], m[2], size(m.group(1))]
""",
    "in loops, helpers and conditions": """
@workflow
def flow(text: str) -> Any:
    found: list[str] = []
    for word in text.split():
        m = re.match(r"([a-z])(.*)", word)
        if m and m.group(2) == "":
            found.append(m.group(1))
        elif m is not None:
            found.append(f"{m[2]}{m[1]}")
    if (n := re.search(r"-(\\d)", text)) is not None:
        found.append(n.group(1))
    if (two := re.match("(.)(.)", text)) and two[1] != "x":
        found.append(two[2])
    k = re.match("x", text)
    return [found, number_of(text), bool(found), 1 if k else 2]
""",
    "lists of groups, and compiled patterns": """
@workflow
def flow(text: str) -> Any:
    pairs = re.findall(r"([a-z])(\\d)?", text)
    firsts = [one for one, _ in pairs]
    parts = re.split("(-)", text)
    some = re.split(r"(-)|(\\d)", text)
    known = [one for one in some if one is not None]
    words = WORD.findall(text)
    slug = WORD.sub("*", text) + re.sub("R", "_", text, count=1, flags=re.I)
    cut = WORD.split(text)
    fits = 1 if WORD.match(text) else 2
    rest = [one for one in text.split("-") if not WORD.fullmatch(one)]
    return [pairs, firsts, parts, some, known, words, slug, cut, fits, rest, ORDER.findall(text)]
""",
}


@pytest.mark.parametrize("name", SAME)
def test_groups_are_the_same_in_python_and_compiled(name: str, tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + SAME[name]) as module:
        for values in TEXTS:
            assert_same(module.flow, values)


REFUSED = {
    "a match that is returned": "m = re.match('a', text)\nreturn m",
    "the place of a match": "m = re.match('a', text)\nreturn m.start() if m else 0",
    "a pattern that is computed": "m = re.match(text, text)\nreturn m.group(1) if m else 0",
    "a group that there is not": "m = re.match('(a)', text)\nreturn m.group(2) if m else 0",
    "a match that may be None": "m = re.match('(a)', text)\nreturn m.group(1)",
    "a group that may be None": "m = re.match('(a)?', text)\nreturn m[1].upper() if m else ''",
    "a match in a list": "m = re.match('(a)?', text)\nreturn [m]",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_uses_of_a_match_are_refused(name: str, tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in REFUSED[name].splitlines())
    source = f"@workflow\ndef flow(text: str) -> Any:\n{body}"
    with loaded(tmp_path, HEADER + source) as module, pytest.raises(CompileErrors):
        compile_module(module)
