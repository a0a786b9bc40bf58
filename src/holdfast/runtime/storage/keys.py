"""Every key of every item, message and blob, and the ids in them. Layout: docs/reference/log.md.

Each key begins with the tenant, except in the sweeper's partitions, whose keys begin with `~`. The
tenant comes from the verified identity of the caller and never from the body of a request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Any, Final

from holdfast.core.decision import iso_time
from holdfast.core.run_ids import (
    ALPHABET,
    CHANCE_CHARACTERS,
    MAC_CHARACTERS,
    SPREAD_CHARACTERS,
    TIME_CHARACTERS,
    digits,
    number,
    run_of_map_run,
)
from holdfast.errors import RequestError
from holdfast.limits import (
    BUSINESS_KEY_CHARACTERS_MAX,
    NAME_CHARACTERS_MAX,
    RUN_CHARACTERS_MAX,
)
from holdfast.runtime.storage.json_values import is_unicode
from holdfast.runtime.storage.spread import SEARCH, Spread

TENANT_DEFAULT: Final = "default"
ONLY: Final = "-"
QUARANTINE: Final = "~hurt"
STACK_CONTROL: Final = "~ctl"

# The names `.` and `..` are not allowed. A client would remove them from the path of a URL and
# address another resource.
_NAME: Final = re.compile(rf"(?!\.\.?\Z)[A-Za-z0-9_.\-]{{1,{NAME_CHARACTERS_MAX}}}")
# The characters that AWS refuses in names (AWS docs, CreateStateMachine). They are white space,
# brackets, wildcards, control characters and the others in this pattern.
_REFUSED_IN_MACHINE_NAMES: Final = re.compile(
    '[\\s<>{}\\[\\]?*"#%\\\\^|~`$&,;:/\x00-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff\U0010ffff]'
)
# A number must be exactly as `child_run` writes it. Otherwise "01" and "1" would name the same
# execution.
_NUMBER: Final = "(0|[1-9][0-9]{0,8})"
_RUN: Final = re.compile(rf"[{ALPHABET}]{{26}}(\.{_NUMBER}\.{_NUMBER})*")
_TENANT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

_MAP_RUN: Final = "mapRun:"


def is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_machine_name(value: Any) -> bool:
    """Return True when AWS accepts it as the name of a state machine, activity or execution.

    The letters of every script are allowed. Characters that keys use ("#") are not.
    """
    is_short = isinstance(value, str) and 1 <= len(value) <= NAME_CHARACTERS_MAX
    return is_short and not _REFUSED_IN_MACHINE_NAMES.search(value)


def require_name(name: str, what: str) -> str:
    """Return the name. Raises RequestError HF201 for an invalid one."""
    if not is_name(name):
        raise RequestError(
            "HF201",
            f"{what} {str(name)[:NAME_CHARACTERS_MAX]!r} is not a name",
            help=f"use 1 to {NAME_CHARACTERS_MAX} of the characters A-Z a-z 0-9 _ . -, not . or ..",
        )
    return name


def require_execution_name(name: str) -> str:
    """Return the name. Raises RequestError HF201, also for a name in the form of an id: an
    execution with such a name could never be found by it.
    """
    require_name(name, "the name of the execution")
    if is_run(name):
        raise RequestError(
            "HF201",
            f"the name of the execution {name!r} has the form of an execution's id",
            help="choose a name of another length, or with another character in it",
        )
    return name


def require_business_key(key: str) -> str:
    is_text = isinstance(key, str) and is_unicode(key)
    if not is_text or not 1 <= len(key) <= BUSINESS_KEY_CHARACTERS_MAX:
        raise RequestError(
            "HF202",
            f"the key of an event has to be text of 1 to {BUSINESS_KEY_CHARACTERS_MAX} characters",
        )
    return key


def is_tenant(text: str) -> bool:
    """Return True for a valid tenant name. A name with "#" could form the keys of another tenant's
    partitions.
    """
    return _TENANT.fullmatch(text) is not None


# -- run ids ---------------------------------------------------------------------------------------


def mint_run(tenant: str, now_ms: int, chance: bytes, secret: bytes, spread: int = 0) -> str:
    """Return a new id of 26 characters: the spread, the time, random bytes, and a MAC. By the MAC
    the API recognises ids that it gave to this tenant.
    """
    body = (
        digits(spread, SPREAD_CHARACTERS)
        + digits(now_ms, TIME_CHARACTERS - SPREAD_CHARACTERS)
        + digits(int.from_bytes(chance, "big"), CHANCE_CHARACTERS)
    )
    return body + _mac(tenant, body, secret)


def is_minted(tenant: str, run: str, secret: bytes) -> bool:
    """Return True when the id was created for the tenant with this secret. With an empty secret the
    result is always False, so a host without keys accepts no id.
    """
    body, mac = run[:-MAC_CHARACTERS], run[-MAC_CHARACTERS:]
    is_one = bool(secret) and is_run(run) and "." not in run
    return is_one and hmac.compare_digest(mac, _mac(tenant, body, secret))


def is_run(text: str) -> bool:
    return len(text) <= RUN_CHARACTERS_MAX and _RUN.fullmatch(text) is not None


def minted_ms(run: str) -> int:
    """Return the time of creation that the id contains, in ms."""
    return number(run[SPREAD_CHARACTERS:TIME_CHARACTERS])


def _mac(tenant: str, body: str, secret: bytes) -> str:
    digest = hmac.new(secret, f"run:{tenant}.{body}".encode(), hashlib.sha256).digest()
    return digits(int.from_bytes(digest[:4], "big"), MAC_CHARACTERS)


# -- the names of executions and map runs ----------------------------------------------------------


def map_runs(tenant: str, text: str, secrets: Iterable[bytes]) -> list[tuple[str, int]]:
    """Return the execution and the entry number of the map run that the text may name, one pair for
    each secret that may have signed the id.
    """
    found = run_of_map_run(text)
    if found is None:
        return []
    body, entry = found
    return [(body + _mac(tenant, body, secret), entry) for secret in secrets]


def run_of_child(text: str) -> str | None:
    """Return the id of the child execution that the text names; None for other text."""
    run = text.replace("-", ".")
    return run if is_run(run) and "." in run else None


# -- partitions ------------------------------------------------------------------------------------


def execution(tenant: str, run: str) -> str:
    return f"{tenant}#{run}"


def name(tenant: str, workflow: str, execution_name: str) -> str:
    return f"{tenant}#n#{workflow}#{execution_name}"


def inbox(tenant: str, run: str) -> str:
    return f"{tenant}#in#{run}"


def answer(entry: int, attempt: int) -> str:
    return f"t#{entry}.{attempt}"


def control(control_id: str) -> str:
    return f"x#{control_id}"


CONTROL_PREFIX: Final = "x#"
HEARTBEAT_PREFIX: Final = "h#"


def heartbeat(entry: int) -> str:
    return f"{HEARTBEAT_PREFIX}{entry}"


def taken(entry: int, attempt: int) -> str:
    """Return the key of the item that names the poller of an activity's task."""
    return f"{TAKEN_PREFIX}{entry}.{attempt}"


