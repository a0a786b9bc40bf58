"""The compiler, top to bottom: the source of a workflow -> a state machine and its map.

The problem
-----------
A workflow is a Python function, but the engine never runs it. An execution
may take months, so each point of the function must be a state that can be stored. The compiler
reads the source and writes a state machine in Amazon States Language that does exactly what Python
would do. Where no exact form exists, the compiler refuses the line and says what to write instead.
It never approximates.

The stages ----------
    module ──► Source              source.py         one parse of the file, with its own lines
           ──► FunctionDef         _definition       the form of the function: HF004, HF007
           ──► IR                  statements/       the walk along the flow; types; most refusals
           ──► checks              checks.py         handlers that never run, loops that never end
           ──► secrets             secret_places.py  each secret has a place that can keep it
           ──► states              emit/             IR -> ASL; no decisions about Python
           ──► CompiledWorkflow    the definition, its map and its hash

* The lowering (`statements`, `expressions`, `steps`) translates each `ast` node, by the rules of
  Python and by types. It produces structured statements with typed JSONata queries (`ir.py`).
* The emission (`emit`) produces states. It does not use `ast`, and it refuses nothing.
* A graph (`Dag`) has no function body. `compile_dag` emits its plan (`graphs/`) directly.
* `targets` rewrites a compiled workflow for AWS Step Functions. That is a later, separate step.

Refusals
--------
A refusal does not stop the compiler. It is added to `unit.diagnostics`, and
lowering continues with a placeholder (`REFUSED`) that causes no further refusals. So an author sees
all refusals of a module at once. `CompileErrors` is raised before emission, so a placeholder never
becomes part of a state machine. The checks draw no conclusions about lines whose steps were refused
(`lost_lines`).

Example -------
    if cents > 0:                       "if cents > 0": Choice, Condition {% $cents > 0 %}
        receipt = charge(order, cents)  "charge":       Task, Assign receipt {% $states.result %}
    return f"paid {receipt}"            "return …":     Succeed, Output {% "paid " & $receipt %}

Each local name becomes an ASL variable. The name of a state is made from its source text. The map
(`<name>.map.json`) gives for each state its file, line and column, and lists the tasks, child
workflows, events and answers that the workflow uses.

The same source gives the same definition and the same hash in every process. For example,
`ErrorClasses` ignores modules that happen to be imported, because they would change a definition.
"""

from __future__ import annotations

import ast
import json
import sys
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from types import ModuleType
from typing import Any, Final

from holdfast.api.boundary import JsonValue
from holdfast.api.dag import Dag
from holdfast.api.keyed import Keyed
from holdfast.api.library import library_task
from holdfast.api.payloads import reference_of
from holdfast.api.surface import Workflow
from holdfast.asl.parsing.parse import definition_hash
from holdfast.compiler.called import ChildFailures, is_called
from holdfast.compiler.checks import ReportProblem, check, statements_of, unnamed_failures
from holdfast.compiler.context import LibrarySteps, TypedQuery, Unit
from holdfast.compiler.conversions import conversions_of
from holdfast.compiler.diagnostics import CompileErrors, Diagnostic, excerpt
from holdfast.compiler.emit.assembler import resolved
from holdfast.compiler.emit.emit import emit_block
from holdfast.compiler.emit.states import MachineParts
from holdfast.compiler.environment import EVERYTHING, Environment
from holdfast.compiler.expressions.query import FieldOf, Variable
from holdfast.compiler.graphs.compile import GIVEN, emit_dag
from holdfast.compiler.graphs.places import Spot, spot_of
from holdfast.compiler.graphs.plan import by_levels
from holdfast.compiler.hints import hints_of
from holdfast.compiler.ir import Assign, Note, SourcePlace, StatementBlock, StepStatement
from holdfast.compiler.keyed import check_key
from holdfast.compiler.searching import Noted, declared_kinds, noted_at_start
from holdfast.compiler.secret_places import (
    calls_of,
    check_cached,
    check_secrets,
    crossing,
    crossing_of,
)
from holdfast.compiler.shapes import shapes_of
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.source import Source
from holdfast.compiler.statements.aliases import changes_in_place
from holdfast.compiler.statements.flow import Flow
from holdfast.compiler.statements.functions import function_body
from holdfast.compiler.statements.local_names import local_names
from holdfast.compiler.statements.ownership import captured_by
from holdfast.compiler.statements.statements import Statements
from holdfast.compiler.steps.callables import WHOLE_SECONDS, boundary_fault, is_whole
from holdfast.compiler.steps.helpers import calls_changing, is_step, pasted_functions
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.failures import ErrorClasses
from holdfast.compiler.types.types import Type
from holdfast.errors import WorkflowError


