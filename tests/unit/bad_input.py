"""Invalid input for the API: values, definitions and requests that no client sends on purpose.

Everything is drawn from a `random.Random`: the same seed gives the same input.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

from holdfast.stepfunctions.shapes import _shape, input_shape
from tests.unit.states_kit import PLACE, ROLE

Json = Any

NUMBERS: list[Json] = [0, 1, -1, 2, 1.5, -0.0, 1e308, 1e-320, 2**31, 2**63, 10**40, 99999999]
WORDS: list[Json] = [
    "", " ", "x", "A", "B", "$", "$.", "$.a", "$..a", "$$", "$$.Task.Token", "$v", "$states.input",
    "$.a[0]", "$.a[?(@.b)]", "$.a[*].b", "$[", "$$.Map.Item.Value", "{% 1 %}",
    "{% $states.input %}",
    "{% $states.result %}", "{% ( %}", "{%%}", "{% $v %}", "{% $error('no') %}", "{% [1..9] %}",
    "{% function($x){$x} %}", "{% 1/0 %}", "{% $states.context %}", "States.UUID()",
    "States.Format('{}', $.a)", "States.Array(", "States.MathAdd($.a, 1)", "States.ALL",
    "States.Timeout", "States.TaskFailed", "States.Runtime", "é\u2028😀", "\x00", "\ud800",
    "a" * 300,
    "2030-01-01T00:00:00Z", "not a date", "arn:aws:states:::", "NaN", "null", "true", "[1]", "{}",
    "\\", "'", '"', "%", "${x}", "../..", "JSONata", "JSONPath", "DISTRIBUTED", "INLINE", "EXPRESS",
]  # fmt: skip
RESOURCES: list[Json] = [
    "arn:aws:lambda:eu-west-1:123456789012:function:f",
    "arn:aws:states:::lambda:invoke",
    "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
    "arn:aws:states:::states:startExecution.sync:2",
    "arn:aws:states:::aws-sdk:s3:getObject",
    "arn:aws:states:::aws-sdk:nothing:atAll",
    "arn:aws:states:::http:invoke",
    "arn:aws:states:eu-west-1:123456789012:activity:a",
    "holdfast:task:f",
    "arn:aws:states:::batch:submitJob.sync",
    "foo:bar",
]


def deep(levels: int) -> Json:
    value: Json = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def junk(draw: Random, levels: int = 2) -> Json:
    """Return any value of JSON, most of them where they do not belong."""
    match draw.randrange(12):
        case 0 | 1:
            return draw.choice(NUMBERS)
        case 2:
            return draw.choice([None, True, False])
        case 3 if levels:
            return [junk(draw, levels - 1) for _ in range(draw.randrange(4))]
        case 4 | 5 if levels:
            return {
                str(draw.choice(WORDS)) + draw.choice(["", ".$"]): junk(draw, levels - 1)
                for _ in range(draw.randrange(4))
            }
        case 6 if draw.random() < 0.05:
            return deep(draw.choice([20, 63, 149, 151, 600]))
        case _:
            return draw.choice(WORDS)


# -- definitions -----------------------------------------------------------------------------------


def _some(*values: Json) -> Callable[[Random, int], Json]:
    return lambda draw, levels: draw.choice(values)


def _handlers(draw: Random, levels: int) -> Json:
    errors = ["States.ALL", "States.TaskFailed", "States.Timeout", "Oops"]
    handler: dict[str, Json] = {"ErrorEquals": [draw.choice(errors)], "Next": draw.choice("ABC")}
    if draw.random() < 0.5:
        handler |= {"ResultPath": draw.choice(["$.e", None, "$"])}
    return [handler]


def _retriers(draw: Random, levels: int) -> Json:
    names = ["IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds"]
    numbers = {draw.choice(names): draw.choice([0, 1, 2, 1.5, 31622400])}
    return [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, **numbers}]


def _choices(draw: Random, levels: int) -> Json:
    operators = ["StringEquals", "NumericLessThanPath", "IsPresent", "TimestampLessThan"]
    operators += ["BooleanEquals", "StringMatches", "IsNull", "IsTimestamp"]
    rule: dict[str, Json] = {"Variable": draw.choice(["$.a", "$.a[0]", "$$.State.Name", "$v"])}
    rule[draw.choice(operators)] = draw.choice(["a", 1, True, "$.b", "*x*", "2030-01-01T00:00:00Z"])
    rules: list[Json] = [rule, rule, {"Not": rule}, {"And": [rule, rule]}]
    rules += [{"Condition": draw.choice(["{% true %}", "{% $states.input.a %}", True, "{% 1 %}"])}]
    return [{**draw.choice(rules), "Next": draw.choice("ABC")}]


def _template(draw: Random, levels: int) -> Json:
    return {"a.$": "$.a", "b": junk(draw, 1)} if draw.random() < 0.5 else junk(draw, 2)


def _machine(draw: Random, levels: int) -> Json:
    return definition(draw, levels - 1)


def _machines(draw: Random, levels: int) -> Json:
    return [definition(draw, levels - 1) for _ in range(draw.randrange(3))]


def _processor(draw: Random, levels: int) -> Json:
    mode = draw.choice(
        [{}, {"Mode": "INLINE"}, {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}]
    )
    return {**definition(draw, levels - 1), "ProcessorConfig": mode}


_PATH = _some("$", "$.a", "$.a[0]", "$.no", None, "$$.Execution.Input", "$v")
_SECONDS = _some(0, 1, 60, 10**9, "{% 1 %}", "{% 'x' %}")
_REFERENCE = _some("$.a", "$.no", "$$.State.RetryCount", "$v")
_LIST = _some([1, 2], [], "{% [1, 2] %}", "{% $states.input.a %}", {"a": 1})
_COMMON = {
    "Comment": _some("x"),
    "InputPath": _PATH,
    "OutputPath": _PATH,
    "Output": _template,
    "Assign": _some({"v": 1}, {"v.$": "$.a"}, {"v": "{% $states.input %}"}, {"states": 1}),
    "QueryLanguage": _some("JSONata", "JSONPath"),
}
_WORK = {
    "ResultPath": _some("$", "$.a", "$.a.b", None, "$.a[0]"),
    "Parameters": _template,
    "Arguments": _template,
    "ResultSelector": _template,
    "Catch": _handlers,
    "Retry": _retriers,
}
FIELDS: dict[str, dict[str, Callable[[Random, int], Json]]] = {
    "Pass": {"Result": _template, "Parameters": _template, "ResultPath": _PATH},
    "Task": {
        **_WORK,
        "TimeoutSeconds": _SECONDS,
        "HeartbeatSecondsPath": _REFERENCE,
        "Credentials": _some({"RoleArn": ROLE}, {"RoleArn.$": "$.a"}),
    },
    "Wait": {"SecondsPath": _REFERENCE, "Timestamp": _some("2030-01-01T00:00:00Z", "x")},
    "Choice": {},
    "Succeed": {},
    "Fail": {"Error": _some("E", "{% $states.input %}"), "CausePath": _REFERENCE},
    "Parallel": _WORK,
    "Map": {
        **_WORK,
        "ItemsPath": _PATH,
        "Items": _LIST,
        "ItemSelector": _template,
        "MaxConcurrency": _some(0, 1, 2, -1),
        "MaxConcurrencyPath": _REFERENCE,
        "ItemBatcher": _some({"MaxItemsPerBatch": 2}, {"MaxInputBytesPerBatchPath": "$.a"}),
        "ToleratedFailurePercentage": _some(0, 50, 101),
        "Label": _some("x", "a b", "x" * 41),
    },
}
NEEDED: dict[str, dict[str, Callable[[Random, int], Json]]] = {
    "Task": {"Resource": _some(*RESOURCES)},
    "Wait": {"Seconds": _SECONDS},
    "Choice": {"Choices": _choices, "Default": _some("A", "B")},
    "Parallel": {"Branches": _machines},
    "Map": {"ItemProcessor": _processor},
}


JSONPATH_FIELDS = {
    "InputPath", "OutputPath", "ResultPath", "Parameters", "ResultSelector", "Result", "ItemsPath",
    "HeartbeatSecondsPath", "SecondsPath", "CausePath", "MaxConcurrencyPath",
}  # fmt: skip
JSONATA_FIELDS = {"Output", "Arguments", "Items"}


def state(draw: Random, levels: int, language: str, follows: Json) -> Json:
    """`follows`: how the state is left, `{"Next": …}` or `{"End": true}`."""
    inner = ["Parallel", "Map"] if levels else []
    kind = draw.choice(["Pass", "Pass", "Task", "Wait", "Choice", "Succeed", "Fail", *inner])
    fields = {**_COMMON, **FIELDS[kind]}
    chosen = draw.sample(sorted(fields), min(draw.choice([0, 0, 1, 2, 4]), len(fields)))
    if draw.random() < 0.9:
        other = JSONATA_FIELDS if language == "JSONPath" else JSONPATH_FIELDS
        chosen = [name for name in chosen if name not in other | {"QueryLanguage"}]
    made = {"Type": kind}
    made |= {name: make(draw, levels) for name, make in NEEDED.get(kind, {}).items()}
    made |= {name: fields[name](draw, levels) for name in chosen}
    if kind not in {"Choice", "Succeed", "Fail"}:
        made |= follows
    return made


def definition(draw: Random, levels: int = 2, language: str = "JSONPath") -> dict[str, Json]:
    """Return a machine of at most three states, most of them nearly valid."""
    names = "ABC"[: draw.choice([1, 1, 2, 3])]
    made: dict[str, Json] = {"StartAt": "A" if draw.random() < 0.9 else draw.choice(names)}
    if language == "JSONPath" and draw.random() < 0.4:
        language = made["QueryLanguage"] = "JSONata"
    made["States"] = {
        name: state(draw, levels, language, _exit(draw, following))
        for name, following in zip(names, [*names[1:], None], strict=True)
    }
    if draw.random() < 0.1:
        made |= {draw.choice(["TimeoutSeconds", "Version", "Comment", "X"]): junk(draw)}
    return made


def _exit(draw: Random, following: str | None) -> Json:
    if draw.random() < 0.1:
        return {"Next": draw.choice("ABC")}
    return {"End": True} if following is None else {"Next": following}


def _places(value: Json) -> list[tuple[Json, Json]]:
    """Return every (container, key) in the value."""
    found: list[tuple[Json, Json]] = []
    open_ones = [value]
    while open_ones:
        one = open_ones.pop()
        keys = list(one) if isinstance(one, dict) else list(range(len(one)))
        found += [(one, key) for key in keys]
        open_ones += [one[key] for key in keys if isinstance(one[key], dict | list)]
    return found


def mutated(draw: Random, document: Json) -> Json:
    """Return a copy with up to two of its values replaced, left out, doubled or renamed, or the
    same.
    """
    made = copy.deepcopy(document)
    for _ in range(draw.choice([0, 1, 1, 1, 2])):
        places = _places(made)
        if not places:
            return junk(draw)
        container, key = draw.choice(places)
        match draw.randrange(4):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[str(draw.choice(WORDS))] = container.pop(key)
            case 2:
                other, name = draw.choice(places)
                container[key] = copy.deepcopy(other[name]) if name in _keys(other) else junk(draw)
            case _:
                container[key] = junk(draw)
    return made


def _keys(container: Json) -> Json:
    return container if isinstance(container, dict) else range(len(container))


def text_of(draw: Random, document: Json) -> str:
    """Return its JSON, at times cut, with a field twice, or with a byte that is wrong."""
    text = json.dumps(document, ensure_ascii=draw.random() < 0.5)
    match draw.randrange(40):
        case 0:
            return text[: draw.randrange(len(text) + 1)]
        case 1:
            return text.replace("{", '{"StartAt": "A", ', 1)
        case 2:
            place = draw.randrange(len(text) + 1)
            return (
                text[:place] + draw.choice(['"', "{", "]", ",", "\\", "\x00", "NaN"]) + text[place:]
            )
        case _:
            return text


# -- requests --------------------------------------------------------------------------------------

_STATES = f"arn:aws:states:{PLACE.region}:{PLACE.account}"
ARNS: list[Json] = [
    f"{_STATES}:stateMachine:real", f"{_STATES}:stateMachine:real:1",
    f"{_STATES}:stateMachine:none",
    f"{_STATES}:stateMachine:real:PROD", f"{_STATES}:stateMachine:quick",
    f"{_STATES}:execution:real:done", f"{_STATES}:execution:real:none",
    f"{_STATES}:express:quick:a:b", f"{_STATES}:activity:desk", f"{_STATES}:activity:none",
    f"{_STATES}:mapRun:real/x:4f1f8a36-2b8a-4a54-a7f1-62f1a4b1f1a1", "arn:aws:states:::x",
    "arn:", ROLE,
    f"{_STATES}:stateMachine:", f"{_STATES}:execution:real:done:x", f"{_STATES}:stateMachine:a/b",
]  # fmt: skip


def request(draw: Random, operation: str) -> Json:
    """Return a request of the operation: members of the right names, values of any kind."""
    if draw.random() < 0.02:
        return junk(draw)
    made = _shaped(draw, input_shape(operation), 3)
    if isinstance(made, dict) and draw.random() < 0.05:
        made |= {str(draw.choice(WORDS)): junk(draw)}
    return made


def members(operation: str) -> list[str]:
    return sorted(_shape(input_shape(operation))["members"])


def _shaped(draw: Random, name: str, levels: int) -> Json:
    shape = _shape(name)
    if draw.random() < 0.04:
        return junk(draw)
    match shape["type"]:
        case "structure":
            needed = shape.get("required", ())
            return {
                member: _member(draw, member, target["shape"], levels - 1)
                for member, target in shape["members"].items()
                if draw.random() < (0.98 if member in needed else 0.3 * (levels > 0))
            }
        case "list":
            return [
                _shaped(draw, shape["member"]["shape"], levels - 1)
                for _ in range(draw.randrange(3))
            ]
        case "string":
            return _text(draw, name, shape)
        case "boolean":
            return draw.random() < 0.5
        case "timestamp":
            return draw.choice([0, 1_760_000_000, "x"])
        case _:
            return draw.choice([0, 1, 2, 50, 100, 1_000, -1, 1.0, 1.5, 10**20])


def _member(draw: Random, member: str, name: str, levels: int) -> Json:
    """A member that names something mostly names a thing of its kind."""
    kind = member.removesuffix("Arn")
    fitting = [arn for arn in ARNS if kind != member and f":{kind}:" in str(arn)]
    if fitting and draw.random() < 0.8:
        return draw.choice(fitting)
    return _shaped(draw, name, levels)


def _text(draw: Random, name: str, shape: Any) -> Json:
    if "enum" in shape:
        return draw.choice(shape["enum"])
    if name.endswith("Arn"):
        return draw.choice(ARNS)
    match name:
        case "Definition":
            return text_of(draw, mutated(draw, definition(draw, 1)))
        case "SensitiveData" | "SensitiveDataJobInput":
            return draw.choice(["{}", "[1]", "1", "", "{", json.dumps(junk(draw)), "9" * 5_000])
        case "Name" | "CharacterRestrictedName" | "AliasName":
            return draw.choice(["n", "real", "desk", "a b", "x" * 81, "", "é", "a.b"])
        case _:
            return draw.choice(WORDS)
