"""Runs fast tests against each mutant of the code at the edge, in a copy of the tree.

The libraries of others are imported once, in this process; each mutant gets a fork of it, which
imports the copy of Holdfast with the changed file in it and runs pytest. So a mutant costs seconds,
a constant is as new for the tests as for the code, and programs that the tests start have the
mutant, too.

The tests of a mutant are those that run its line; for a constant, those that run a line with its
name, and the files of tests that name it. Those that have found a mutant of the same function
before come first, then the quickest. The templates are made again where the change may concern
them; the tests of templates run only when one of the templates is another one.
"""

from __future__ import annotations

import compileall
import contextlib
import gc
import importlib
import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest.mock import Mock

import coverage
import pytest

from tests.mutation.edge import ROOT, SOURCE, EdgeModule
from tests.mutation.mutants import Mutant

#: Imported before the forks, since they take longer than most tests.
LIBRARIES: Final = (
    *("xdist.plugin", "pytest_cov.plugin", "_hypothesis_pytestplugin", "requests"),
    *("boto3", "botocore.session", "coverage", "hypothesis", "jsonata", "pydantic", "yaml"),
    *("moto", "moto.dynamodb.responses", "moto.sqs.responses", "moto.s3.responses"),
    *("moto.events.responses", "moto.kms.responses", "moto.secretsmanager.responses"),
    *("aws_lambda_powertools", "aws_cdk", "cdk_nag", "cronsim", "rich", "regex"),
)
OURS: Final = {"holdfast", "holdfast_simulator", "functions", "infra", "statemachines", "tests"}
#: A test that takes longer than this on healthy code is not asked.
ASKED_SECONDS_MAX: Final = 3.0
#: How long the tests of one mutant may take together, on healthy code. The score is a lower bound.
MUTANT_SECONDS_MAX: Final = 3.0
#: A file costs its import and its collection, whatever is run of it.
MUTANT_FILES_MAX: Final = 8
#: A mutant with which the tests do not end is found. Both are far above what healthy code takes.
CPU_SECONDS_MAX: Final = 60
WALL_SECONDS_MAX: Final = 150
TEMPLATES: Final = ("Default", "Chosen", "own/Shop", "page/Shop", "groups/Shop")
#: The tests of templates, the quickest first.
OF_TEMPLATES: Final = (
    *("relations", "template", "roles", "construct", "groups", "keys", "rules", "metrics"),
    "snapshot",
)
FLAGS: Final = (
    *("--assert=plain", "--tb=line", "-qq", "--no-header", "--no-summary", "-n0"),
    *("-p", "no:cacheprovider"),
)
#: The tests that read every constant of a module, whatever its name.
OF_CONSTANTS: Final = {"limits": ("tests/unit/limits_",)}
#: The tests of what a module imports. They run in processes of their own, so no line of a guard of
#: imports is theirs.
OF_IMPORTS: Final = ("tests/unit/imports_",)
#: The tests of the edge itself.
NEAR: Final = (
    *("tests/contract/", "tests/infra/", "tests/unit/host_", "tests/unit/limits_"),
    *("tests/unit/entry_", "tests/unit/routes_", "tests/unit/group_tasks_", "tests/unit/http_"),
    *OF_IMPORTS,
)
REVIEW: Final = "tests/infra/snapshot_test.py"
SYNTHESIS: Final = "the synthesis of the templates"


