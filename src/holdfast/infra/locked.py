"""Finds the packages in a project's lock file that only the author's tools need.

`holdfast[local]` includes an emulator, `holdfast[infra]` the CDK and Node: hundreds of megabytes
that no function uses. A project may still list these extras in its `dependencies`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

#: A package in uv's lock file, with the fields `name`, `dependencies`, `optional-dependencies` and
#: `source`.
Package: TypeAlias = Mapping[str, Any]


def only_for_tools(project: Path) -> list[str]:
    """Return the packages that only Holdfast's extras need, and nothing else in the project."""
    path = _find_lock(project)
    if path is None:
        # uv itself reports a lock file that is missing or damaged.
        return []
    packages = tomllib.loads(path.read_text(encoding="utf-8")).get("package", [])
    extras = {
        dependency["name"]
        for package in packages
        if package["name"] == "holdfast"
        for listed in package.get("optional-dependencies", {}).values()
        for dependency in listed
    }
    return sorted(extras - set(_needed(packages, _name_of(project))))


def _find_lock(project: Path) -> Path | None:
    """Return the lock file. A member of a workspace uses the one in the folder above."""
    here = project.resolve()
    found = (folder / "uv.lock" for folder in (here, *here.parents))
    return next((path for path in found if path.is_file()), None)


def _name_of(project: Path) -> str:
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    return str(settings.get("project", {}).get("name", "")).lower().replace("_", "-")


def _needed(packages: Iterable[Package], root: str) -> set[str]:
    """Return the packages on which `root` depends, directly or not, without any extra of
    Holdfast.
    """
    by_name: dict[str, list[Package]] = {}
    for package in packages:
        by_name.setdefault(package["name"], []).append(package)
    needed: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(root, tuple[str, ...]())]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in needed:
            continue
        needed.add((name, extras))
        waiting += [
            (dependency["name"], tuple(dependency.get("extra", ())))
            for package in by_name.get(name, ())
            for dependency in _dependencies(package, extras)
        ]
    return {name for name, _ in needed}


def _dependencies(package: Package, extras: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    yield from package.get("dependencies", ())
    if package["name"] != "holdfast":
        optional = package.get("optional-dependencies", {})
        for extra in extras:
            yield from optional.get(extra, ())
