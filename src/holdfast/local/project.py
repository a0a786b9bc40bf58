"""The project of the command line: its root folder, its modules, and its running `serve`."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.errors import RequestError

SETTINGS: Final = "pyproject.toml"
STATE: Final = Path(".holdfast")
_SNIPPET: Final = '[tool.holdfast] modules = ["package.module"]'


@dataclass(frozen=True, slots=True)
class Serving:
    """A running `serve`: its address, and the id of its process."""

    url: str
    pid: int


def project_root() -> Path:
    """Return the nearest folder upwards with a pyproject.toml; without one, the current folder."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / SETTINGS).is_file()), here)


def make_importable() -> None:
    """Make the project's modules importable, and those of the current folder."""
    for folder in (project_root(), Path.cwd()):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def modules_or_default(named: Sequence[str]) -> list[str]:
    """Return the modules named on the command line, or those of `[tool.holdfast]`."""
    modules = modules_or_none(named)
    if not modules:
        raise RequestError(
            "HF270", "no modules are named", help=f"name them, or set {_SNIPPET} in {SETTINGS}"
        )
    return modules


def modules_or_none(named: Sequence[str]) -> list[str]:
    """Return the modules; none for a command that works without modules. A module may be named by
    its file.
    """
    return [_module_of(name) for name in named] or modules_of(project_root())


def _module_of(name: str) -> str:
    """Return the name of the module in a file, as Python imports it; other names as they are."""
    file = Path(name)
    if file.suffix != ".py" or not file.is_file():
        return name
    file = file.resolve()
    folders = {Path(folder).resolve() for folder in sys.path} | {project_root(), Path.cwd()}
    around = [folder for folder in folders if file.is_relative_to(folder)]
    if not around:
        return name
    # From the innermost folder the name is the shortest. The modules of the project import it by
    # this name, so it is not imported twice.
    innermost = max(around, key=lambda folder: len(folder.parts))
    return ".".join(file.relative_to(innermost).with_suffix("").parts)


def modules_of(root: Path) -> list[str]:
    """Return the modules in the project's settings; none when there are none."""
    modules = setting_of(root, "tool", "holdfast", "modules")
    if modules is None:
        return []
    if not isinstance(modules, list) or not all(isinstance(name, str) for name in modules):
        raise RequestError(
            "HF271",
            f"{root / SETTINGS}: tool.holdfast.modules is not a list of names",
            help=f"set {_SNIPPET}",
        )
    return modules


def setting_of(root: Path, *sections: str) -> Any:
    """Return a value of `pyproject.toml`; None when it is not there. Raises RequestError HF271."""
    path = root / SETTINGS
    if not path.is_file():
        return None
    try:
        found: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError("HF271", f"{path} cannot be read: {error}") from None
    for section in sections:
        if not isinstance(found, dict):
            raise RequestError("HF271", f"{path}: {section} stands in no table")
        if section not in found:
            return None
        found = found[section]
    return found


# -- the running serve -----------------------------------------------------------------------------


def announcement_of(url: str) -> Path:
    """Return the file in which a `serve` stores its address. Several may run for one project."""
    return STATE / f"serve-{urlsplit(url).port}.json"


def announce(serving: Serving, root: Path) -> None:
    path = root / announcement_of(serving.url)
    path.parent.mkdir(exist_ok=True)
    # Make git ignore the folder. The address belongs to this machine and must not be committed.
    (path.parent / ".gitignore").write_text("*\n")
    path.write_text(json.dumps({"url": serving.url, "pid": serving.pid}) + "\n")


def withdraw(serving: Serving, root: Path) -> None:
    """Remove the file of this process, unless a later `serve` has replaced it."""
    path = root / announcement_of(serving.url)
    if _read(path) == serving:
        path.unlink(missing_ok=True)


def find_serving() -> Serving | None:
    """Return the project's `serve` that started last; None when none is running."""
    paths = sorted((project_root() / STATE).glob("serve-*.json"), key=_written_ns, reverse=True)
    found = (_read(path) for path in paths)
    return next((one for one in found if one is not None and _is_alive(one.pid)), None)


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        # The `serve` of this file has just ended and removed the file.
        return 0


def _read(path: Path) -> Serving | None:
    try:
        found = json.loads(path.read_text())
        return Serving(str(found["url"]), int(found["pid"]))
    except (OSError, OverflowError, ValueError, KeyError, TypeError):
        # The file is absent, half written, or belongs to another program. Treat all of these as
        # absent.
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
