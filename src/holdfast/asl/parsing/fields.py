"""The fields that a state has in one of the two query languages, compiled to templates.

The parser uses `StateFields`, and each language implements it. `where` is the state's place
("/States/ship"), which errors of JSONata name.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from holdfast.asl.documents import StateJson, config_of
from holdfast.asl.program import Json
from holdfast.asl.template import Template, compile_template
from holdfast.lazy_dataclass import dataclass

#: The template of Assign, and the template of the output.
ResultTemplates: TypeAlias = tuple[Template | None, Template | None]


class StateFields(Protocol):
    """The fields of one state. None where a state has no such field."""

    def arguments(self) -> Template | None:
        """Return the data that the state works with: Arguments, or InputPath and Parameters."""
        ...

    def output(self) -> Template | None:
        """Return the state's output: Output; ResultSelector, ResultPath, OutputPath."""
        ...

    def assign(self) -> Template | None: ...

    def pass_result(self) -> Template | None:
        """Return the result of a Pass that both its Assign and its output use; None when they use
        none.
        """
        ...

    def value(self, name: str) -> Template | None:
        """Return a field whose number or text may be computed: Seconds, or SecondsPath."""
        ...

    def items(self) -> Template | None: ...

    def item_selector(self) -> Template | None: ...

    def condition(self, rule: StateJson, where: str) -> Template: ...

    def rule_results(self, rule: StateJson, where: str) -> ResultTemplates: ...

    def catcher_results(self, catcher: StateJson, where: str) -> ResultTemplates: ...

    def inner_arguments(self, holder: StateJson, where: str) -> Template | None:
        """Return Arguments or Parameters of an ItemReader or ResultWriter."""
        ...

    def inner_value(self, holder: StateJson, name: str, where: str) -> Template | None:
        """Return a number in an ItemBatcher."""
        ...

    def batch_input(self, holder: StateJson, where: str) -> Template | None: ...

    def reader_config(self, config: StateJson, where: str) -> Template | None: ...

    def credentials(self) -> Template | None: ...


@dataclass(frozen=True, slots=True)
class JsonataFields:
    state: StateJson
    where: str

    def arguments(self) -> Template | None:
        return self.value("Arguments")

    def output(self) -> Template | None:
        return self.value("Output")

    def assign(self) -> Template | None:
        return self.value("Assign")

    def pass_result(self) -> Template | None:
        # Output and Assign of a JSONata Pass are evaluated separately, so no common result is
        # needed.
        return None

    def value(self, name: str) -> Template | None:
        return _template(self.state, name, self.where)

    def items(self) -> Template | None:
        if "Items" not in self.state:
            return None
        # A distributed Map iterates over the fields of an object, too.
        takes_objects = config_of(self.state).get("Mode") == "DISTRIBUTED"
        where = f"{self.where}/Items"
        return compile_template(self.state["Items"], where, takes_objects=takes_objects)

    def item_selector(self) -> Template | None:
        return self.value("ItemSelector")

    def condition(self, rule: StateJson, where: str) -> Template:
        return compile_template(rule["Condition"], f"{where}/Condition")

    def rule_results(self, rule: StateJson, where: str) -> ResultTemplates:
        return _template(rule, "Assign", where), _template(rule, "Output", where)

    catcher_results = rule_results

    def inner_arguments(self, holder: StateJson, where: str) -> Template | None:
        return _template(holder, "Arguments", where)

    def inner_value(self, holder: StateJson, name: str, where: str) -> Template | None:
        return _template(holder, name, where)

    def batch_input(self, holder: StateJson, where: str) -> Template | None:
        return _template(holder, "BatchInput", where)

    def reader_config(self, config: StateJson, where: str) -> Template | None:
        value: Json = dict(config)
        return compile_template(value, where)

    def credentials(self) -> Template | None:
        return self.value("Credentials")


def _template(holder: StateJson, name: str, where: str) -> Template | None:
    return compile_template(holder[name], f"{where}/{name}") if name in holder else None
