"""The formats of stored data: which ones this code reads, and how they differ.

The records of the log have a format of their own, together with their snapshots and blobs.
`Formats` says which formats the code can read and which one it writes.

| format | new in it |
|---|---|
| 1 | |
| 2 | a longer dictionary for zlib: the words of cancelling, of deadlines and of snapshots |
|   | a list that continues a stored one: only its new items are written. A record in which this |
|   | saves something has format 2, whatever format the stack requests |
|   | the events of a pause, of a limit, of a published value and of a command of a workflow: a |
|   | record that contains one has format 2, whatever format the stack requests |
| 3 | the events of a record by columns (`event_columns.py`), a dictionary for them, and |
|   | hexadecimal text as bytes |

The control messages of a pause and the events for one execution have format 2 (`runtime/inbox.py`),
and so have definitions with a field that older code would ignore (`definitions.py`).
All other items and messages have not changed since format 1, and have that number.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any, Final

from holdfast.errors import HoldfastBug, NewerFormatError, OlderFormatError
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats that code reads, from `oldest` to `newest`, and the format `asked` that the stack
    requests. `asked` may be newer than `newest`.
    """

    oldest: int
    newest: int
    asked: int

    def asking(self, number: int) -> Formats:
        return replace(self, asked=number)

    def __contains__(self, number: int) -> bool:
        return self.oldest <= number <= self.newest

    def require(self, number: int, what: str) -> None:
        """Raise NewerFormatError (HF301) or OlderFormatError (HF302) for a format that this code
        cannot read.
        """
        if number > self.newest:
            raise NewerFormatError(what, number, self.newest)
        if number < self.oldest:
            raise OlderFormatError(what, number, self.oldest)


#: The formats of the log that this code can read. By default it writes the newest format that the
#: first release reads. A later release must not change that default. Otherwise workers of the first
#: release could not continue these executions during a deployment or after a return to it.
FORMATS: Final = Formats(oldest=1, newest=3, asked=3)
#: The attribute of an item, and the field of a message, that names its format.
FORMAT_FIELD: Final = "f"
#: The format of every item that is not a record of a log.
FORMAT: Final = 1
ITEMS: Final = Formats(FORMAT, FORMAT, FORMAT)


def require_format(item: Mapping[str, Any], what: str, formats: Formats = ITEMS) -> int:
    """Return the format of the item. Raises HF301 or HF302 when this code cannot read it, because
    then it must not write to it either.
    """
    found = item.get(FORMAT_FIELD)
    if type(found) is not int or found < 1:
        raise HoldfastBug(f"{what} has no format number")
    # Compare here and call `require` only for a refusal, because a load makes this check twice for
    # each record.
    if not formats.oldest <= found <= formats.newest:
        formats.require(found, what)
    return found


#: The oldest format in which a list may be written as a continuation, that is, as a reference to a
#: stored list and the items after it.
LIST_PREFIX_FORMAT: Final = 2
#: The oldest format in which a record has its events by columns.
COLUMNS_FORMAT: Final = 3
#: The oldest format in which compressed data has hexadecimal text as bytes.
_HEX_FORMAT: Final = 3
#: Events that code of format 1 cannot apply, and the oldest format in which each may be written. A
#: record with such an event has that format. Older code then leaves the message to a worker of this
#: release; otherwise it would fail on the event.
NEWER_EVENTS: Final[Mapping[str, int]] = {
    "Paused": 2,
    "Resumed": 2,
    "PriorityChanged": 2,
    "StepSkipped": 2,
    "ExecutionForked": 2,
    "Published": 2,
    "Noted": 2,
    "ContinuedAsNew": 2,
    "Migrated": 2,
    "AttemptQueued": 2,
    "ExecutionQueued": 2,
    "ExecutionAdmitted": 2,
    "ConditionUnmet": 2,
    "MapRunUpdated": 2,
    "MapRunRedriven": 2,
    "MapRunAborted": 2,
    "ActivityScheduleFailed": 2,
    "TaskSubmitFailed": 2,
}


#: The prefixes of tasks that code of format 1 cannot run. A record with such a task needs a newer
#: format.
_NEWER_TASKS: Final = ("poll:", "send", "start:", "start_later:", "again", "bulk:", "reply", "stop")


def format_for(event_type: str, details: Mapping[str, Any]) -> int:
    """Return the oldest format in which the event may be written."""
    if event_type == "TaskScheduled" and details["resourceType"] == "holdfast":
        return 2 if details["resource"].startswith(_NEWER_TASKS) else 1
    return NEWER_EVENTS.get(event_type, 1)


# -- compression -----------------------------------------------------------------------------------

