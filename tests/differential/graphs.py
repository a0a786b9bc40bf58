"""Random graphs: steps, what they depend on, and where their arguments come from."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.differential.choices import Choices

#: The parameters and the result type of each task.
_TASKS: Final = {
    "echo": ({"value": "int"}, "int"),
    "flaky": ({"value": "int"}, "int"),
    "beating": ({"value": "int"}, "int"),
    "careful": ({"name": "str", "loud": "bool"}, "str"),
    "total_of": ({"lines": "list[Line]", "extra": "int"}, "int"),
    "sum_of": ({"values": "list[int]"}, "int"),
    "order_of": ({"number": "int"}, "Order"),
    "name_of": ({"order": "Order"}, "str | None"),
}
_INPUTS: Final = {
    "int": ["n", "m"],
    "str": ["s"],
    "bool": ["b"],
    "list[Line]": ["lines"],
    "list[int]": ["xs"],
    "Order": ["order"],
}
_CONSTANTS: Final = {"int": "7", "str": '"k"', "bool": "True", "list[int]": "[1, 2]"}


def graph(choices: Choices, counts: Counter[str]) -> str:
    """The source of `flow`, a graph."""
    given: list[tuple[str, str, list[str]]] = []
    rows = []
    for number in range(1 + choices.below(6)):
        task = choices.pick(list(_TASKS))
        earlier = [one for one in given if choices.chance(40)]
        parameters, result = _TASKS[task]
        arguments = [
            f'"{name}": {_argument(choices, type_, earlier)}' for name, type_ in parameters.items()
        ]
        options = choices.pick(["", "", ".options(retry=Retry(max_attempts=2))"])
        options = "" if task == "total_of" else options  # a pure function has none
        name = f"s{number}"
        needs = [one[0] for one in earlier]
        rows.append(
            f'    step("{name}", {task}{options}, depends_on={needs!r}, '
            f"arguments={{{', '.join(arguments)}}}),"
        )
        given.append((name, result, needs))
        counts["graph step"] += 1
    # A step may be defined after those that depend on it.
    rows.insert(0, rows.pop(choices.below(len(rows))))
    bound = choices.pick(["", "", "    timeout=hours(30),"])
    return "\n".join(["flow = dag(", '    "flow",', *rows, bound, ")", ""])


def _argument(choices: Choices, type_: str, earlier: list[tuple[str, str, list[str]]]) -> str:
    steps = [f'from_step("{name}")' for name, result, _ in earlier if result == type_]
    if steps and choices.chance(70):
        return choices.pick(steps)
    if type_ == "list[int]" and choices.chance(60):
        inner = _argument(choices, "int", earlier)
        return f"[{inner}, {_argument(choices, 'int', earlier)}]"
    if type_ in _CONSTANTS and choices.chance(30):
        return _CONSTANTS[type_]
    return f'from_input("{choices.pick(_INPUTS[type_])}")'
