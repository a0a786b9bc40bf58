"""The archive of a stack on one machine: a file for each end of an execution."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Archived, GetArchive, PutArchive


class ArchiveFolder:
    """Stores ended executions as files. `folder` None: the stack has no archive."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def put(self, effect: PutArchive) -> None:
        """Store the file. It gets its name only when all of it is on the disk, so no half file is
        ever found.
        """
        assert self._folder is not None
        path = self._folder / effect.key
        partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(effect.data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            raise _fault(path, error) from error

    def get(self, effect: GetArchive) -> Archived | None:
        if self._folder is None:
            return None
        beginning = self._folder / effect.prefix
        try:
            paths = beginning.parent.glob(f"{beginning.name}*.gz")
            found = effect.last_of(path.relative_to(self._folder).as_posix() for path in paths)
            if found is None:
                return None
            path = self._folder / found
            return Archived(str(path), path.read_bytes())
        except OSError as error:
            raise _fault(beginning, error) from error


def _fault(path: Path, error: OSError) -> ServiceFault:
    return ServiceFault("HF330", f"the archive: {path}: {error.strerror}", retry="later")
