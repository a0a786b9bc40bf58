"""Invalid definitions: their text, their top level, their flow, and Holdfast's extensions.

The code is the first finding's, with its place: line and column of a text that is not JSON.
"""

from __future__ import annotations

import json
from typing import Final

from tests.security.cases import Case
from tests.security.definitions_kit import (
    DISTRIBUTED,
    GOOD,
    MAP,
    PASS,
    branch,
    extended,
    machine,
    parallel,
    text,
    without,
)

TEXT: Final = (
    Case("nothing", "", "SCHEMA_VALIDATION_FAILED"),
    Case("only blanks", " \n\t ", "SCHEMA_VALIDATION_FAILED"),
    Case("the word null", "null", "SCHEMA_VALIDATION_FAILED"),
    Case("a number", "7", "SCHEMA_VALIDATION_FAILED"),
    Case("a list of machines", "[{}]", "SCHEMA_VALIDATION_FAILED"),
    Case("a text in quotes", '"StartAt"', "SCHEMA_VALIDATION_FAILED"),
    Case("no JSON at all", "StartAt: A", "INVALID_JSON_DESCRIPTION 1:8"),
    Case("single quotes", "{'StartAt': 'A'}", "INVALID_JSON_DESCRIPTION 1:3"),
    Case("a byte order mark", "\ufeff" + text(GOOD), "INVALID_JSON_DESCRIPTION 1:2"),
    Case("a NUL at the end", text(GOOD) + "\x00", "INVALID_JSON_DESCRIPTION 1:66"),
    Case(
        "a NUL inside a name",
        text(GOOD).replace('"A"', '"A\x00"', 1),
        "INVALID_JSON_DESCRIPTION 1:16",
    ),
    Case(
        "a comment", text(GOOD).replace("{", "{ // a machine\n", 1), "INVALID_JSON_DESCRIPTION 1:4"
    ),
    Case("a trailing comma", text(GOOD)[:-1] + ",}", "INVALID_JSON_DESCRIPTION 1:66"),
    Case("cut in the middle", text(GOOD)[: len(text(GOOD)) // 2], "INVALID_JSON_DESCRIPTION 1:33"),
    Case("without its last brace", text(GOOD)[:-1], "INVALID_JSON_DESCRIPTION 1:64"),
    Case("one brace too many", text(GOOD) + "}", "INVALID_JSON_DESCRIPTION 1:66"),
    Case("twice", text(GOOD) * 2, "INVALID_JSON_DESCRIPTION 1:65"),
    Case("inside a text", json.dumps(text(GOOD)), "SCHEMA_VALIDATION_FAILED"),
    Case(
        "a field twice",
        text(GOOD).replace("{", '{"StartAt": "A", ', 1),
        "INVALID_JSON_DESCRIPTION 1:27",
    ),
    Case(
        "a state twice",
        '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}, "A": {"Type": "Succeed"}}}',
        "INVALID_JSON_DESCRIPTION 1:58",
    ),
    Case(
        "not a number",
        text(GOOD)[:-1] + ', "TimeoutSeconds": NaN}',
        "INVALID_JSON_DESCRIPTION 1:87",
    ),
    Case(
        "infinity",
        text(GOOD)[:-1] + ', "TimeoutSeconds": -Infinity}',
        "INVALID_JSON_DESCRIPTION 1:86",
    ),
    Case(
        "a number beyond doubles",
        text(GOOD)[:-1] + ', "TimeoutSeconds": 1e400}',
        "SCHEMA_VALIDATION_FAILED /TimeoutSeconds",
    ),
    Case(
        "a number of ten thousand digits",
        text(GOOD)[:-1] + ', "TimeoutSeconds": ' + "9" * 10_000 + "}",
        "INVALID_JSON_DESCRIPTION 1:10084",
    ),
    Case(
        "a hexadecimal number",
        text(GOOD)[:-1] + ', "TimeoutSeconds": 0x10}',
        "INVALID_JSON_DESCRIPTION 1:86",
    ),
    Case(
        "a leading zero",
        text(GOOD)[:-1] + ', "TimeoutSeconds": 010}',
        "INVALID_JSON_DESCRIPTION 1:85",
    ),
    Case("Python's True", text(GOOD).replace("true", "True"), "INVALID_JSON_DESCRIPTION 1:62"),
    Case(
        "half a character, escaped",
        text(GOOD).replace("A", "\\ud800"),
        "SCHEMA_VALIDATION_FAILED /",
    ),
    Case(
        "a raw line feed in a name",
        text(GOOD).replace('"A"', '"A\n"', 1),
        "INVALID_JSON_DESCRIPTION 2:1",
    ),
    Case(
        "an unknown escape", text(GOOD).replace('"A"', '"\\A"', 1), "INVALID_JSON_DESCRIPTION 1:16"
    ),
    Case("a hundred thousand brackets", "[" * 100_000, "TOO_DEEPLY_NESTED"),
    Case("a hundred thousand objects", '{"a":' * 100_000, "TOO_DEEPLY_NESTED"),
    Case("ten megabytes of text", '"' + "x" * 10_000_000, "INVALID_JSON_DESCRIPTION 1:10000002"),
    Case(
        "XML",
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
        "INVALID_JSON_DESCRIPTION 1:2",
    ),
    Case(
        "a template of CloudFormation",
        '{"AWSTemplateFormatVersion": "2010-09-09", "Resources": {}}',
        "SCHEMA_VALIDATION_FAILED /",
    ),
)


MACHINE: Final = (
    Case("no field", {}, "SCHEMA_VALIDATION_FAILED /"),
    Case("no StartAt", without(GOOD, "StartAt"), "SCHEMA_VALIDATION_FAILED /"),
    Case("no States", without(GOOD, "States"), "SCHEMA_VALIDATION_FAILED /"),
    Case("StartAt is a number", {**GOOD, "StartAt": 1}, "SCHEMA_VALIDATION_FAILED /StartAt"),
    Case("StartAt is null", {**GOOD, "StartAt": None}, "SCHEMA_VALIDATION_FAILED /StartAt"),
    Case("StartAt is empty", {**GOOD, "StartAt": ""}, "MISSING_TRANSITION_TARGET /StartAt"),
    Case("StartAt in other case", {**GOOD, "StartAt": "a"}, "MISSING_TRANSITION_TARGET /StartAt"),
    Case("StartAt with a blank", {**GOOD, "StartAt": "A "}, "MISSING_TRANSITION_TARGET /StartAt"),
    Case(
        "StartAt is a state of a branch",
        machine({"P": {"Type": "Parallel", "Branches": [branch("B")], "End": True}}, StartAt="B"),
        "MISSING_TRANSITION_TARGET /StartAt",
    ),
    Case("States is a list", {**GOOD, "States": [PASS]}, "SCHEMA_VALIDATION_FAILED /States"),
    Case("States is empty", {**GOOD, "States": {}}, "SCHEMA_VALIDATION_FAILED /States"),
    Case("a state is null", machine({"A": None}), "SCHEMA_VALIDATION_FAILED /States/A"),
    Case("a state is a text", machine({"A": "Pass"}), "SCHEMA_VALIDATION_FAILED /States/A"),
    Case("a state is a list", machine({"A": [PASS]}), "SCHEMA_VALIDATION_FAILED /States/A"),
    Case("an unknown field of the machine", {**GOOD, "Start": "A"}, "SCHEMA_VALIDATION_FAILED /"),
    Case(
        "a misspelt field of the machine",
        {**GOOD, "TimeOutSeconds": 5},
        "SCHEMA_VALIDATION_FAILED /",
    ),
    Case(
        "a version of the future", {**GOOD, "Version": "2.0"}, "SCHEMA_VALIDATION_FAILED /Version"
    ),
    Case(
        "a time-out that is negative",
        {**GOOD, "TimeoutSeconds": -1},
        "SCHEMA_VALIDATION_FAILED /TimeoutSeconds",
    ),
    Case(
        "a time-out that is a text",
        {**GOOD, "TimeoutSeconds": "5"},
        "SCHEMA_VALIDATION_FAILED /TimeoutSeconds",
    ),
    Case(
        "a time-out that is a fraction",
        {**GOOD, "TimeoutSeconds": 1.5},
        "SCHEMA_VALIDATION_FAILED /TimeoutSeconds",
    ),
    Case(
        "a time-out that is true",
        {**GOOD, "TimeoutSeconds": True},
        "SCHEMA_VALIDATION_FAILED /TimeoutSeconds",
    ),
    Case(
        "a time-out of more than AWS has",
        {**GOOD, "TimeoutSeconds": 100_000_000},
        "SCHEMA_VALIDATION_FAILED /TimeoutSeconds",
    ),
    Case(
        "an empty language",
        {**GOOD, "QueryLanguage": ""},
        "SCHEMA_VALIDATION_FAILED /QueryLanguage",
    ),
    Case(
        "a language that is a list",
        {**GOOD, "QueryLanguage": ["JSONata"]},
        "SCHEMA_VALIDATION_FAILED /QueryLanguage",
    ),
    Case(
        "a comment that is an object", {**GOOD, "Comment": {}}, "SCHEMA_VALIDATION_FAILED /Comment"
    ),
    Case(
        "a name of 81 characters",
        machine({"A" * 81: PASS}),
        f"INVALID_STATE_NAME /States/{'A' * 81}",
    ),
    Case("a name that is empty", machine({"": PASS}), "INVALID_STATE_NAME /States/"),
)


TRANSITIONS: Final = (
    Case(
        "neither Next nor End",
        machine({"A": {"Type": "Pass"}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case(
        "both Next and End",
        machine({"A": {**PASS, "Next": "A"}}),
        "SCHEMA_VALIDATION_FAILED /States/A",
    ),
    Case("End is false", machine({"A": {"Type": "Pass", "End": False}}), "MISSING_END_STATE"),
    Case(
        "End is a text",
        machine({"A": {"Type": "Pass", "End": "true"}}),
        "SCHEMA_VALIDATION_FAILED /States/A/End",
    ),
    Case(
        "Next is a number",
        machine({"A": {"Type": "Pass", "Next": 1}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Next",
    ),
    Case(
        "Next is nobody",
        machine({"A": {"Type": "Pass", "Next": "B"}}),
        "MISSING_TRANSITION_TARGET /States/A/Next",
    ),
    Case(
        "Next in other case",
        machine({"A": {"Type": "Pass", "Next": "b"}, "b ": PASS}),
        "MISSING_TRANSITION_TARGET /States/A/Next",
    ),
    Case(
        "Next into a branch",
        machine(
            {
                "A": {"Type": "Pass", "Next": "P"},
                "P": {"Type": "Parallel", "Branches": [branch("B")], "Next": "B"},
            }
        ),
        "MISSING_TRANSITION_TARGET /States/P/Next",
    ),
    Case(
        "Next out of a branch",
        machine(
            {
                "P": {
                    "Type": "Parallel",
                    "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Pass", "Next": "C"}}}],
                    "Next": "C",
                },
                "C": PASS,
            }
        ),
        "MISSING_TRANSITION_TARGET /States/P/Branches[0]/States/B/Next",
    ),
    Case(
        "a state nobody reaches",
        machine({"A": PASS, "B": PASS}),
        "MISSING_TRANSITION_TARGET /States/B",
    ),
    Case(
        "two states that reach each other only",
        machine(
            {"A": PASS, "B": {"Type": "Pass", "Next": "C"}, "C": {"Type": "Pass", "Next": "B"}}
        ),
        "MISSING_TRANSITION_TARGET /States/B",
    ),
    Case("round for ever", machine({"A": {"Type": "Pass", "Next": "A"}}), "MISSING_END_STATE"),
    Case(
        "round for ever in two",
        machine({"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "A"}}),
        "MISSING_END_STATE",
    ),
    Case(
        "a name used in a branch again",
        machine({"A": {"Type": "Parallel", "Branches": [branch("A")], "End": True}}),
        "DUPLICATE_STATE_NAME /States/A/Branches[0]/States/A",
    ),
    Case(
        "a name used in two branches",
        machine({"P": {"Type": "Parallel", "Branches": [branch("B")] * 2, "End": True}}),
        "DUPLICATE_STATE_NAME /States/P/Branches[1]/States/B",
    ),
)


EXTENSIONS: Final = (
    Case("Holdfast is a list", {**GOOD, "Holdfast": []}, "SCHEMA_VALIDATION_FAILED /Holdfast"),
    Case("Holdfast in lower case", {**GOOD, "holdfast": {}}, "SCHEMA_VALIDATION_FAILED /"),
    Case(
        "Holdfast with an unknown field",
        {**GOOD, "Holdfast": {"Undos": []}},
        "SCHEMA_VALIDATION_FAILED /Holdfast",
    ),
    Case(
        "Undo is an object",
        {**GOOD, "Holdfast": {"Undo": {}}},
        "SCHEMA_VALIDATION_FAILED /Holdfast/Undo",
    ),
    Case(
        "Undo without an end",
        extended(Undo=[{"States": ["A"], "Begin": "A"}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Undo[0]",
    ),
    Case(
        "Undo with an unknown field",
        extended(Undo=[{"States": ["A"], "Begin": "A", "End": "A", "Next": "A"}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Undo[0]",
    ),
    Case(
        "Undo of nothing",
        extended(Undo=[{"States": [], "Begin": "A", "End": "A"}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Undo[0]/States",
    ),
    Case(
        "Undo of a number",
        extended(Undo=[{"States": [1], "Begin": "A", "End": "A"}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Undo[0]/States[0]",
    ),
    Case(
        "Undo of a state that is not there",
        extended(Undo=[{"States": ["B"], "Begin": "A", "End": "A"}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Undo[0]/States[0]",
    ),
    Case(
        "Undo that begins nowhere",
        extended(Undo=[{"States": ["A"], "Begin": "B", "End": "A"}]),
        "MISSING_TRANSITION_TARGET /Holdfast/Undo[0]/Begin",
    ),
    Case(
        "Undo that ends nowhere",
        extended(Undo=[{"States": ["A"], "Begin": "A", "End": "B"}]),
        "MISSING_TRANSITION_TARGET /Holdfast/Undo[0]/End",
    ),
    Case(
        "Shielded is a list of names",
        extended(Shielded=["A"]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Shielded[0]",
    ),
    Case(
        "Shielded states that are not there",
        extended(Shielded=[["B"]]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Shielded[0][0]",
    ),
    Case(
        "a deadline without seconds",
        extended(Deadlines=[{"Begin": "A", "States": ["A"]}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Deadlines[0]",
    ),
    Case(
        "a deadline of nothing",
        extended(Deadlines=[{"Begin": "A", "Seconds": 0, "States": ["A"]}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Deadlines[0]/Seconds",
    ),
    Case(
        "a deadline that is a text",
        extended(Deadlines=[{"Begin": "A", "Seconds": "5", "States": ["A"]}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Deadlines[0]/Seconds",
    ),
    Case(
        "a deadline that begins nowhere",
        extended(Deadlines=[{"Begin": "B", "Seconds": 5, "States": ["A"]}]),
        "MISSING_TRANSITION_TARGET /Holdfast/Deadlines[0]/Begin",
    ),
    Case(
        "a deadline of states that are not there",
        extended(Deadlines=[{"Begin": "A", "Seconds": 5, "States": ["B"]}]),
        "SCHEMA_VALIDATION_FAILED /Holdfast/Deadlines[0]/States[0]",
    ),
    Case(
        "a deadline that leads nowhere",
        extended(Deadlines=[{"Begin": "A", "Seconds": 5, "States": ["A"], "Next": "B"}]),
        "MISSING_TRANSITION_TARGET /Holdfast/Deadlines[0]/Next",
    ),
    Case(
        "Holdfast on a Pass",
        machine({"A": {**PASS, "Holdfast": {"Needed": 1}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast",
    ),
    Case(
        "Needed is nothing",
        parallel(Needed=0),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/Needed",
    ),
    Case(
        "Needed is more than there are",
        parallel(Needed=3),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/Needed",
    ),
    Case(
        "Needed is a text",
        parallel(Needed="1"),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/Needed",
    ),
    Case(
        "Tolerated is negative",
        parallel(Tolerated=-1),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/Tolerated",
    ),
    Case(
        "After with a list too few",
        parallel(After=[[]]),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/After",
    ),
    Case(
        "After a later branch",
        parallel(After=[[1], []]),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/After[0]",
    ),
    Case(
        "After itself",
        parallel(After=[[], [1]]),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/After[1]",
    ),
    Case(
        "After a branch that is true",
        parallel(After=[[], [True]]),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast/After[1]",
    ),
    Case(
        "After on a Map",
        machine({"A": {**MAP, "Holdfast": {"After": [[]]}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast",
    ),
    Case(
        "a quorum on a distributed Map",
        machine({"A": {**MAP, "ItemProcessor": DISTRIBUTED, "Holdfast": {"Needed": 1}}}),
        "SCHEMA_VALIDATION_FAILED /States/A/Holdfast",
    ),
)
