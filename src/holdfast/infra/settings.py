"""The settings of a deployment, from the CDK context or from the parameters of `Holdfast`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, get_args

from holdfast import resources
from holdfast.errors import HoldfastError
from holdfast.resources import WORK, LambdaFunction, Queue
from holdfast.runtime.storage.spread import STARTS_PER_SECOND, STARTS_PER_SECOND_MAX

from .bounds import AlarmBounds, read_bounds, require_bounds
from .sizes import read_sizes
from .unfit import Unfit

Architecture = Literal["arm64", "x86_64"]

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
#: The Python versions that both Lambda and Holdfast support.
_PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
# The form of the ARN of a managed policy (IAM user guide, "IAM ARNs"). That of a customer contains
# an account, and that of AWS does not.
_POLICY: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+")
_BATCH_MAX: Final = 10
#: The numbers of days for which CloudWatch Logs can keep a log (PutRetentionPolicy).
_LOG_DAYS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1_096),
    *(1_827, 2_192, 2_557, 2_922, 3_288, 3_653),
)
# The most managed policies of one role (IAM quota), unless AWS has raised it for the account.
_POLICIES_MAX: Final = 10
_EXPECTED_POLICIES: Final = f"ARNs of at most {_POLICIES_MAX} managed policies, separated by commas"
#: The form that Lambda requires of the name of an environment variable. A name with one of the
#: prefixes below belongs to Holdfast's functions or to Lambda, so the user must not set it.
_VARIABLE: Final = re.compile(r"[A-Za-z]\w+")
_RESERVED: Final = (
    "HOLDFAST_",
    "AWS_LAMBDA_",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY",
)
#: An event source processes at least two batches at once (SQS quota), so a lower limit is refused.
_BATCHES_MIN: Final = 2
_TAKEN_BY_WORKER: Final = (resources.WORK, resources.STARTS)


@dataclass(frozen=True, slots=True)
class JwtIssuer:
    """The issuer of the bearer tokens that the API accepts, and their audience."""

    issuer: str
    audience: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one stack.

    * `modules`: the modules with workflows and tasks.
    * `jwt`: without it the API requires IAM signatures.
    * `caps_concurrency`: reserve concurrency for each function. An account with a small total limit
      cannot reserve that much.
    * `alarm_topic_arn`: where alarms are sent; without it they are only shown on the console.
    * `task_policies`: ARNs of managed policies with the rights of tasks.
    * `tells_status`: the account's default event bus gets an event when an execution of a state
      machine begins or ends. `tells_questions`: also when a question to a person opens.
    * `has_forms`: the API has the forms behind signed links.
    * `limits_payloads`: AWS's limit of 256 KiB applies to the data of state machines.
    * `limits_histories`: AWS's limit of 25,000 events applies to executions of state machines.
    * `seals_secrets`: the stack has a key for the values that workflows mark as secret.
    * `owns_key`: stored data is encrypted with the stack's own key, not with AWS's.
    * `has_archive`: executions that have ended are stored in a bucket before they expire.
    * `functions`: each function of `resources.FUNCTIONS`, and that of each group, by name, with its
      memory, time-out and concurrency.
    * `work_batch`: how many messages one worker takes at once.
    * `starts_per_second`: the rate for which the stack has partitions.
    * `environment`: the user's variables of all functions but those of groups.
    * `alarm_bounds`: above these, alarms are raised.

    Raises Unfit for an invalid value.
    """

    modules: tuple[str, ...]
    architecture: Architecture = "arm64"
    python: str = "3.13"
    caps_concurrency: bool = True
    jwt: JwtIssuer | None = None
    alarm_topic_arn: str | None = None
    task_policies: tuple[str, ...] = ()
    tells_status: bool = False
    has_forms: bool = False
    tells_questions: bool = False
    limits_payloads: bool = True
    limits_histories: bool = False
    seals_secrets: bool = False
    owns_key: bool = False
    has_archive: bool = False
    functions: Mapping[str, LambdaFunction] = field(default_factory=lambda: read_sizes(None))
    work_batch: int = WORK.batch_size
    #: The concurrency of starts. None stands for a third of the worker's concurrency.
    start_concurrency: int | None = None
    starts_per_second: int = STARTS_PER_SECOND
    log_retention_days: int = 30
    alarm_bounds: AlarmBounds = field(default_factory=AlarmBounds)
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_modules(self.modules)
        if self.architecture not in get_args(Architecture):
            raise Unfit("architecture", self.architecture, "arm64 or x86_64")
        if self.python not in _PYTHONS:
            raise Unfit("python", self.python, f"one of {', '.join(_PYTHONS)}")
        if len(self.task_policies) > _POLICIES_MAX:
            raise Unfit("task_policies", self.task_policies, _EXPECTED_POLICIES)
        _require_whole("work_batch", self.work_batch, 1, _BATCH_MAX)
        if self.start_concurrency is not None:
            worker = self.functions[resources.WORKER.name]
            whole = _whole(worker, _TAKEN_BY_WORKER, self.caps_concurrency)
            # Starts must leave at least two batches for running executions.
            most, otherwise = whole - _BATCHES_MIN, ", or nothing for the default"
            found = self.start_concurrency
            _require_whole("start_concurrency", found, _BATCHES_MIN, most, otherwise)
        _require_whole("starts_per_second", self.starts_per_second, 1, STARTS_PER_SECOND_MAX)
        if self.log_retention_days not in _LOG_DAYS:
            expected = f"one of the numbers of days that CloudWatch Logs knows: {_LOG_DAYS}"
            raise Unfit("log_retention_days", self.log_retention_days, expected)
        require_bounds(self.alarm_bounds)
        require_variables("environment", self.environment)

    @classmethod
    def from_context(cls, context: Callable[[str], object]) -> Self:
        """Return the settings. `context` is the `node.try_get_context` of an app. Raises
        HoldfastError HF401.
        """

        def text(key: str) -> str:
            value = context(key)
            return "" if value is None else str(value).strip()

        def switch(key: str) -> bool:
            return _switch(key, text(key))

        try:
            return cls(
                modules=_split(text("modules")),
                architecture=_any(text("architecture")),
                python=text("python"),
                caps_concurrency=switch("reserved_concurrency"),
                jwt=_jwt(text("jwt_issuer"), text("jwt_audience")),
                alarm_topic_arn=text("alarm_topic_arn") or None,
                task_policies=_policies(text("task_policies")),
                tells_status=switch("status_events"),
                has_forms=switch("forms"),
                tells_questions=switch("question_events"),
                limits_payloads=switch("payload_limit"),
                limits_histories=switch("history_limit"),
                seals_secrets=switch("secrets"),
                owns_key=switch("customer_managed_key"),
                has_archive=switch("archive"),
                functions=read_sizes(context("functions")),
                work_batch=_number(text("work_batch"), WORK.batch_size),
                start_concurrency=_number(text("start_concurrency"), None),
                starts_per_second=_number(text("starts_per_second"), STARTS_PER_SECOND),
                log_retention_days=_number(text("log_retention_days"), 30),
                alarm_bounds=read_bounds(context("alarm_bounds")),
            )
        except Unfit as unfit:
            raise unfit.in_context() from None

    @property
    def publishes(self) -> bool:
        """Return True when the workers put events on the account's default event bus."""
        return self.tells_status or self.tells_questions

    def concurrency(self, function: LambdaFunction, queue: Queue) -> int:
        """Return how many batches of `queue` the function processes at once."""
        sized = self.functions[function.name]
        if queue not in _TAKEN_BY_WORKER:
            return _whole(sized, (queue,), self.caps_concurrency)
        # The two queues of the worker share its concurrency. If the sum of their limits were
        # higher, Lambda would throttle the function, and each throttled batch would count towards
        # the dead-letter queue.
        whole = _whole(sized, _TAKEN_BY_WORKER, self.caps_concurrency)
        starts = self.start_concurrency or max(_BATCHES_MIN, whole // 3)
        return starts if queue == resources.STARTS else whole - starts


def _whole(function: LambdaFunction, queues: Sequence[Queue], caps_concurrency: bool) -> int:
    """Return how many batches of all its queues the function processes at once."""
    default = next(one for one in resources.FUNCTIONS if one.name == function.name)
    if caps_concurrency or function.reserved_concurrency != default.reserved_concurrency:
        return function.reserved_concurrency
    return sum(queue.batches_unreserved for queue in queues)


def require_key(settings: Settings, secrets: Mapping[str, Sequence[str]]) -> None:
    """Refuse secrets in a stack without a key for them. `secrets` are the secret values of each
    workflow. Raises HoldfastError HF404.
    """
    named = [f"{workflow} ({', '.join(values)})" for workflow, values in secrets.items() if values]
    if named and not settings.seals_secrets:
        raise HoldfastError(
            "HF404",
            f"there are secrets in {'; '.join(named)}, and the stack has no key for them",
            help="set context `secrets` to on, in cdk.json or with `cdk deploy -c secrets=on`; for "
            "Holdfast(...), leave `secrets_key` out",
        )


def require_variables(key: str, names: Iterable[str]) -> None:
    """Raise Unfit for a name that an environment variable of a function cannot have."""
    for name in names:
        if not _VARIABLE.fullmatch(name) or name.startswith(_RESERVED):
            expected = f"names of letters, digits and _ that do not begin with {_RESERVED}"
            raise Unfit(key, name, expected)


def _require_modules(names: Sequence[str]) -> None:
    if not names or not all(_MODULE.fullmatch(name) for name in names):
        raise Unfit("modules", ",".join(names), "Python module names, separated by commas")


def _require_whole(key: str, found: object, least: int, most: int, otherwise: str = "") -> None:
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise Unfit(key, found, f"a whole number from {least} to {most}{otherwise}")


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _any(text: str) -> Any:
    """Return the text unchanged: `Settings` refuses an invalid value."""
    return text


def _number(text: str, default: int | None) -> Any:
    """Return the number; other text unchanged, so that `Settings` refuses it."""
    if text == "":
        return default
    return int(text) if text.isdigit() else text


def _policies(text: str) -> tuple[str, ...]:
    arns = _split(text) if text else ()
    if not all(_POLICY.fullmatch(arn) for arn in arns):
        raise Unfit("task_policies", text, _EXPECTED_POLICIES)
    return arns


def _switch(key: str, text: str) -> bool:
    match text.lower():
        case "on" | "true":
            return True
        case "off" | "false":
            return False
        case _:
            raise Unfit(key, text, "on or off")


def _jwt(issuer: str, audience: str) -> JwtIssuer | None:
    match issuer, audience:
        case "", "":
            return None
        case "", _:
            raise Unfit("jwt_issuer", issuer, "the issuer's URL, since `jwt_audience` is set")
        case _, "":
            raise Unfit("jwt_audience", audience, "the audience, since `jwt_issuer` is set")
        case _:
            return JwtIssuer(issuer, audience)
