"""The Lambda asset: Holdfast, its handlers, the compiled modules, and the locked dependencies.

No Docker is needed: uv installs ready-made wheels for the target platform, with the versions and
hashes in the project's `uv.lock`. The same inputs give the same bytes, so an unchanged project
deploys nothing. boto3 is left out: the Lambda runtime has it, and it would make the asset six times
as large. Definitions are compiled here, so no function runs a definition that is older than its
source.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import holdfast
from holdfast.compiler.compile import CompiledWorkflow
from holdfast.errors import HoldfastError, WorkflowError
from holdfast.local import build

from .locked import only_for_tools
from .settings import Architecture, Settings

_HOLDFAST: Final = Path(holdfast.__file__).parent
#: The parts of Holdfast that are not in the asset: the tools for authors, and most of the compiler.
#: A function runs definitions that are already compiled.
_NOT_IN_LAMBDA: Final = (
    *("cli", "__main__.py", "pytest_plugin.py", "local", "pictures", "proofs", "testing"),
    *("emit", "expressions", "statements", "steps", "targets"),
    *("functions", "infra"),
)
#: The folder into which Lambda unpacks the asset.
_TASK_ROOT: Final = "/var/task"
_MACHINES: Final[dict[Architecture, str]] = {"arm64": "aarch64", "x86_64": "x86_64"}
#: The wheels that fit the oldest glibc of Lambda. Python 3.12 and newer run on Amazon Linux 2023,
#: which has glibc 2.34. Python 3.11 runs on Amazon Linux 2, which has 2.26, but there are few
#: wheels between 2.17 and 2.26.
_OLD_GLIBC: Final = {"3.11": "manylinux_2_17"}
_GLIBC: Final = "manylinux_2_34"


def compile_workflows(modules: Sequence[str], *, project: Path) -> list[CompiledWorkflow]:
    """Import and compile the modules of a project. Raises WorkflowError with all refusals.

    HF403: a module is neither in the project's folder nor in its src/.
    """
    for module in modules:
        root = _find_package(module.partition(".")[0], project=project).parent
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
    compiled, errors = build.try_modules(modules)
    if errors:
        raise WorkflowError("HF406", "the modules cannot be deployed\n" + "\n".join(errors))
    return compiled


def build_asset(
    directory: Path, *, project: Path, settings: Settings, compiled: Sequence[CompiledWorkflow]
) -> None:
    """Fill `directory`. `project` is the folder with `uv.lock`; the modules are in it or in its
    src/.
    """
    packages = sorted({module.partition(".")[0] for module in settings.modules})
    sources = [_find_package(package, project=project) for package in packages]
    # Delete an earlier asset. Otherwise files that the project has removed would be deployed again.
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    _install_locked(directory, project=project, settings=settings)
    _copy(_HOLDFAST, directory / "holdfast", without=_NOT_IN_LAMBDA)
    _copy(_functions(), directory / "functions")
    for source in sources:
        _copy(source, directory / source.name)
    for workflow in compiled:
        for output in build.outputs_of(_folder_of(workflow, directory), workflow):
            output.write()
    _add_bytecode(directory, settings.python)


def _add_bytecode(directory: Path, version: str) -> None:
    """Compile every module to bytecode for the Python of the functions, which cannot write into the
    asset.

    Without bytecode each cold start compiles the modules again, which takes over half of its CPU
    time. The bytecode is not checked against its source, so times of files in the archive do not
    matter. A module that is not valid Python stays as it is.
    """
    python = _find_python(version)
    if python is None:
        sys.stderr.write(
            f"note: there is no Python {version} on this machine, so the functions get no bytecode "
            f"and start more slowly; to change that, run `uv python install {version}`\n"
        )
        return
    subprocess.run(  # noqa: S603
        [
            *(python, "-I", "-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"),
            # Tracebacks show the folder into which Lambda unpacks the files. Without these options
            # they would show the folder of the build.
            *("-s", str(directory), "-p", _TASK_ROOT, str(directory)),
        ],
        stdout=subprocess.DEVNULL,
        check=False,
    )


def _find_python(version: str) -> str | None:
    """Return an interpreter of this version; None if there is none. Nothing is downloaded."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "uv", "python", "find", "--no-project", version],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or None if found.returncode == 0 else None


def _functions() -> Path:
    """Return the folder of the handlers: inside the package in a wheel, next to src/ in a
    checkout.
    """
    packaged = _HOLDFAST / "functions"
    return packaged if packaged.is_dir() else _HOLDFAST.parents[1] / "functions"


def _folder_of(workflow: CompiledWorkflow, directory: Path) -> Path:
    """Return the folder in the asset that contains the workflow's module."""
    module = workflow.function.partition(":")[0]
    folder = directory.joinpath(*module.split("."))
    return folder if folder.is_dir() else folder.parent


def _install_locked(directory: Path, *, project: Path, settings: Settings) -> None:
    tools = [option for name in only_for_tools(project) for option in ("--prune", name)]
    requirements = _uv(
        *("export", "--frozen", "--no-dev", "--no-emit-project", "--no-emit-package", "holdfast"),
        *("--prune", "boto3", *tools, "--no-header", "--no-annotate", "--project", str(project)),
        code="HF402",
        help="run `uv lock` in the project: the functions get the versions of its uv.lock",
    )
    platform = f"{_MACHINES[settings.architecture]}-{_OLD_GLIBC.get(settings.python, _GLIBC)}"
    _uv(
        *("pip", "install", "--quiet", "--no-config", "--no-installer-metadata", "--no-deps"),
        *("--require-hashes", "--only-binary", ":all:", "--target", str(directory)),
        *("--python-platform", platform, "--python-version", settings.python),
        *("--requirements", "-"),
        text_in=requirements,
        code="HF407",
        help=f"every dependency of the functions needs a wheel for {platform} and Python "
        f"{settings.python}: choose another version of it, another `python` or `architecture`, or "
        "move what only your own machine needs to the group `dev` (`uv add --dev NAME`)",
    )
    # Remove files that differ between machines: console scripts begin with the path of this
    # machine's Python, and RECORD contains their hashes. Otherwise the same project would give
    # another asset on another machine.
    shutil.rmtree(directory / "bin", ignore_errors=True)
    (directory / ".lock").unlink(missing_ok=True)
    for record in directory.glob("*.dist-info/RECORD"):
        record.unlink()


def _uv(*arguments: str, code: str, help: str, text_in: str | None = None) -> str:  # noqa: A002
    # Leave out this variable. `uv run` sets it to its own environment, which is not that of the
    # project.
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "uv", *arguments],
        input=text_in,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode != 0:
        said = done.stderr.strip()
        message = f"`uv {arguments[0]}` ended with code {done.returncode}: {said}"
        raise HoldfastError(code, message, help=help)
    return done.stdout


def _find_package(package: str, *, project: Path) -> Path:
    for root in (project, project / "src"):
        for candidate in (root / package, root / f"{package}.py"):
            if candidate.exists():
                return candidate
    raise HoldfastError(
        "HF403",
        f"`modules` names `{package}`, which is neither in {project} nor in its src/",
        help="name modules of this project, such as `statemachines.order_fulfilment`",
    )


def _copy(source: Path, destination: Path, *, without: Sequence[str] = ()) -> None:
    if source.is_file():
        shutil.copy(source, destination)
        return
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", *without)
    shutil.copytree(source, destination, ignore=ignore, dirs_exist_ok=True)