TAKEN_PREFIX: Final = "s#"


def event(tenant: str, event_name: str, business_key: str) -> str:
    """Return the key of an event's item. The business key is hashed, so it may be any text."""
    digest = hashlib.sha256(business_key.encode()).hexdigest()[:32]
    return f"{tenant}#ev#{event_name}#{digest}"


def slot(tenant: str, workflow: str, business_key: str) -> str:
    """Return the key of the row that says which execution of a keyed workflow has the business
    key.
    """
    digest = hashlib.sha256(business_key.encode()).hexdigest()[:32]
    return f"{tenant}#key#{workflow}#{digest}"


#: The sort key of the row with the business key, in the inbox of an execution of a keyed workflow.
BUSINESS_KEY: Final = "k"


def request(tenant: str, request_id: str) -> str:
    return f"{tenant}#rq#{request_id}"


REPLY: Final = "reply"
EVENT_PREFIX: Final = "e#"
REGISTRATION_PREFIX: Final = "w#"


def stored_event(event_id: str) -> str:
    return EVENT_PREFIX + event_id


def registration(run: str) -> str:
    return REGISTRATION_PREFIX + run


def event_pointers(event_partition: str) -> str:
    """Return the beginning of the sort keys of pointers to the events of one partition, in the
    inbox of an execution.
    """
    return f"{EVENT_PREFIX}{text_hash(event_partition)}#"


def definition(tenant: str, definition_hash: str) -> str:
    return f"{tenant}#def#{definition_hash}"


def machines(tenant: str) -> str:
    """Return the partition of the API's state machines, which are sorted by name. Such a name
    contains no "#".
    """
    return f"{tenant}#sm"


def machine(tenant: str, machine_name: str) -> str:
    """Return the partition of one state machine's versions and aliases."""
    return f"{tenant}#sm#{machine_name}"


VERSION_PREFIX: Final = "v#"
ALIAS_PREFIX: Final = "a#"


def version(number: int) -> str:
    return f"{VERSION_PREFIX}{number:09d}"


def alias(alias_name: str) -> str:
    return ALIAS_PREFIX + alias_name


def definition_texts(tenant: str, definition_hash: str) -> str:
    """Return the key of the original text of one definition, which is kept unchanged."""
    return f"{tenant}#text#{definition_hash}"


