"""What the construct refuses, and what it gives to the user's stack. The CDK is real. The resources
are left out, because they take seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import holdfast.infra
from holdfast.errors import HoldfastError
from holdfast.infra import JwtIssuer
from holdfast.infra.plain_errors import plain_errors
from holdfast.infra.sizes import read_sizes
from holdfast.infra.unfit import Unfit

if TYPE_CHECKING:
    from holdfast.infra import Holdfast
    from holdfast.infra.groups import FoundGroup

# One of xdist's workers takes them all: a second one would start the CDK once more. The tests
# import the CDK themselves: if the module did, every worker would start the CDK.
pytestmark = pytest.mark.xdist_group("templates")

Make = Callable[..., "Holdfast"]
OF_MAIL, ROWS, INBOX, ARCHIVE = (object() for _ in range(4))


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    from aws_cdk import App, Stack

    from holdfast.infra import Holdfast

    def without_resources(flows: Any, _code: object) -> None:
        flows._group_functions = {"mail": SimpleNamespace(tasks=OF_MAIL)}
        flows._storage = SimpleNamespace(executions=ROWS, mail=INBOX, archive=ARCHIVE)

    monkeypatch.setattr(Holdfast, "_make", without_resources)

    def made(**given: Any) -> Holdfast:
        changes = {"modules": ("shop.order",), "asset": tmp_path, **given}
        return Holdfast(Stack(App(), "Shop"), "Flows", **changes)

    return made


@pytest.mark.parametrize("grant", ["start", "read", "answer", "work"])
def test_no_role_is_allowed_to_call_an_api_that_takes_tokens(make: Make, grant: str) -> None:
    from aws_cdk import aws_iam as iam

    flows = make(api=JwtIssuer("https://issuer.example", "shop"))
    role = iam.Role(flows, "Website", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    more = ("gpu",) if grant == "work" else ()
    with pytest.raises(HoldfastError) as refused:
        getattr(flows, f"grant_{grant}")(role, *more)
    assert refused.value.code == "HF409"
    assert refused.value.message == (
        "Holdfast Shop/Flows: a role cannot be allowed to call the API, which takes tokens of a "
        "JWT issuer"
    )
    assert refused.value.help == (
        "let the caller get a token, or leave `api=` out so that the API takes IAM signatures"
    )


def test_the_tasks_of_a_group_are_found_by_its_name_alone(make: Make) -> None:
    flows = make()
    assert flows.group("mail") is OF_MAIL
    with pytest.raises(HoldfastError) as refused:
        flows.group("mails")
    assert refused.value.code == "HF424"
    assert refused.value.message == (
        "Holdfast Shop/Flows: the group 'mails' has no task; the groups with tasks are: mail"
    )


def test_the_user_s_stack_sees_the_tables_and_the_archive(make: Make) -> None:
    flows = make()
    assert flows.executions_table is ROWS
    assert flows.inbox_table is INBOX
    assert flows.archive_bucket is ARCHIVE


def test_a_python_without_snapshots_is_refused(make: Make) -> None:
    with pytest.raises(HoldfastError) as refused:
        make(python="3.11", snap_start=True)
    assert refused.value.message == (
        "Holdfast Shop/Flows: `snap_start` is True; expected a `python` of 3.12 or newer, which "
        "Lambda can snapshot"
    )
    assert make(python="3.11") and make(python="3.12", snap_start=True)


def test_alarms_are_no_switch(make: Make) -> None:
    with pytest.raises(HoldfastError) as refused:
        make(alarms=False)
    assert refused.value.message == (
        "Holdfast Shop/Flows: `alarms` is False; expected an SNS topic, or None: alarms then show "
        "on the console; see `alarm_bounds`"
    )


# -- the asset of a project ------------------------------------------------------------------------


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The asset is not built: the arguments are noted. Its one workflow has the secrets in
    `secrets`.
    """
    from holdfast.infra.groups import FoundGroup

    noted: dict[str, Any] = {"secrets": ("card",)}

    def compiled(modules: object, *, project: Path) -> list[Any]:
        noted.update(modules=modules, project=project)
        return [SimpleNamespace(name="order", secrets=noted["secrets"])]

    def found(modules: object) -> dict[str, FoundGroup]:
        return {"mail": FoundGroup((f"{modules}",))}

    def build(directory: Path, **given: Any) -> None:
        noted.update(given, exists=directory.is_dir())

    monkeypatch.setattr("holdfast.infra.construct.compile_workflows", compiled)
    monkeypatch.setattr("holdfast.infra.construct.find_groups", found)
    monkeypatch.setattr("holdfast.infra.construct.build_asset", build)
    return noted


