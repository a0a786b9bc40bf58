"""The guarantees of storage on which the log and the inbox depend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from holdfast import resources
from holdfast.aws.clients import Clients
from holdfast.aws.names import ResourceNames
from holdfast.aws.ports import AwsPorts
from holdfast.errors import ServiceFault
from holdfast.local.cloud import table_request
from holdfast.runtime.effects import (
    Condition,
    Delete,
    Effect,
    Extend,
    Get,
    GetArchive,
    GetBlob,
    GetMany,
    Item,
    ListPage,
    Put,
    PutArchive,
    PutBlob,
    PutIfAbsent,
    Query,
    QueryList,
    Replace,
    TaskFailed,
    Together,
    Unlist,
)
from tests.contract import ministack
from tests.contract.conftest import MemoryStack, moto_stack, sqlite_stack


class Stack(Protocol):
    @property
    def perform(self) -> Callable[[Effect], Any]: ...


@dataclass(frozen=True)
class Remote:
    perform: Callable[[Effect], Any]


@pytest.fixture(scope="session")
def remote_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with ministack.serve(tmp_path_factory.mktemp("ministack")) as endpoint:
        yield ministack.clients(endpoint)


@pytest.fixture(
    params=["memory", "moto", "sqlite", pytest.param("ministack", marks=pytest.mark.slow)]
)
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    match request.param:
        case "memory":
            yield MemoryStack()
        case "moto":
            with moto_stack() as moto:
                yield moto
        case "sqlite":
            with sqlite_stack(tmp_path) as stored:
                yield stored
        case _:
            yield remote(request.getfixturevalue("remote_clients"))


def remote(clients: Clients) -> Remote:
    """Return the stack with two empty tables."""
    names = ResourceNames("executions", "mail", "blobs", "", "", "")
    store = clients.get("store")
    for table in store.list_tables()["TableNames"]:
        store.delete_table(TableName=table)
    for table in resources.TABLES:
        store.create_table(TableName=table.name, **table_request(table))
    clients.get("blobs").create_bucket(Bucket=names.blobs_bucket)
    ports = AwsPorts(
        clients,
        names,
        tasks=lambda _: TaskFailed("None", ""),
        clock=lambda: 0,
        metrics=lambda _: None,
    )
    return Remote(ports.perform)


RUN = "default#run"


def record(sequence: int, **attributes: Any) -> Item:
    return {"pk": RUN, "sk": sequence, "w": f"nonce-{sequence}", **attributes}


def row(key: str, **attributes: Any) -> Item:
    return {"pk": "~due#3", "sk": key, **attributes}


def put(stack: Stack, table: Any, *items: Item) -> None:
    for item in items:
        assert stack.perform(PutIfAbsent(table, item)) is None


def sort_keys(items: list[Item]) -> list[Any]:
    return [item["sk"] for item in items]


def test_a_first_put_is_stored_and_read_back_as_it_was(stack: Stack) -> None:
    item = record(0, f=1, at=1_760_000_000_123, ev=b"\x00\xff\x1f", nm="Zoë £3", none="")
    put(stack, "executions", item)

    assert stack.perform(Get("executions", RUN, 0)) == item


def test_a_second_put_is_refused_with_the_item_that_is_there(stack: Stack) -> None:
    first = record(7, ev=b"first")
    put(stack, "executions", first)

    assert stack.perform(PutIfAbsent("executions", record(7, ev=b"second"))) == first
    assert stack.perform(Get("executions", RUN, 7)) == first


def test_the_sequence_is_part_of_the_condition(stack: Stack) -> None:
    put(stack, "executions", record(0), record(1))

    assert stack.perform(PutIfAbsent("executions", record(2))) is None


def test_an_absent_item_is_none(stack: Stack) -> None:
    assert stack.perform(Get("mail", "default#in#run", "t#0.1")) is None


def test_an_unconditional_put_replaces_all_attributes(stack: Stack) -> None:
    stack.perform(Put("mail", row("a", due=5, old="gone")))
    stack.perform(Put("mail", row("a", due=6)))

    assert stack.perform(Get("mail", "~due#3", "a")) == row("a", due=6)


def test_a_replacement_needs_the_version_that_is_stored(stack: Stack) -> None:
    put(stack, "mail", row("a", rv=0, value="first", old="gone"))

    assert stack.perform(Replace("mail", row("a", rv=1, value="second"), seen=0)) is True
    assert stack.perform(Replace("mail", row("a", rv=1, value="late"), seen=0)) is False
    assert stack.perform(Get("mail", "~due#3", "a")) == row("a", rv=1, value="second")


def test_a_row_that_is_gone_or_has_no_number_is_not_replaced(stack: Stack) -> None:
    put(stack, "mail", row("b", value="first"))

    assert stack.perform(Replace("mail", row("a", rv=1), seen=0)) is False
    assert stack.perform(Replace("mail", row("b", rv=1), seen=0)) is False
    assert stack.perform(Query("mail", "~due#3")) == [row("b", value="first")]


def test_a_replacement_that_cannot_be_stored_is_refused_for_good(stack: Stack) -> None:
    put(stack, "mail", row("a", rv=0))

    with pytest.raises(ServiceFault) as refusal:
        stack.perform(Replace("mail", row("a", rv=1, value=bytes(410_000)), seen=0))
    assert (refusal.value.code, refusal.value.retry) == ("HF323", "never")


def test_a_deleted_item_is_gone_and_deleting_it_again_is_no_fault(stack: Stack) -> None:
    put(stack, "mail", row("a"), row("b"))
    stack.perform(Delete("mail", "~due#3", "a"))
    stack.perform(Delete("mail", "~due#3", "a"))

    assert sort_keys(stack.perform(Query("mail", "~due#3"))) == ["b"]


def test_a_deletion_needs_what_its_conditions_say(stack: Stack) -> None:
    put(stack, "mail", row("a", old="x"), row("b"))
    is_old = (Condition("old", "present"), Condition("old", "=", "x"))
    for sk in ("a", "b", "c"):
        stack.perform(Delete("mail", "~due#3", sk, is_old))

    assert sort_keys(stack.perform(Query("mail", "~due#3"))) == ["b"]


def test_a_read_row_does_not_change_with_the_store(stack: Stack) -> None:
    stack.perform(Put("mail", row("a", due=5)))
    (before,) = stack.perform(Query("mail", "~due#3"))
    stack.perform(Put("mail", row("a", due=6)))

    assert before["due"] == 5


def test_a_stored_row_does_not_change_with_the_callers_dictionary(stack: Stack) -> None:
    mine: dict[str, Any] = dict(row("a", due=5))
    stack.perform(Put("mail", mine))
    mine["due"] = 6

    assert stack.perform(Get("mail", "~due#3", "a"))["due"] == 5


def test_sequences_sort_as_numbers(stack: Stack) -> None:
    put(stack, "executions", *(record(n) for n in (10, 9, 0, 100, 2)))

    assert sort_keys(stack.perform(Query("executions", RUN))) == [0, 2, 9, 10, 100]


def test_text_keys_sort_by_their_bytes(stack: Stack) -> None:
    put(stack, "mail", *(row(key) for key in ("b", "a", "B", "a#1", "é", "😀", "\uffee")))

    found = sort_keys(stack.perform(Query("mail", "~due#3")))
    assert found == ["B", "a", "a#1", "b", "é", "\uffee", "😀"]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"after": 1}, [2, 3, 4]),
        ({"until": 2}, [0, 1, 2]),
        ({"after": 1, "until": 3}, [2, 3]),
        ({"after": 3, "until": 3}, []),
        ({"after": 4}, []),
        ({"reverse": True}, [4, 3, 2, 1, 0]),
        ({"reverse": True, "limit": 2}, [4, 3]),
        ({"reverse": True, "after": 1, "limit": 2}, [4, 3]),
        ({"reverse": True, "after": 0, "until": 3, "limit": 2}, [3, 2]),
        ({"limit": 3}, [0, 1, 2]),
        ({"after": 1, "limit": 1}, [2]),
        ({"limit": 99}, [0, 1, 2, 3, 4]),
    ],
)
def test_a_query_of_records_keeps_its_bounds(
    stack: Stack, bounds: dict[str, Any], expected: list[int]
) -> None:
    put(stack, "executions", *(record(n) for n in range(5)))
    put(stack, "executions", {"pk": f"{RUN}s-neighbour", "sk": 1})

    assert sort_keys(stack.perform(Query("executions", RUN, **bounds))) == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"begins_with": "e#"}, ["e#1", "e#2", "e#20"]),
        ({"begins_with": "e#", "reverse": True}, ["e#20", "e#2", "e#1"]),
        ({"begins_with": "e#", "limit": 2}, ["e#1", "e#2"]),
        ({"begins_with": "e#2"}, ["e#2", "e#20"]),
        ({"begins_with": "z"}, []),
        ({"after": "e#1"}, ["e#2", "e#20", "f", "w#r"]),
        ({"until": "e#2"}, ["d", "e#1", "e#2"]),
        ({"after": "d", "until": "e#20"}, ["e#1", "e#2", "e#20"]),
        ({"begins_with": "e#", "after": "e#1"}, ["e#2", "e#20"]),
        ({"begins_with": "e#", "until": "e#2"}, ["e#1", "e#2"]),
        ({"begins_with": "e#", "after": "f"}, []),
    ],
)
def test_a_query_of_the_inbox_keeps_its_bounds(
    stack: Stack, bounds: dict[str, Any], expected: list[str]
) -> None:
    put(stack, "mail", *(row(key) for key in ("w#r", "e#2", "d", "e#20", "f", "e#1")))

    assert sort_keys(stack.perform(Query("mail", "~due#3", **bounds))) == expected


def test_a_query_is_not_cut_at_one_megabyte(stack: Stack) -> None:
    put(stack, "executions", *(record(n, ev=bytes(300_000)) for n in range(5)))

    assert sort_keys(stack.perform(Query("executions", RUN))) == [0, 1, 2, 3, 4]
    newest = stack.perform(Query("executions", RUN, reverse=True, limit=4))
    assert sort_keys(newest) == [4, 3, 2, 1]


def test_the_list_shows_the_newest_first_and_only_projected_attributes(stack: Stack) -> None:
    lp = "default#order#RUNNING#1"
    for n in (1, 3, 2):
        item: Item = {
            "pk": f"default#r{n}",
            "sk": 0,
            "lp": lp,
            "ls": f"2026-0{n}#r{n}",
            "nm": f"n{n}",
        }
        put(stack, "executions", {**item, "ev": b"history", "w": "nonce"})
    put(stack, "executions", {"pk": "default#other", "sk": 0, "lp": lp + "0", "ls": "2026-09"})

    listed = stack.perform(QueryList(lp, limit=10)).items
    assert [item["nm"] for item in listed] == ["n3", "n2", "n1"]
    assert dict(listed[0]) == {
        "pk": "default#r3", "sk": 0, "lp": lp, "ls": "2026-03#r3", "nm": "n3"
    }  # fmt: skip


def test_the_list_is_paged_by_its_sort_key(stack: Stack) -> None:
    for n in range(5):
        put(stack, "executions", {"pk": f"default#r{n}", "sk": 0, "lp": "p", "ls": f"{n}"})

    page = stack.perform(QueryList("p", limit=2)).items
    assert [item["ls"] for item in page] == ["4", "3"]
    page = stack.perform(QueryList("p", limit=2, before="3")).items
    assert [item["ls"] for item in page] == ["2", "1"]
    assert stack.perform(QueryList("p", limit=2, before="0")) == ListPage([], "")


def test_a_list_says_down_to_which_key_it_was_read(stack: Stack) -> None:
    for n in range(5):
        put(stack, "executions", {"pk": f"default#r{n}", "sk": 0, "lp": "p", "ls": f"{n}"})

    assert stack.perform(QueryList("p", limit=2)).read_to == "3"
    assert stack.perform(QueryList("p", limit=10)).read_to == ""


def test_a_filter_of_the_list_is_applied_after_the_read(stack: Stack) -> None:
    for n in range(5):
        item: Item = {
            "pk": f"default#r{n}",
            "sk": 0,
            "lp": "p",
            "ls": f"{n}",
            "wf": "rare" if n == 1 else "w",
        }
        put(stack, "executions", item)

    rare = (Condition("wf", "=", "rare"),)
    first = stack.perform(QueryList("p", limit=2, where=rare, reads=3))
    assert (list(first.items), first.read_to) == ([], "2")
    second = stack.perform(
        QueryList("p", limit=2, before="2", where=(Condition("wf", "=", "rare"),))
    )
    assert ([item["ls"] for item in second.items], second.read_to) == (["1"], "")
    full = stack.perform(QueryList("p", limit=1, where=(Condition("wf", "=", "w"),)))
    assert ([item["ls"] for item in full.items], full.read_to) == (["4"], "4")


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (Condition("er", "=", "Declined"), ["4", "1"]),
        (Condition("nm", "begins with", "order-1"), ["1"]),
        (Condition("nm", "begins with", "100"), []),
        (Condition("pa", "present"), ["3"]),
        (Condition("en", ">", 2), ["4"]),
        (Condition("nm", "contains", "der-2"), ["2"]),
    ],
)
def test_a_query_of_the_list_gives_the_entries_that_fit(
    stack: Stack, condition: Condition, found: list[str]
) -> None:
    for n in range(5):
        more: Item = {"er": "Declined", "en": n} if n in {1, 4} else {}
        if n == 3:
            more = {"pa": 7}
        key: Item = {"pk": f"default#r{n}", "sk": 0, "lp": "p", "ls": f"{n}", "nm": f"order-{n}"}
        put(stack, "executions", {**key, **more})
    page = stack.perform(QueryList("p", limit=9, where=(condition,)))
    assert [item["ls"] for item in page.items] == found


def test_queries_that_are_sent_together_are_answered_in_their_order(stack: Stack) -> None:
    for n in range(4):
        put(stack, "executions", {"pk": f"default#r{n}", "sk": 0, "lp": f"p{n % 2}", "ls": f"{n}"})

    pages = stack.perform(Together((QueryList("p1", limit=9), QueryList("p0", limit=9))))
    assert [[item["ls"] for item in page.items] for page in pages] == [["3", "1"], ["2", "0"]]


def test_a_query_of_the_list_reads_the_table_mail_by_its_own_keys(stack: Stack) -> None:
    for n in range(4):
        put(stack, "mail", {"pk": "p", "sk": f"{n}", "wf": "rare" if n == 1 else "w"})
    where = (Condition("wf", "=", "w"),)

    first = stack.perform(QueryList("p", limit=2, where=where, table="mail"))
    assert ([item["sk"] for item in first.items], first.read_to) == (["3", "2"], "2")
    second = stack.perform(QueryList("p", limit=2, before="2", where=where, table="mail"))
    assert ([item["sk"] for item in second.items], second.read_to) == (["0"], "")


def test_many_items_are_read_at_once_and_missing_ones_left_out(stack: Stack) -> None:
    for n in range(3):
        put(stack, "mail", {"pk": f"p{n}", "sk": "-", "n": n})

    found = stack.perform(GetMany("mail", (("p2", "-"), ("p7", "-"), ("p0", "-"))))
    assert sorted(int(item["n"]) for item in found) == [0, 2]


def test_a_record_without_listing_attributes_is_not_listed(stack: Stack) -> None:
    put(stack, "executions", record(0, lp="p"), record(1, ls="x"), record(2))

    assert stack.perform(QueryList("p", limit=10)).items == []


def test_an_unlisted_record_leaves_the_list_and_keeps_the_rest(stack: Stack) -> None:
    put(stack, "executions", record(0, lp="p", ls="1", ev=b"x"), record(1, lp="p", ls="2"))
    stack.perform(Unlist(RUN, 0))
    stack.perform(Unlist(RUN, 0))

    assert sort_keys(stack.perform(QueryList("p", limit=10)).items) == [1]
    assert stack.perform(Get("executions", RUN, 0)) == record(0, ev=b"x")


def test_unlisting_a_record_that_expired_does_not_bring_it_back(stack: Stack) -> None:
    stack.perform(Unlist(RUN, 3))

    assert stack.perform(Query("executions", RUN)) == []


def test_a_name_is_extended_only_for_the_run_that_holds_it(stack: Stack) -> None:
    name: Item = {"pk": "default#n#order#o-1", "sk": "-", "run": "run-1", "ttl": 100}
    put(stack, "mail", name)
    stack.perform(Extend(pk=str(name["pk"]), sk="-", run="run-2", ttl=999))
    assert stack.perform(Get("mail", str(name["pk"]), "-")) == name

    stack.perform(Extend(pk=str(name["pk"]), sk="-", run="run-1", ttl=999))
    assert stack.perform(Get("mail", str(name["pk"]), "-")) == {**name, "ttl": 999}


def test_extending_a_name_that_expired_does_not_bring_it_back(stack: Stack) -> None:
    stack.perform(Extend(pk="default#n#order#o-1", sk="-", run="run-1", ttl=999))

    assert stack.perform(Get("mail", "default#n#order#o-1", "-")) is None


@pytest.mark.parametrize(
    ("table", "item"),
    [
        ("executions", record(0, ev=bytes(410_000))),
        ("executions", {"pk": RUN, "sk": "0"}),
        ("mail", {"pk": "~due#3", "sk": 0}),
        ("mail", {"pk": "", "sk": "a"}),
        ("mail", {"pk": "a" * 2_049, "sk": "a"}),
        ("mail", {"pk": "~due#3", "sk": "a" * 1_025}),
    ],
)
def test_an_item_that_cannot_be_stored_is_refused_for_good(
    stack: Stack, table: Any, item: Item
) -> None:
    with pytest.raises(ServiceFault) as refusal:
        stack.perform(PutIfAbsent(table, item))

    assert (refusal.value.code, refusal.value.retry) == ("HF323", "never")


def test_a_record_of_350_kilobytes_is_stored(stack: Stack) -> None:
    put(stack, "executions", record(0, ev=bytes(350_000)))

    assert len(stack.perform(Get("executions", RUN, 0))["ev"]) == 350_000


def test_a_blob_is_read_back_and_may_be_put_twice(stack: Stack) -> None:
    data = bytes(range(256)) * 4_096
    stack.perform(PutBlob("default/run/abc", data))
    stack.perform(PutBlob("default/run/abc", data))

    assert stack.perform(GetBlob("default/run/abc")) == data


def test_an_archived_execution_is_found_by_the_beginning_of_its_key(stack: Stack) -> None:
    for number in ("1", "3", "2", "3"):
        stack.perform(PutArchive(f"default/day=2027-01-15/run-{number}.gz", number.encode()))

    found = stack.perform(GetArchive("default/day=2027-01-15/run-"))

    until = "default/day=2027-01-15/run-2.gz"
    earlier = stack.perform(GetArchive("default/day=2027-01-15/run-", until))

    assert (found.data, found.place[-8:]) == (b"3", "run-3.gz")
    assert (earlier.data, earlier.place[-8:]) == (b"2", "run-2.gz")
    assert stack.perform(GetArchive("default/day=2027-01-15/other-")) is None


def test_a_missing_blob_is_a_fault(stack: Stack) -> None:
    with pytest.raises(ServiceFault) as fault:
        stack.perform(GetBlob("default/run/none"))

    assert (fault.value.code, fault.value.retry) == ("HF324", "never")
