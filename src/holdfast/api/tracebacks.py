"""The traceback of a task's exception as text, with the frames of the author's own modules.

Rules of this file:
* Frames of Holdfast never appear. Consecutive frames of libraries take one line together.
* The text names files by module, not by the folders of a machine. So the same failure has the same
  text everywhere, and the log stores it once for all attempts.
* It contains lines of source code and no values, except in the texts of other exceptions in the
  chain. The caller removes secrets from it.
* Its size is limited, whatever an exception refers to.

Example:

      File "shop/payments.py", line 12, in charge
        return bank.charge(order)
      File "shop/bank.py", line 31, in charge
        answer = session.post(URL, json=order.body, timeout=5)
      ... 9 frames outside the project, the last in requests/adapters.py, line 677
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import groupby, islice
from typing import Final, NamedTuple

from holdfast.api.sealing import is_secret
from holdfast.limits import TRACEBACK_CHARACTERS_MAX

_OURS: Final = "holdfast"
_FRAMES_MAX: Final = 12
_LINE_CHARACTERS_MAX: Final = 160
_TEXT_CHARACTERS_MAX: Final = 300
#: At most this many exceptions of one chain, and of one exception group, are shown.
_CHAINED_MAX: Final = 3
#: At most this many notes of an exception (`add_note`) are shown.
_NOTES_MAX: Final = 5
#: At most this many frames are read. An endless recursion has as many as Python allows, and the
#: first ones show how it began.
_WALKED_MAX: Final = 2_000
_DIRECT: Final = "The above exception was the direct cause of the following exception:"
_DURING: Final = "During handling of the above exception, another exception occurred:"


class _Place(NamedTuple):
    """One frame. `source` is None for a frame outside the project."""

    file: str
    line: int
    function: str
    source: str | None


def traceback_of(error: BaseException, packages: AbstractSet[str]) -> str | None:
    """Return the frames of the exception, and those of its causes. None when no frame is the
    author's.

    `packages` are the author's top-level packages.
    """
    places = {id(one): _places(one, packages) for one in _all(error)}
    if not any(place.source is not None for found in places.values() for place in found):
        return None
    text = _shown(places[id(error)]) + _notes(error)
    for member in _members(error):
        text += f"\nOne exception of the group: {_headline(member)}\n{_shown(places[id(member)])}"
    for cause, joint in _causes(error):
        text = f"{_shown(places[id(cause)])}\n{_headline(cause)}\n\n{joint}\n\n{text}"
    text = text.strip("\n")
    if len(text) > TRACEBACK_CHARACTERS_MAX:
        # Cut the beginning, because the innermost frames are at the end.
        _, _, kept = text[4 - TRACEBACK_CHARACTERS_MAX :].partition("\n")
        text = f"...\n{kept}"
    return text


def secrets_near(error: BaseException) -> set[str]:
    """Return the secrets in the variables of the exception's frames: its text may contain one."""
    found = set()
    for one in _all(error):
        trace = one.__traceback__
        while trace is not None:
            values = trace.tb_frame.f_locals.values()
            found |= {value.get_secret_value() for value in values if is_secret(value)}
            trace = trace.tb_next
    return found


def error_name(error: BaseException) -> str:
    """Return the class's own name, also when its metaclass defines another."""
    return str(type.__dict__["__name__"].__get__(type(error)))


def error_text(error: BaseException) -> str:
    """Return the text of an exception. An error in its own `__str__` must not crash the worker."""
    try:
        # Convert the text to a plain `str`. A subclass of the user could run its own code when the
        # text is cut.
        return str.__str__(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001
        return f"{error_name(error)} has no printable text"


def _all(error: BaseException) -> Iterator[BaseException]:
    yield error
    yield from _members(error)
    yield from (cause for cause, _ in _causes(error))


def _members(error: BaseException) -> tuple[BaseException, ...]:
    return error.exceptions[:_CHAINED_MAX] if isinstance(error, BaseExceptionGroup) else ()


def _causes(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield the exceptions that led to this one, the latest first, as Python would show them."""
    seen, one = {id(error)}, error
    while len(seen) <= _CHAINED_MAX:
        cause, joint = one.__cause__, _DIRECT
        if cause is None and not one.__suppress_context__:
            cause, joint = one.__context__, _DURING
        if cause is None or id(cause) in seen:
            return
        yield cause, joint
        seen.add(id(cause))
        one = cause


def _places(error: BaseException, packages: AbstractSet[str]) -> list[_Place]:
    return [place for place in islice(_walk(error, packages), _WALKED_MAX) if place is not None]


def _walk(error: BaseException, packages: AbstractSet[str]) -> Iterator[_Place | None]:
    """Yield the frames, the outermost first; None for a frame of Holdfast."""
    trace = error.__traceback__
    while trace is not None:
        code, variables = trace.tb_frame.f_code, trace.tb_frame.f_globals
        module = variables.get("__name__")
        name = module if isinstance(module, str) else ""
        package = name.partition(".")[0]
        if package == _OURS:
            yield None
        else:
            source = None
            if package in packages:
                line = linecache.getline(code.co_filename, trace.tb_lineno, variables)
                source = line.strip()[:_LINE_CHARACTERS_MAX]
            file = _file_of(code.co_filename, name)
            yield _Place(file, trace.tb_lineno, code.co_name, source)
        trace = trace.tb_next


def _file_of(path: str, module: str) -> str:
    """Return the end of the path, from the module's top-level package on."""
    parts = path.replace("\\", "/").split("/")
    depth = module.count(".") + 1 + (parts[-1] == "__init__.py")
    return "/".join(parts[-depth:])


def _shown(places: list[_Place]) -> str:
    """Return one paragraph. With many frames it has only the innermost ones."""
    lines = []
    runs = groupby(places, key=lambda place: place.source is not None)
    for is_own, run in runs:
        frames = list(run)
        if is_own:
            lines += [_line(place) for place in frames]
        else:
            last = frames[-1]
            count = "1 frame" if len(frames) == 1 else f"{len(frames)} frames"
            end = f"the last in {last.file}, line {last.line}"
            lines.append(f"  ... {count} outside the project, {end}")
    left_out = len(lines) - _FRAMES_MAX
    if left_out > 0:
        lines = [f"  ... {left_out} earlier frames", *lines[left_out:]]
    return "\n".join(lines)


def _line(place: _Place) -> str:
    head = f'  File "{place.file}", line {place.line}, in {place.function}'
    return f"{head}\n    {place.source}" if place.source else head


def _headline(error: BaseException) -> str:
    return f"{error_name(error)}: {error_text(error)[:_TEXT_CHARACTERS_MAX]}{_notes(error)}"


def _notes(error: BaseException) -> str:
    """Return the texts of `add_note`, one a line. The attribute is the author's, and may hold
    anything.
    """
    notes = getattr(error, "__notes__", None)
    texts = [note for note in notes if type(note) is str] if type(notes) is list else []
    return "".join(f"\n{text[:_TEXT_CHARACTERS_MAX]}" for text in texts[:_NOTES_MAX])
