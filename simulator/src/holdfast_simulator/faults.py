"""The faults that a schedule can inject at one effect of a handler, by the kind of effect.

A read may fail, or the process may crash or freeze before it. For a write there are three more: it
is done but no answer arrives, it is silently not done, or it is done later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import (
    Begin,
    Delete,
    Doubt,
    Effect,
    Extend,
    Get,
    GetArchive,
    GetBlob,
    GetMany,
    Publish,
    Put,
    PutArchive,
    PutBlob,
    PutIfAbsent,
    Query,
    QueryList,
    Replace,
    Send,
    SetVisibility,
    Together,
    Unlist,
    Update,
)
from holdfast.runtime.messages import START, replaced_by
from holdfast_simulator.schedule import Menu
from holdfast_simulator.swarm import Swarm

_PROCESS: Final = ("killed before", "frozen before")
_READ: Final = (*_PROCESS, "throttled", "slow")
_WRITE: Final = (*_READ, "killed after", "frozen after", "answer lost", "not done")
_CONDITIONAL: Final = (*_WRITE, "done later")

KINDS: Final[dict[type[Effect], tuple[str, ...]]] = {
    Query: _READ,
    QueryList: _READ,
    Together: _READ,
    Get: _READ,
    GetMany: _READ,
    GetBlob: _READ,
    GetArchive: _READ,
    PutIfAbsent: _CONDITIONAL,
    Replace: _CONDITIONAL,
    Update: _CONDITIONAL,
    Put: _CONDITIONAL,
    Delete: _CONDITIONAL,
    Unlist: _CONDITIONAL,
    Extend: _WRITE,
    PutBlob: _WRITE,
    PutArchive: _WRITE,
    Send: (*_CONDITIONAL, "sent twice"),
    SetVisibility: _WRITE,
    Publish: _WRITE,
    Begin: (*_PROCESS, "killed after", "frozen after"),
}
#: The faults of a write whose outcome the handler cannot know.
NO_ANSWER: Final = frozenset({"answer lost", "not done", "done later"})


def menus(swarm: Swarm) -> dict[type[Effect], Menu]:
    return {
        effect: Menu({kind: swarm.rates.get(kind, 0) for kind in kinds})
        for effect, kinds in KINDS.items()
    }


def menu(swarm: Swarm, *kinds: str) -> Menu:
    return Menu({kind: swarm.rates.get(kind, 0) for kind in kinds})


def throttled() -> ServiceFault:
    return ServiceFault("HF321", "the request was throttled", retry="later")


def no_answer(effect: Effect) -> ServiceFault:
    if isinstance(effect, PutIfAbsent):
        return Doubt("no answer came")
    return ServiceFault("HF321", f"no answer came to {type(effect).__name__}", retry="now")


def may_vanish(body: Mapping[str, Any]) -> bool:
    """Return True when the message may be lost. A message that replaces a dead letter must not be
    lost, because nothing else guards its execution. A start may be lost, because its row guards it.
    """
    return body["k"] == START or not replaced_by(body)


def run_of(body: Mapping[str, Any]) -> str:
    """Return the execution that a message names; "" when it belongs to none."""
    return str(body.get("run", ""))


def key_of(effect: Any) -> str:
    """Return the key of an effect, for the trace and for the test of its tenant."""
    match effect:
        case PutIfAbsent(_, item) | Put(_, item) | Replace(_, item):
            return f"{item['pk']!s}/{item['sk']!s}"
        case Query(_, pk):
            return pk
        case QueryList(partition):
            return partition
        case Together(queries):
            return queries[0].partition
        case GetMany(_, keys):
            return f"{keys[0][0]}/{keys[0][1]}" if keys else ""
        case Get(_, pk, sk) | Delete(_, pk, sk) | Update(_, pk, sk):
            return f"{pk}/{sk}"
        case Unlist(pk, sk) | Extend(pk, sk):
            return f"{pk}/{sk}"
        case PutBlob(key) | GetBlob(key) | PutArchive(key) | GetArchive(key):
            return key
        case Send(messages, queue):
            bodies = [one.body for one in messages]
            return f"{queue} " + ",".join(f"{body['k']}:{run_of(body)}" for body in bodies)
        case Begin(ticket, task):
            return f"{task.run}#{ticket}"
        case _:
            return ""
