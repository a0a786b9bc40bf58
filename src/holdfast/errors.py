"""Every error that Holdfast raises deliberately, by the person who can do something about it.

* `WorkflowError`: the author of a workflow or a definition corrects it.
* `RequestError`: the caller of the API or the command line corrects it.
* `ServiceFault`: AWS failed; `retry` says when to try again.
* `HoldfastBug`: Holdfast is wrong. It reports the contradiction and stops before it writes.

A message names the place, what was found and what was expected; `help` is the correction. Codes are
stable: HF0xx compiler, HF1xx definitions, HF2xx requests, HF3xx stored formats and services, HF4xx
deployment, HF9xx bugs. docs/reference/errors.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal


class HoldfastError(Exception):
    """The base class: a stable `code`, a sentence, and a `help`, which may be ""."""

    def __init__(self, code: str, message: str, *, help: str = "") -> None:  # noqa: A002
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.help:
            lines.append(f"  = help: {self.help}")
        return "\n".join(lines)


class WorkflowError(HoldfastError):
    """A workflow or a definition cannot be accepted."""


class RequestError(HoldfastError):
    """A request that must be changed before it can be served. `status` is its HTTP status.

    `diagnostics` are the parts of a document that are refused, each with `code`, `message`, `help`,
    `line` and `column`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        help: str = "",  # noqa: A002
        diagnostics: Sequence[Mapping[str, str | int]] = (),
    ) -> None:
        super().__init__(code, message, help=help)
        self.status = status
        self.diagnostics = tuple(diagnostics)


class GoneTypeError(LookupError):
    """The deployed code has no type with that name: the definition that names it may be older.

    It never leaves the process: the API decides how the value is handled.
    """


class FormatError(HoldfastError):
    """Stored data in a format that this release cannot read. It must not be changed."""


class NewerFormatError(FormatError):
    """An item or message was written by newer code (HF301)."""

    def __init__(self, what: str, found: int, known: int) -> None:
        super().__init__(
            "HF301",
            f"{what} has format {found}; this code reads up to {known}",
            help="deploy the newer code everywhere before anything writes its format",
        )


class UnknownKindError(FormatError):
    """An item has a kind that only newer code knows (HF301)."""

    def __init__(self, what: str, kind: str) -> None:
        super().__init__(
            "HF301",
            f"{what} has the kind {kind!r:.40}, which this code does not know",
            help="deploy the newer code everywhere before anything writes that kind",
        )


class OlderFormatError(FormatError):
    """An item was written in an old format that this release does not read."""

    def __init__(self, what: str, found: int, known: int) -> None:
        super().__init__(
            "HF302",
            f"{what} has format {found}; this code reads from {known} on",
            help="deploy code that reads both; within a week it has moved every open execution on",
        )


class SnapshotError(FormatError):
    """A snapshot has fields that this code does not know (HF303). The log must be read instead."""

    def __init__(self, what: str, unknown: str) -> None:
        super().__init__(
            "HF303",
            f"the snapshot in {what} holds {unknown}, which this code does not know, and the "
            "records before it are gone",
            help="deploy the code that wrote it, or newer code",
        )


class ServiceFault(HoldfastError):  # noqa: N818
    """A call of AWS failed. It may be unknown whether AWS has carried it out."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retry: Literal["never", "now", "later"] = "later",
        help: str = "",  # noqa: A002
    ) -> None:
        super().__init__(code, message, help=help)
        self.retry = retry


def is_passing(error: HoldfastError) -> bool:
    """Return True when the same call may succeed later. Missing, damaged or refused data does not
    change.
    """
    return isinstance(error, ServiceFault) and error.retry != "never"


def is_damage(error: HoldfastError) -> bool:
    """Return True when the error is about the stored data of one execution: it is missing, or
    differs from what was written.
    """
    return not isinstance(error, ServiceFault) or error.code == GONE


class VaultFault(ServiceFault):
    """A secret could not be encrypted or decrypted. The message never contains any part of it."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the author or caller probably meant."""
    # Imported here because a refusal is rare, and the import would make the start of a Lambda
    # function slower.
    import difflib  # noqa: PLC0415

    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def known_names(name: object, known: Iterable[str]) -> str:
    """Return the help for an unknown name: the name that was probably meant, and all existing
    names.
    """
    names = sorted(known)
    meant = nearest(name, names) if isinstance(name, str) and len(name) < NAME_READ_MAX else None
    listed = f"known: {', '.join(names) or 'none'}"
    return listed if meant is None else f"did you mean {meant}? {listed}"


#: A longer name is not compared with others. A caller chooses the name, and the time of the
#: comparison grows with the square of its length.
NAME_READ_MAX: Final = 200

BUG: Final = "HF900"
#: The code of the error when an item or object is missing that must exist.
GONE: Final = "HF324"


_REPORT: Final = "please report this, with the command or with the execution's history"


class HoldfastBug(HoldfastError):  # noqa: N818
    """Something that must always be true is not. Nothing was written."""

    def __init__(self, message: str) -> None:
        super().__init__(BUG, message, help=_REPORT)