@dataclass(frozen=True)
class CompiledWorkflow:
    """A state machine, and the map from its states to the lines of the source."""

    name: str
    asl: dict[str, Any]
    function: str
    tasks: tuple[str, ...]
    workflows: dict[str, str]
    events: dict[str, str]
    answers: dict[str, str]
    sources: dict[str, JsonValue]
    #: Pairs of steps: the first waits for the second although the graph does not require it,
    #: because the target has no other way to express the graph.
    false_waits: tuple[tuple[str, str], ...] = ()
    #: The names of values that are secrets or contain one, such as `charge.token`, `flow.card` and
    #: `event paid`.
    secrets: tuple[str, ...] = ()
    #: The author's hints for a migration, by `renamed`, `tasks` and `assumed_done`.
    migration: dict[str, JsonValue] = field(default_factory=dict)
    #: The JSON forms of the variables; see `shapes.py`.
    shapes: dict[str, JsonValue] = field(default_factory=dict)
    #: The search attributes and their types.
    search: Mapping[str, str] = field(default_factory=dict)
    keyed: Keyed | None = None
    #: For each task that another module than the workflow's defines, that module.
    task_modules: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def definition_hash(self) -> str:
        return definition_hash(self.asl)

    @property
    def asl_text(self) -> str:
        """Return the text of `<name>.asl.json`."""
        return document_of(self.asl)

    @property
    def map_text(self) -> str:
        """Return the text of `<name>.map.json`."""
        return document_of(
            {
                "workflow": self.name,
                "function": self.function,
                "definition": self.definition_hash,
                "tasks": list(self.tasks),
                "workflows": self.workflows,
                "events": self.events,
                "answers": self.answers,
                "sources": self.sources,
                **({"secrets": list(self.secrets)} if self.secrets else {}),
                **({"migration": self.migration} if self.migration else {}),
                **({"shapes": self.shapes} if self.shapes else {}),
                **({"search": dict(self.search)} if self.search else {}),
                **({"keyed": asdict(self.keyed)} if self.keyed else {}),
                **({"task_modules": dict(self.task_modules)} if self.task_modules else {}),
            }
        )


def other_modules(workflow: Workflow[..., Any], tasks: Mapping[str, str]) -> Mapping[str, str]:
    """Return the modules of tasks that the workflow's own module does not define. The module is
    needed, because a task of another module may have the same name as one of this module.
    """
    own = workflow.function.__module__
    found = {name: module for name, module in sorted(tasks.items()) if module != own}
    return {name: module for name, module in found.items() if library_task(name) is None}