@dataclass(frozen=True)
class Baseline:
    """A run of healthy code: the seconds of each test, and the tests that run each line of a
    file.
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, frozenset[str]]]
    failed: Sequence[str]


#: The fields of a `Baseline`. A fork has a class of its own.
Measured: TypeAlias = tuple[dict[str, float], dict[str, dict[int, frozenset[str]]], Sequence[str]]


@dataclass(frozen=True)
class Found:
    """`killer` is the test that failed; None for a survivor."""

    module: EdgeModule
    mutant: Mutant
    killer: str | None
    asked: int


@dataclass
class Copy:
    """A copy of the tree in which mutants are planted, one after another."""

    folder: Path
    tests: Sequence[str]
    baseline: Baseline = field(init=False)
    _killers: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def prepare(self, stored: Path | None) -> None:
        """Copy the tree and run the tests on healthy code, or read the result of an earlier run."""
        listed = ["git", "ls-files", "-co", "--exclude-standard"]
        found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
        for name in found.stdout.splitlines():
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        self._load()
        # The forks write none of it, and would compile every module anew.
        compileall.compile_dir(self.folder, quiet=2, maxlevels=20)
        known = pickle.loads(stored.read_bytes()) if stored and stored.exists() else ({}, {}, [])
        measured = _merged(known, _in_fork(lambda: self._measure(known[0])))
        self.baseline = Baseline(*measured)
        if stored is not None:
            stored.write_bytes(pickle.dumps(measured))
        _in_fork(lambda: self._synthesise(self._assembly("healthy")))
        # The forks share what is here, and need not look through it.
        gc.collect()
        gc.freeze()

    def _load(self) -> None:
        os.environ["CDK_CONTEXT_JSON"] = json.dumps(
            json.loads((ROOT / "cdk.json").read_text())["context"]
        )
        # The CDK keeps what each synthesis has made.
        os.environ["NODE_OPTIONS"] = "--max-old-space-size=12000"
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        for name in LIBRARIES:
            importlib.import_module(name)

    def _assembly(self, name: str) -> Path:
        return self.folder.parent / "assemblies" / name

    def play(self, module: EdgeModule, number: int) -> Found:
        mutant = module.mutants[number]
        asked = self._asked(module, mutant)
        path = self.folder / module.name
        healthy = path.with_suffix(".healthy")
        path.rename(healthy)
        path.write_text(module.mutated(number), encoding="utf-8")
        try:
            killer = self._killer(asked, self._is_for_templates(module, mutant))
        finally:
            healthy.rename(path)
        if killer is not None and killer in self.baseline.seconds:
            known = self._killers[module.name, mutant.function]
            known[:] = [killer, *(name for name in known if name != killer)]
        return Found(module, mutant, killer, len(asked))

    def _killer(self, asked: Sequence[str], is_for_templates: bool) -> str | None:
        receive, send = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(receive)
            os.setsid()
            _run(self, asked, send, is_for_templates)
        os.close(send)
        told = _read(receive, time.monotonic() + WALL_SECONDS_MAX)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        lines = told.splitlines()
        if lines and lines[-1] == "survived":
            return None
        return lines[-1].removeprefix("failed ") if lines else "a collection"

    def _asked(self, module: EdgeModule, mutant: Mutant) -> list[str]:
        lines = self.baseline.lines.get(module.name, {})
        names: set[str] = set()
        for line in mutant.lines:
            names |= lines.get(line, frozenset())
        if not names:
            names = self._naming(module, mutant)
        seconds = self.baseline.seconds
        names = {name for name in names if seconds.get(name, 99) < ASKED_SECONDS_MAX}
        known = [name for name in self._killers[module.name, mutant.function] if name in names]
        rest = sorted(names - set(known), key=lambda name: (seconds[name], name))
        files, spent = set[str](), 0.0
        chosen = []
        # Those of the edge itself come first: the engine's tests see little of it.
        rest.sort(key=lambda name: not name.startswith(NEAR))
        for name in [*known, *rest]:
            file = name.partition("::")[0]
            is_within = file in files or len(files) < MUTANT_FILES_MAX
            if is_within and spent + seconds[name] < MUTANT_SECONDS_MAX:
                files.add(file)
                spent += seconds[name]
                chosen.append(name)
        return chosen

    def _naming(self, module: EdgeModule, mutant: Mutant) -> set[str]:
        """Return the tests of what has run when the module was imported."""
        pattern = _any_of(module.derived(mutant.line) or {Path(module.name).stem})
        found: set[str] = set()
        for file, lines in self.baseline.lines.items():
            texts = self._text(file).splitlines()
            for number, text in enumerate(texts, 1):
                if pattern.search(text):
                    found |= lines.get(number, frozenset())
        files = {name.partition("::")[0] for name in self.baseline.seconds}
        own = OF_IMPORTS if "TYPE_CHECKING" in mutant.text else OF_CONSTANTS.get(module.part, ())
        found |= {one for one in self.baseline.seconds if one.startswith(own)} if own else set()
        naming = {one for one in files if pattern.search(self._text(one))}
        return found | {one for one in self.baseline.seconds if one.partition("::")[0] in naming}

    def _text(self, name: str) -> str:
        """Return the text of a file; "" for one that is gone since the run of healthy code."""
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _is_for_templates(self, module: EdgeModule, mutant: Mutant) -> bool:
        if module.part == "infra":
            return Path(module.name).stem not in {"bundle", "locked", "unfit"}
        if module.part not in {"resources", "limits"}:
            return False
        words = module.names(mutant.line)
        texts = [path.read_text("utf-8") for path in (ROOT / SOURCE / "infra").glob("*.py")]
        # Tables, queues and functions are used through the tuples that hold all of them.
        return module.part == "resources" or any(word in text for word in words for text in texts)

    def _enter(self) -> None:
        """Make this process one that has imported nothing of Holdfast, in the copy."""
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        places = [self.folder / "src", self.folder / "simulator/src", self.folder]
        mine = {str(ROOT), str(ROOT / "src"), str(ROOT / "simulator/src"), ""}
        sys.path[:] = [*map(str, places), *(one for one in sys.path if one not in mine)]
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, places))
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        os.chdir(self.folder)

    def _measure(self, known: Mapping[str, float]) -> Measured:
        """Run the tests in files of which none is known."""
        self._enter()
        sys.dont_write_bytecode = False
        measure = _Measure(self.folder)
        seen = {self.folder / name.partition("::")[0] for name in known}
        files = sorted({path for one in self.tests for path in self.folder.glob(one)} - seen)
        with measure.watching():
            if files:
                pytest.main([*FLAGS, *map(str, files)], plugins=[measure])
        return measure.measured()

    def _synthesise(self, target: Path) -> dict[str, tuple[str, set[str]]]:
        """Make the templates and return them. Those of the pages of docs/ are made of healthy code
        alone: what they say is in the others, too.
        """
        self._enter()
        asset = target.parent / "asset"
        asset.mkdir(parents=True, exist_ok=True)
        (asset / "handler.py").write_text("")
        program: Any = importlib.import_module("tests.infra.synth")
        healthy = self._assembly("healthy")
        if target != healthy:
            program.synthesise_page = lambda _page, folder: shutil.copytree(
                healthy / Path(folder).name, folder
            )
            # The rules of cdk-nag take half of the time.
            program.add_checks = Mock()
        program.main(str(asset), str(target))
        return _templates(target)


def _merged(one: Measured, other: Measured) -> Measured:
    lines: dict[str, dict[int, frozenset[str]]] = {}
    for found in (one[1], other[1]):
        for file, by_line in found.items():
            merged = lines.setdefault(file, {})
            for line, names in by_line.items():
                merged[line] = merged.get(line, frozenset()) | names
    return {**one[0], **other[0]}, lines, [*one[2], *other[2]]


def _templates(target: Path) -> dict[str, tuple[str, set[str]]]:
    """Return each template, with the findings of the security checks that it accepts."""
    snapshot = importlib.import_module("tests.infra.snapshot_test")
    return {
        name: (
            (target / f"{name}.template.json").read_text("utf-8"),
            snapshot.accepted(target / name),
        )
        for name in TEMPLATES
    }


def _run(copy: Copy, asked: Sequence[str], send: int, is_for_templates: bool) -> None:
    """Run the tests and end the process. The first that fails is written to `send`."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX))
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        copy._enter()
        teller = _Teller(send, None, asked)
        files = dict.fromkeys(name.partition("::")[0] for name in asked)
        if asked and pytest.main([*FLAGS, "-x", *files], plugins=[teller]) not in {0, 5}:
            teller.tell("failed a collection")
        elif is_for_templates and (found := _templates_killer(copy, send)) is not None:
            teller.tell(f"failed {found}")
        else:
            teller.tell("survived")
    except BaseException:  # noqa: BLE001  # the copy cannot be imported
        os.write(send, b"failed a collection\n")
    finally:
        os._exit(0)


