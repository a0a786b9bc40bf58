"""A process that ends by itself is recognised, also when it is killed later; and the output of
processes is kept.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.process import complaints
from tests.process.clock import Clock
from tests.process.nursery import Nursery


def _ends_with(status: int) -> int:
    """Return the number of a process that has ended without being waited for."""
    code = f"raise SystemExit({status})"
    pid = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", code], os.environ)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def test_a_crash_does_not_pass_for_the_kill_that_comes_after_it(tmp_path: Path) -> None:
    nursery = Nursery({}, tmp_path, {"worker-1": _ends_with(3)})
    assert nursery._end("worker-1") is None
    ((role, status),) = nursery.ended
    assert (role, os.waitstatus_to_exitcode(status)) == ("worker-1", 3)


def test_a_killed_process_has_not_ended_by_itself(tmp_path: Path) -> None:
    asleep = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
    pid = os.posix_spawn(sys.executable, asleep, os.environ)
    nursery = Nursery({}, tmp_path, {"worker-1": pid})
    assert nursery._end("worker-1") == pid
    assert nursery.ended == []


def test_a_bug_in_a_log_is_found_and_a_fault_is_counted(tmp_path: Path) -> None:
    said = [
        {"level": "ERROR", "what": "it was not processed", "error": "KeyError", "code": "HF900"},
        {"level": "ERROR", "what": "no answer", "error": "Doubt", "code": "HF320"},
        {"level": "ERROR", "what": complaints.BATCH_GIVEN_UP, "error": "x", "code": "HF900"},
        {"_aws": {}},
    ]
    lines = [*(json.dumps(one) for one in said), '{"level": "ERR']
    (tmp_path / "worker-1.log").write_text("\n".join(lines))
    found = list(complaints.complaints(tmp_path, ["worker-1", "worker-2"]))
    assert list(complaints.bugs(found)) == [
        ("worker-1", "it was not processed: KeyError; see worker-1.log")
    ]
    assert complaints.by_code(found) == {"HF320": 1, "HF900": 1}


def test_a_delay_holds_for_faults_and_calls_alike() -> None:
    clock = Clock(begun_at=100.0)
    assert clock.wall(7.0) == 107.0
    clock.put_off(2.5)
    clock.put_off(0.5)
    assert clock.wall(7.0) == 110.0