def document_of(value: object) -> str:
    """Return the text of a JSON file for people to read and compare."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def compile_module(module: ModuleType, *, in_plain_asl: bool = False) -> list[CompiledWorkflow]:
    """Compile every workflow that `module` defines. Raises CompileErrors with all their refusals.

    `in_plain_asl`: a graph that plain ASL cannot express exactly runs level by level.
    """
    source = _source(module)
    compiled: list[CompiledWorkflow] = []
    refused: list[Diagnostic] = []
    # A module may have two names for one workflow, also with `options`. Compile it only once.
    found = {id(one.function): one for one in _named_in(module) if isinstance(one, Workflow)}
    for workflow in found.values():
        if workflow.function.__module__ == module.__name__:
            try:
                compiled.append(_compile(source, workflow, in_plain_asl=in_plain_asl))
            except CompileErrors as errors:
                refused.extend(errors.diagnostics)
    if refused:
        raise CompileErrors(refused)
    return compiled


def _named_in(module: ModuleType) -> Iterator[object]:
    """Yield the objects of a module, and those in its classes: a workflow there is refused."""
    for value in list(vars(module).values()):
        yield value
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from vars(value).values()


def compile_workflow(workflow: Workflow[..., Any]) -> CompiledWorkflow:
    """Compile one workflow. Raises CompileErrors with all refusals."""
    if isinstance(workflow, Dag):
        return compile_dag(workflow)
    module = sys.modules.get(workflow.function.__module__)
    if module is None:
        raise _without_source(workflow.function.__module__)
    return _compile(_source(module), workflow)


def compile_dag(graph: Dag, *, in_plain_asl: bool = False) -> CompiledWorkflow:
    """Compile a graph as `compile_module` does. The graph need not belong to a module."""
    plan, false_waits = by_levels(graph.plan) if in_plain_asl else (graph.plan, ())
    noted = _noted_of(graph)
    emitted = emit_dag(graph, plan, ErrorClasses(graph.function), noted)
    steps = graph.steps
    return CompiledWorkflow(
        name=graph.name,
        asl=emitted.asl,
        function=reference_of(graph.function),
        tasks=tuple(sorted(emitted.tasks)),
        task_modules=other_modules(graph, emitted.tasks),
        workflows={},
        events={},
        answers={name: reference_of(answer) for name, answer in emitted.answers.items()},
        sources={name: _place(spot) for name, spot in emitted.spots.items()},
        false_waits=tuple((steps[wait.step].id, steps[wait.other].id) for wait in false_waits),
        secrets=_secrets_of(graph),
        search={name: kind for name, kind, _ in noted},
        migration=hints_of(
            graph,
            emitted.asl,
            emitted.spots,
            {
                step.task.renamed: step.task.name
                for step in (*steps, *graph.compensations)
                if step.task.renamed
            },
        ),
    )


def _noted_of(graph: Dag) -> Noted:
    """Return the search attributes of the graph's input."""

    def refuse(code: str, message: str, help_: str) -> None:
        raise WorkflowError(code, f"graph {graph.name}: {message}", help=help_)

    inputs = {
        name: TypedQuery(FieldOf(GIVEN, name), from_annotation(field.annotation))
        for name, field in graph.inputs.items()
    }
    return noted_at_start(graph.search, inputs, refuse)


def _secrets_of(graph: Dag) -> tuple[str, ...]:
    def refuse(_: SourcePlace, code: str, message: str, help_: str) -> None:
        raise WorkflowError(code, f"graph {graph.name}: {message}", help=help_)

    origin = SourcePlace(spot_of(graph.written).span, "")
    steps = (crossing_of(origin, step.task) for step in (*graph.steps, *graph.compensations))
    check_cached(((origin, step.task) for step in graph.steps), refuse)
    return check_secrets(chain(crossing_of(origin, graph), *steps), refuse)


def _place(spot: Spot) -> JsonValue:
    text, _ = excerpt(spot.line, spot.span.column)
    span = spot.span
    return {"file": spot.file, "line": span.line, "column": span.column, "text": text.strip()}


def _source(module: ModuleType) -> Source:
    try:
        return Source.of(module)
    except (OSError, TypeError):
        raise _unreadable(module) from None


def _unreadable(module: ModuleType) -> WorkflowError:
    if getattr(module, "__file__", None) is None and hasattr(module, "__path__"):
        return WorkflowError(
            "HF004",
            f"module {module.__name__} is a folder without an __init__.py",
            help=f"name the modules in it, as `{module.__name__}.orders`",
        )
    return _undecodable(module) or _without_source(module.__name__)


