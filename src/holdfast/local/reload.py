"""`serve --reload`: a process that watches the source and starts `serve` again when it changes.

The executions are in the file, so the new process goes on with them. A change that does not compile
ends the new process with its message; the next change starts another.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

#: The environment variable of the serving process with the id of the process that watches the
#: files.
WATCHER: Final = "HOLDFAST_RELOAD_WATCHER"
LOOK_SECONDS: Final = 0.3
#: How long the serving process may take to finish its handlers.
END_SECONDS: Final = 60
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "cdk.out"})


def is_watched() -> bool:
    """Return True in the process that `watch` has started."""
    return WATCHER in os.environ


def is_orphaned() -> bool:
    """Return True when the process that watches has ended without a word, as by SIGKILL."""
    return is_watched() and os.environ[WATCHER] != str(os.getppid())


def watch(folders: Sequence[Path]) -> int:
    """Serve until a signal ends this process. Return the exit status."""
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, _end)
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**os.environ, WATCHER: str(os.getpid())}
    while True:
        seen = _states(folders)
        serving = subprocess.Popen(command, env=environment)  # noqa: S603  # this very command
        try:
            while _states(folders) == seen:
                _wait(serving)
        except KeyboardInterrupt:
            _stop(serving)
            return 0
        print("the source has changed: serving it", file=sys.stderr)
        _stop(serving)


def _end(*_: object) -> None:
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


def _wait(serving: subprocess.Popen[bytes]) -> None:
    """Wait for the time between two looks, also for a process that has ended."""
    if serving.poll() is None:
        try:
            serving.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            return
    time.sleep(LOOK_SECONDS)


def _stop(serving: subprocess.Popen[bytes]) -> None:
    serving.terminate()
    try:
        serving.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        serving.kill()
        serving.wait()


def _states(folders: Sequence[Path]) -> dict[str, int]:
    """Return when each source file was changed last."""
    return {path: changed for folder in folders for path, changed in _sources(folder)}


def _sources(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield each source file that is there. An editor's lock may be a link to nothing, and a file
    may be removed while the folder is read.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for found in entries:
            if found.name.startswith("."):
                continue
            if found.is_dir(follow_symlinks=False):
                if found.name not in _SKIPPED and _is_own(found):
                    yield from _sources(Path(found.path))
            elif found.name.endswith(".py"):
                with suppress(OSError):
                    yield found.path, found.stat().st_mtime_ns


def _is_own(folder: os.DirEntry[str]) -> bool:
    """Return False for a virtual environment."""
    return not Path(folder.path, "pyvenv.cfg").exists()
