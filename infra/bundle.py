"""The Lambda asset: Holdfast, its handlers, the user's modules and the locked dependencies.

No Docker: uv installs ready-made wheels for the target platform, at the versions and hashes of the
project's `uv.lock`. The same inputs give the same bytes, so an unchanged project deploys nothing.
boto3 is left out, since the Lambda runtime has it and it would make the asset six times as large.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import holdfast
from holdfast.errors import HoldfastError

from .settings import Architecture, Settings

_HOLDFAST: Final = Path(holdfast.__file__).parent
# In a checkout, functions/ is beside infra/; in the wheel, both are inside the package.
_FUNCTIONS: Final = Path(__file__).parent.parent / "functions"
#: The author's tools and the compiler: a function runs definitions that were compiled before.
_NOT_IN_LAMBDA: Final = (
    *("cli", "pytest_plugin.py", "local", "pictures", "proofs", "testing"),
    *("emit", "expressions", "statements", "steps", "targets"),
    *("functions", "infra"),
)
_PLATFORMS: Final[dict[Architecture, str]] = {
    "arm64": "aarch64-manylinux2014",
    "x86_64": "x86_64-manylinux2014",
}


def build_asset(directory: Path, *, project: Path, settings: Settings) -> None:
    """Fill an empty directory. `project` holds `uv.lock` and, there or in src/, the modules."""
    packages = sorted({module.partition(".")[0] for module in settings.modules})
    sources = [_find_package(package, project=project) for package in packages]
    _install_locked(directory, project=project, settings=settings)
    _copy(_HOLDFAST, directory / "holdfast", without=_NOT_IN_LAMBDA)
    _copy(_FUNCTIONS, directory / "functions")
    for source in sources:
        _copy(source, directory / source.name)
        if source.is_file():
            for compiled in _compiled_of(source):
                _copy(compiled, directory / compiled.name)


def _install_locked(directory: Path, *, project: Path, settings: Settings) -> None:
    requirements = _uv(
        *("export", "--frozen", "--no-dev", "--no-emit-project", "--no-emit-package", "holdfast"),
        *("--prune", "boto3", "--no-header", "--no-annotate", "--project", str(project)),
    )
    _uv(
        *("pip", "install", "--quiet", "--no-config", "--no-installer-metadata", "--no-deps"),
        *("--require-hashes", "--only-binary", ":all:", "--target", str(directory)),
        *("--python-platform", _PLATFORMS[settings.architecture]),
        *("--python-version", settings.python, "--requirements", "-"),
        text_in=requirements,
    )
    # Console scripts begin with the path of this machine's Python, and RECORD holds their hashes.
    shutil.rmtree(directory / "bin", ignore_errors=True)
    (directory / ".lock").unlink(missing_ok=True)
    for record in directory.glob("*.dist-info/RECORD"):
        record.unlink()
    # A tenth of the whole, and a page for browsers that no route serves.
    for page in directory.glob("aws_lambda_powertools/**/swagger_ui/*.min.*"):
        page.unlink()


def _uv(*arguments: str, text_in: str | None = None) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "uv", *arguments],
        input=text_in,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise HoldfastError(
            "HF402",
            f"`uv {arguments[0]}` ended with code {done.returncode}: {done.stderr.strip()}",
            help="run `uv lock` in the project; every dependency needs a wheel for the target",
        )
    return done.stdout


def _find_package(package: str, *, project: Path) -> Path:
    for root in (project, project / "src"):
        for candidate in (root / package, root / f"{package}.py"):
            if candidate.exists():
                return candidate
    raise HoldfastError(
        "HF403",
        f"context `modules` names `{package}`, which is neither in {project} nor in its src/",
        help="name modules of this project, such as `statemachines.order_fulfilment`",
    )


def _compiled_of(module: Path) -> Iterator[Path]:
    """The compiled files beside a module of one file; a package contains its own."""
    for source_map in sorted(module.parent.glob("*.map.json")):
        if _function_of(source_map).startswith(f"{module.stem}:"):
            yield source_map
            yield source_map.with_name(source_map.name.replace(".map.json", ".asl.json"))


def _function_of(source_map: Path) -> str:
    """Return the function of the source map; "" for a file of another tool with the same suffix."""
    try:
        found = json.loads(source_map.read_text())
    except ValueError:
        return ""
    return str(found.get("function", "")) if isinstance(found, dict) else ""


def _copy(source: Path, destination: Path, *, without: Sequence[str] = ()) -> None:
    if source.is_file():
        shutil.copy(source, destination)
        return
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", *without)
    shutil.copytree(source, destination, ignore=ignore)