def _undecodable(module: ModuleType) -> WorkflowError | None:
    """Return the refusal of a file with bytes that its encoding does not have, else None. Python
    imports such a file if the bytes are in a comment.
    """
    try:
        with tokenize.open(str(module.__file__)) as file:
            file.read()
    except (UnicodeDecodeError, SyntaxError):
        return WorkflowError(
            "HF004",
            f"{module.__file__} has bytes that are not in its encoding, which is UTF-8 by default",
            help="save it as UTF-8",
        )
    except OSError:
        pass
    return None


def _without_source(name: str) -> WorkflowError:
    return WorkflowError(
        "HF004",
        f"the source of module {name} cannot be read",
        help="put the workflow into a .py file and import it from there",
    )


def _compile(
    source: Source, workflow: Workflow[..., Any], *, in_plain_asl: bool = False
) -> CompiledWorkflow:
    if isinstance(workflow, Dag):
        return compile_dag(workflow, in_plain_asl=in_plain_asl)
    unit, node, block = _named(source, workflow)
    if node is not None and not is_whole(workflow.timeout):
        message = f"the timeout of a workflow must be {WHOLE_SECONDS}"
        unit.refuse(node, "HF052", message, "@workflow(timeout=days(365))")
    try:
        # Code that can never run is not missing in `block`.
        refused = {(found.file, found.line) for found in unit.diagnostics if found.code != "HF010"}
        lost_lines = unit.lost_lines | refused
        report = _reporter(unit)
        statements = statements_of(block)
        check(statements, lost_lines, report, may_run_forever=workflow.keyed is not None)
        keyed = None
        if node is not None and workflow.keyed is not None:
            keyed = check_key(
                _place_of(unit, node), workflow, statements, report, has_refusals=bool(lost_lines)
            )
        own = () if node is None else crossing_of(_place_of(unit, node), workflow)
        secrets = check_secrets((*own, *crossing(statements)), report)
        check_cached(calls_of(statements), report)
        if unit.diagnostics:
            raise CompileErrors(unit.diagnostics)
        emitted = _emit(unit, workflow, block, secrets)
        return emitted if keyed is None else _with_key(emitted, keyed)
    except RecursionError:
        assert node is not None
        raise _too_deep(unit, node) from None


def _named(
    source: Source, workflow: Workflow[..., Any], failures: ChildFailures | None = None
) -> tuple[Unit, ast.FunctionDef | None, StatementBlock]:
    """Lower the workflow. If others call it, its expressions' errors get their names; see `called`.
    Names do not refuse a workflow that is sound without them.
    """
    failures = failures or ChildFailures(_failures_of_child)
    for is_named in (True, False) if is_called(workflow) else (False,):
        unit = Unit(source, workflow)
        unit.library, unit.failures_of_child = LibrarySteps(is_called=is_named), failures
        found = _lowered(unit, workflow)
        if not found[0].diagnostics:
            break
    return found


def _failures_of_child(failures: ChildFailures, workflow: Workflow[..., Any]) -> frozenset[str]:
    """Return the errors without a name that expressions of a called workflow raise."""
    module = sys.modules.get(workflow.function.__module__)
    if module is None or isinstance(workflow, Dag):
        return frozenset()
    try:
        _, _, block = _named(_source(module), workflow, failures)
    except (CompileErrors, WorkflowError):
        # The child reports its own refusals.
        return frozenset()
    return unnamed_failures(block)


#: A pass finds the steps whose operands the passes before it have found. So the number of passes
#: is the depth of such steps, which is seldom more than three.
_PASSES_MAX: Final = 50


def _lowered(
    unit: Unit, workflow: Workflow[..., Any]
) -> tuple[Unit, ast.FunctionDef | None, StatementBlock]:
    """Lower the workflow in as many passes as it needs; see `library_calls`."""
    for _ in range(_PASSES_MAX):
        known = len(unit.library.steps)
        node = _definition(unit, workflow)
        try:
            block = () if node is None else _lower(unit, node, workflow)
        except RecursionError:
            assert node is not None
            raise _too_deep(unit, node) from None
        if len(unit.library.steps) == known:
            return unit, node, block
        unit = unit.anew()
    assert node is not None
    raise _too_deep(unit, node)


