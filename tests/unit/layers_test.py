"""The structure that docs/explanation/architecture.md promises, read off the sources."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"

#: package -> the packages of ours that it may import. "asl" and "runtime" as keys are the modules
#: directly in these packages, and "asl.parsing" is a sub-package. Other packages are not divided.
#: A package outside that may import "asl" or "runtime" may import their sub-packages, too.
ALLOWED = {
    "errors": set(),
    "limits": set(),
    "sealed": set(),
    "trace_ids": set(),
    "task_logs": {"api"},
    "task_runs": {"api", "asl", "runtime", "errors", "limits"},
    "resources": {"limits"},
    "cost": {"limits", "resources"},
    "asl": {"asl.jsonata"},
    "asl.jsonata": set(),
    "asl.jsonpath": {"asl", "asl.jsonata", "asl.parsing"},
    "asl.parsing": {"asl", "asl.jsonata", "asl.jsonpath", "asl.validation", "errors", "limits"},
    "asl.validation": {"asl", "asl.jsonata", "asl.jsonpath", "limits"},
    "service_names": set(),
    "service_models": {"service_names"},
    "http": {"api"},
    "api": {"asl", "compiler", "sealed", "trace_ids", "errors", "limits"},
    "compiler": {"api", "asl", "service_models", "sealed", "errors", "limits"},
    "proofs": {"asl", "api", "compiler", "cost", "limits"},
    "core": {"asl", "errors", "limits"},
    # The proof of a move reads two definitions and a state, and runs nothing.
    "migration": {"asl", "core", "proofs"},
    "pictures": {"asl", "errors", "limits"},
    "runtime": {
        "runtime.commands",
        "runtime.gates",
        "runtime.storage",
        "core",
        "asl",
        "resources",
        # The inbox and its events are output for people.
        "sealed",
        "errors",
        "limits",
    },
    "runtime.storage": {"runtime", "core", "asl", "cost", "resources", "errors", "limits"},
    "runtime.gates": {
        "runtime",
        "runtime.storage",
        "core",
        "asl",
        "errors",
        "limits",
        "resources",
    },
    "runtime.maintenance": {
        "runtime",
        "runtime.gates",
        "runtime.storage",
        "core",
        "resources",
        "errors",
        "limits",
    },
    "runtime.commands": {
        "migration",
        "pictures",
        "runtime",
        "runtime.gates",
        "runtime.maintenance",
        "runtime.storage",
        "core",
        "asl",
        "resources",
        "sealed",
        "errors",
        "limits",
    },
    "runtime.worker": {
        "runtime",
        "runtime.commands",
        "runtime.gates",
        "runtime.maintenance",
        "runtime.storage",
        "core",
        "asl",
        "resources",
        "errors",
        "limits",
        "sealed",
    },
    "stepfunctions": {"runtime", "core", "asl", "errors", "limits", "service_names"},
    "integrations": {
        "service_names",
        "runtime",
        "stepfunctions",
        "core",
        "asl",
        "errors",
        "limits",
    },
    "aws": {
        "api",
        "runtime",
        "core",
        "stepfunctions",
        "integrations",
        "deployment",
        "task_logs",
        "task_runs",
        "resources",
        "cost",
        "sealed",
        "errors",
        "limits",
    },
    "testing": {"api", "compiler", "service_models", "asl", "core", "sealed", "errors", "limits"},
    "deployment": {
        "api",
        "compiler",
        "asl",
        "core",
        "registration",
        "runtime",
        "task_runs",
        "errors",
        "limits",
    },
    # `local.project` knows the `serve` that runs.
    "remote": {"api", "local", "sealed", "errors", "limits"},
}
#: Modules that any package may import: they import nothing of ours and know nothing of workflows.
EVERYWHERE = {"lazy_dataclass"}
#: Packages whose sub-packages are units of their own in ALLOWED.
DIVIDED = ("asl", "runtime")
#: Nothing in the engine may depend on these: they only connect it.
WIRING = {"local", "cli", "remote", "deployment", "registration", "infra"}
PURE = ("api", "asl", "compiler", "core", "migration", "pictures", "proofs")
#: Calls by which clock, chance, environment or output would enter a pure package.
IMPURE_CALLS = {
    "datetime.now",
    "datetime.utcnow",
    "date.today",
    "time.time",
    "time.monotonic",
    "time.time_ns",
    "random.random",
    "uuid.uuid4",
    "os.urandom",
    "os.getenv",
    "print",
}
IMPURE_MODULES = {"boto3", "botocore", "random", "uuid", "secrets", "logging", "subprocess"}


def _sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@dataclass(frozen=True)
class _Facts:
    """What the tests ask of a source. All sources together are parsed once."""

    docstring: str
    imports: frozenset[str]
    calls: frozenset[str]


@cache
def _facts(path: Path) -> _Facts:
    tree = ast.parse(path.read_text())
    imports: set[str] = set()
    calls: set[str] = set()
    is_pure = _package(path) in PURE
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif is_pure and isinstance(node, ast.Call):
            calls.add(ast.unparse(node.func))
    return _Facts(ast.get_docstring(tree) or "", frozenset(imports), frozenset(calls))


def _imports(path: Path) -> frozenset[str]:
    return _facts(path).imports


def _unit(path: Path) -> str:
    """asl/parsing/parse.py -> `asl.parsing`, asl/program.py -> `asl`, core/flow.py -> `core`."""
    package, *inner = path.relative_to(SOURCE).with_suffix("").parts
    return f"{package}.{inner[0]}" if package in DIVIDED and len(inner) > 1 else package


def _sources_of(unit: str) -> list[Path]:
    return [path for path in _sources() if _unit(path) == unit]


def _imported_units(path: Path) -> set[str]:
    modules = _modules()
    return {_unit(modules[name]) for name in _modules_of(path, modules) - {"holdfast"}}


@pytest.mark.parametrize("unit", ALLOWED)
def test_a_module_imports_only_what_its_layer_may(unit: str) -> None:
    package = unit.partition(".")[0]
    sources = _sources_of(unit)
    assert sources
    for path in sources:
        for found in _imported_units(path) - {unit} - EVERYWHERE:
            other = found.partition(".")[0]
            assert (found if other == package else other) in ALLOWED[unit], f"{path}: {found}"


def test_each_part_of_a_divided_package_has_its_layer() -> None:
    parts = {_unit(path) for path in _sources() if _package(path) in DIVIDED}
    assert parts == {unit for unit in ALLOWED if unit.partition(".")[0] in DIVIDED}


def test_the_package_of_the_states_language_stands_alone() -> None:
    found = set().union(*(_imported_units(path) for path in (SOURCE / "asl").rglob("*.py")))
    found -= EVERYWHERE
    assert {unit.partition(".")[0] for unit in found} == {"asl", "errors", "limits"}


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_take_time_and_chance_as_values(package: str) -> None:
    sources = [path for path in _sources() if _package(path) == package]
    assert sources
    for path in sources:
        modules = {name.split(".")[0] for name in _imports(path)}
        assert not modules & IMPURE_MODULES, path
        calls = _facts(path).calls
        impure = {call for call in calls if ".".join(call.split(".")[-2:]) in IMPURE_CALLS}
        assert not impure, path
        assert "open" not in calls or package == "compiler", path


def test_handlers_do_no_input_or_output_of_their_own() -> None:
    for path in (SOURCE / "runtime").rglob("*.py"):
        modules = {name.split(".")[0] for name in _imports(path)}
        assert not modules & (IMPURE_MODULES | {"time", "os", "socket", "datetime"}), path.name


def test_every_module_begins_with_a_docstring() -> None:
    for path in _sources():
        assert len(_facts(path).docstring) > len("."), path


def test_the_project_speaks_of_itself_alone() -> None:
    homes = [f"/{folder}/" for folder in ("work", "root", "home")]
    words = [*homes, "TODO", "FIXME", "XXX"]
    for folder in ("src", "functions", "infra", "statemachines", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".json"}:
                found = [word for word in words if word in path.read_text()]
                assert not found, f"{path}: {found}"


#: The groups of modules that import each other, and why. Everything else is free of circles.
#: An import inside a function counts, and so does one under `if TYPE_CHECKING`: a reader of the one
#: module needs the other, whenever Python loads it. "*" stands for any modules of the package.
CIRCLES = {
    "compiler.expressions": ("*", "recursive descent: an expression contains expressions"),
    "compiler.statements": ("*", "recursive descent: a statement contains statements"),
    "compiler.emit": ("emit scopes", "recursive descent: a scope contains scopes"),
    "core": ("cancelling flow lanes", "a lane ends a state, which ends a lane"),
    "api": (
        "harness tasks workflows",
        "the harness names the types of the others; only they import at run time",
    ),
}


def test_modules_import_each_other_only_where_it_is_stated() -> None:
    modules = _modules()
    graph = {name: _modules_of(path, modules) - {name} for name, path in modules.items()}
    found = {}
    for circle in _circles(graph):
        packages = {name.removeprefix("holdfast.").rpartition(".")[0] for name in circle}
        assert len(packages) == 1, f"packages import each other: {sorted(circle)}"
        package = packages.pop()
        assert package not in found, f"two circles in {package}"
        found[package] = " ".join(sorted(name.rpartition(".")[2] for name in circle))
    stated = {
        package: found.get(package, "none") if members == "*" else members
        for package, (members, _) in CIRCLES.items()
    }
    assert found == stated


@cache
def _modules() -> dict[str, Path]:
    """Return the file of each module, by its dotted name."""
    return {_dotted(path): path for path in _sources()}


def _dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules_of(path: Path, modules: dict[str, Path]) -> set[str]:
    """A name that is imported is a module, or a part of the module before its last dot."""
    names = _imports(path)
    return {name if name in modules else name.rpartition(".")[0] for name in names} & modules.keys()


def _circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules each of which can be reached from each other one."""
    reached = {name: _reached(graph, name) for name in graph}
    groups = {
        frozenset({name, *(other for other in seen if name in reached[other])})
        for name, seen in reached.items()
        if name in seen
    }
    return [set(group) for group in groups]


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    pending = list(graph[start])
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += graph[name]
    return seen
