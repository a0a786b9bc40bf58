"""`holdfast init`: the files of a new project, from the templates in the folder of this module.

A template is text with placeholders such as `@name@` for the parts that differ between projects.
"""

from __future__ import annotations

import importlib.metadata
import json
import keyword
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from holdfast.errors import RequestError
from holdfast.local.project import modules_of

TEMPLATES: Final = ("order", "approval", "dag", "agent")
_FILES: Final = files("holdfast.local") / "templates"
#: The arguments of `holdfast start` for the workflow of each template.
_STARTS: Final = {
    "order": """buy --name order-1 --input '{"order_id": "o1", "pence": 1250}'""",
    "approval": """expense --name order-1 --input '{"expense_id": "e1", "pence": 9000}'""",
    "dag": """nightly --name order-1 --input '{"day": "monday"}'""",
    "agent": """assist --name order-1 --input '{"question": "How long?"}'""",
}
#: A package with one of these names would hide another package from its own project.
_TAKEN: Final = frozenset(
    {"holdfast", "tests", "app", "test", *sys.stdlib_module_names}
    | {"aws_cdk", "boto3", "botocore", "constructs", "moto", "pydantic", "pytest"}
)


@dataclass(frozen=True, slots=True)
class Created:
    """The files that were written, and those that already existed and were not changed."""

    written: tuple[Path, ...]
    skipped: tuple[Path, ...]


def create(folder: Path, template: str) -> Created:
    """Write the files of a project into `folder`, which may exist. No file is overwritten.

    Raises RequestError: HF298 for a folder whose name no package can have, HF299 when a file cannot
    be written.
    """
    written: list[Path] = []
    skipped: list[Path] = []
    try:
        for name, text in _texts(folder.resolve().name, template).items():
            path = folder / name
            if path.exists():
                skipped.append(path)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    except OSError as error:
        raise RequestError(
            "HF299",
            f"{error.filename or folder} cannot be written: {error.strerror}",
            help="name a new folder, or one of yours",
        ) from None
    return Created(tuple(written), tuple(skipped))


def additions(folder: Path, template: str) -> str:
    """Return the commands and lines that must be added to a `pyproject.toml` that already existed.

    Raises RequestError HF271 for a file that cannot be read.
    """
    module = f"{_package(folder.resolve().name)}.{template}"
    modules = list(dict.fromkeys([*modules_of(folder), module]))
    return (
        f'  uv add "{_requirement()}" && uv add --dev "holdfast[infra,local,testing]" pytest\n'
        f"  [tool.holdfast]\n  modules = {json.dumps(modules)}"
    )


def _texts(name: str, template: str) -> dict[str, str]:
    package = _package(name)
    values = {
        "name": package.replace("_", "-"),
        "package": package,
        "Stack": "".join(part.capitalize() for part in package.split("_")),
        "template": template,
        "holdfast": _requirement(),
        "source": _source(),
        "start": _STARTS[template],
    }
    project, own = _FILES / "project", _FILES / template
    return {
        "pyproject.toml": _fill(project / "pyproject.toml.txt", values),
        f"{package}/__init__.py": "",
        f"{package}/{template}.py": _fill(own / "workflow.py.txt", values),
        f"tests/{template}_test.py": _fill(own / "test.py.txt", values),
        "app.py": _fill(project / "app.py.txt", values),
        "cdk.json": _fill(project / "cdk.json.txt", values),
        "README.md": _fill(project / "README.md.txt", values),
        ".gitignore": _fill(project / "gitignore.txt", values),
        ".github/workflows/ci.yml": _fill(project / "ci.yml.txt", values),
    }


def _fill(template: Traversable, values: Mapping[str, str]) -> str:
    """Replace only the placeholders in `values`: `@task` and `@aws-cdk/core` are not
    placeholders.
    """
    names = re.compile(f"@({'|'.join(values)})@")
    text = names.sub(lambda found: values[found[1]], template.read_text(encoding="utf-8"))
    return text.rstrip("\n") + "\n"


def _package(name: str) -> str:
    # "Überblick" becomes "uberblick": in this form an accent is a character of its own, which is
    # dropped.
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    package = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")
    is_name = package.isidentifier() and not keyword.iskeyword(package)
    if not is_name or package in _TAKEN:
        raise RequestError(
            "HF298",
            f"{name!r} gives no name of a Python package of your own",
            help="name the folder with letters, as `holdfast init shop`, and not like a module of "
            "Python or Holdfast, or a package that they need",
        )
    return package


def _requirement() -> str:
    return f"holdfast>={importlib.metadata.version('holdfast')}"


def _source() -> str:
    """Return the line that tells uv where Holdfast was installed from, if that is a file: a package
    index may not have it.
    """
    text = importlib.metadata.distribution("holdfast").read_text("direct_url.json")
    if text is None:
        return ""
    found = json.loads(text)
    address = urlsplit(found["url"])
    if address.scheme != "file":
        return ""
    path = json.dumps(url2pathname(address.path), ensure_ascii=False)
    return f"\n[tool.uv.sources]\nholdfast = {{ path = {path} }}\n"
