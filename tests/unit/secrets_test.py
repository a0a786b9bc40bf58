"""`SecretStr` in a workflow: a sealed text in every JSON, the secret itself in a task's hands."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Any, Final

import pytest
from pydantic import BaseModel, Field, SecretStr, field_serializer

from holdfast.api.boundary import Boundary, Misfit, NoJson, normalise_payload, parse_payload
from holdfast.api.dag import dag, step
from holdfast.api.graph_model import from_input, from_step
from holdfast.api.sealing import LocalVault, Seals
from holdfast.asl.parsing.parse import definition_hash
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.errors import VaultFault
from holdfast.sealed import Sealed, hidden, parse_sealed
from holdfast.testing import World, real
from tests.security import secret_flows
from tests.security.secret_flows import Login, break_with, fail, lend, sign_in, use, visit

SESAME: Final = "open sesame"


def seals() -> Seals:
    return Seals(LocalVault(), "acme")


def sealed(text: str) -> str:
    return LocalVault().seal("acme", text)


class Deep(BaseModel):
    day: date
    logins: list[Login]
    by_name: dict[str, SecretStr]
    maybe: SecretStr | None = None
    short: Annotated[SecretStr, Field(max_length=11)]
    spare: SecretStr = SecretStr("the default")


@dataclass(frozen=True)
class Plain:
    key: SecretStr
    pair: tuple[SecretStr, int]


def take(deep: Deep, plain: Plain, note: str = "none") -> Deep:
    del plain, note
    return deep


DEEP: Final[dict[str, Any]] = {
    "day": "2026-01-02",
    "logins": [{"user": "ann", "password": SESAME, "pin": None}],
    "by_name": {"a": SESAME},
    "maybe": None,
    "short": SESAME,
}
GIVEN: Final[dict[str, Any]] = {"deep": DEEP, "plain": {"key": SESAME, "pair": [SESAME, 5]}}


def test_a_secret_is_sealed_wherever_it_stands_and_nothing_else_changes() -> None:
    normal = Boundary(take).normalise_arguments(GIVEN, seals())
    assert normal == {
        "deep": {
            "day": "2026-01-02",
            "logins": [{"user": "ann", "password": sealed(SESAME), "pin": None}],
            "by_name": {"a": sealed(SESAME)},
            "maybe": None,
            "short": sealed(SESAME),
            "spare": sealed("the default"),
        },
        "plain": {"key": sealed(SESAME), "pair": [sealed(SESAME), 5]},
        "note": "none",
    }
    assert SESAME not in json.dumps(normal)


def test_a_sealed_value_comes_back_as_the_authors_own_types() -> None:
    boundary = Boundary(take)
    values = boundary.parse_arguments(boundary.normalise_arguments(GIVEN, seals()), seals())
    deep, plain = values["deep"], values["plain"]
    assert deep.logins[0].password.get_secret_value() == SESAME
    assert deep.by_name["a"] == plain.key == plain.pair[0] == SecretStr(SESAME)
    assert type(deep.short) is SecretStr
    dumped = boundary.dump_result(deep, seals())
    assert boundary.parse_result(dumped, seals()) == deep


def test_a_constraint_applies_to_the_secret_and_not_to_its_sealed_form() -> None:
    boundary = Boundary(take)
    long = {**DEEP, "short": f"{SESAME}!"}
    with pytest.raises(Misfit, match=r"deep\.short: .*at most 11") as refused:
        boundary.normalise_arguments({**GIVEN, "deep": long}, seals())
    assert SESAME not in str(refused.value)
    late = {**boundary.normalise_arguments(GIVEN, seals())}
    assert isinstance(late["deep"], dict)
    late["deep"]["short"] = sealed(f"{SESAME}!")
    with pytest.raises(Misfit, match=r"deep\.short: .*at most 11"):
        boundary.parse_arguments(late, seals())


def test_a_sealed_text_in_a_plain_field_is_no_way_to_open_it() -> None:
    login: Any = {"user": sealed(SESAME), "password": sealed(SESAME)}
    with pytest.raises(Misfit, match=r"login\.user: input should be a valid string") as refused:
        Boundary(sign_in.function).parse_arguments({"login": login}, seals())
    assert SESAME not in str(refused.value)


def test_an_empty_secret_hides_nothing_and_stays_as_it_is() -> None:
    assert normalise_payload(SecretStr, "", seals()) == ""
    assert parse_payload(SecretStr, "", seals()) == SecretStr("")


def in_a_set(secrets: set[SecretStr]) -> None: ...


class Teller(BaseModel):
    key: SecretStr

    @field_serializer("key", when_used="json")
    def tell(self, key: SecretStr) -> str:
        return key.get_secret_value()


def test_a_secret_that_has_no_place_in_json_is_refused_and_not_shown() -> None:
    with pytest.raises(NoJson, match="where none can be kept") as refused:
        Boundary(in_a_set).normalise_arguments({"secrets": [SESAME]}, seals())
    assert SESAME not in str(refused.value)
    assert normalise_payload(Teller, {"key": SESAME}, seals()) == {"key": sealed(SESAME)}


def test_where_nothing_can_be_sealed_a_secret_is_refused_in_both_directions() -> None:
    boundary = Boundary(lend.function)
    with pytest.raises(NoJson, match="a secret cannot be written down"):
        boundary.normalise_arguments({"token": SESAME})
    with pytest.raises(Misfit, match="a secret cannot be written down"):
        boundary.parse_arguments({"token": sealed(SESAME)})


@pytest.mark.parametrize("tenant", ["", "acme", "globex"])
def test_the_vault_of_a_laptop_hides_a_secret_from_a_search_and_separates_tenants(
    tenant: str,
) -> None:
    draws = random.Random(7)
    for size in (1, 5, 33, 900):
        text = "".join(draws.choice("abcé€😀") for _ in range(size))
        kept = parse_sealed(LocalVault().seal(tenant, text))
        assert kept is not None
        assert (kept.size, LocalVault().open(tenant, kept)) == (len(text.encode()), text)
        assert text.encode() not in kept.data or size == 1
        with pytest.raises(VaultFault, match="for another tenant"):
            LocalVault().open(f"{tenant}x", kept)


def test_only_a_whole_sealed_text_is_one_and_a_part_of_a_text_is_shown_by_its_size() -> None:
    text = Sealed("a-key", b"\xff\x00data", 43).text
    assert parse_sealed(text) == Sealed("a-key", b"\xff\x00data", 43)
    for other in (f" {text}", f"{text}.", text[:-3], "holdfast.secret.1.", "", text.upper()):
        assert parse_sealed(other) is None
    within = f'{{"key":"{text}"}}'
    assert hidden([within, {"a": text, "n": 1}]) == [
        '{"key":"<secret 43 bytes>"}',
        {"a": "<secret 43 bytes>", "n": 1},
    ]


def test_a_direct_and_a_compiled_run_agree_and_a_test_sees_sizes() -> None:
    world = World({sign_in: real, use: real, break_with: real, "your pin": {"pin": "1234"}})
    world.send("paid", Login(user="ann", password=SecretStr("bank")), key="ann", at=timedelta(1))
    secret_flows.seen.clear()
    login = Login(user="ann", password=SecretStr(SESAME))
    run = world.run(visit, login, SecretStr("the spare one"), [SecretStr("x")])
    assert run.status == "SUCCEEDED"
    assert run.calls_of(lend)[0].arguments == {"token": "<secret 20 bytes>"}
    assert {SESAME, "bank", "x", "1234", "the spare one"} <= set(secret_flows.seen)
    assert SESAME not in str(run.calls)
    assert run.result["pin"].get_secret_value() == "1234"
    secret_flows.seen.clear()


def test_the_map_says_where_secrets_are_and_the_definition_does_not_know() -> None:
    found = compile_workflow(lend)
    assert json.loads(found.map_text)["secrets"] == [
        *("lend.result", "lend.token"),
        *("use.several", "use.token"),
    ]
    assert "Secret" not in found.asl_text
    assert found.definition_hash == definition_hash(json.loads(found.asl_text))


def test_a_graph_passes_secrets_on_and_takes_none_from_its_source() -> None:
    graph = dag(
        "nightly",
        step("in", sign_in, arguments={"login": from_input("login")}),
        step("go", use, depends_on=["in"], arguments={"token": from_step("in"), "several": []}),
        step("last", break_with, arguments={"token": from_input("other")}),
    )
    assert compile_workflow(graph).secrets == (
        *("break_with.token", "nightly.login", "nightly.other"),
        *("sign_in.login", "sign_in.result"),
        *("use.several", "use.token"),
    )
    leaky = dag("leaky", step("go", use, arguments={"token": "in the source", "several": []}))
    with pytest.raises(CompileErrors, match="a secret cannot be written down"):
        compile_workflow(leaky)


def test_step_functions_would_keep_a_secret_in_clear_and_is_refused() -> None:
    with pytest.raises(CompileErrors) as refused:
        to_step_functions(compile_workflow(fail), Source.of(secret_flows))
    [found] = refused.value.diagnostics
    assert found.code == "HF064"
    assert found.message == "Step Functions would keep a secret in clear: break_with.token"
    assert "secretsmanager" in found.help