#: The preset dictionary with which zlib compresses each record of format 1. It has words that
#: records repeat. Never change it: zlib can decompress a record only with the same dictionary, so
#: no stored record could be read. Other words need a new format.
_WORDS_1: Final = (
    b'"assignedVariables":{"error":"cause":"length":"index":"timeoutInSeconds":"retrier":"due":'
    b'"MapIterationStarted","MapIterationSucceeded","MapStateEntered","MapStateStarted",'
    b'"MapStateSucceeded","MapStateExited","ParallelStateEntered","ParallelStateStarted",'
    b'"ParallelStateSucceeded","ParallelStateExited","PassStateEntered","PassStateExited",'
    b'"ChoiceStateEntered","ChoiceStateExited","WaitStateEntered","TimerSet","WaitStateExited",'
    b'"SucceedStateEntered","SucceedStateExited","ExecutionStarted","ExecutionSucceeded",'
    b'"TaskFailed","Opened",{"frame":"{"output":{"@":[0,{"name":"{"input":{"@":['
    b'["TaskStarted",{"resourceType":"holdfast","resource":"task:["TaskSucceeded",'
    b'"output":{"@":["TaskStateExited",{"name":"["TaskStateEntered",{"name":"","input":{"@":['
    b'["TaskScheduled",{"resourceType":"holdfast","resource":"task:","region":"holdfast",'
    b'"parameters":{"entry":,"attempt":1,"claim":["'
)
#: The words that format 2 adds to those of format 1. The most frequent words are at the end,
#: because zlib needs fewer bits to refer to the end.
_STATE_WORDS: Final = (
    b'"map_run_arn":"","inputs":["failures_max":0,"started_ms":"stopped_ms":"undone":['
    b'"items":null,"branch_input":null,"results":[["needed":null,"tolerated":0,"failed":0,'
    b'"after":[],"closing":null"count":"concurrency":"error_output":"by_parent":true,"children":['
    b'"kind_of_wait":"Entered""kind_of_wait":"Exited""kind_of_wait":"Failed""kind_of_wait":"Delay"'
    b'"kind_of_wait":"Children""kind_of_wait":"Lanes","entry":"kind_of_wait":"Timer","entry":'
    b'"kind_of_wait":"Awaiting","entry":,"attempt":1,"kind":"event","arguments":{"@":[,"since_ms":17'
    b',"due_ms":null,"heartbeat_seconds":null,"heartbeat_due_ms":null,"target":"","submitted":null,'
    b'"is_begun":false,"poll_due_ms":null,"polls":0,"credentials":null}}'
    b'"kind_of_wait":"Attempt","entry":,"attempt":1,"kind":"task","target":"","arguments":{"@":['
    b',"timeout_seconds":null,"due_ms":17,"claim":{"owner":"","message":"","receive_count":1,'
    b'"until_ms":17},"takeovers":0,"is_unknown":false,"heartbeat_seconds":null,"credentials":null'
    b'}}],"resting":[],'
    b'{"id":"","owner":null,"position":"","input":{"@":[,"variables":{},"previous":'
    b',"entry_previous":,"entered_event":,"entered_ms":17,"cancelled":null,"retries":[],'
    b'"deadlines":[],"waiting":{'
    b'{"run":"01","name":"","workflow":"","definition":"","input":{"@":[,"started_ms":17,'
    b'"due_ms":null,"used_events":{},"last_event":,"status":"RUNNING","stopped_ms":null,'
    b'"output":null,"error":null,"cause":null,"next_entry":,"opened_at":0,"opened_ms":17,'
    b'"last_control":"","origin":null,"parent":null,"redrives":0,"stopping":null,"frames":['
    b'["ItemsAsked",["ChildrenStarted",["ChildEnded",["ResultsAsked",["ChildrenStopped",'
    b'["EvaluationFailed",["location":"","state":"An error occurred while executing the state \''
    b'["ExecutionFailed",["ExecutionAborted",["ExecutionTimedOut",["ExecutionRedriven",'
    b'["FailStateEntered",["TaskTimedOut",["TaskStateAborted",["WaitStateAborted",'
    b'["MapIterationFailed",["MapIterationAborted",["MapStateFailed",["MapStateAborted",'
    b'["ParallelStateFailed",["ParallelStateAborted",["LaneFailed",0,0,{},{"frame":"'
    b'["Polled",0,0,{},{"entry":,"polls":["HeartbeatSeen",0,0,{},{"beat":["TaskUnknown",0,0,{},{'
    b'["Stopping",0,0,{},{"control":"00","stopping":{"status":"ABORTED"["Claimed",0,0,{},{"claim":['
    b'["Closing",0,0,{},{"closing":{"then":"cancel"["Unwound",0,0,{},{"frame":"'
    b'["Cancelled",0,0,{},{"reason":{"error":"BlockTimeout","cause":"","deadline":'
    b'"States.Timeout"["UndoStarted",0,0,{},{"undo":,"assigned":{},"over":['
    b'["DeadlinePassed",0,0,{},{"assigned":{},"over":['
    b'["DeadlineSet",0,0,{},{"number":,"entry":,"due":17,"seconds":'
    b'["TaskSubmitted",{"resourceType":"holdfast","resource":"workflow:,"output":{"execution":"01'
    b'["RetryDelayed",0,0,{},{"entry":,"due":17,"retrier":0'
    b'"event.waitForTaskToken","region":"holdfast","parameters":{"event":"ask.waitForTaskToken"'
)
_WORDS_2: Final = _STATE_WORDS + _WORDS_1

