"""The choices of a deployment, and the errors for wrong choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import resources
from holdfast.errors import HoldfastError
from holdfast.infra.bounds import AlarmBounds
from holdfast.infra.bundle import build_asset, compile_workflows
from holdfast.infra.settings import (
    _LOG_DAYS,
    _RESERVED,
    JwtIssuer,
    Settings,
    require_key,
    require_variables,
)
from holdfast.infra.sizes import read_sizes, sizes_of
from holdfast.infra.unfit import Unfit

CONTEXT = json.loads((Path(__file__).parents[2] / "cdk.json").read_text())["context"]


def settings(**changes: object) -> Settings:
    return Settings.from_context({**CONTEXT, **changes}.get)


def test_cdk_json_chooses_the_example_workflows_on_arm64_behind_iam() -> None:
    assert settings() == Settings(
        modules=(
            "statemachines.order_fulfilment",
            "statemachines.loan_approval",
            "statemachines.document_signing",
        ),
        architecture="arm64",
        python="3.13",
        caps_concurrency=True,
        jwt=None,
        alarm_topic_arn=None,
        task_policies=(),
        tells_status=False,
        has_forms=False,
        tells_questions=False,
        limits_payloads=True,
        limits_histories=False,
        seals_secrets=False,
        owns_key=False,
        has_archive=False,
        functions={function.name: function for function in resources.FUNCTIONS},
        work_batch=10,
        start_concurrency=None,
        starts_per_second=1_000,
        log_retention_days=30,
        alarm_bounds=AlarmBounds(failed=0, retries=500),
    )


def test_what_cdk_json_chooses_is_the_default() -> None:
    found = settings()
    assert Settings(modules=found.modules) == found


def test_the_bounds_of_alarms_are_an_object_or_its_text() -> None:
    bounds = AlarmBounds(failed=None, dollars_per_day=2.5)
    assert settings(alarm_bounds={"failed": None, "dollars_per_day": 2.5}).alarm_bounds == bounds
    text = '{"failed": null, "dollars_per_day": 2.5}'
    assert settings(alarm_bounds=text).alarm_bounds == bounds


def test_the_rate_of_starts_is_a_number_or_its_text() -> None:
    assert settings(starts_per_second="10000").starts_per_second == 10_000
    with pytest.raises(HoldfastError, match="`starts_per_second` is"):
        settings(starts_per_second="20000")


def test_choices_arrive_as_text_from_the_command_line() -> None:
    chosen = settings(
        modules="orders.flow, refunds",
        reserved_concurrency="off",
        jwt_issuer="https://issuer.example",
        jwt_audience="shop",
        alarm_topic_arn="arn:aws:sns:eu-west-1:111122223333:on-call",
        task_policies="arn:aws:iam::111122223333:policy/a/b, arn:aws-cn:iam::aws:policy/c",
        status_events="on",
        forms="on",
        question_events="on",
        payload_limit="off",
        history_limit="on",
        secrets="on",
        customer_managed_key="on",
        archive="on",
    )
    assert chosen.seals_secrets
    assert chosen.owns_key
    assert chosen.has_archive
    assert chosen.tells_status
    assert chosen.has_forms
    assert chosen.tells_questions
    assert not chosen.limits_payloads
    assert chosen.limits_histories
    assert chosen.modules == ("orders.flow", "refunds")
    assert not chosen.caps_concurrency
    assert chosen.jwt == JwtIssuer("https://issuer.example", "shop")
    assert chosen.alarm_topic_arn == "arn:aws:sns:eu-west-1:111122223333:on-call"
    assert chosen.task_policies == (
        "arn:aws:iam::111122223333:policy/a/b",
        "arn:aws-cn:iam::aws:policy/c",
    )


ON_OFF = "on or off"
NO_TIME_OUT = "no value: a task may run for 14 minutes in a worker"
SIZES = "one of memory_mb, timeout_seconds, concurrency"
MODULES = "Python module names, separated by commas"
PYTHONS = "one of 3.11, 3.12, 3.13, 3.14"
BATCH = "a whole number from 1 to 10"
BOUND = "a number from 0, or none for no alarm"
BOUNDS = "one of failed, retries, oldest_wait_days, dollars_per_day"
POLICIES = "ARNs of at most 10 managed policies, separated by commas"
ARN = "arn:aws:iam::111122223333:policy/a"


@pytest.mark.parametrize(
    ("key", "value", "refused_as", "expected"),
    [
        ("modules", "", "modules", MODULES),
        ("modules", None, "modules", MODULES),
        ("modules", "orders.flow,,refunds", "modules", MODULES),
        ("modules", "../orders", "modules", MODULES),
        ("architecture", "sparc", "architecture", "arm64 or x86_64"),
        ("python", "3", "python", PYTHONS),
        ("python", "latest", "python", PYTHONS),
        ("reserved_concurrency", "perhaps", "reserved_concurrency", ON_OFF),
        ("status_events", "", "status_events", ON_OFF),
        ("forms", "yes", "forms", ON_OFF),
        ("question_events", "", "question_events", ON_OFF),
        ("payload_limit", "256", "payload_limit", ON_OFF),
        ("history_limit", "", "history_limit", ON_OFF),
        ("secrets", "", "secrets", ON_OFF),
        ("customer_managed_key", "alias/mine", "customer_managed_key", ON_OFF),
        ("archive", "s3://history", "archive", ON_OFF),
        # The missing one of the two is named.
        ("jwt_issuer", "https://x", "jwt_audience", "the audience, since `jwt_issuer` is set"),
        ("jwt_audience", "shop", "jwt_issuer", "the issuer's URL, since `jwt_audience` is set"),
        ("work_batch", "0", "work_batch", BATCH),
        ("work_batch", "11", "work_batch", BATCH),
        ("work_batch", "many", "work_batch", BATCH),
        (
            *("log_retention_days", "31", "log_retention_days"),
            f"one of the numbers of days that CloudWatch Logs knows: {_LOG_DAYS}",
        ),
        ("functions", "worker", "functions", "a JSON object"),
        ("functions", "[]", "functions", "a JSON object"),
        ("alarm_bounds", "3", "alarm_bounds", "a JSON object"),
        ("alarm_bounds", '{"failed": -1}', "alarm_bounds.failed", BOUND),
        ("alarm_bounds", '{"failed": "3"}', "alarm_bounds.failed", BOUND),
        ("alarm_bounds", '{"retries": true}', "alarm_bounds.retries", BOUND),
        ("alarm_bounds", '{"failures": 3}', "alarm_bounds", BOUNDS),
        ("task_policies", "AmazonSQSFullAccess", "task_policies", POLICIES),
        ("task_policies", "arn:aws:iam::111122223333:role/worker", "task_policies", POLICIES),
        ("task_policies", f"{ARN},", "task_policies", POLICIES),
        ("task_policies", ",".join([ARN] * 11), "task_policies", POLICIES),
    ],
)
def test_a_choice_that_cannot_be_is_refused_by_name_with_the_way_to_set_it(
    key: str, value: str | None, refused_as: str, expected: str
) -> None:
    with pytest.raises(HoldfastError) as refused:
        settings(**{key: value})
    assert refused.value.code == "HF401"
    assert refused.value.message.startswith(f"context `{refused_as}` is ")
    assert refused.value.message.endswith(f"; expected {expected}")
    name = refused_as.partition(".")[0]
    assert refused.value.help == f"set `{name}` in cdk.json, or with `cdk deploy -c {name}=...`"


def test_a_choice_at_its_bound_is_accepted() -> None:
    chosen = settings(
        work_batch=1,
        starts_per_second=1,
        task_policies=",".join([ARN] * 10),
        alarm_bounds={"failed": 0, "dollars_per_day": 0.5},
        forms="On",
        archive="FALSE",
    )
    assert (chosen.work_batch, chosen.starts_per_second) == (1, 1)
    assert len(chosen.task_policies) == 10
    assert chosen.has_forms
    assert not chosen.has_archive


def test_a_number_that_the_context_does_not_have_is_the_default() -> None:
    numbers = ("work_batch", "start_concurrency", "starts_per_second", "log_retention_days")
    assert settings(**dict.fromkeys(numbers)) == settings()


@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [
        *[(name, True) for name in ("STAGE", "A1", "a_b", "HOLDFAST", "AWS_STAGE")],
        # Source: Lambda API, Environment: a letter, and then letters, digits and _.
        *[(name, False) for name in ("", "A", "1A", "_A", "A-B", "A B")],
        # Source: Lambda developer guide, "Defined runtime environment variables".
        *[(name, False) for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID")],
        *[(name, False) for name in ("AWS_LAMBDA_FUNCTION_NAME", "HOLDFAST_STACK")],
    ],
)
def test_a_variable_of_the_user_has_a_name_that_lambda_and_holdfast_leave_free(
    name: str, is_accepted: bool
) -> None:
    if is_accepted:
        require_variables("environment", [name])
        return
    with pytest.raises(Unfit) as refused:
        require_variables("environment", ["STAGE", name])
    assert refused.value.in_construct("Shop").message == (
        f"Holdfast Shop: `environment` is {name!r}; expected names of letters, digits and _ that "
        f"do not begin with {_RESERVED}"
    )


def test_each_function_has_its_own_memory_time_out_and_concurrency() -> None:
    sizes = {"worker": {"memory_mb": 1_024, "concurrency": 200}, "api": {"timeout_seconds": 10}}
    for given in (sizes, json.dumps(sizes)):  # from cdk.json, and from the command line
        functions = settings(functions=given).functions
        assert functions["worker"].memory_mb == 1_024
        assert functions["worker"].reserved_concurrency == 200
        assert functions["worker"].timeout_seconds == resources.WORKER.timeout_seconds
        assert functions["api"].timeout_seconds == 10
        assert functions["events"] == resources.EVENTS
        # The stack hands them to the construct as sizes.
        assert read_sizes({k: one.changes() for k, one in sizes_of(functions).items()}) == functions


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (
            {"worke": {}},
            "`functions` is 'worke'; expected one of worker, worker-single, events, sweeper, api",
        ),
        (
            {"worker": 512},
            "`functions.worker` is 512; expected an object such as {'memory_mb': 1024}",
        ),
        (
            {"worker": {"memory": 512}},
            f"`functions.worker` is 'memory'; expected {SIZES}",
        ),
        (
            {"worker": {"timeout_seconds": 60}},
            f"`functions.worker.timeout_seconds` is 60; expected {NO_TIME_OUT}",
        ),
        (
            {"api": {"timeout_seconds": 30}},
            "`functions.api.timeout_seconds` is 30; expected a whole number from 3 to 29",
        ),
    ],
)
def test_a_size_that_a_function_cannot_have_is_refused_with_its_bounds(
    sizes: object, said: str
) -> None:
    with pytest.raises(HoldfastError, match="HF401") as refused:
        settings(functions=sizes)
    assert refused.value.message == f"context {said}"


def test_a_workflow_with_secrets_is_not_deployed_without_their_key() -> None:
    secrets = {"fulfil": ("fulfil.card", "charge.card"), "refund": (), "ship": ("pin",)}
    with pytest.raises(HoldfastError) as refused:
        require_key(settings(), secrets)
    assert refused.value.code == "HF404"
    assert refused.value.message == (
        "there are secrets in fulfil (fulfil.card, charge.card); ship (pin), and the stack has no "
        "key for them"
    )
    assert refused.value.help == (
        "set context `secrets` to on, in cdk.json or with `cdk deploy -c secrets=on`; for "
        "Holdfast(...), leave `secrets_key` out"
    )
    require_key(settings(secrets="on"), secrets)
    require_key(settings(), {"refund": ()})


def test_a_module_that_the_project_does_not_have_is_refused_before_it_is_imported(
    tmp_path: Path,
) -> None:
    with pytest.raises(HoldfastError, match="`nowhere`, which is neither in") as refused:
        compile_workflows(["nowhere.orders"], project=tmp_path)
    assert refused.value.code == "HF403"


def test_the_error_for_a_project_without_a_lock_file_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text("")
    with pytest.raises(HoldfastError, match="uv lock") as refused:
        build_asset(
            tmp_path / "asset", project=tmp_path, settings=settings(modules="orders"), compiled=[]
        )
    assert refused.value.code == "HF402"


@pytest.mark.parametrize(
    ("chosen", "starts", "work"),
    [
        ({}, 16, 34),
        ({"start_concurrency": "20"}, 20, 30),
        ({"start_concurrency": "48"}, 48, 2),
        ({"functions": {"worker": {"concurrency": 200}}}, 66, 134),
        ({"functions": {"worker": {"concurrency": 4}}}, 2, 2),
        ({"reserved_concurrency": "off"}, 2, 3),
        ({"reserved_concurrency": "off", "start_concurrency": "3"}, 3, 2),
    ],
)
def test_starts_and_work_under_way_share_the_concurrency_of_the_worker(
    chosen: dict[str, Any], starts: int, work: int
) -> None:
    found = settings(**chosen)
    assert found.concurrency(resources.WORKER, resources.STARTS) == starts
    assert found.concurrency(resources.WORKER, resources.WORK) == work


@pytest.mark.parametrize(
    ("chosen", "most"),
    [
        ({"start_concurrency": "1"}, 48),
        ({"start_concurrency": "49"}, 48),
        ({"start_concurrency": "some"}, 48),
        ({"start_concurrency": "4", "reserved_concurrency": "off"}, 3),
        ({"start_concurrency": "9", "functions": {"worker": {"concurrency": 10}}}, 8),
    ],
)
def test_starts_leave_at_least_two_batches_to_the_work_under_way(
    chosen: dict[str, Any], most: int
) -> None:
    expected = f"a whole number from 2 to {most}, or nothing for the default"
    with pytest.raises(HoldfastError, match=f"`start_concurrency` is .*{expected}"):
        settings(**chosen)
