"""Refusals of the compiler: a message, the source line, a mark under it, and help that shows code
to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from holdfast.errors import WorkflowError

#: Every code of the compiler with its meaning. docs/reference/errors.md has an example of each.
CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "HF000": "augmented assignment to something other than a name or a part of one",
        "HF001": "a statement that the language does not have",
        "HF002": "an expression that has no exact JSONata form",
        "HF003": "a value from outside that is not a constant",
        "HF004": "a name that does not exist, or source that cannot be read",
        "HF005": "a call of a function that is neither a step nor a helper",
        "HF006": "a parameter without a type annotation",
        "HF007": "a workflow or branch declared in a way the language does not have",
        "HF008": "arguments that do not fit the call",
        "HF010": "code that can never run",
        "HF011": "an expression statement without effect",
        "HF012": "a durable step where it might not run, or might run more than once",
        "HF013": "an expression that may fail before a durable step of the same line",
        "HF014": "a loop that can never end",
        "HF020": "assignment into a value that does not change",
        "HF021": "assignment from a branch to a variable outside it",
        "HF022": "a variable that may have no value yet",
        "HF023": "a list that is changed while something else refers to it",
        "HF030": "an `except` or `raise` form that the language does not have",
        "HF031": "an error class whose text or name cannot be kept",
        "HF032": "an expression error caught by its own name",
        "HF033": "a handler that can never run",
        "HF034": "the text of an error that an expression raised",
        "HF035": "a pattern that has no exact test",
        "HF040": "an operation between types that do not go together",
        "HF041": "the truth of a value whose JSON does not decide it",
        "HF042": "an integer that JSON numbers cannot hold",
        "HF043": "a value that may be None",
        "HF044": "a field that does not exist",
        "HF045": "a model that cannot be built exactly",
        "HF046": "a value of unknown type where the type decides",
        "HF047": "a log line that is not a text and its values",
        "HF048": "a comparison that Python and JSON answer differently",
        "HF049": "an order between values that have none",
        "HF050": "a context manager that the language does not have",
        "HF051": "text of a value that Python and JSONata write differently",
        "HF052": "a duration that is not whole seconds",
        "HF053": "an event or a question that is not declared plainly",
        "HF411": "a reminder of a question that cannot come",
        "HF055": "steps of a graph that wait for each other",
        "HF056": "a step or task of a graph that does not exist, or is there twice",
        "HF057": "a graph that is not written in its form",
        "HF059": "a task called inside a @pure function",
        "HF060": "an inline task with too long a timeout",
        "HF061": "retry settings that no state machine can keep",
        "HF062": "a choice of tasks that is not called by name",
        "HF064": "for `--target stepfunctions`: what only Holdfast's engine can run",
        "HF065": "for `--target stepfunctions`: what is beyond a limit of AWS",
        "HF066": "a secret where none can be kept",
        "HF070": "a module that cannot be found",
        "HF071": "two tasks or two workflows with one name",
        "HF080": "a wait outside an engine, or a step of workflows in a task",
        "HF085": "the name of a published value that is computed",
        "HF086": "`start` of something other than a workflow; or a later time that is given in "
        "another word, or twice",
        "HF087": "`again` where the workflow cannot go on as new",
        "HF150": "a search attribute that is not a field of the input",
        "HF151": "a search attribute of a type that cannot be searched",
        "HF152": "`note(…)` of an attribute that the workflow does not declare, or of another type",
        "HF156": "a key that is not text, or a workflow that does not take its first event",
        "HF157": "a call of a workflow that has a key, or a later start of one",
        "HF159": "a way through the handling of a request without a reply at its end",
        "HF161": "two tasks of one name in one workflow",
        "HF160": "a request that is not received by a `with`, under a name",
        "HF370": "a wait for a condition with other settings than constants that are possible",
        "HF371": "a wait for a condition of a task that never returns None",
        "HF180": "a service of AWS that does not exist",
        "HF181": "an action that the service of AWS does not have",
        "HF182": "a parameter that the action of a service does not have",
        "HF183": "a call of a service without a parameter that it needs",
        "HF184": "a value that cannot be the parameter of a service",
        "HF185": "an endpoint that is not https",
        "HF190": "a field that the result of a service does not have",
        "HF191": "a request as a value",
        "HF520": "an annotation that pydantic cannot read, such as `Iterator[int]`",
        "HF187": "a secret for a task that runs outside of the engine",
    }
)


#: A refusal shows only a part of a line that is longer than this. A document of JSON may be a
#: single line, which many refusals would show as a whole.
_LINE_CHARACTERS_MAX: Final = 160
#: The part of a long line begins this many characters before the place of the refusal.
_BEFORE_CHARACTERS: Final = 40


def excerpt(line: str, column: int) -> tuple[str, int]:
    """Return the part of the line around the column, and the column in that part."""
    if len(line) <= _LINE_CHARACTERS_MAX:
        return line, column
    begin = max(0, column - 1 - _BEFORE_CHARACTERS)
    part = line[begin : begin + _LINE_CHARACTERS_MAX]
    before = "…" if begin else ""
    after = "…" if begin + _LINE_CHARACTERS_MAX < len(line) else ""
    return f"{before}{part}{after}", column - begin + len(before)


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One refusal. Lines and columns count from 1; `width` is the length of the caret line."""

    file: str
    line: int
    column: int
    code: str
    message: str
    help: str
    source_line: str
    width: int

    def render(self) -> str:
        margin = f"{self.line:5} | "
        text, column = excerpt(self.source_line, self.column)
        is_whole = text == self.source_line
        width = self.width if is_whole else min(self.width, len(text) - column + 1)
        caret = " " * (len(margin) - 2) + "| " + " " * (column - 1) + "^" * width
        lines = [
            f"{self.file}:{self.line}:{self.column}: error[{self.code}]: {self.message}",
            f"{margin}{text}".rstrip(),
            caret,
        ]
        if self.help:
            before = " " * (len(margin) - 2)
            first, *others = self.help.split("\n")
            lines.append(f"{before}= help: {first}")
            lines += [f"{before}        {line}".rstrip() for line in others]
        return "\n".join(lines)


class CompileErrors(WorkflowError):  # noqa: N818 - there may be several
    """All refusals of a module, in the order of the source."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(set(diagnostics)))
        first = self.diagnostics[0]
        super().__init__(first.code, first.message, help=first.help)

    def __str__(self) -> str:
        return "\n\n".join(diagnostic.render() for diagnostic in self.diagnostics)
