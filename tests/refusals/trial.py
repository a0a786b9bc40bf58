"""One text of Python, given to the compiler as a workflow."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import sys
import warnings
from collections.abc import Mapping
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CODES, CompileErrors, Diagnostic
from tests.stopwatch import stopwatch

HANGS_AFTER_SECONDS = 1.0

Outcome = Literal["accepted", "refused", "not Python"]

_numbers = itertools.count()


class Broken(Exception):  # noqa: N818 - it says what the compiler did, not what went wrong here
    """A violation by the compiler; the message is the program that caused it."""


def outcome_of(text: str, known: Mapping[str, Any], folder: Path) -> Outcome:
    """Compile the workflows of `text`, whose globals begin as `known`; raises Broken."""
    if not _is_python(text):
        return "not Python"
    name = f"candidate_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update({key: value for key, value in known.items() if not key.startswith("__")})
    sys.modules[name] = module
    try:
        with stopwatch() as watch, warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            if not _is_importable(spec.loader, module):
                return "not Python"
            compile_module(module)
    except CompileErrors as refused:
        for diagnostic in refused.diagnostics:
            _check(diagnostic, text)
        return "refused"
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error}\n{text}") from error
    finally:
        del sys.modules[name]
        linecache.cache.pop(str(path), None)
        path.unlink()
        if watch.seconds > HANGS_AFTER_SECONDS:
            raise Broken(f"{watch.seconds:.1f} s of computing\n{text}")
    return "accepted"


def _is_importable(loader: Loader, module: ModuleType) -> bool:
    """Return True when the module can be imported. Python itself runs decorators and defaults;
    their errors are the author's.
    """
    try:
        loader.exec_module(module)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            compile(text, "candidate", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _check(found: Diagnostic, text: str) -> None:
    is_placed = 1 <= found.column <= len(found.source_line) + 1 and found.width >= 1
    if found.code not in CODES or not found.message or not found.help or not is_placed:
        raise Broken(f"{found}\n{text}")
