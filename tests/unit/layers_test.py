"""The structure that docs/explanation/architecture.md promises, read off the sources."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"

#: package -> what of ours it may import. A name without a dot is a package or top module.
ALLOWED = {
    "errors": set(),
    "limits": set(),
    "sealed": set(),
    "resources": {"limits"},
    "cost": {"limits", "resources"},
    "asl": {"errors", "limits"},
    "api": {"asl", "compiler", "sealed", "errors", "limits"},
    "compiler": {"api", "asl", "sealed", "errors", "limits"},
    "proofs": {"asl", "api", "compiler", "cost", "limits"},
    "core": {"asl", "errors", "limits"},
    "pictures": {"asl", "errors", "limits"},
    "runtime": {"core", "asl", "cost", "resources", "sealed", "errors", "limits"},
    "stepfunctions": {"runtime", "core", "asl", "errors", "limits"},
    "integrations": {"runtime", "stepfunctions", "core", "asl", "errors", "limits"},
    "aws": {
        "runtime",
        "core",
        "stepfunctions",
        "integrations",
        "deployment",
        "resources",
        "cost",
        "sealed",
        "errors",
        "limits",
    },
    "testing": {"api", "compiler", "asl", "core", "sealed", "errors", "limits"},
    "deployment": {"api", "compiler", "asl", "runtime", "errors", "limits"},
}
#: Nothing in the engine may depend on what only wires it together.
WIRING = {"local", "cli", "deployment"}
PURE = ("api", "asl", "compiler", "core", "pictures", "proofs")
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


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    package = _package(path)
    if package not in ALLOWED:
        return
    ours = {name.split(".")[1] for name in _imports(path) if name.startswith("holdfast.")}
    assert ours - {package} <= ALLOWED[package]


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_pure_packages_take_time_and_chance_as_values(path: Path) -> None:
    if _package(path) not in PURE:
        return
    modules = {name.split(".")[0] for name in _imports(path)}
    assert not modules & IMPURE_MODULES
    calls = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    }
    assert not {call for call in calls if ".".join(call.split(".")[-2:]) in IMPURE_CALLS}
    assert "open" not in calls or _package(path) == "compiler"


def test_handlers_do_no_input_or_output_of_their_own() -> None:
    for path in (SOURCE / "runtime").rglob("*.py"):
        modules = {name.split(".")[0] for name in _imports(path)}
        assert not modules & (IMPURE_MODULES | {"time", "os", "socket", "datetime"}), path.name


def test_every_module_begins_with_a_docstring() -> None:
    for path in _sources():
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert docstring is not None, path
        assert len(docstring) > len("."), path


def test_the_project_speaks_of_itself_alone() -> None:
    homes = [f"/{folder}/" for folder in ("work", "root", "home")]
    words = [*homes, "TODO", "FIXME", "XXX"]
    for folder in ("src", "functions", "infra", "statemachines", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".json"}:
                found = [word for word in words if word in path.read_text()]
                assert not found, f"{path}: {found}"


#: Modules that import each other, by package, and why. Everything else is free of circles.
CIRCLES = {
    "compiler.expressions": "recursive descent: an expression contains expressions",
    "compiler.statements": "recursive descent: a statement contains statements",
    "compiler.emit": "recursive descent: a scope contains scopes",
    "core": "flow, lanes and cancelling: a lane ends a state, which ends a lane",
    "api": "harness and tasks name each other's types, and import nothing at run time",
    "testing": "a script is asked at moments, and moments come from the script",
}


def test_modules_import_each_other_only_where_it_is_stated() -> None:
    modules = {_dotted(path): path for path in _sources()}
    graph = {name: _modules_of(path, modules) - {name} for name, path in modules.items()}
    found = {frozenset(circle) for circle in _circles(graph)}
    packages = {
        name.removeprefix("holdfast.").rpartition(".")[0] for circle in found for name in circle
    }
    assert packages == CIRCLES.keys()
    assert len(found) == len(CIRCLES)


def _dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules_of(path: Path, modules: dict[str, Path]) -> set[str]:
    """-> the modules that a file imports, at its top or in a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in names}
    return found & modules.keys()


def _circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """-> the groups of modules each of which can be reached from each other one."""
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
