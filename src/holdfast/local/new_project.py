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
from shlex import quote
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from holdfast.errors import RequestError
from holdfast.local.project import modules_of, setting_of

TEMPLATES: Final = ("order", "approval", "dag", "agent")
_FILES: Final = files("holdfast.local") / "templates"
#: For each template, the arguments with which `holdfast start` starts its workflow.
_STARTS: Final = {
    "order": """buy --name order-1 --input '{"order_id": "o1", "pence": 1250}'""",
    "approval": """expense --name order-1 --input '{"expense_id": "e1", "pence": 9000}'""",
    "dag": """nightly --name order-1 --input '{"day": "monday"}'""",
    "agent": """assist --name order-1 --input '{"question": "How long?"}'""",
}
#: A project's package must not have one of these names, because it would hide another package from
#: the project.
_TAKEN: Final = frozenset(
    {"holdfast", "tests", "app", "test", *sys.stdlib_module_names}
    | {"aws_cdk", "boto3", "botocore", "constructs", "moto", "pydantic", "pytest"}
)


#: The folder in a project that contains the wheel of Holdfast.
_VENDOR: Final = "vendor"
_INIT: Final = "`uvx --from holdfast-0.1.0-py3-none-any.whl holdfast init shop`"


@dataclass(frozen=True, slots=True)
class Created:
    """The files that were written, and those that already existed and were not changed."""

    written: tuple[Path, ...]
    skipped: tuple[Path, ...]


def create(folder: Path, template: str) -> Created:
    """Write the files of a project into `folder`, which may exist. No file is overwritten.

    Raises RequestError: HF295, HF296 without a file of Holdfast, HF298 for a name that no package
    can have, HF299 when it cannot be written.
    """
    written: list[Path] = []
    skipped: list[Path] = []
    name, found = folder.resolve().name, origin()
    files = {path: text.encode() for path, text in _texts(name, template, found).items()}
    try:
        if found.wheel is not None:
            files[found.source["path"]] = found.wheel.read_bytes()
        for name, content in files.items():
            path = folder / name
            if path.exists():
                skipped.append(path)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(content)
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

    Raises RequestError HF271 for one that cannot be read; HF295, HF296.
    """
    module = f"{_package(folder.resolve().name)}.{template}"
    modules = list(dict.fromkeys([*modules_of(folder), module]))
    return (
        f"  uv add {quote(origin().added)} && "
        'uv add --dev "holdfast[infra,local,testing]" pytest\n'
        f"  [tool.holdfast]\n  modules = {json.dumps(modules)}{_pytest_addition(folder)}"
    )


def _pytest_addition(folder: Path) -> str:
    """Return the lines by which pytest finds the package; "" where the file has them."""
    paths = setting_of(folder, "tool", "pytest", "ini_options", "pythonpath")
    split = paths.split() if isinstance(paths, str) else paths
    found = split if isinstance(split, list) else []
    if "." in found:
        return ""
    return f"\n  [tool.pytest.ini_options]\n  pythonpath = {json.dumps([*found, '.'])}"


def _texts(name: str, template: str, found: Origin) -> dict[str, str]:
    package = _package(name)
    values = {
        "name": package.replace("_", "-"),
        "package": package,
        "Stack": "".join(part.capitalize() for part in package.split("_")),
        "template": template,
        "holdfast": _requirement(),
        "source": found.setting,
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
    # "Überblick" becomes "uberblick": after NFKD an accent is a separate character, and `ignore`
    # drops it.
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


# -- the origin of Holdfast ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of the installed Holdfast. `source`: uv's setting for it. `added`: the argument of
    `uv add` instead. `wheel`: a wheel on this machine; the project gets a copy of it. `checkout`: a
    folder of this machine.
    """

    source: Mapping[str, str]
    added: str
    wheel: Path | None = None
    checkout: Path | None = None

    @property
    def setting(self) -> str:
        """The lines of `pyproject.toml`: uv must not look for the name in an index."""
        values = (f"{key} = {json.dumps(one)}" for key, one in self.source.items())
        return f"\n[tool.uv.sources]\nholdfast = {{ {', '.join(values)} }}\n"


def origin() -> Origin:
    """Return what this Holdfast was installed from.

    Raises RequestError HF295 when it came from an index: no index is known to have it, and the name
    belongs to another project on PyPI. HF296 when the wheel is gone.
    """
    text = importlib.metadata.distribution("holdfast").read_text("direct_url.json")
    if text is None:
        raise RequestError(
            "HF295",
            "this Holdfast was not installed from a file, and on PyPI another project has its name",
            help=f"give the wheel: {_INIT}",
        )
    found = json.loads(text)
    url, address = found["url"], urlsplit(found["url"])
    if "vcs_info" in found:
        commit = found["vcs_info"]["commit_id"]
        return Origin({"git": url, "rev": commit}, f"git+{url}@{commit}")
    if address.scheme != "file":
        return Origin({"url": url}, f"holdfast @ {url}")
    path = Path(url2pathname(address.path))
    if not path.exists():
        raise RequestError(
            "HF296",
            f"{path}, which Holdfast was installed from, is no longer there",
            help=f"give the wheel again: {_INIT}",
        )
    if path.is_dir():
        return Origin({"path": str(path)}, str(path), checkout=path)
    copy = f"{_VENDOR}/{path.name}"
    return Origin({"path": copy}, copy, wheel=path)