def _with_key(emitted: CompiledWorkflow, keyed: Keyed) -> CompiledWorkflow:
    """Put the rule of the business key into the definition. Its hash then covers the rule, and an
    execution keeps the rule with which it began, whatever is deployed later.
    """
    start = "" if keyed.starts_on is None else f", started by {keyed.starts_on}"
    comment = f"{emitted.name}: one for each {keyed.parameter}{start}, unread: {keyed.unread}"
    return replace(emitted, keyed=keyed, asl={**emitted.asl, "Comment": comment})


def _place_of(unit: Unit, node: ast.AST) -> SourcePlace:
    return SourcePlace(unit.source.span(node), "", unit.source)


def _reporter(unit: Unit) -> ReportProblem:
    def report(origin: SourcePlace, code: str, message: str, help_: str) -> None:
        beside = unit if origin.source is None else unit.beside(origin.source, unit.function)
        beside.refuse_at(origin.span, code, message, help_)

    return report


def _too_deep(unit: Unit, node: ast.FunctionDef) -> CompileErrors:
    """Return the refusal of a function that is nested too deeply for the compiler, such as hundreds
    of `elif` or of terms in a sum.
    """
    deepest = max(node.body, key=_depth)
    message = "this is nested more deeply than the compiler can follow"
    help_ = "name the parts, one line each: `x = …`; choose among many values by a dict"
    unit.refuse(deepest, "HF002", message, help_)
    return CompileErrors(unit.diagnostics)


def _depth(node: ast.AST) -> int:
    deepest, level = 0, [node]
    while level:
        deepest, level = deepest + 1, [part for one in level for part in ast.iter_child_nodes(one)]
    return deepest