#: The words of format 3 besides those of snapshots: the shapes of events in the order in which they
#: often follow each other, and the beginnings of columns.
_WORDS_3: Final = _STATE_WORDS + (
    b'["LambdaFunctionScheduled",0,["ActivityScheduled",0,["ItemsAsked",0,"entry","frame"],'
    b'["ChildrenStarted",0,"entry",["ResultsAsked",0,["ChildrenStopped",0,"children",'
    b'["MapRunUpdated",0,["ExecutionRedriven",0,["ExecutionTimedOut","error","cause",0],'
    b'["ExecutionAborted","error","cause",0],["Polled",0,"entry","polls",'
    b'["HeartbeatSeen",0,"beat",["TaskUnknown",0,["Claimed",0,"claim",'
    b'["Stopping",0,"control","stopping"],["Unwound",0,"frame",["Closing",0,"closing",'
    b'["UndoStarted",0,"undo","assigned","over"],["DeadlinePassed",0,"assigned","over"],'
    b'["DeadlineSet",0,"number","entry","due","seconds"],["Cancelled",0,"reason","over"],'
    b'["EvaluationFailed","error","cause","location","state",0],["LaneFailed",0,"frame"],'
    b'["MapStateAborted",0,"frame"],["ParallelStateAborted",0,"frame"],'
    b'["WaitStateAborted",0,"frame"],["TaskStateAborted",0,"frame"],["MapStateFailed",0],'
    b'["ParallelStateFailed",0],["MapIterationAborted","index","name",0,"frame"],'
    b'["MapIterationFailed","index","name",0,"frame"],'
    b'["TaskSubmitted","resourceType","resource","output",0],'
    b'["TaskTimedOut","resourceType","resource","error",0],'
    b'["TaskFailed","resourceType","resource","error","cause",0,"traceback","frame"],'
    b'["TaskFailed","resourceType","resource","error","cause",0],'
    b'["ExecutionFailed","error","cause",0],["FailStateEntered","name","input",0],'
    b'["RetryDelayed",0,"entry","due","retrier"],["ParallelStateEntered","name","input",0],'
    b'["ParallelStateStarted",0,"entry","count","concurrency","needed"],'
    b'["ParallelStateSucceeded",0],'
    b'["ParallelStateExited","name","output","assignedVariables",0],'
    b'["WaitStateEntered","name","input",0],["TimerSet",0,"entry","due","frame"],'
    b'["WaitStateExited","name","output",0],["Opened",0,"sequence"],'
    b'["TaskSucceeded","resourceType","resource","output",0,"event","expires"],'
    b'["TaskScheduled","resourceType","resource","region",'
    b'"parameters","timeoutInSeconds",0,"entry","attempt","claim"],'
    b'["TaskScheduled","resourceType","resource","region",'
    b'"parameters","timeoutInSeconds",0,"entry","attempt","frame"],'
    b'["MapStateEntered","name","input",0],'
    b'["MapStateStarted","length",0,"entry","items","concurrency"],'
    b'["TaskStarted","resourceType","resource",0,"frame"],'
    b'["TaskSucceeded","resourceType","resource","output",0,"frame"],'
    b'["TaskStateExited","name","output",0,"frame"],'
    b'["MapIterationSucceeded","index","name",0,"frame"],'
    b'["MapIterationStarted","index","name",0,"frame"],'
    b'["PassStateEntered","name","input",0,"frame"],'
    b'["PassStateExited","name","output","assignedVariables",0,"frame"],'
    b'["ChoiceStateEntered","name","input",0,"frame"],'
    b'["ChoiceStateExited","name","output",0,"frame"],'
    b'["TaskStateEntered","name","input",0,"frame"],'
    b'["TaskScheduled","resourceType","resource","region",'
    b'"parameters",0,"entry","attempt","claim","frame"],'
    b'["MapStateSucceeded",0],["MapStateExited","name","output","assignedVariables",0],'
    b'[[["ExecutionStarted","input",0,"run","workflow","definition","name"],'
    b'["PassStateEntered","name","input",0],'
    b'["PassStateExited","name","output","assignedVariables",0],'
    b'["ChoiceStateEntered","name","input",0],["ChoiceStateExited","name","output",0],'
    b'["TaskStateEntered","name","input",0],'
    b'["TaskScheduled","resourceType","resource","region",'
    b'"parameters",0,"entry","attempt","claim"],'
    b'[[["TaskStarted","resourceType","resource",0],'
    b'["TaskSucceeded","resourceType","resource","output",0],'
    b'["TaskStateExited","name","output","assignedVariables",0],'
    b'["TaskStateEntered","name","input",0],'
    b'["TaskScheduled","resourceType","resource","region",'
    b'"parameters",0,"entry","attempt","claim"],'
    b'[[["TaskStarted","resourceType","resource",0],'
    b'["TaskSucceeded","resourceType","resource","output",0],'
    b'["TaskStateExited","name","output",0],["SucceedStateEntered","name","input",0],'
    b'["SucceedStateExited","name","output",0],["ExecutionSucceeded","output",0]]'
    b",[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17],[0,1,2,3,4,1,2,3,4,5,6,7],[0,0,0,0,0,0,0,"
    b'0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],[0,0,0,0,0],["holdfast"],["task:"],["holdfast","holdf'
    b'ast","holdfast"],["task:,"event.waitForTaskToken"],[{"event":","Holdfast.Timeout","State'
    b's.Timeout"],[17,["if [null],[null],[{},{"id":"[{"@":[0,0]}],[{"@":[1,0]},{"@":[1,1]}],[{'
    b'"@":[2,0]}],[1,1,1,1,1,1],["0.0","0.1","0.2"],["1.0","1.1","1.2"],["2.0","2.1","2.2"],[0'
    b'],[1],[1],[{"@":[0,'
)

