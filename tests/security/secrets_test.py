"""Twenty secrets through the whole API: tasks see them, and no stored or printed text contains
them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any, Final

import pytest

from holdfast.api.sealing import NO_VAULT, LocalVault, Vault
from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast.errors import RequestError, VaultFault
from holdfast.runtime.effects import Effect, RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast.sealed import Sealed
from holdfast.stepfunctions.arns import ArnRegion
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.tasks import send_task_success
from holdfast_simulator.invariants import histories
from holdfast_simulator.world import SimulatorWorld, When
from tests.builders import CHANCE, KEYS
from tests.security import secret_flows

CANARIES: Final = [f"canary-{number:02}-" + chr(0xE4) * number for number in range(20)]
TENANT: Final = "acme"


def compiled(workflow: Any) -> tuple[Any, dict[str, Any]]:
    found = compile_workflow(workflow)
    return found.asl, json.loads(found.map_text)


class Bank:
    """The workflows in a simulated world. Whatever is kept, sent or answered is noted as text."""

    def __init__(self, vault: Vault) -> None:
        self.deployed = Deployment.from_modules([secret_flows.__name__], compiled, vault)
        programs = self.deployed.programs()
        self.front = self.deployed.front(programs, KEYS)
        setting = self.deployed.setting(programs, lambda: KEYS)
        self.world = SimulatorWorld(setting, self.deployed.run_task, self._note)
        self.noted: list[str] = []

    def _note(self, _world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before":
            self.noted.append(repr(effect))

    def call(self, handler: Any) -> Any:
        answer = self.world.call(handler)
        self.noted.append(json.dumps(answer, ensure_ascii=False))
        return answer

    def start(self, workflow: str, given: Any, name: str | None = None) -> str:
        request = {"workflow": workflow, "input": given, "name": name}
        started = self.call(self.front.start(TENANT, request, CHANCE))
        self.world.run(until_ms=self.world.now_ms + 1_000)
        return str(started["execution"])

    def describe(self, run: str) -> Any:
        return self.call(self.front.describe(TENANT, run))

    def event(self, data: Any) -> Any:
        request = {"name": "paid", "key": "ann", "data": data, "id": "e1"}
        return self.call(self.front.event(TENANT, request, CHANCE))

    def everything(self) -> str:
        """Return everything written, and the logs unpacked: records are compressed."""
        logs = [repr((history.state, history.records)) for history in histories(self.world)]
        stored = [repr(item) for table in ("mail", "executions") for item in self._items(table)]
        return "\n".join([*self.noted, *logs, *stored])

    def _items(self, table: Any) -> Any:
        return self.world.services.items(table)


@pytest.fixture
def seen() -> Iterator[list[str]]:
    secret_flows.seen.clear()
    yield secret_flows.seen
    secret_flows.seen.clear()


def given(canaries: list[str]) -> dict[str, Any]:
    login = {"user": "ann", "password": canaries[0], "pin": canaries[1]}
    return {"login": login, "spare": canaries[2], "others": canaries[5:]}


def visited(bank: Bank) -> str:
    """One execution that has used all twenty, from its start to its end."""
    run = bank.start("visit", given(CANARIES), "visit-1")
    bank.event({"user": "ann", "password": CANARIES[3]})
    bank.world.run(until_ms=bank.world.now_ms + 1_000)
    [wait] = bank.describe(run)["waits"]
    answer = {"token": wait["token"], "output": {"pin": CANARIES[4]}}
    bank.call(bank.front.answer(TENANT, answer))
    bank.call(bank.front.answer(TENANT, answer))
    bank.world.run()
    return run


def test_tasks_see_every_secret_and_nothing_else_does(
    seen: list[str], caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    bank = Bank(LocalVault())
    run = visited(bank)

    shown = bank.describe(run)
    assert shown["status"] == "SUCCEEDED"
    assert set(CANARIES) - {CANARIES[1]} <= set(seen)
    bank.call(bank.front.history(TENANT, run))
    bank.call(bank.front.executions(TENANT, {}))
    bank.call(bank.front.doctor(TENANT, {}, is_repairing=False))
    told = bank.everything() + caplog.text + "".join(capsys.readouterr())
    assert "sign_in" in told
    assert [canary for canary in CANARIES if canary in told or ascii(canary)[1:-1] in told] == []
    assert shown["input"]["login"]["password"] == f"<secret {len(CANARIES[0].encode())} bytes>"
    assert shown["output"]["pin"] == f"<secret {len(CANARIES[4].encode())} bytes>"


def test_no_answer_of_the_door_holds_a_sealed_text() -> None:
    bank = Bank(LocalVault())
    run = visited(bank)
    answers = [bank.describe(run), bank.call(bank.front.history(TENANT, run))]
    assert "<secret 10 bytes>" in json.dumps(answers)
    assert "holdfast.secret" not in json.dumps(answers)


def test_an_exception_that_quotes_a_secret_is_reported_without_it() -> None:
    bank = Bank(LocalVault())
    run = bank.start("fail", {"token": CANARIES[7]})
    bank.world.run()
    size = len(CANARIES[7].encode())
    assert bank.describe(run)["cause"] == f"the door does not take <secret {size} bytes>"
    assert CANARIES[7] not in bank.everything()


def test_a_type_that_the_compiler_cannot_look_into_is_sealed_all_the_same() -> None:
    bank = Bank(LocalVault())
    run = bank.start("pair_up", {"token": CANARIES[3]})
    bank.world.run()
    assert bank.describe(run)["output"] == {"first": f"<secret {len(CANARIES[3].encode())} bytes>"}
    assert CANARIES[3] not in bank.everything()


class Dice:
    """Seals each time in another way, as KMS does."""

    def __init__(self) -> None:
        self.count = 0
        self.own = LocalVault()

    def seal(self, tenant: str, text: str) -> str:
        self.count += 1
        return self.own.seal(tenant, f"{self.count:04}{text}")

    def open(self, tenant: str, sealed: Sealed) -> str:
        return self.own.open(tenant, sealed)[4:]


def test_a_secret_that_is_sent_twice_is_accepted_twice() -> None:
    bank = Bank(Dice())
    run = visited(bank)
    again = bank.start("visit", given(CANARIES), "visit-1")
    assert again == run
    payload = {"user": "ann", "password": CANARIES[3]}
    assert bank.event(payload)["event"] == "e1"
    with pytest.raises(RequestError, match="has other data"):
        bank.event({**payload, "user": "bob"})
    with pytest.raises(RequestError, match="has another input"):
        other = given(CANARIES)
        bank.start("visit", {**other, "others": other["others"][1:]}, "visit-1")


def test_a_large_answer_with_a_secret_leaves_no_clear_text_behind_when_it_comes_too_late() -> None:
    bank = Bank(LocalVault())
    run = bank.start("visit", {**given(CANARIES), "others": []})
    bank.event({"user": "ann", "password": CANARIES[3]})
    bank.world.run(until_ms=bank.world.now_ms + 1_000)
    [wait] = bank.describe(run)["waits"]
    first = {"token": wait["token"], "output": {"pin": CANARIES[4]}}
    bank.call(bank.front.answer(TENANT, first))
    bank.world.run(until_ms=bank.world.now_ms + 1_000)
    late = {"token": wait["token"], "output": {"pin": CANARIES[9] * 20_000}}
    with pytest.raises(RequestError, match="another answer was given before"):
        bank.call(bank.front.answer(TENANT, late))
    assert CANARIES[9] not in bank.everything()


def test_a_question_of_a_workflow_is_not_answered_past_its_type_by_the_api_of_step_functions() -> (
    None
):
    bank = Bank(LocalVault())
    run = bank.start("visit", {**given(CANARIES), "others": []})
    bank.event({"user": "ann", "password": CANARIES[3]})
    bank.world.run(until_ms=bank.world.now_ms + 1_000)
    [wait] = bank.describe(run)["waits"]
    service = Service(
        bank.front.programs, KEYS, TENANT, ArnRegion("eu-west-1", "111122223333"), None
    )
    for output in (CANARIES[9], CANARIES[9] * 20_000):
        request = {"taskToken": wait["token"], "output": json.dumps({"pin": output})}
        with pytest.raises(StatesFault, match="Invalid Token"):
            bank.call(send_task_success(service, request, CHANCE))
    assert CANARIES[9] not in bank.everything()
    bank.call(bank.front.answer(TENANT, {"token": wait["token"], "output": {"pin": CANARIES[4]}}))
    bank.world.run()
    assert bank.describe(run)["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        (LocalVault().seal(TENANT, "stolen"), "cannot be given from outside"),
        ("x" * 4_097, "at most 4096 bytes"),
        (5, "valid string"),
    ],
)
def test_the_refusal_of_a_secret_gives_the_reason_and_never_the_secret(
    secret: Any, expected: str
) -> None:
    bank = Bank(LocalVault())
    with pytest.raises(RequestError, match=expected) as refused:
        bank.start("lend", {"token": secret})
    assert refused.value.code == "HF210"
    assert str(secret) not in str(refused.value)


def test_a_stack_without_a_key_refuses_secrets_and_names_the_missing_key() -> None:
    bare = Bank(NO_VAULT)
    with pytest.raises(VaultFault, match="no key for secrets") as refused:
        bare.start("lend", {"token": CANARIES[0]})
    assert refused.value.code == "HF327"
    assert CANARIES[0] not in bare.everything()


class Lost:
    """A vault whose key is gone since the secret was sealed."""

    def seal(self, tenant: str, text: str) -> str:
        return LocalVault().seal(tenant, text)

    def open(self, tenant: str, sealed: Sealed) -> str:
        del tenant, sealed
        raise VaultFault("HF323", "KMS decrypt was refused: DisabledException")


@pytest.mark.parametrize(
    ("workflow", "given"), [("fail", {"token": "x"}), ("visit", given(CANARIES))]
)
def test_a_task_whose_secret_cannot_be_opened_fails_by_a_name_of_its_own(
    workflow: str, given: Any
) -> None:
    bank = Bank(Lost())
    run = bank.start(workflow, given)
    bank.world.run()
    shown = bank.describe(run)
    assert (shown["status"], shown["error"]) == ("FAILED", "Holdfast.SecretUnavailable")
    assert shown["cause"] == "KMS decrypt was refused: DisabledException"


def run_use(deployed: Deployment, tenant: str, token: str) -> TaskResult:
    return deployed.run_task(
        RunTask(
            name="use",
            kind="task",
            arguments={"token": token, "several": []},
            tenant=tenant,
            run="r",
            run_name=None,
            workflow="lend",
            entry=0,
            attempt=1,
            deadline_ms=0,
        )
    )


def test_a_value_that_one_tenant_has_sealed_is_closed_to_all_others(seen: list[str]) -> None:
    deployed = Bank(LocalVault()).deployed
    sealed = LocalVault().seal("acme", "open sesame")
    assert run_use(deployed, "acme", sealed) == TaskSucceeded(0)
    assert run_use(deployed, "globex", sealed) == TaskFailed(
        "Holdfast.SecretUnavailable", "a secret was sealed with another key or for another tenant"
    )
    assert seen == ["open sesame"]


def test_a_secret_that_is_passed_on_is_not_sealed_again(seen: list[str]) -> None:
    dice = Dice()
    bank = Bank(dice)
    run = bank.start("lend", {"token": CANARIES[2]})
    bank.world.run()
    assert bank.describe(run)["status"] == "SUCCEEDED"
    assert (seen, dice.count) == ([CANARIES[2]], 1)
