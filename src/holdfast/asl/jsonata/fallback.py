"""The reference engine: jsonata-python's evaluator, with a new instance for each evaluation.

Rules of this file:

* An `_Evaluator` lives for one evaluation. The library keeps state in thread-locals and in shared
  instances. Because each evaluation has its own instance, several threads can use one syntax tree.
* In the library undefined is `None` and null is `NULL_VALUE`. Values are converted before and
  after. Only what contains a null is copied, so that other values keep their identity.
* Where the library differs from JSONata 2.0.6, a method here or a function of `functions.py`
  replaces its part. The library itself is never changed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any, Final

from jsonata import JException, Jsonata, Parser, Utils

from holdfast.asl.jsonata import costs, functions, values
from holdfast.asl.jsonata.convert import exported, imported
from holdfast.asl.jsonata.errors import translate, translate_syntax
from holdfast.asl.jsonata.evaluation import text_of
from holdfast.asl.jsonata.regex import CompiledRegex, compile_regex, match_object
from holdfast.asl.jsonata.runtime import EvaluationRun
from holdfast.asl.jsonata.values import EvaluationMoment, StrictJson, Undefined, budget_error

# For each item of a group the library copies, on average, half of the other items. This many copies
# cost one item of the budget.
_COPIED_PER_ITEM: Final = 200
# The library tries every combination of present and absent optional parameters. With more
# parameters than this the evaluation would take too long.
_OPTIONAL_PARAMETERS_MAX: Final = 12
_ITEMS_PER_ROW: Final = 20  # the cost of one row of a join (`@$x`), which is a separate dict

_SURROGATES: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE
)
# The operators that the library parses in quadratic time, and how many of each an expression may
# have.
_CHAINED_MAX: Final = {re.compile("~>"): 4_000, re.compile(r"%\s*\."): 1_500}
_PARSER: Final = Parser()
_PARSER_LOCK: Final = threading.Lock()

FUNCTION_NAMES: Final = frozenset(functions.FRAME.bindings)


def parse(text: str) -> Any:
    """Return the syntax tree. Raises JsonataError."""
    for chained, most in _CHAINED_MAX.items():
        if len(chained.findall(text)) > most:
            raise budget_error(f"has more than {most:,} of {chained.pattern}")
    with _PARSER_LOCK:
        # All expressions share one parser, because creating a parser takes longer than parsing most
        # expressions. So reset the data of the expression before.
        _PARSER.errors = []
        _PARSER.ancestry = []
        _PARSER.ancestor_label = 0
        _PARSER.ancestor_index = 0
        try:
            return _PARSER.parse(_with_surrogates_joined(text), compile_regex)
        except Exception as error:  # noqa: BLE001  # the library leaks whatever Python raises
            raise translate_syntax(error, text) from None


def _with_surrogates_joined(text: str) -> str:
    r"""Join a surrogate pair, which the tokenizer reads as two characters: `"\uD834\uDD1E"` gives
    `"𝄞"`.
    """
    if "\\uD" not in text and "\\ud" not in text:
        return text
    return _SURROGATES.sub(
        lambda pair: pair[1] + bytes.fromhex(pair[2] + pair[3]).decode("utf-16-be"), text
    )


def evaluate(tree: Any, run: EvaluationRun, moment: EvaluationMoment) -> StrictJson | Undefined:
    """Return the value of a syntax tree, within the rest of the budget in `run`. Raises
    JsonataError.
    """
    evaluator = _Evaluator(run, moment)
    before = getattr(Jsonata.CURRENT, "jsonata", None)
    # The functions of the library read their evaluator here.
    Jsonata.CURRENT.jsonata = evaluator
    try:
        return exported(evaluator.run(tree, run.bindings))
    except Exception as error:  # noqa: BLE001  # the library leaks whatever Python raises
        raise translate(error) from None
    finally:
        if before is None:
            del Jsonata.CURRENT.jsonata
        else:
            Jsonata.CURRENT.jsonata = before


def _is_nested(items: list[Any]) -> bool:
    return any(isinstance(item, list) for item in items)


class _Bindings(Jsonata.Frame):  # type: ignore[misc]  # the library is not typed
    """The outermost frame. A variable is converted when it is first read, because most are never
    read.
    """

    def __init__(self, bindings: Mapping[str, StrictJson]) -> None:
        super().__init__(functions.FRAME)
        # The library looks up these two names at every node. Bind them here, so that each search
        # ends in this frame.
        self.bindings.update(__evaluate_entry=None, __evaluate_exit=None)
        self._raw = bindings

    def lookup(self, name: str) -> Any:
        if name not in self.bindings and name in self._raw:
            self.bindings[name] = imported(self._raw[name])
        return super().lookup(name)


class _Transformer(Jsonata.Transformer):  # type: ignore[misc]  # the library is not typed
    """`~> |pattern|update|`. The library copies the whole value, which may be very large when it
    contains one list many times; so the copy is charged.
    """

    def call(self, input: Any, args: Any) -> Any:  # noqa: A002
        self._jsonata.charge(costs.copying_items(args[0]))
        values.require_characters(args[0], values.STRING_CHARACTERS_MAX)
        return super().call(input, args)


class _Evaluator(Jsonata):  # type: ignore[misc]  # the library is not typed
    """One evaluation: its budgets, and the operators of JSONata 2.0.6."""

    def __init__(self, run: EvaluationRun, moment: EvaluationMoment) -> None:
        # Do not call the constructor of the base class. It parses a text and replaces the thread's
        # current instance.
        self.moment = moment
        self.parser = _PARSER
        self.environment = functions.FRAME
        self.input = None
        self._run = run
        self._steps = run.steps
        self._depth = 0
        self._items_per_result = 1
        self._written: dict[Any, type] = {}
        self.regex_seconds_left = run.regex_seconds_left

    def run(self, tree: Any, bindings: Mapping[str, StrictJson]) -> Any:
        frame = _Bindings(bindings)
        document = frame.lookup("$")
        if isinstance(document, list):
            # Wrap an array in a sequence. Otherwise JSONata would use each of its items as a
            # separate input.
            document = Utils.create_sequence(document)
            document.outer_wrapper = True
        return self.eval(tree, document, frame)

    def charge(self, items: int) -> None:
        self._run.charge(items * self._items_per_result)

    def charge_for(self, value: Any, times: int = 1) -> None:
        """Charge for one pass over a value, at `times` the cost of a copy."""
        if isinstance(value, list | dict):
            size = len(value) * times
            if size > costs.BULK_MIN:
                self.charge(size)
            if times and isinstance(value, list) and _is_nested(value):
                # Count the parts before they are visited. A list that contains the same list twice,
                # forty levels deep, takes little memory, but has too many parts to visit.
                self.charge(values.node_count(value) * times)
        elif isinstance(value, str) and len(value) * times > costs.BULK_MIN:
            self.charge(len(values.checked_text(value)) * times // costs.CHARACTERS_PER_ITEM)

    def eval(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        self._steps += 1
        if self._steps > values.STEPS_MAX:
            raise budget_error(f"took more than {values.STEPS_MAX:,} steps")
        self.charge(values.ITEMS_PER_STEP)
        self._depth += 1
        if self._depth > values.DEPTH_MAX:
            raise budget_error(f"nested deeper than {values.DEPTH_MAX:,}")
        try:
            result = self._eval(expr, input, environment)
        finally:
            self._depth -= 1
        self.charge_for(result)
        if isinstance(result, list | dict) and not isinstance(
            result, self._written.get(expr, object)
        ):
            self.charge(costs.writing_items(result))
        return result

    def apply_inner(self, proc: Any, args: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        if not self.is_function_like(proc):
            # The library would raise the same error, but would also print to stdout.
            raise JException("T1006", -1)
        if isinstance(proc, CompiledRegex):
            return match_object(proc.finditer(args[0])) if isinstance(args[0], str) else None
        return super().apply_inner(proc, args, input, environment)

    def evaluate_tuple_step(self, *args: Any) -> Any:
        before = self._items_per_result
        self._items_per_result = _ITEMS_PER_ROW
        try:
            return super().evaluate_tuple_step(*args)
        finally:
            self._items_per_result = before

    def evaluate_literal(self, expr: Any) -> Any:
        return values.without_long_integers(super().evaluate_literal(expr))

    def evaluate_lambda(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        closure = super().evaluate_lambda(expr, input, environment)
        if closure.signature is not None:
            optional = sum(parameter.regex.endswith("?") for parameter in closure.signature._params)  # noqa: SLF001
            if optional > _OPTIONAL_PARAMETERS_MAX:
                raise budget_error("made a function of too many optional parameters")
            closure.signature = functions.null_aware(closure.signature)
        return closure

    def evaluate_numeric_expression(self, lhs: Any, rhs: Any, op: Any) -> Any:
        if lhs is not None and not Utils.is_numeric(lhs):
            raise JException("T2001", -1, op, lhs)
        if rhs is not None and not Utils.is_numeric(rhs):
            raise JException("T2002", -1, op, rhs)
        if lhs is None or rhs is None:
            return None
        return values.arithmetic(op, lhs, rhs)

    def evaluate_equality_expression(self, lhs: Any, rhs: Any, op: Any) -> Any:
        if lhs is None or rhs is None:
            return False
        self.charge(costs.comparison_items(lhs))
        return values.deep_equal(lhs, rhs) == (op == "=")

    def evaluate_includes_expression(self, lhs: Any, rhs: Any) -> Any:
        if lhs is None or rhs is None:
            return False
        items = rhs if isinstance(rhs, list) else [rhs]
        self.charge(len(items))
        if isinstance(lhs, str):
            self.charge(costs.compared_items(lhs, items))
        return any(values.same_item(item, lhs) for item in items)

    def evaluate_string_concat(self, lhs: Any, rhs: Any) -> str:
        return values.checked_text(text_of(lhs) + text_of(rhs))

    def evaluate_range_expression(self, lhs: Any, rhs: Any) -> Any:
        if lhs is not None and not functions.is_integer(lhs):
            raise JException("T2003", -1, lhs)
        if rhs is not None and not functions.is_integer(rhs):
            raise JException("T2004", -1, rhs)
        if lhs is None or rhs is None or lhs > rhs:
            return None
        size = int(rhs) - int(lhs) + 1
        if size > values.RANGE_ITEMS_MAX:
            raise JException("D2014", -1, size)
        self.charge(size)
        return Utils.create_sequence_from_iter(range(int(lhs), int(rhs) + 1))

    def evaluate_unary(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        return values.without_long_integers(super().evaluate_unary(expr, input, environment))

    def _may_write(self, node: Any, unless: type) -> None:
        """Refuse a value that the library would write into an error about its type. It writes all
        of it, which may be too long.
        """
        if node is not None:
            self._written[node] = unless

    def evaluate_group_expression(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        for key, _ in expr.lhs_object:
            self._may_write(key, unless=str)
        if isinstance(input, list) and not input:
            if getattr(input, "tuple_stream", False):
                return {}
            # Create a new sequence, because the library adds its result to the array that it is
            # given.
            input = Utils.create_sequence()  # noqa: A001
        elif isinstance(input, list):
            # For each further item of a group the library copies the items that are already in the
            # group.
            self.charge(len(input) ** 2 // _COPIED_PER_ITEM)
        return super().evaluate_group_expression(expr, input, environment)

    def reduce_tuple_stream(self, tuple_stream: Any) -> Any:
        # The library copies these items, too, like those of a group.
        if isinstance(tuple_stream, list):
            self.charge(len(tuple_stream) ** 2 * len(tuple_stream[0]) // _COPIED_PER_ITEM)
        return super().reduce_tuple_stream(tuple_stream)

    def evaluate_name(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        if isinstance(input, list):
            self.charge(values.node_count(input) if _is_nested(input) else len(input))
        return super().evaluate_name(expr, input, environment)

    def evaluate_wildcard(self, expr: Any, input: Any) -> Any:  # noqa: A002
        parts = list(input.values()) if isinstance(input, dict) else input
        if isinstance(parts, list):
            # For each list the library copies its intermediate result, so charge for the copies.
            lists = [part for part in parts if isinstance(part, list)]
            found = sum(map(values.node_count, lists)) + len(parts)
            self.charge(found + found * len(lists) // _COPIED_PER_ITEM)
        return super().evaluate_wildcard(expr, input)

    def evaluate_descendants(self, expr: Any, input: Any) -> Any:  # noqa: A002
        self.charge(values.node_count(input))
        return super().evaluate_descendants(expr, input)

    def evaluate_transform_expression(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002, ARG002
        self._may_write(expr.update, unless=dict)
        self._may_write(expr.delete, unless=str)
        return Jsonata.JFunction(_Transformer(self, expr, environment), "<(oa):o>")

    def evaluate_partial_application(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        procedure = expr.procedure
        if procedure.type == "path" and self.eval(procedure, input, environment) is None:
            name = str(procedure.steps[0].value)
            if environment.lookup(name) is not None:
                raise JException("T1007", expr.position, name)
        return super().evaluate_partial_application(expr, input, environment)

    def partial_apply_native_function(self, native: Any, args: Any) -> Any:
        # Use a parser of its own for this call, because it parses, and another thread may be using
        # the shared parser.
        self.parser = Parser()
        try:
            return super().partial_apply_native_function(native, args)
        finally:
            self.parser = _PARSER