def test_an_asset_is_built_of_the_project_around_the_current_folder(
    make: Make, built: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.infra import Group

    (tmp_path / "pyproject.toml").write_text('[tool.holdfast]\nmodules = ["shop.order"]\n')
    monkeypatch.chdir(tmp_path)
    flows = make(modules=None, asset=None)
    assert built["modules"] == built["settings"].modules == ("shop.order",)
    assert built["project"] == tmp_path
    assert [workflow.name for workflow in built["compiled"]] == ["order"]
    assert built["exists"]
    assert flows._groups == {"mail": Group()}
    make(asset=None, project="src/..")
    assert built["project"] == tmp_path  # without ".."


@pytest.mark.parametrize(
    ("chosen", "secrets", "seals"),
    [(None, ("card",), True), (None, (), False), (True, (), True), (False, (), False)],
)
def test_a_key_for_secrets_is_made_where_it_is_asked_for_or_a_workflow_has_one(
    make: Make, built: dict[str, Any], chosen: bool | None, secrets: tuple[str, ...], seals: bool
) -> None:
    built["secrets"] = secrets
    make(asset=None, secrets_key=chosen)
    assert built["settings"].seals_secrets is seals


def test_secrets_without_a_key_are_refused_before_the_asset_is_built(
    make: Make, built: dict[str, Any]
) -> None:
    with pytest.raises(HoldfastError) as refused:
        make(asset=None, secrets_key=False)
    assert refused.value.code == "HF404"
    assert "exists" not in built


# -- the settings of groups and functions ----------------------------------------------------------


def _of_group(setting: str, number: Any) -> None:
    from holdfast.infra.groups import FoundGroup, Group, require_groups

    require_groups({"mail": Group(**{setting: number})}, {"mail": FoundGroup(("shop",))}, "Shop")


@pytest.mark.parametrize(
    ("place", "setting", "least", "most"),
    [
        # Source: Lambda quotas, and an event source takes at least two batches at once.
        ("groups.mail", "memory_mb", 128, 10_240),
        ("groups.mail", "timeout_seconds", 1, 900),
        ("groups.mail", "concurrency", 1, 10_000),
        ("functions.events", "memory_mb", 128, 10_240),
        ("functions.events", "concurrency", 2, 10_000),
        ("functions.worker", "concurrency", 4, 10_000),
    ],
)
def test_a_size_is_a_whole_number_between_the_bounds_of_lambda(
    place: str, setting: str, least: int, most: int
) -> None:
    kind, _, name = place.partition(".")

    def read(number: Any) -> None:
        if kind == "groups":
            _of_group(setting, number)
        else:
            read_sizes({name: {setting: number}})

    read(least)
    read(most)
    for number in (least - 1, most + 1, True, f"{least}", least + 0.5):
        with pytest.raises(Unfit) as refused:
            read(number)
        assert refused.value.key == f"{place}.{setting}"
        assert refused.value.in_construct("Shop").message == (
            f"Holdfast Shop: `{place}.{setting}` is {number!r}; "
            f"expected a whole number from {least} to {most}"
        )


def test_a_network_needs_a_vpc_and_has_the_groups_that_are_given() -> None:
    from aws_cdk import aws_ec2 as ec2

    from holdfast.infra.compute import Network
    from holdfast.infra.groups import Group, network_of

    stack: Any = object()
    vpc: Any = object()
    subnets = ec2.SubnetSelection(one_per_az=True)
    groups: Any = ["sg"]
    assert network_of(stack, Group(), "Tasks", "vpc") is None
    for given, other in (
        (Group(vpc_subnets=subnets), "vpc_subnets"),
        (Group(security_groups=groups), "security_groups"),
    ):
        with pytest.raises(Unfit) as refused:
            network_of(stack, given, "Tasks", "groups.mail.vpc")
        assert refused.value.in_construct("Shop").message == (
            f"Holdfast Shop: `groups.mail.vpc` is None; expected the VPC, since `{other}` is given"
        )
    whole = Group(vpc=vpc, vpc_subnets=subnets, security_groups=groups)
    assert network_of(stack, whole, "Tasks", "vpc") == Network(
        vpc=vpc, subnets=subnets, security_groups=tuple(groups)
    )


def test_tasks_without_a_vpc_cannot_be_let_in() -> None:
    from holdfast.infra.tasks import Tasks

    with pytest.raises(HoldfastError) as refused:
        _ = Tasks([], ()).connections
    assert refused.value.code == "HF408"
    assert refused.value.message == (
        "the functions that run tasks are in no VPC, so nothing there can let them in"
    )
    assert refused.value.help == "give `vpc=` to Holdfast(...), or to Group(...)"


def test_a_grant_goes_to_the_role_of_each_function_that_runs_tasks() -> None:
    from holdfast.infra.tasks import Tasks

    got: list[tuple[str, object]] = []

    def role(name: str) -> Any:
        return SimpleNamespace(
            role_arn=name,
            assume_role_action="sts:AssumeRole",
            principal_account="111122223333",
            add_to_principal_policy=lambda statement: got.append((name, statement)),
        )

    tasks = Tasks([role("worker"), role("api")], ())
    assert tasks.grant_principal is tasks
    assert tasks.assume_role_action == "sts:AssumeRole"
    assert tasks.principal_account == "111122223333"
    assert tasks.policy_fragment.principal_json == {"AWS": ["worker", "api"]}
    statement: Any = object()
    assert tasks.add_to_principal_policy(statement).statement_added
    assert got == [("worker", statement), ("api", statement)]


# -- names and errors ------------------------------------------------------------------------------


def test_names_have_only_letters_that_their_services_accept() -> None:
    from aws_cdk import App, Stack
    from constructs import Construct

    from holdfast.infra.names import name_of, output_name

    stack = Stack(App(), "Shop")
    inner = Construct(Construct(stack, "Default"), "Flöws 2_a")
    assert name_of(inner) == "Shop-Fl-ws-2_a"
    assert output_name("Flöws 2_a", "ApiUrl") == "Flws2aApiUrl"
    assert output_name("Default", "ApiUrl") == "ApiUrl"


def test_an_app_prints_errors_of_others_as_python_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: printed.append(error))
    with pytest.raises(HoldfastError) as refused, plain_errors("Shop/Flows"):
        raise Unfit("modules", "", "names")
    other = ValueError("of the app")
    sys.excepthook(ValueError, other, None)
    assert printed == [(ValueError, other, None)]
    sys.excepthook(HoldfastError, refused.value, None)
    assert len(printed) == 1
    assert capsys.readouterr().err == f"{refused.value}\n"


def test_without_the_cdk_the_construct_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered = holdfast.infra.__all__
    assert [getattr(holdfast.infra, name).__name__ for name in offered] == offered
    with pytest.raises(AttributeError, match=r"'holdfast\.infra' has no attribute 'Grup'"):
        _ = holdfast.infra.Grup
    for missing in ("aws_cdk", "constructs", "jsii"):
        error = ModuleNotFoundError(missing, name=missing)
        monkeypatch.setattr(holdfast.infra, "import_module", _raising(error))
        with pytest.raises(HoldfastError) as refused:
            _ = holdfast.infra.Group
        assert refused.value.code == "HF410"
        assert refused.value.message == f"the construct needs the package {missing}"
        assert refused.value.help == "install `holdfast[infra]`"
    own = ModuleNotFoundError("of the project", name="shop")
    monkeypatch.setattr(holdfast.infra, "import_module", _raising(own))
    with pytest.raises(ModuleNotFoundError, match="of the project"):
        _ = holdfast.infra.Group


def _raising(error: Exception) -> Callable[[str], object]:
    def import_module(_name: str) -> object:
        raise error

    return import_module
