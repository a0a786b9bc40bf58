"""States that are none: fields, types, handlers, rules, branches and expressions.

"accepted" is what AWS accepts as well.
"""

from __future__ import annotations

from typing import Final

from tests.security.cases import Case
from tests.security.definitions_kit import (
    DISTRIBUTED,
    INNER,
    INVOKE,
    MAP,
    PASS,
    RULE,
    TASK,
    WAIT,
    branch,
    caught,
    choice,
    machine,
    nested,
    retry,
    without,
)

TYPES: Final = (
    Case("no type", machine({"A": {"End": True}}), "SCHEMA_VALIDATION_FAILED /States/A"),
    Case(
        "an unknown type",
        machine({"A": {"Type": "Step", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Type",
    ),
    Case(
        "a type in lower case",
        machine({"A": {"Type": "pass", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Type",
    ),
    Case(
        "a type that is a list",
        machine({"A": {"Type": ["Pass"], "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Type",
    ),
    Case(
        "Pass with a resource",
        machine({"A": {**PASS, "Resource": INVOKE}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Pass with a retry",
        machine({"A": {**PASS, "Retry": []}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Task without a resource",
        machine({"A": {"Type": "Task", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Task with a misspelt resource",
        machine({"A": {"Type": "Task", "Ressource": INVOKE, "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Task with Retries",
        machine({"A": {**TASK, "Retries": []}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Task with an unknown resource",
        machine({"A": {**TASK, "Resource": "lambda:invoke"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Resource",
    ),
    Case(
        "Task with an empty resource",
        machine({"A": {**TASK, "Resource": ""}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Resource",
    ),
    Case(
        "Task with a resource that is a list",
        machine({"A": {**TASK, "Resource": [INVOKE]}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Resource",
    ),
    Case(
        "Task with a pattern nobody has",
        machine({"A": {**TASK, "Resource": INVOKE + ".async"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Resource",
    ),
    Case(
        "Task with an unknown service",
        machine({"A": {**TASK, "Resource": "arn:aws:states:::nothing:do"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Resource",
    ),
    Case(
        "Task with an unknown kind of ours",
        machine({"A": {**TASK, "Resource": "holdfast:run:x"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Resource",
    ),
    Case(
        "Task of ours without a name",
        machine({"A": {**TASK, "Resource": "holdfast:task:"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Resource",
    ),
    Case(
        "Task with a time-out of zero",
        machine({"A": {**TASK, "TimeoutSeconds": 0}}),
        "SCHEMA_VALIDATION_FAILED /States/A/TimeoutSeconds",
    ),
    Case(
        "Task with a negative time-out",
        machine({"A": {**TASK, "TimeoutSeconds": -5}}),
        "SCHEMA_VALIDATION_FAILED /States/A/TimeoutSeconds",
    ),
    Case(
        "Task with a time-out of a hundred years",
        machine({"A": {**TASK, "TimeoutSeconds": 3_155_760_000}}),
        "SCHEMA_VALIDATION_FAILED /States/A/TimeoutSeconds",
    ),
    Case(
        "Task with a heartbeat longer than the time-out",
        machine({"A": {**TASK, "TimeoutSeconds": 5, "HeartbeatSeconds": 6}}),
        "SCHEMA_VALIDATION_FAILED /States/A/HeartbeatSeconds",
    ),
    Case(
        "Task with two time-outs",
        machine({"A": {**TASK, "TimeoutSeconds": 5, "TimeoutSecondsPath": "$.t"}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Task with credentials that are a text",
        machine({"A": {**TASK, "Credentials": "role"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Credentials",
    ),
    Case(
        "Wait without a time",
        machine({"A": {"Type": "Wait", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Wait with two times",
        machine({"A": {**WAIT, "Timestamp": "2030-01-01T00:00:00Z"}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Wait for a text",
        machine({"A": {**WAIT, "Seconds": "1"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Seconds",
    ),
    Case(
        "Wait for less than nothing",
        machine({"A": {**WAIT, "Seconds": -1}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Seconds",
    ),
    Case(
        "Wait for half a second",
        machine({"A": {**WAIT, "Seconds": 0.5}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Seconds",
    ),
    Case(
        "Wait for ever",
        machine({"A": {**WAIT, "Seconds": 100_000_000}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Seconds",
    ),
    Case(
        "Wait until no moment",
        machine({"A": {"Type": "Wait", "Timestamp": "tomorrow", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Timestamp",
    ),
    Case(
        "Wait until the thirteenth month",
        machine({"A": {"Type": "Wait", "Timestamp": "2030-13-01T00:00:00Z", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Timestamp",
    ),
    Case(
        "Wait until a moment without a zone",
        machine({"A": {"Type": "Wait", "Timestamp": "2030-01-01T00:00:00", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Timestamp",
    ),
    Case(
        "Fail with Next",
        machine({"A": {"Type": "Fail", "Next": "A"}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Fail with two errors",
        machine({"A": {"Type": "Fail", "Error": "E", "ErrorPath": "$.e"}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Fail with an error that is a number",
        machine({"A": {"Type": "Fail", "Error": 7}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Error",
    ),
    Case(
        "Succeed with End",
        machine({"A": {"Type": "Succeed", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "a field of JSONata in JSONPath",
        machine({"A": {**PASS, "Output": 1}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "a field of JSONPath in JSONata",
        machine({"A": {**PASS, "ResultPath": "$"}}, QueryLanguage="JSONata"),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "a JSONPath state in a JSONata machine",
        machine({"A": {**PASS, "QueryLanguage": "JSONPath"}}, QueryLanguage="JSONata"),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "a variable named states",
        machine({"A": {**PASS, "Assign": {"states": 1}}}),
        "RESERVED_VARIABLE_NAME /States/A/Assign",
    ),
    Case(
        "a variable that starts with a digit",
        machine({"A": {**PASS, "Assign": {"1a": 1}}}),
        "INVALID_VARIABLE_NAME /States/A/Assign",
    ),
    Case(
        "a variable of 81 characters",
        machine({"A": {**PASS, "Assign": {"v" * 81: 1}}}),
        "INVALID_VARIABLE_NAME /States/A/Assign",
    ),
    Case(
        "variables that are a list",
        machine({"A": {**PASS, "Assign": [1]}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Assign",
    ),
)


RETRY: Final = (
    Case(
        "Retry is an object",
        machine({"A": {**TASK, "Retry": {"ErrorEquals": ["E"]}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry",
    ),
    Case(
        "Retry without errors",
        machine({"A": {**TASK, "Retry": [{"MaxAttempts": 1}]}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]",
    ),
    Case(
        "Retry of no error",
        retry(ErrorEquals=[]),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/ErrorEquals",
    ),
    Case(
        "Retry of a text",
        retry(ErrorEquals="E"),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/ErrorEquals",
    ),
    Case(
        "Retry of a number",
        retry(ErrorEquals=[1]),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/ErrorEquals[0]",
    ),
    Case("Retry with Next", retry(Next="A"), "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]"),
    Case(
        "Retry with a misspelt field",
        retry(MaxAttempt=1),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]",
    ),
    Case(
        "Retry after a negative time",
        retry(IntervalSeconds=-1),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/IntervalSeconds",
    ),
    Case("Retry at once", retry(IntervalSeconds=0), "accepted"),
    Case(
        "Retry after half a second",
        retry(IntervalSeconds=0.5),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/IntervalSeconds",
    ),
    Case(
        "Retry a negative number of times",
        retry(MaxAttempts=-1),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/MaxAttempts",
    ),
    Case(
        "Retry for ever",
        retry(MaxAttempts=100_000_000),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/MaxAttempts",
    ),
    Case(
        "Retry with a rate below one",
        retry(BackoffRate=0.99),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/BackoffRate",
    ),
    Case(
        "Retry with a rate that is a text",
        retry(BackoffRate="2"),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/BackoffRate",
    ),
    Case(
        "Retry with a bound below its interval",
        retry(IntervalSeconds=10, MaxDelaySeconds=5),
        "accepted",
    ),
    Case(
        "Retry with a bound of two years",
        retry(MaxDelaySeconds=63_244_800),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/MaxDelaySeconds",
    ),
    Case(
        "Retry with an unknown jitter",
        retry(JitterStrategy="SOME"),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/JitterStrategy",
    ),
    Case(
        "everything is caught before something",
        caught([["States.ALL"], ["E"]]),
        "SCHEMA_VALIDATION_FAILED /States/A/Catch[0]/ErrorEquals[0]",
    ),
    Case(
        "everything is caught with something",
        caught([["States.ALL", "E"]]),
        "SCHEMA_VALIDATION_FAILED /States/A/Catch[0]/ErrorEquals[0]",
    ),
    Case(
        "everything is retried before something",
        machine(
            {"A": {**TASK, "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["E"]}]}}
        ),
        "SCHEMA_VALIDATION_FAILED /States/A/Retry[0]/ErrorEquals[0]",
    ),
    Case(
        "every failed task is caught with everything",
        caught([["States.TaskFailed", "States.ALL"]]),
        "SCHEMA_VALIDATION_FAILED /States/A/Catch[0]/ErrorEquals[1]",
    ),
    Case("an error of States that is none", caught([["States.Nothing"]]), "accepted"),
    Case(
        "Catch without Next",
        machine({"A": {**TASK, "Catch": [{"ErrorEquals": ["E"]}]}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Catch[0]",
    ),
    Case(
        "Catch to nobody",
        machine({"A": {**TASK, "Catch": [{"ErrorEquals": ["E"], "Next": "B"}]}}),
        "MISSING_TRANSITION_TARGET /States/A/Catch[0]/Next",
    ),
    Case(
        "Catch with End",
        machine({"A": {**TASK, "Catch": [{"ErrorEquals": ["E"], "End": True}]}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Catch[0]",
    ),
    Case(
        "Catch with a result path of the context",
        machine(
            {"A": {**TASK, "Catch": [{"ErrorEquals": ["E"], "Next": "A", "ResultPath": "$$.x"}]}}
        ),
        "SCHEMA_VALIDATION_FAILED /States/A/Catch[0]/ResultPath",
    ),
)


CHOICE: Final = (
    Case(
        "Choice without rules",
        machine({"A": {"Type": "Choice", "Default": "B"}, "B": PASS}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case("Choice with an empty list", choice(), "SCHEMA_VALIDATION_FAILED /States/A/Choices"),
    Case(
        "Choice with End",
        machine({"A": {"Type": "Choice", "Choices": [RULE], "End": True}, "B": PASS}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Choice with Next",
        machine({"A": {"Type": "Choice", "Choices": [RULE], "Next": "B"}, "B": PASS}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "a rule without Next",
        choice(without(RULE, "Next")),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]",
    ),
    Case(
        "a rule to nobody",
        choice({**RULE, "Next": "C"}),
        "MISSING_TRANSITION_TARGET /States/A/Choices[0]/Next",
    ),
    Case(
        "a rule without a test",
        choice({"Variable": "$.a", "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]",
    ),
    Case(
        "a rule without a variable",
        choice({"IsNull": True, "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]",
    ),
    Case(
        "a rule with two tests",
        choice({**RULE, "IsString": True}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]",
    ),
    Case(
        "a rule with an unknown test",
        choice({"Variable": "$.a", "NumberEquals": 1, "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]",
    ),
    Case(
        "a test of a number with a text",
        choice({"Variable": "$.a", "NumericEquals": "1", "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/NumericEquals",
    ),
    Case(
        "a test of a text with a number",
        choice({"Variable": "$.a", "StringEquals": 1, "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/StringEquals",
    ),
    Case(
        "a test of a moment with none",
        choice({"Variable": "$.a", "TimestampEquals": "noon", "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/TimestampEquals",
    ),
    Case(
        "a variable that is no path",
        choice({"Variable": "a", "IsNull": True, "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/Variable",
    ),
    Case(
        "And of nothing",
        choice({"And": [], "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/And",
    ),
    Case(
        "And of a rule that goes somewhere",
        choice({"And": [RULE], "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/And[0]",
    ),
    Case(
        "Not of a list",
        choice({"Not": [RULE], "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/Not",
    ),
    Case(
        "a condition in JSONPath",
        choice({"Condition": "{% true %}", "Next": "B"}),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]",
    ),
    Case(
        "a condition that is a text",
        machine(
            {"A": {"Type": "Choice", "Choices": [{"Condition": "true", "Next": "B"}]}, "B": PASS},
            QueryLanguage="JSONata",
        ),
        "SCHEMA_VALIDATION_FAILED /States/A/Choices[0]/Condition",
    ),
)


PARALLEL: Final = (
    Case(
        "Parallel without branches",
        machine({"A": {"Type": "Parallel", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Parallel with no branch",
        machine({"A": {"Type": "Parallel", "Branches": [], "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Branches",
    ),
    Case(
        "Parallel with a branch that is a state",
        machine({"A": {"Type": "Parallel", "Branches": [PASS], "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Branches[0]",
    ),
    Case(
        "Parallel in Parallel without a start",
        machine(
            {
                "A": {
                    "Type": "Parallel",
                    "Branches": [
                        {
                            "StartAt": "B",
                            "States": {
                                "B": {
                                    "Type": "Parallel",
                                    "Branches": [{"States": {"C": PASS}}],
                                    "End": True,
                                }
                            },
                        }
                    ],
                    "End": True,
                }
            }
        ),
        "SCHEMA_VALIDATION_FAILED /States/A/Branches[0]/States/B/Branches[0]",
    ),
    Case(
        "a branch with a time-out",
        machine(
            {
                "A": {
                    "Type": "Parallel",
                    "Branches": [{"StartAt": "B", "States": {"B": PASS}, "TimeoutSeconds": 5}],
                    "End": True,
                }
            }
        ),
        "SCHEMA_VALIDATION_FAILED /States/A/Branches[0]",
    ),
    Case(
        "Map without a processor",
        machine({"A": {"Type": "Map", "End": True}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Map with two processors",
        machine({"A": {**MAP, "Iterator": branch("C")}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "Map with a processor that is a list",
        machine({"A": {**MAP, "ItemProcessor": [PASS]}}),
        "SCHEMA_VALIDATION_FAILED /States/A/ItemProcessor",
    ),
    Case(
        "Map with a negative concurrency",
        machine({"A": {**MAP, "MaxConcurrency": -1}}),
        "SCHEMA_VALIDATION_FAILED /States/A/MaxConcurrency",
    ),
    Case(
        "Map with a concurrency that is a fraction",
        machine({"A": {**MAP, "MaxConcurrency": 1.5}}),
        "SCHEMA_VALIDATION_FAILED /States/A/MaxConcurrency",
    ),
    Case(
        "Map with an unknown mode",
        machine({"A": {**MAP, "ItemProcessor": {**INNER, "ProcessorConfig": {"Mode": "REMOTE"}}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/ItemProcessor/ProcessorConfig/Mode",
    ),
    Case(
        "Map with a reader, inline",
        machine({"A": {**MAP, "ItemReader": {"Resource": "arn:aws:states:::s3:getObject"}}}),
        "accepted",
    ),
    Case(
        "Map that tolerates 101 percent",
        machine({"A": {**MAP, "ItemProcessor": DISTRIBUTED, "ToleratedFailurePercentage": 101}}),
        "SCHEMA_VALIDATION_FAILED /States/A/ToleratedFailurePercentage",
    ),
    Case(
        "Map with a label of 41 characters",
        machine({"A": {**MAP, "ItemProcessor": DISTRIBUTED, "Label": "x" * 41}}),
        "INVALID_LABEL_NAME /States/A/Label",
    ),
    Case(
        "Map with items that are no list",
        machine({"A": {**MAP, "Items": {}}}, QueryLanguage="JSONata"),
        "accepted",
    ),
    Case("nested a hundred times", nested(100), "TOO_DEEPLY_NESTED"),
)


EXPRESSIONS: Final = (
    Case(
        "an expression that does not end",
        machine({"A": {**PASS, "Output": "{% 1 + %}"}}, QueryLanguage="JSONata"),
        "INVALID_JSONATA_EXPRESSION /States/A/Output",
    ),
    Case(
        "an expression that is not closed",
        machine({"A": {**PASS, "Output": "{% 1"}}, QueryLanguage="JSONata"),
        "SCHEMA_VALIDATION_FAILED /States/A/Output",
    ),
    Case(
        "an expression of $eval",
        machine({"A": {**PASS, "Output": "{% $eval('1') %}"}}, QueryLanguage="JSONata"),
        "accepted",
    ),
    Case(
        "a result where there is none",
        machine({"A": {**WAIT, "Seconds": "{% $states.result %}"}}, QueryLanguage="JSONata"),
        "UNSUPPORTED_JSONATA_EXPRESSION /States/A/Seconds",
    ),
    Case(
        "a path that is none",
        machine({"A": {**PASS, "InputPath": "$["}}),
        "SCHEMA_VALIDATION_FAILED /States/A/InputPath",
    ),
    Case(
        "a path that is a number",
        machine({"A": {**PASS, "OutputPath": 1}}),
        "SCHEMA_VALIDATION_FAILED /States/A/OutputPath",
    ),
    Case(
        "a result path of many places",
        machine({"A": {**PASS, "ResultPath": "$.a[*]"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/ResultPath",
    ),
    Case(
        "a result path of the context",
        machine({"A": {**PASS, "ResultPath": "$$.a"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/ResultPath",
    ),
    Case(
        "a parameter by path that is no path",
        machine({"A": {**PASS, "Parameters": {"a.$": "a"}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Parameters",
    ),
    Case(
        "a parameter by path that is an object",
        machine({"A": {**PASS, "Parameters": {"a.$": {}}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Parameters",
    ),
    Case(
        "an intrinsic function that does not exist",
        machine({"A": {**PASS, "Parameters": {"a.$": "States.Exec('x')"}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Parameters",
    ),
    Case(
        "an intrinsic function that does not end",
        machine({"A": {**PASS, "Parameters": {"a.$": "States.Format('x'"}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Parameters",
    ),
)
