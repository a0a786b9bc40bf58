"""The templates as they were last reviewed. A change of what is deployed shows here, whether or not
another test states the value.

`python -m tests.infra.snapshot_test DIRECTORY` writes the texts anew from the templates that
`tests/infra/synth.py` has made in that directory. Review the difference like code.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.infra.template import construct_name

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "templates"
#: The golden text, and the template. `Chosen` and `Shop` differ from `Default` in every choice;
#: their texts hold what they have besides, and what they lack.
TEMPLATES: Final = {"default": "Default", "chosen": "Chosen", "shop": "own/Shop"}
#: A part of an ARN or of a name that says nothing of the stack: of an asset or a published version.
_HASH: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}\b|(?<=CurrentVersion.{8})[0-9a-f]{32}\b")
_LOGICAL_ID: Final = re.compile(r"\b([A-Z][A-Za-z0-9]+?)[0-9A-F]{8}\b")
#: Stated by other tests for every resource.
_STATED: Final = re.compile(r"Properties\.Tags|Metadata|.*\.HOLDFAST_MODULES")
#: The constructs of a user's stack, whose resources have the names of `Default` behind these words.
_CONSTRUCTS: Final = re.compile(r"\b(Flows|Other)(?=[A-Z])")


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_as_it_was_reviewed(assembly: Path, name: str) -> None:
    reviewed = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    changes = [
        line
        for line in difflib.unified_diff(reviewed, text_of(assembly, name), lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert changes == [], "\n".join(
        ["python -m tests.infra.snapshot_test DIRECTORY writes the text anew", *changes[:60]]
    )


def text_of(assembly: Path, name: str) -> list[str]:
    """Return a line for each value in the template: its resource, its place, the value."""
    found = _reviewed(assembly / TEMPLATES[name])
    if name == "default":
        return sorted(found)
    default = _reviewed(assembly / "Default")
    return [f"- {line}" for line in sorted(default - found)] + [
        f"+ {line}" for line in sorted(found - default)
    ]


def _reviewed(stack: Path) -> set[str]:
    return _values(stack.with_name(f"{stack.name}.template.json")) | accepted(stack)


def accepted(stack: Path) -> set[str]:
    """Return the findings of the security checks that each construct accepts, with the reasons."""
    metadata = stack.with_name(f"{stack.name}.metadata.json").read_text(encoding="utf-8")
    return {
        _CONSTRUCTS.sub("", f"{place or 'Stack'} accepts {_plain(finding)}: {reason}")
        for path, entries in json.loads(metadata).items()
        for place in ["/".join(path.split("/")[3:])]
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for finding, reason in entry["data"].items()
    }


def _values(path: Path) -> set[str]:
    document = json.loads(path.read_text(encoding="utf-8"))
    return {
        _CONSTRUCTS.sub("", f"{_plain(construct_name(key))} {line}")
        for part in ("Resources", "Outputs")
        for key, one in document[part].items()
        for line in _lines(one, "")
        if not _STATED.match(line)
    }


def _lines(value: Any, place: str) -> Iterator[str]:
    match value:
        case {"RouteKey": route, "AuthorizationType": kind}:
            yield f"{place} = {route} for {kind}"
        case {"Fn::Join": ["", [*parts]]}:
            # With the intrinsics in it in braces, as `Fn::Sub` has them.
            text = _plain("".join(map(_shown, parts)))
            # A line for each widget of a dashboard.
            for number, part in enumerate(text.split(',{"type":')):
                yield f"{place}{f'[{number}]' if number else ''} = {part}"
        case {"Ref": str() as name} if len(value) == 1:
            yield f"{place} = {{{_plain(name)}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            yield f"{place} = {{{_plain(name)}.{attribute}}}"
        case dict() if value:
            for key, inner in value.items():
                yield from _lines(inner, f"{place}.{key}".lstrip("."))
        case list() if value:
            for number, inner in enumerate(value):
                yield from _lines(inner, f"{place}[{number}]")
        case str():
            yield f"{place} = {_plain(json.dumps(value, ensure_ascii=False))}"
        case _:
            yield f"{place} = {json.dumps(value)}"


def _shown(part: Any) -> str:
    match part:
        case str():
            return part
        case {"Ref": name}:
            return f"{{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"{{{name}.{attribute}}}"
        case _:
            return json.dumps(part)


def _plain(text: str) -> str:
    return _HASH.sub("(hash)", _LOGICAL_ID.sub(r"\1", text)).replace("\n", "\\n")


if __name__ == "__main__":
    for golden in TEMPLATES:
        text = "".join(f"{line}\n" for line in text_of(Path(sys.argv[1]), golden))
        (GOLDEN / f"{golden}.txt").write_text(text, encoding="utf-8")
