"""`serve --reload`: the process that watches, with a stand-in for the one that serves."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_SECONDS = 20
SERVE = """
import os, signal, sys
from pathlib import Path
from holdfast.local.reload import is_orphaned, is_watched, watch
folder = Path(sys.argv[1])
if not is_watched():
    sys.exit(watch([folder]))
assert not is_orphaned()
with open(folder / "served.log", "a") as log:
    log.write((folder / "shop.py").read_text())
if "broken" in (folder / "shop.py").read_text():
    sys.exit(2)
signal.pause()
"""


def test_a_changed_source_is_served_by_a_new_process_even_after_a_broken_one(
    tmp_path: Path,
) -> None:
    source, log = tmp_path / "shop.py", tmp_path / "served.log"
    source.write_text("first\n")
    watching = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(tmp_path)], stderr=subprocess.DEVNULL
    )
    try:
        served = ""
        for version in ("first\n", "broken\n", "mended, and larger\n"):
            source.write_text(version)
            served += version
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not log.exists() or log.read_text() != served:
                assert time.monotonic() < deadline, log.read_text()
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(PATIENCE_SECONDS) == 0
    finally:
        watching.kill()
        watching.wait()