def _templates_killer(copy: Copy, send: int) -> str | None:
    """Return the test that finds the change in the templates. The comparison with the reviewed
    texts finds every one, so the other tests of templates need not run.
    """
    target = copy._assembly("mutant")
    shutil.rmtree(target, ignore_errors=True)
    try:
        made = copy._synthesise(target)
    except BaseException:  # noqa: BLE001  # the CDK refuses it
        return SYNTHESIS
    if made == _templates(copy._assembly("healthy")):
        return None
    snapshot = importlib.import_module("tests.infra.snapshot_test")
    for name in snapshot.TEMPLATES:
        reviewed = (snapshot.GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        if snapshot.text_of(target, name) != reviewed:
            return REVIEW
    teller = _Teller(send, target, None)
    tests = [str(copy.folder / "tests/infra" / f"{name}_test.py") for name in OF_TEMPLATES]
    code = pytest.main([*FLAGS, "-x", *tests], plugins=[teller])
    return None if code == 0 else teller.failed or "a collection"


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(map(re.escape, sorted(words)))})\b")


class _Teller:
    """Tells the first test that fails, once. The last word that is told counts. Only the tests that
    are `asked` run, in their order; None: all of them.
    """

    def __init__(self, send: int, assembly: Path | None, asked: Sequence[str] | None) -> None:
        self.failed: str | None = None
        self._asked = asked
        self._send = send
        self._assembly = assembly

    def tell(self, text: str) -> None:
        if self.failed is None or not text.startswith("failed a collection"):
            os.write(self._send, f"{text}\n".encode())

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._asked is not None:
            found = {item.nodeid: item for item in items}
            items[:] = [found[name] for name in self._asked if name in found]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.tell(f"failed {report.nodeid}")
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """The templates are made already."""
        if self._assembly is None or fixturedef.argname != "assembly":
            return None
        fixturedef.cached_result = (self._assembly, fixturedef.cache_key(request), None)
        return self._assembly


