"""The result of a trial: everything stored, compared with the observations of every process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.process import complaints, doubles, evidence, last_fault, redrive
from tests.process.chaos import Harm
from tests.process.plan import calls_of
from tests.process.scene import Scene
from tests.process.server import JOURNAL_PATH
from tests.process.stack import Stack


@dataclass
class Outcome:
    """The result of a trial. `violations`: execution, or another subject, and the violation."""

    violations: list[tuple[str, str]] = field(default_factory=list)

    def note(self, figures: Mapping[str, Any]) -> None:
        """Print the results of a long trial as soon as they exist."""
        for what, figure in figures.items():
            print(f"{what}: {figure}", flush=True)

    def fail(self, what: str, text: str) -> None:
        self.violations.append((what, text))


def judge(stack: Stack, harms: list[Harm], last_at: float, outcome: Outcome) -> None:
    """When all is over, or should be. `last_at`: when the last fault was."""
    journal = stack.asked(JOURNAL_PATH)
    _, found = stack.look()
    scene = Scene(
        found,
        journal["arrived"],
        journal["digests"],
        journal["starts"],
        tuple(stack.ledger()),
        tuple(stack.answers()),
        tuple(harms),
        last_at,
    )
    written = (journal["writers"], journal["arrived"])
    outcome.violations += evidence.violations(found, stack.plan, *written)
    for attempt in evidence.unasked_tasks(found, list(scene.beginnings)):
        outcome.fail(attempt.split()[0], f"attempt {attempt} ran, and no log asked for it")
    outcome.violations += doubles.violations(scene)
    outcome.violations += last_fault.violations(scene)
    answered = {answer.key for answer in scene.answers}
    for call in calls_of(stack.plan):
        if call.key not in answered:
            outcome.fail(call.action.name, f"its {call.action.kind} {call.key} was never answered")
    outcome.note(_figures(scene, journal))
    outcome.note(last_fault.figures(scene))
    outcome.note({"violations before the redrive": len(outcome.violations)})


def _figures(scene: Scene, journal: Mapping[str, Any]) -> dict[str, Any]:
    logs = scene.found.logs.values()
    events = [event for log in logs for event in log.events]
    return {
        "executions": sum("." not in log.run for log in logs),
        "children": sum("." in log.run for log in logs),
        "records": sum(len(log.records) for log in logs),
        "attempts that a record claims": sum(
            event.type == "TaskScheduled" and "claim" in event.holdfast for event in events
        ),
        "tasks begun": len(scene.ledger),
        "of them begun again": len(scene.ledger) - len(scene.beginnings),
        "taken over from a lost worker": sum(
            event.type == "Claimed" and event.holdfast["takeovers"] > 0 for event in events
        ),
        "started by two callers or again": sum(answer.is_start for answer in scene.answers)
        - len(scene.found.names),
        "puts refused to another writer": journal["refused_puts"],
        "dead letters revived": journal["requests"].get("DeleteMessage (dead letter)", 0),
        "requests to the cloud": sum(journal["requests"].values()),
        "of them": dict(sorted(journal["requests"].items())),
    }


# -- dead letters, long after ----------------------------------------------------------------------


def judge_redrive(stack: Stack, outcome: Outcome) -> None:
    """I19: a redriven message has no effect on an execution that has ended."""
    queues = redrive.Queues.of(stack.site)
    if not queues.settle():
        outcome.fail("queues", f"they hold messages {redrive.SETTLE_SECONDS} s after all ends")
    bodies = stack.asked(JOURNAL_PATH)["messages"][: stack.options.redrives]
    if not bodies:
        return
    before, ran_before = redrive.digests(stack.look()[0]), len(stack.ledger())
    servants = stack.of_kind("worker", "single", "sweeper")
    for role in servants:
        stack.order("down", role)
    dead = redrive.let_die(queues, bodies)
    by_hand = redrive.move_back(queues, dead // 2)
    for role in servants:
        stack.order("up", role)
    if not queues.settle():
        outcome.fail("queues", "redriven messages do not come to rest")
    executions, found = stack.look()
    after = redrive.digests(executions)
    for key in sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k)):
        outcome.fail(key.split()[0].partition("#")[2], f"a redrive changed record {key}")
    if len(stack.ledger()) != ran_before:
        outcome.fail("ledger", "a redrive ran tasks of executions that had ended")
    for run in evidence.stale_entries(found):
        outcome.fail(run, "it has ended and is still listed as RUNNING")
    for run in found.quarantined:
        outcome.fail(run, "a redriven message was quarantined")
    outcome.note(
        {
            "old messages that became dead letters": dead,
            "of them moved back by hand": by_hand,
            "of them revived by the sweeper": dead - by_hand,
        }
    )


# -- processes -------------------------------------------------------------------------------------


def judge_processes(stack: Stack, outcome: Outcome) -> None:
    """Check that the logs have no bug, and that no process ended by itself, except a caller after
    its last call.
    """
    found = list(complaints.complaints(stack.site.folder, stack.roles))
    outcome.violations += complaints.bugs(found)
    outcome.note({"faults told, by code": complaints.by_code(found)})
    for role, status in stack.order("ended", ""):
        if status != 0 or not role.startswith("caller"):
            outcome.fail(role, f"ended by itself with status {status}: see {role}.log")


def keep(stack: Stack, outcome: Outcome, folder: Path) -> None:
    """Leaves the whole log of each execution that a violation names."""
    _, found = stack.look()
    for what, _ in outcome.violations:
        log = found.logs.get(found.names.get(what, what))
        if log is not None:
            lines = [
                f"{record.sequence} {record.at_ms} {record.nonce} {record.message} {event}"
                for record in log.records
                for event in record.events
            ]
            (folder / f"log-{log.run}").write_text("\n".join(lines))
    lines = [f"{what}: {text}" for what, text in outcome.violations]
    (folder / "violations").write_text("\n".join(lines))