def graphs(tenant: str) -> str:
    """Return the partition of the graphs that were registered at run time, by name."""
    return f"{tenant}#gr"


def activities(tenant: str) -> str:
    return f"{tenant}#ac"


def questions(tenant: str, shard: int) -> str:
    """Return one of the partitions of open questions to people, sorted by assignee and age."""
    return f"{tenant}#ask#{shard}"


def questions_of(assignee: str) -> str:
    """Return the beginning of the sort keys of one assignee's questions."""
    return f"{text_hash(assignee)}#"


def question(assignee: str, since_ms: int, run: str, entry: int, attempt: int) -> str:
    return f"{questions_of(assignee)}{since_ms:015d}#{run}#{entry}.{attempt}"


def search_values(tenant: str, attribute: str, run: str) -> str:
    """Return the partition with the execution's value of a search attribute."""
    return _search(tenant, attribute, SEARCH.of(run))


def search_partitions(tenant: str, attribute: str, spread: Spread) -> list[str]:
    """Return the partitions of executions with a search attribute, sorted by its value."""
    return [_search(tenant, attribute, shard) for shard in range(SEARCH.count(spread.read))]


def _search(tenant: str, attribute: str, shard: int) -> str:
    return f"{tenant}#at#{attribute}#{shard}"


def search_changes(tenant: str, run: str) -> str:
    """Return the key of an execution's present search attributes, if it has changed them."""
    return f"{tenant}#atn#{run}"


def activity_tasks(tenant: str, activity_name: str) -> str:
    """Return the partition of one activity's free tasks, sorted by due time."""
    return f"{tenant}#act#{activity_name}"


def pool_tasks(tenant: str, pool: str) -> str:
    """Return the partition of one pool's free tasks, sorted by due time. An activity may have the
    name of a pool, and its pollers must not take the tasks of the pool.
    """
    return f"{tenant}#pot#{pool}"


def chosen_pools(tenant: str) -> str:
    """Return the partition of the pools that executions have chosen at run time, by their names."""
    return f"{tenant}#cpool"


def pool_workers(tenant: str, pool: str) -> str:
    """Return the partition of the workers that have announced themselves to one pool."""
    return f"{tenant}#pool#{pool}"


def activity_task(due_ms: int, run: str, entry: int, attempt: int) -> str:
    return f"{due_ms:015d}#{run}#{entry}.{attempt}"


_MACHINE_PREFIX: Final = "stateMachine:"


def machine_workflow(machine_name: str) -> str:
    """Return the name that stands for a state machine where a workflow's name is expected. It
    contains a ":", which workflow names do not.
    """
    return _MACHINE_PREFIX + machine_name


def is_machine_workflow(workflow: str) -> bool:
    """Return True for a name that stands for a state machine of the Step Functions API."""
    return workflow.startswith(_MACHINE_PREFIX)


def map_run_workflow(map_run_arn: str) -> str:
    """Return the workflow name under which the child executions of a map run are listed."""
    return _MAP_RUN + map_run_arn.partition(":mapRun:")[2]


def is_map_run_workflow(workflow: str) -> bool:
    return workflow.startswith(_MAP_RUN)


def is_list_workflow(value: Any) -> bool:
    """Return True when the name can have list entries: a workflow, a state machine, or a
    map run.
    """
    if not isinstance(value, str) or "#" in value:
        return False
    kind, _, rest = value.partition(":")
    return is_name(value) or (bool(rest) and kind in {"stateMachine", "mapRun"})


def starts(tenant: str, workflow: str, shard: int) -> str:
    """Return the partition of start requests, sorted by `list_sort`. The shard is one of
    `MACHINE_STARTS`.
    """
    return f"{tenant}#st#{workflow}#{shard}"


def redriven(tenant: str, workflow: str) -> str:
    """Return the partition of recent redrives, sorted as the list is."""
    return f"{tenant}#rds#{workflow}"


def pending_starts(shard: int) -> str:
    """Return the partition of accepted starts, oldest first. Their executions may not have
    begun.
    """
    return f"~start#{shard}"


def pending_start(at_ms: int, tenant: str, run: str) -> str:
    return later_start(at_ms, f"{tenant}#{run}")


def later_start(at_ms: int, whose: str) -> str:
    """Return the key of the same row at another time. `whose` is the rest of the row's key, which
    is known even when the row is damaged.
    """
    return f"{at_ms:015d}#{whose}"


#: The partition of the sweeper's positions: for each shard of the rows of starts, one item says how
#: far the sweeper has read.
STARTS_READ: Final = "~start"


def starts_read(shard: int) -> str:
    return f"{shard:02d}"