class _Measure:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        places = [f"{folder}/{one}/*" for one in (SOURCE, "functions", "infra")]
        self._watch = coverage.Coverage(data_file=None, include=places, config_file=False)
        self._seconds: dict[str, float] = {}
        self._failed: list[str] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        self._watch.start()
        yield
        self._watch.stop()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests of templates, which run in another step."""
        items[:] = [one for one in items if "assembly" not in getattr(one, "fixturenames", ())]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._watch.switch_context(item.nodeid)
        began = time.process_time()
        done = yield
        self._seconds[item.nodeid] = time.process_time() - began
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def measured(self) -> Measured:
        """Return the fields of the `Baseline`."""
        data = self._watch.get_data()
        for name in self._failed:
            self._seconds.pop(name, None)
        known = self._seconds
        lines = {
            file.removeprefix(f"{self._folder}/"): {
                line: frozenset(one for one in contexts if one in known)
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        return known, lines, self._failed


def _read(receive: int, until: float) -> str:
    """Return what was written until the writer ended, or the time was over."""
    import select

    told = b""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([receive], [], [], left)
        if not ready:
            break
        part = os.read(receive, 65_536)
        if not part:
            os.close(receive)
            return told.decode()
        told += part
    os.close(receive)
    return told.decode() + "failed the tests do not end\n"


def _in_fork(work: Callable[[], Any]) -> Any:
    receive, send = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.close(receive)
            with os.fdopen(send, "wb") as answer:
                pickle.dump(work(), answer)
            code = 0
        finally:
            os._exit(code)
    os.close(send)
    with os.fdopen(receive, "rb") as answer:
        found = pickle.load(answer)  # of our own making
    os.waitpid(process, 0)
    return found
