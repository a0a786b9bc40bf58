"""The settings of a deployment: the CDK context, from `cdk.json` or `cdk deploy -c key=value`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from holdfast import resources
from holdfast.errors import HoldfastError
from holdfast.resources import WORK, LambdaFunction, Queue

from .sizes import read_sizes

Architecture = Literal["arm64", "x86_64"]

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_PYTHON: Final = re.compile(r"3\.\d+")
# IAM user guide, "IAM ARNs": customer managed policies name an account, AWS's own do not.
_POLICY: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+")
_BATCH_MAX: Final = 10
#: CloudWatch Logs, PutRetentionPolicy: the numbers of days that it can keep a log.
_LOG_DAYS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1_096),
    *(1_827, 2_192, 2_557, 2_922, 3_288, 3_653),
)
# IAM quota: managed policies attached to one role, unless AWS has raised it.
_POLICIES_MAX: Final = 10
#: SQS: an event source has at least two batches at once.
_BATCHES_MIN: Final = 2
_TAKEN_BY_WORKER: Final = (resources.WORK, resources.STARTS)


@dataclass(frozen=True, slots=True)
class JwtIssuer:
    """The issuer of the bearer tokens that the API accepts, and their audience."""

    issuer: str
    audience: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one stack. `modules` hold the workflows and tasks. Without `jwt` the API
    requires IAM signatures.

    `caps_concurrency` reserves concurrency for each function. An account with a small total limit
    cannot reserve that much. Alarms notify `alarm_topic_arn`, or only show on the console.
    `task_policies` are ARNs of managed policies with the rights of tasks. `tells_status`: the
    account's default bus gets an event when an execution of a state machine begins or ends.
    `limits_payloads`: AWS's 256 KiB hold for the data of state machines. `seals_secrets`: the stack
    has a key for the values that workflows mark as secret. `owns_key`: stored data is encrypted
    with a key of the stack's own, not with AWS's. `functions` has each function of
    `resources.FUNCTIONS` by name, with its memory, time-out and concurrency. `work_batch` is how
    many messages one worker takes at once.
    """

    modules: tuple[str, ...]
    architecture: Architecture
    python: str
    caps_concurrency: bool
    jwt: JwtIssuer | None
    alarm_topic_arn: str | None
    task_policies: tuple[str, ...]
    tells_status: bool
    limits_payloads: bool
    seals_secrets: bool
    owns_key: bool
    functions: Mapping[str, LambdaFunction]
    work_batch: int
    #: None: a third of the worker's concurrency.
    start_concurrency: int | None
    log_retention_days: int

    @classmethod
    def from_context(cls, context: Callable[[str], object]) -> Self:
        """`context` is the `node.try_get_context` of an app."""

        def text(key: str) -> str:
            value = context(key)
            return "" if value is None else str(value).strip()

        functions = read_sizes(context("functions"))
        caps_concurrency = _switch("reserved_concurrency", text("reserved_concurrency"))
        return cls(
            modules=_modules(text("modules")),
            architecture=_architecture(text("architecture")),
            python=_python(text("python")),
            caps_concurrency=caps_concurrency,
            jwt=_jwt(text("jwt_issuer"), text("jwt_audience")),
            alarm_topic_arn=text("alarm_topic_arn") or None,
            task_policies=_policies(text("task_policies")),
            tells_status=_switch("status_events", text("status_events")),
            limits_payloads=_switch("payload_limit", text("payload_limit")),
            seals_secrets=_switch("secrets", text("secrets")),
            owns_key=_switch("customer_managed_key", text("customer_managed_key")),
            functions=functions,
            work_batch=_batch(text("work_batch")),
            start_concurrency=_start_concurrency(
                text("start_concurrency"),
                _whole(functions[resources.WORKER.name], _TAKEN_BY_WORKER, caps_concurrency),
            ),
            log_retention_days=_log_retention(text("log_retention_days")),
        )

    def concurrency(self, function: LambdaFunction, queue: Queue) -> int:
        """Return how many batches of `queue` the function processes at once."""
        sized = self.functions[function.name]
        if queue not in _TAKEN_BY_WORKER:
            return _whole(sized, (queue,), self.caps_concurrency)
        # The two queues of one function share its concurrency. A sum above it would throttle the
        # function, and each throttled batch counts towards the dead-letter queue.
        whole = _whole(sized, _TAKEN_BY_WORKER, self.caps_concurrency)
        starts = self.start_concurrency or max(_BATCHES_MIN, whole // 3)
        return starts if queue == resources.STARTS else whole - starts


def _whole(function: LambdaFunction, queues: Sequence[Queue], caps_concurrency: bool) -> int:
    """-> how many batches of all its queues the function works on at once."""
    default = next(one for one in resources.FUNCTIONS if one.name == function.name)
    if caps_concurrency or function.reserved_concurrency != default.reserved_concurrency:
        return function.reserved_concurrency
    return sum(queue.batches_unreserved for queue in queues)


def require_key(settings: Settings, secrets: Mapping[str, Sequence[str]]) -> None:
    """`secrets`: the secret values of each workflow. Raises HoldfastError HF404."""
    named = [f"{workflow} ({', '.join(values)})" for workflow, values in secrets.items() if values]
    if named and not settings.seals_secrets:
        raise HoldfastError(
            "HF404",
            f"there are secrets in {'; '.join(named)}, and the stack has no key for them",
            help="set context `secrets` to on, in cdk.json or with `cdk deploy -c secrets=on`",
        )


def _refused(key: str, found: str, expected: str) -> HoldfastError:
    return HoldfastError(
        "HF401",
        f"context `{key}` is {found!r}; expected {expected}",
        help=f"set it in cdk.json, or with `cdk deploy -c {key}=...`",
    )


def _modules(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(_MODULE.fullmatch(name) for name in names):
        raise _refused("modules", text, "Python module names, separated by commas")
    return names


def _architecture(text: str) -> Architecture:
    match text:
        case "arm64":
            return "arm64"
        case "x86_64":
            return "x86_64"
        case _:
            raise _refused("architecture", text, "arm64 or x86_64")


def _python(text: str) -> str:
    if not _PYTHON.fullmatch(text):
        raise _refused("python", text, "a version such as 3.13")
    return text


def _policies(text: str) -> tuple[str, ...]:
    arns = tuple(arn.strip() for arn in text.split(",")) if text else ()
    if not all(_POLICY.fullmatch(arn) for arn in arns) or len(arns) > _POLICIES_MAX:
        expected = f"ARNs of at most {_POLICIES_MAX} managed policies, separated by commas"
        raise _refused("task_policies", text, expected)
    return arns


def _batch(text: str) -> int:
    """The default is `resources.WORK.batch_size`; SQS hands out at most ten messages at once."""
    if text == "":
        return WORK.batch_size
    if not text.isdigit() or not 1 <= int(text) <= _BATCH_MAX:
        raise _refused("work_batch", text, f"a whole number from 1 to {_BATCH_MAX}")
    return int(text)


def _start_concurrency(text: str, whole: int) -> int | None:
    """`whole`: the concurrency of the worker, of which the work under way keeps two batches."""
    if text == "":
        return None
    most = whole - _BATCHES_MIN
    if not text.isdigit() or not _BATCHES_MIN <= int(text) <= most:
        expected = f"a whole number from {_BATCHES_MIN} to {most}"
        raise _refused("start_concurrency", text, f"{expected}, or nothing for the default")
    return int(text)


def _log_retention(text: str) -> int:
    """Return days. The default is 30."""
    found = text or "30"
    if not found.isdigit() or int(found) not in _LOG_DAYS:
        expected = f"one of the numbers of days that CloudWatch Logs knows: {_LOG_DAYS}"
        raise _refused("log_retention_days", text, expected)
    return int(found)


def _switch(key: str, text: str) -> bool:
    match text.lower():
        case "on" | "true":
            return True
        case "off" | "false":
            return False
        case _:
            raise _refused(key, text, "on or off")


def _jwt(issuer: str, audience: str) -> JwtIssuer | None:
    match issuer, audience:
        case "", "":
            return None
        case "", _:
            raise _refused("jwt_issuer", issuer, "the issuer's URL, since `jwt_audience` is set")
        case _, "":
            raise _refused("jwt_audience", audience, "the audience, since `jwt_issuer` is set")
        case _:
            return JwtIssuer(issuer, audience)
