"""The code of a Lambda function, imported in this process next to the code of others.

Two functions may both have a module `handler`, and an update replaces it. So the modules of one
revision belong to a package with a name of its own. An absolute import inside them looks in the
archive first, as in Lambda, where the archive is the first entry of `sys.path`. The file names of
the code are those in /var/task, so that tracebacks look as on AWS.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import itertools
import linecache
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

TASK_ROOT: Final = "/var/task"
UNPACKED_BYTES_MAX: Final = 262_144_000  # Lambda quota: 250 MB unzipped
_PREFIX: Final = "_function_"

_numbers: Final = itertools.count(1)


class Archive:
    """The modules of one revision of a function. `writes` receives the output of their code."""

    def __init__(self, content: bytes, writes: Callable[[str], None]) -> None:
        self.package = f"{_PREFIX}{next(_numbers)}"
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-function-"))
        self._writes = writes
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > UNPACKED_BYTES_MAX:
                raise ValueError(f"the archive unpacks to more than {UNPACKED_BYTES_MAX} bytes")
            # zipfile itself prevents names that lead outside of the folder.
            packed.extractall(self.folder)
        root = ModuleType(self.package)
        root.__path__ = [str(self.folder)]
        sys.modules[self.package] = root
        _archives[self.package] = self

    def close(self) -> None:
        _archives.pop(self.package, None)
        for name in [name for name in sys.modules if _top(name) == self.package]:
            del sys.modules[name]
        shutil.rmtree(self.folder, ignore_errors=True)

    def import_module(self, name: str) -> ModuleType:
        """Import a module of the archive. Raises every error of its code, and ModuleNotFoundError
        with the name that the caller used.
        """
        if not self._has(_top(name)):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return importlib.import_module(f"{self.package}.{name}")

    def source_line(self, filename: str, number: int) -> str:
        """Return the line of source that a traceback names."""
        path = self.folder / filename.removeprefix(f"{TASK_ROOT}/")
        return linecache.getline(str(path), number).strip()

    def find(self, name: str) -> ModuleSpec | None:
        """Find a module; `name` begins with the package's name."""
        path = self.folder.joinpath(*name.split(".")[1:])
        for file, places in ((path / "__init__.py", [str(path)]), (path.with_suffix(".py"), None)):
            if file.is_file():
                loader = _Loader(name, str(file), self)
                return importlib.util.spec_from_file_location(
                    name, file, loader=loader, submodule_search_locations=places
                )
        if path.is_dir():
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(path)]
            return spec
        return None

    def namespace(self) -> dict[str, Any]:
        """Return the builtins for the archive's modules, in which `import` looks in the archive
        first.
        """
        return {**vars(builtins), "__import__": self._import, "print": self._print}

    def _has(self, top: str) -> bool:
        return (self.folder / top).is_dir() or (self.folder / f"{top}.py").is_file()

    def _import(
        self,
        name: str,
        module_globals: Mapping[str, Any] | None = None,
        module_locals: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Execute an `import` statement. Without `from`, it returns the module of the first part of
        the name.
        """
        if level > 0 or not self._has(_top(name)):
            return builtins.__import__(name, module_globals, module_locals, names or (), level)
        module = importlib.import_module(f"{self.package}.{name}")
        if not names:
            return sys.modules[f"{self.package}.{_top(name)}"]
        for each in names:
            if not hasattr(module, each) and self.find(f"{self.package}.{name}.{each}"):
                importlib.import_module(f"{self.package}.{name}.{each}")
        return module

    def _print(self, *values: Any, **options: Any) -> None:
        if options.get("file") is not None:
            builtins.print(*values, **options)  # noqa: T201  # into what it chose itself
            return
        text = io.StringIO()
        builtins.print(*values, **{**options, "file": text})  # noqa: T201
        self._writes(text.getvalue())


class _Loader(SourceFileLoader):
    """Loads the modules of an archive. It compiles them each time, because a stored compiled file
    could contain the code of another function.
    """

    def __init__(self, name: str, path: str, archive: Archive) -> None:
        super().__init__(name, path)
        self._archive = archive

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        shown = f"{TASK_ROOT}/{path.relative_to(self._archive.folder).as_posix()}"
        source = self.get_data(str(path))
        return compile(source, shown, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._archive.namespace()
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        archive = _archives.get(_top(fullname))
        return None if archive is None else archive.find(fullname)


def _top(name: str) -> str:
    return name.partition(".")[0]


_archives: Final[dict[str, Archive]] = {}


@contextmanager
def importable() -> Iterator[None]:
    """Make archives importable in this context, and remove their modules after it."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for archive in list(_archives.values()):
            archive.close()