_WORDS: Final[Mapping[int, bytes]] = {1: _WORDS_1, 2: _WORDS_2, 3: _WORDS_3}


def compress(text: str, number: int) -> bytes:
    """Compress the text of a record of this format."""
    return _deflated(*_parts(text, number), number, zlib.Z_DEFAULT_STRATEGY)


def compress_well(text: str, number: int) -> bytes:
    """Compress the events of a record, which cost a write unit for each KB.

    A strategy of zlib changes the choice of matches and not the format, so every release can
    decompress the data. `Z_FILTERED` takes no short matches. It makes tokens and other random text
    10 % smaller, because a match of three random characters costs more bits than the characters
    themselves. It makes ordinary text 4 % larger.
    """
    rest, digits = _parts(text, number)
    strategies = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED)
    return min((_deflated(rest, digits, number, one) for one in strategies), key=len)


def _parts(text: str, number: int) -> tuple[bytes, bytes]:
    """Return what zlib compresses, and what follows it."""
    rest, digits = (text, b"") if number < _HEX_FORMAT else _without_hex(text)
    return rest.encode(), digits


def _deflated(rest: bytes, digits: bytes, number: int, strategy: int) -> bytes:
    compressor = zlib.compressobj(6, strategy=strategy, zdict=_WORDS[number])
    return compressor.compress(rest) + compressor.flush() + digits


def inflate(data: bytes, number: int) -> str:
    """Decompress the data. Raises ValueError for data that ends too early, or is followed by other
    bytes.
    """
    reader = zlib.decompressobj(zdict=_WORDS[number])
    text = reader.decompress(data).decode()
    if not reader.eof or (reader.unused_data and number < _HEX_FORMAT):
        raise ValueError("not what was compressed")
    return text if number < _HEX_FORMAT else _with_hex(text, reader.unused_data)


#: Hexadecimal text of an even length: digests, tokens, labels. The shortest is that of 16 bytes.
_HEX: Final = re.compile(r"(?:[0-9a-f]{2}){16,}")
#: The place of such a text, with the number of its bytes. No JSON text has this control character.
_HEX_PLACE: Final = re.compile("\x01([0-9]+);")


def _without_hex(text: str) -> tuple[str, bytes]:
    """Return the text without its hexadecimal parts, and their bytes with a checksum. zlib needs
    about 4.4 bits for a hexadecimal digit, because its code has the characters of the other text,
    too.
    """
    digits = b"".join(map(bytes.fromhex, _HEX.findall(text)))
    if not digits:
        return text, b""
    rest = _HEX.sub(lambda found: f"\x01{len(found[0]) // 2};", text)
    return rest, digits + _checksum(digits)


def _with_hex(text: str, data: bytes) -> str:
    """Return the text with its hexadecimal parts. Raises ValueError for data of another length, or
    with another checksum.
    """
    size = sum(map(int, _HEX_PLACE.findall(text)))
    digits = data[:size]
    if data != (digits + _checksum(digits) if size else b""):
        raise ValueError("not what was compressed")
    rest = BytesIO(digits)
    return _HEX_PLACE.sub(lambda found: rest.read(int(found[1])).hex(), text)


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")
