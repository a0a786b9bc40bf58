"""What a deployment may choose: the CDK context, from `cdk.json` or `cdk deploy -c key=value`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from holdfast.errors import HoldfastError

Architecture = Literal["arm64", "x86_64"]

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_PYTHON: Final = re.compile(r"3\.\d+")
# IAM user guide, "IAM ARNs": customer managed policies name an account, AWS's own do not.
_POLICY: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+")
# IAM quota: managed policies attached to one role, unless AWS has raised it.
_POLICIES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class JwtIssuer:
    """Who signs the bearer tokens that the API accepts, and for whom they must be meant."""

    issuer: str
    audience: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`modules` hold the workflows and tasks. Without `jwt` the API asks for IAM signatures.

    `caps_concurrency` reserves concurrency for each function; an account whose whole limit is
    small cannot afford that. Alarms notify `alarm_topic_arn`, or only show on the console.
    `task_policies` are ARNs of managed policies: what tasks may do.
    `tells_status`: the account's default bus hears when executions of state machines begin and end.
    `limits_payloads`: AWS's 256 KiB hold for the data of state machines.
    `seals_secrets`: the stack has a key for the values that workflows mark as secret.
    `owns_key`: what is stored is encrypted with a key of the stack's own, not with AWS's.
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

    @classmethod
    def from_context(cls, context: Callable[[str], object]) -> Self:
        """`context` is the `node.try_get_context` of an app."""

        def text(key: str) -> str:
            value = context(key)
            return "" if value is None else str(value).strip()

        return cls(
            modules=_modules(text("modules")),
            architecture=_architecture(text("architecture")),
            python=_python(text("python")),
            caps_concurrency=_switch("reserved_concurrency", text("reserved_concurrency")),
            jwt=_jwt(text("jwt_issuer"), text("jwt_audience")),
            alarm_topic_arn=text("alarm_topic_arn") or None,
            task_policies=_policies(text("task_policies")),
            tells_status=_switch("status_events", text("status_events")),
            limits_payloads=_switch("payload_limit", text("payload_limit")),
            seals_secrets=_switch("secrets", text("secrets")),
            owns_key=_switch("customer_managed_key", text("customer_managed_key")),
        )


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
