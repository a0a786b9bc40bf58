"""The promises of the file: what was accepted stays, whatever happens to process and disk."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import limits
from holdfast.errors import RequestError, ServiceFault
from holdfast.local.clock import VirtualClock
from holdfast.local.sqlite.backup import back_up
from holdfast.local.sqlite.blobs import SqliteBlobs
from holdfast.local.sqlite.clock import FileClock
from holdfast.local.sqlite.cloud import SqliteCloud
from holdfast.local.sqlite.database import Database, _Change
from holdfast.local.sqlite.presence import Presence
from holdfast.local.sqlite.queues import SqliteQueues
from holdfast.local.sqlite.retention import remove_expired
from holdfast.local.sqlite.store import SqliteStore
from holdfast.resources import CACHE_BLOBS_PREFIX
from holdfast.runtime.effects import (
    Get,
    GetBlob,
    Item,
    Message,
    PutBlob,
    PutIfAbsent,
    Send,
    Update,
)

START_MS = 1_760_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "holdfast.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = Database(path)
    yield opened
    opened.close()


def item(number: int, **attributes: Any) -> Item:
    return {"pk": f"p{number}", "sk": "-", **attributes}


def put(database: Database, number: int, **attributes: Any) -> None:
    assert (
        SqliteStore(database).put_if_absent(PutIfAbsent("mail", item(number, **attributes))) is None
    )


def found(database: Database, number: int) -> Item | None:
    return SqliteStore(database).get(Get("mail", f"p{number}", "-"))


def queues(database: Database, clock: VirtualClock, holder: str = "one") -> SqliteQueues:
    return SqliteQueues(database, clock, holder, lambda: None)


def send(to: SqliteQueues, *numbers: int) -> None:
    to.send(Send(tuple(Message({"t": "default", "n": number}) for number in numbers)))


# -- one file, several processes -------------------------------------------------------------------


def test_a_file_that_is_opened_again_has_everything(path: Path) -> None:
    first = Database(path)
    put(first, 1, data=b"\x00\xff", text="Zoë")
    first.close()
    again = Database(path)

    assert found(again, 1) == item(1, data=b"\x00\xff", text="Zoë")
    again.close()


def test_a_copy_of_the_file_and_its_log_goes_on(database: Database, path: Path) -> None:
    for number in range(50):
        put(database, number)
    copied = path.with_name("copy.db")
    for ending in ("", "-wal"):
        shutil.copy(f"{path}{ending}", f"{copied}{ending}")
    copy = Database(copied)

    assert all(found(copy, number) for number in range(50))
    put(copy, 50)
    copy.close()


def test_a_backup_is_taken_while_the_file_is_open(database: Database, path: Path) -> None:
    put(database, 1)
    target = path.with_name("backup.db")
    back_up(path, target)
    copy = Database(target)

    assert found(copy, 1) == item(1)
    copy.close()
    with pytest.raises(RequestError, match="exists"):
        back_up(path, target)


def test_two_openings_of_one_file_exclude_each_other(database: Database, path: Path) -> None:
    other = Database(path)
    put(database, 1, by="first")

    there = SqliteStore(other).put_if_absent(PutIfAbsent("mail", item(1, by="second")))
    assert there == item(1, by="first")
    other.close()


def test_changes_of_many_threads_are_all_stored_and_share_commits(database: Database) -> None:
    commits: list[str] = []
    database._writer.set_trace_callback(
        lambda text: commits.append(text) if text == "COMMIT" else None
    )
    begin = threading.Barrier(16)

    def store(number: int) -> None:
        begin.wait()
        for turn in range(5):
            put(database, number * 5 + turn)

    threads = [threading.Thread(target=store, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found(database, number) for number in range(80))
    assert len(commits) < 80


def test_a_refused_change_leaves_those_beside_it(database: Database) -> None:
    put(database, 9)
    refusals: list[ServiceFault] = []
    too_large = Update("mail", "p9", "-", put={"text": "x" * 500_000})

    def refused() -> None:
        try:
            SqliteStore(database).update(too_large)
        except ServiceFault as error:
            refusals.append(error)

    changes = [lambda: put(database, 1), refused, lambda: put(database, 2)]
    threads = [threading.Thread(target=change) for change in changes]
    with database._writing:  # so that the three are committed together
        for thread in threads:
            thread.start()
            while len(database._listed) < threads.index(thread) + 1 and thread.is_alive():
                thread.join(0.001)
    for thread in threads:
        thread.join()
    assert [refusal.code for refusal in refusals] == ["HF323"]
    assert found(database, 1)
    assert found(database, 2)
    assert found(database, 9) == item(9)


# -- crashes ---------------------------------------------------------------------------------------


def test_messages_of_a_process_that_ended_are_shown_at_once(database: Database, path: Path) -> None:
    clock = VirtualClock(START_MS)
    dead, living = Presence(path), Presence(path)
    send(queues(database, clock), 1, 2)
    queues(database, clock, dead.name).receive("work", 1)
    queues(database, clock, living.name).receive("work", 1)
    assert not living.is_gone(dead.name)

    dead.leave()
    mine = queues(database, clock, living.name)
    for holder in mine.holders():
        if living.is_gone(holder):
            mine.release(holder)
    (again,) = mine.receive("work")
    assert again.receives == 2
    living.leave()


def test_an_old_receipt_deletes_nothing(database: Database) -> None:
    clock = VirtualClock(START_MS)
    ours = queues(database, clock)
    send(ours, 1)
    (first,) = ours.receive("work")
    ours.release("one")
    (second,) = ours.receive("work")
    ours.delete([first.receipt])

    ours.extend_visibility([second.receipt], 10)
    ours.delete([second.receipt])
    assert ours.depth("work") == 0


def test_a_batch_is_hidden_by_its_receipt_and_needs_no_commit_for_it(path: Path) -> None:
    clock = VirtualClock(START_MS)
    cloud = SqliteCloud(path, clock)
    send(cloud.queues, 1, 2)
    receipts = [one["ReceiptHandle"] for one in cloud.receive("work", 10)]

    def changes() -> int:
        return cloud.database._writer.total_changes

    before = changes()
    clock.advance(999)
    cloud.queues.extend_visibility(receipts, limits.VISIBILITY_SECONDS)
    assert changes() == before

    clock.advance(2)
    cloud.queues.extend_visibility(receipts, limits.VISIBILITY_SECONDS)
    assert changes() == before + len(receipts)
    cloud.database.close()


# -- the disk --------------------------------------------------------------------------------------


def test_a_full_disk_is_a_clear_fault_and_loses_nothing(database: Database) -> None:
    put(database, 1)
    (pages,) = database._writer.execute("PRAGMA page_count").fetchone()
    database._writer.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(ServiceFault, match="full: make room") as fault:
        put(database, 2, text="x" * 100_000)
    assert (fault.value.code, fault.value.retry, type(fault.value)) == (
        "HF284",
        "later",
        ServiceFault,
    )
    assert found(database, 1) == item(1)
    assert found(database, 2) is None

    database._writer.execute("PRAGMA max_page_count = 1000000")
    put(database, 2, text="x" * 100_000)


def test_a_connection_that_cannot_be_made_is_a_clear_fault(database: Database, path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.mkdir()

    with pytest.raises(ServiceFault, match="unable to open") as fault:
        found(database, 1)
    assert fault.value.code == "HF285"


def test_an_interrupted_change_stores_nothing_and_the_next_one_is_stored(
    database: Database,
) -> None:
    def interrupted(writer: sqlite3.Connection) -> None:
        writer.execute("INSERT INTO settings VALUES ('half', x'')")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.write(interrupted)
    put(database, 1)

    assert found(database, 1) == item(1)
    assert database.setting("half", b"new") == b"new"


def test_a_change_beside_an_interrupted_one_is_not_taken_for_stored(database: Database) -> None:
    faults: list[ServiceFault] = []

    def beside() -> None:
        try:
            put(database, 1)
        except ServiceFault as fault:
            faults.append(fault)

    def interrupted(_: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    thread = threading.Thread(target=beside)
    with database._writing:  # so that the two are committed together
        thread.start()
        while not database._listed:
            thread.join(0.001)
        database._listed.appendleft(_Change(interrupted, is_conditional=False))
        with pytest.raises(KeyboardInterrupt):
            database._commit_listed()
    thread.join()

    assert [fault.code for fault in faults] == ["HF285"]
    assert found(database, 1) is None


def test_a_file_that_cannot_be_written_is_a_clear_fault(database: Database) -> None:
    put(database, 1)
    database._writer.execute("PRAGMA query_only = ON")

    with pytest.raises(ServiceFault, match="readonly") as fault:
        put(database, 2)
    assert fault.value.code == "HF285"
    assert found(database, 1) == item(1)


def test_a_stack_whose_file_cannot_be_written_is_not_healthy(path: Path) -> None:
    with SqliteCloud(path, VirtualClock(START_MS)) as cloud:
        assert cloud.health()["data"] == str(path)
        cloud.database._writer.execute("PRAGMA query_only = ON")
        with pytest.raises(ServiceFault, match="readonly"):
            cloud.health()
        assert cloud.receive("work", 10) == []
        cloud.delete("work", ["1/1"])


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (name TEXT)")
    connection.close()

    with pytest.raises(RequestError, match="another program") as refusal:
        Database(other)
    assert refusal.value.code == "HF283"


def test_text_is_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be read as one" * 30)

    with pytest.raises(RequestError, match="not a database"):
        Database(tmp_path / "notes.txt")


def test_a_file_of_newer_code_is_left_alone(path: Path) -> None:
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(RequestError, match="has version 99; this code knows 1"):
        Database(path)


def test_a_folder_cannot_be_the_file(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="--data PATH"):
        Database(tmp_path)


def test_only_its_owner_can_read_the_file(database: Database, path: Path) -> None:
    assert path.stat().st_mode & 0o077 == 0


# -- retention and the clock -----------------------------------------------------------------------


def test_expired_rows_are_removed_and_the_rest_stays(database: Database) -> None:
    clock = VirtualClock(START_MS)
    blobs = SqliteBlobs(database, clock)
    blobs.put(PutBlob("old", b"x"))
    clock.advance(limits.BLOB_RETENTION_DAYS * 86_400_000 + 1)
    blobs.put(PutBlob("new", b"x"))
    seconds = clock() // 1_000
    for number, ttl in enumerate((seconds - 1, seconds, seconds + 1)):
        put(database, number, ttl=ttl)
    put(database, 3)

    assert remove_expired(database, clock()) == 2
    assert [found(database, n) is None for n in range(4)] == [True, False, False, False]


def test_with_an_archive_only_the_old_results_of_the_cache_are_removed(database: Database) -> None:
    clock = VirtualClock(START_MS)
    blobs = SqliteBlobs(database, clock)
    cached = f"{CACHE_BLOBS_PREFIX}acme/0"
    blobs.put(PutBlob("acme/run/0", b"x"))
    blobs.put(PutBlob(cached, b"x"))
    clock.advance(limits.BLOB_RETENTION_DAYS * 86_400_000 + 1)

    assert remove_expired(database, clock(), keeps_blobs=True) == 1
    assert blobs.get(GetBlob("acme/run/0")) == b"x"
    with pytest.raises(ServiceFault, match="no blob"):
        blobs.get(GetBlob(cached))


def test_the_lead_of_the_clock_stays_with_the_file(database: Database) -> None:
    machine = VirtualClock(START_MS)
    clock, other = FileClock(database, machine), FileClock(database, machine)
    clock.advance(3 * 86_400_000)
    other.read_lead()

    assert clock() == other() == FileClock(database, machine)() == START_MS + 3 * 86_400_000
