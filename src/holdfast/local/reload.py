"""`serve --reload`: a process that watches the source files and restarts `serve` when they change.

The executions are stored in the file, so the new process continues them. If a change does not
compile, the new process prints the message and ends; the next change starts another one.
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

#: The environment variable that tells the serving process the id of the process that watches it.
WATCHER: Final = "HOLDFAST_RELOAD_WATCHER"
LOOK_SECONDS: Final = 0.3
#: The longest time that the serving process may take to finish its handlers.
END_SECONDS: Final = 60
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "cdk.out"})


def is_watched() -> bool:
    """Return True in the process that `watch` has started."""
    return WATCHER in os.environ


def is_orphaned() -> bool:
    """Return True when the watching process has ended without a signal to this one, as after
    SIGKILL.
    """
    return is_watched() and os.environ[WATCHER] != str(os.getppid())


def watch(folders: Sequence[Path]) -> int:
    """Serve until a signal ends this process. Return its exit status."""
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
    """Wait until the next check. After the serving process has ended, a full interval passes."""
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
    """Return the time of the last change of each source file."""
    return {path: changed for folder in folders for path, changed in _sources(folder)}


def _sources(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield each source file. A file may be a link to a missing file (the lock of an editor), or
    may be removed while the folder is read: skip it.
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
    """Return False for the folder of a virtual environment."""
    return not Path(folder.path, "pyvenv.cfg").exists()
