"""docs/reference/http.md has each route of the API with its parameters and fields, and its examples
name routes and fields that exist.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.aws.routes import ROUTES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `((?:GET|POST|DELETE) /[^`]*)` \| (.*?) \| .*\|$", PAGE, re.MULTILINE))


def test_the_page_has_each_route_and_no_other() -> None:
    assert sorted(ROWS) == sorted(["POST /", *ROUTES])


@pytest.mark.parametrize("route", ROUTES)
def test_a_row_names_each_parameter_and_field_of_its_route_and_no_other(route: str) -> None:
    named = set(re.findall(r"`([a-z_]+)\??`", ROWS[route])) - {"true"}
    assert named == {*ROUTES[route].query, *ROUTES[route].fields}


def examples() -> Iterator[list[str]]:
    for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", "").splitlines():
            if line.startswith("curl"):
                yield shlex.split(line.partition(" | ")[0])


@pytest.mark.parametrize("words", list(examples()), ids=" ".join)
def test_an_example_sends_fields_that_its_route_takes(words: list[str]) -> None:
    (path,) = (word.removeprefix("$API") for word in words if word.startswith("$API"))
    pairs = list(itertools.pairwise(words))
    given = dict(pairs)
    method = "POST" if "-d" in given else "GET"
    shape = re.sub(r"^(/[a-z]+)/[^/]+", r"\1/{id}", path)
    route = ROUTES[f"{method} {shape}"]
    body: dict[str, Any] = json.loads(given.get("-d", "{}"))
    asked = {value.partition("=")[0] for flag, value in pairs if flag == "--data-urlencode"}
    assert body.keys() <= set(route.fields)
    assert asked <= set(route.query)