def blob(tenant: str, run: str, digest: str) -> str:
    return f"{tenant}/{run}/{digest}"


def cached(tenant: str, digest: str) -> str:
    """Return the key of a task's cached result, by the hash of the task and its arguments."""
    return f"{tenant}#ca#{digest}"


def early_events(tenant: str) -> str:
    return f"{tenant}#early"


# -- due rows --------------------------------------------------------------------------------------


#: This text sorts before every due row, whose key begins with 15 digits.
BEFORE_DUE_ROWS: Final = "0"


def due_partition(shard: int) -> str:
    return f"~due#{shard}"


def watch_row(look_ms: int, tenant: str, run: str) -> str:
    return f"{look_ms:015d}#{tenant}#{run}#w"


def asking_row(look_ms: int, tenant: str, run: str, sequence: int) -> str:
    """Return the key of a watchdog row for one record that is expected. It differs from the key of
    the execution's other row, so that neither replaces the other when both move to the same time.
    """
    return f"{look_ms:015d}#{tenant}#{run}#a{sequence}"


def is_asking(row: str) -> bool:
    return _kind(row).startswith("a")


def watched_by(row: str) -> str | None:
    """Return `tenant#run` of a watchdog row of either kind; None for the row of a timer."""
    is_watching = _kind(row) == "w" or is_asking(row)
    return row.partition("#")[2].rpartition("#")[0] if is_watching else None


def _kind(row: str) -> str:
    """Return the kind of a watchdog row; for a timer the entry number."""
    return row.rpartition("#")[2]


def timer_row(look_ms: int, tenant: str, run: str, entry: int) -> str:
    return f"{look_ms:015d}#{tenant}#{run}#t#{entry}"


def schedules(tenant: str) -> str:
    """Return the partition of a tenant's schedules, sorted by name."""
    return f"{tenant}#sch"


def schedule_row(look_ms: int, tenant: str, schedule: str) -> str:
    return f"{look_ms:015d}#{tenant}#{schedule}#s"


def reminder_row(at_ms: int, tenant: str, run: str, entry: int, attempt: int) -> str:
    return f"{at_ms:015d}#{tenant}#{run}#r{entry}.{attempt}"


def due_until(at_ms: int) -> str:
    """Return the greatest sort key of a row that is due by `at_ms`."""
    # "$" is the character after "#", so this key is greater than every key of the same time.
    return f"{at_ms:015d}$"


# -- the archive -----------------------------------------------------------------------------------


def archive_partition(shard: int) -> str:
    """Return the partition of ended executions that are not archived yet. The shard is one of
    `DUE`.
    """
    return f"~archive#{shard}"


def archive_row(due_ms: int, tenant: str, run: str) -> str:
    return later_start(due_ms, f"{tenant}#{run}")


def archive_prefix(tenant: str, run: str) -> str:
    """Return how the keys of an execution's objects in the archive begin. The day is that of its
    start; of a child, that of the execution at the top, whose time is in the id.
    """
    return f"{tenant}/day={iso_time(minted_ms(run))[:10]}/{run}-"


def archive_key(tenant: str, run: str, sequence: int) -> str:
    """Return the key of the object for the end in this record: a retry makes another one."""
    return f"{archive_prefix(tenant, run)}{sequence:09d}.jsonl.gz"


#: The prefix of the rows in the inbox of an execution that name its forks.
FORK_PREFIX: Final = "f#"


def fork(run: str) -> str:
    return f"{FORK_PREFIX}{run}"


# -- gates -----------------------------------------------------------------------------------------

#: The partition of the changes that operators have made to limits, one item for each limit.
LIMIT_SETTINGS: Final = "~lim"


def limit_changes(limit: str) -> str:
    """Return the partition of the older changes of one limit, which later changes have replaced."""
    return f"~limc#{limit}"


def limit_change(version: int) -> str:
    return f"{version:010d}"


def gate(gate_id: str) -> str:
    """Return the partition of one gate's item. A gate belongs to the stack, not to a tenant."""
    return f"~gate#{gate_id}"


def queue(gate_id: str) -> str:
    """Return the partition of the attempts that wait at one gate, sorted by their turn."""
    return f"~wait#{gate_id}"


def queue_row(place: int, fair: str, started_ms: int, permit_id: str) -> str:
    """Return the sort key of a row in a queue. `place` is 0 for an attempt that goes first, else 1
    + the execution's priority.
    """
    return f"{place:02d}#{fair}#{started_ms:015d}#{permit_id}"


def text_hash(text: str) -> str:
    """Return a hash of 16 characters that replaces a text in a key of limited length."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


# -- listing ---------------------------------------------------------------------------------------


def list_sort(started_ms: int, run: str) -> str:
    return f"{started_ms:015d}#{run}"