def _definition(unit: Unit, workflow: Workflow[..., Any]) -> ast.FunctionDef | None:
    """Return the `def` of the workflow if it has an allowed form, else None after a refusal."""
    node = unit.source.find(workflow.function)
    if node is None:
        raise _without_source(workflow.function.__module__)
    arguments = node.args
    odd = [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    for nameless in arguments.posonlyargs:
        message = f"parameter `{nameless.arg}` is given by name, as the JSON input does"
        unit.refuse(nameless, "HF007", message, f"def {node.name}({nameless.arg}, …):")
    if isinstance(node, ast.AsyncFunctionDef):
        line = unit.source.line_text(node.lineno).removeprefix("async ")
        unit.refuse(node, "HF007", "a workflow is a plain function, without `await`", line)
        node = as_plain(node)
    if "." in workflow.function.__qualname__:
        message = "a workflow stands at the top of a module"
        help_ = f"move `def {node.name}(…)` out of the function or class around it"
        if node.args.args and node.args.args[0].arg == "self":
            help_ += ", without `self`: its state is its local variables"
        unit.refuse(node, "HF007", message, help_)
    for extra in odd:
        message = f"parameter `{extra.arg}` has no name in the JSON input"
        unit.refuse(extra, "HF007", message, f"{extra.arg}: list[str]")
    return node


def as_plain(node: ast.AsyncFunctionDef) -> ast.FunctionDef:
    """Return the function without `async`, so that the refusals of its body are reported, too."""
    made = ast.FunctionDef(
        node.name, node.args, node.body, node.decorator_list, node.returns, node.type_comment
    )
    return ast.copy_location(made, node)


def _lower(unit: Unit, node: ast.FunctionDef, workflow: Workflow[..., Any]) -> StatementBlock:
    names = local_names(node)
    scope = unit.scope(None, node, names)
    if changes_in_place(node) or calls_changing(unit, scope, node):
        pasted = pasted_functions(unit, scope, node)
        unit.captured = captured_by(node, lambda part: is_step(unit, scope, part), pasted)
    statements = Statements(unit, scope, Flow(Environment({})))
    for name in names:
        scope.name(name)
    start = _start(unit, node, workflow, statements)
    return (*start, *function_body(statements, node))


def _start(
    unit: Unit, node: ast.FunctionDef, workflow: Workflow[..., Any], statements: Statements
) -> StatementBlock:
    types = signature_of(workflow.function)
    if types.fault is not None:
        unit.refuse(node, "HF004", f"an annotation {types.fault.message}", types.fault.help)
    elif (refused := boundary_fault(workflow)) is not None:
        unit.refuse(node, refused.code, refused.message, refused.help)
    values = []
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if argument.annotation is None and argument.arg != "self":
            name = argument.arg
            message = f"parameter `{name}` needs a type annotation"
            unit.refuse(argument, "HF006", message, f"{name}: str")
        type_: Type = types.parameters[argument.arg]
        query = FieldOf(FieldOf(Variable("states"), "input"), argument.arg)
        variable = statements.hold(argument.arg, type_, owned=EVERYTHING)
        values.append((variable, TypedQuery(query, type_)))
    origin = statements.origin(node, "start")
    start = (Assign(origin, tuple(values)),) if values else ()
    return (*start, *_search(unit, node, workflow, statements))


def _search(
    unit: Unit, node: ast.FunctionDef, workflow: Workflow[..., Any], statements: Statements
) -> StatementBlock:
    """Return the step that sets the search attributes that come from the input."""
    if not workflow.search:
        return ()
    types = signature_of(workflow.function).parameters
    inputs = {
        name: TypedQuery(Variable(statements.scope.name(name)), type_)
        for name, type_ in types.items()
    }

    def refuse(code: str, message: str, help_: str) -> None:
        unit.refuse(node, code, message, help_)

    noted = noted_at_start(workflow.search, inputs, refuse)
    return (StepStatement(statements.origin(node, "search"), Note(noted), ()),) if noted else ()


def _emit(
    unit: Unit, workflow: Workflow[..., Any], block: StatementBlock, secrets: tuple[str, ...]
) -> CompiledWorkflow:
    machine = MachineParts(unit.world)
    states = emit_block(machine, block)
    head: dict[str, Any] = {"Comment": workflow.name, "QueryLanguage": "JSONata"}
    if workflow.timeout is not None:
        head["TimeoutSeconds"] = int(workflow.timeout.total_seconds())
    extension = {"Holdfast": resolved(machine.extension)} if machine.extension else {}
    asl = {**head, **states, **extension}
    return CompiledWorkflow(
        name=workflow.name,
        asl=asl,
        function=reference_of(workflow.function),
        tasks=tuple(sorted(machine.tasks)),
        task_modules=other_modules(workflow, machine.tasks),
        workflows=dict(sorted(machine.workflows.items())),
        events={name: reference_of(payload) for name, payload in sorted(machine.events.items())},
        answers={name: reference_of(answer) for name, answer in machine.answers.items()},
        sources={name: _row(unit, origin) for name, origin in machine.names.origins.items()},
        secrets=secrets,
        migration=_migration_of(unit, workflow, asl, machine),
        shapes=shapes_of(unit.assigned),
        search=declared_kinds(workflow.search, signature_of(workflow.function).parameters),
    )


def _migration_of(
    unit: Unit, workflow: Workflow[..., Any], asl: dict[str, Any], machine: MachineParts
) -> dict[str, JsonValue]:
    hints = hints_of(workflow, asl, machine.names.origins, machine.renamed)
    computed = conversions_of(workflow, unit.assigned, unit.source.file)
    return {**hints, "computed": computed} if computed else hints


def _row(unit: Unit, origin: SourcePlace) -> JsonValue:
    span, source = origin.span, origin.source or unit.source
    return {
        "file": source.file,
        "line": span.line,
        "column": span.column,
        "text": source.line_text(span.line),
    }
