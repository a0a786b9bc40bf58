"""JSONata that a definition for AWS needs in addition: texts of errors, and the identity of
callers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from holdfast.asl import error_names

ERROR: Final = "$states.errorOutput"
RESULT: Final = "$states.result"
_EMPTY: Final = '""'
_JSON_TEXT: Final = r'("[^\\"]*(?:\\.[^\\"]*)*")'
#: The cause of a Lambda error is JSON. AWS may cut it off at its maximum length, so a pattern
#: searches it: a parser would fail.
_MESSAGE: Final = rf'/^\{{(?:"errorType": ?"[^"]*", ?)?"errorMessage": ?{_JSON_TEXT}/'
_TIMED_OUT: Final = r'/"Status": ?"TIMED_OUT", ?"StopDate": ?[0-9]+\}$/'
_CAUSE: Final = rf'/^\{{"Cause": ?{_JSON_TEXT}/'
_NAME: Final = rf'/^\{{(?:"Cause": ?{_JSON_TEXT.replace("(", "(?:", 1)}, ?)?"Error": ?{_JSON_TEXT}/'


def error_of_function() -> str:
    """Return the error of a function, a branch or an iteration, with its text as the cause."""
    text = f'$type({ERROR}.Cause) = "string" ? {_message_in(f"{ERROR}.Cause")}'
    made = f'$merge([{ERROR}, {{"Cause": $text}}])'
    return f"($text := {text}; $exists($text) ? {made} : {ERROR})"


def error_of_child() -> str:
    """Return the error of a child workflow. AWS's own error for a child that could not start stays
    unchanged.
    """
    cause = f"{ERROR}.Cause"
    was_late = f"$exists($match({cause}, {_TIMED_OUT}, 1))"
    name = _found_in(
        cause, _NAME, f'{was_late} ? "{error_names.TIMEOUT}" : "{error_names.TASK_FAILED}"'
    )
    # The child may have failed because of a Lambda function. The cause of such an error is JSON, so
    # take the message from it.
    text = f"($text := {_found_in(cause, _CAUSE, _EMPTY)}; {_message_in('$text')})"
    childs = f'{{"Error": {name}, "Cause": {text}}}'
    return f'{ERROR}.Error = "{error_names.TASK_FAILED}" ? {childs} : {ERROR}'


def _message_in(text: str) -> str:
    return _found_in(text, _MESSAGE, text)


def _found_in(text: str, pattern: str, otherwise: str) -> str:
    """Return the text in the group of the pattern, decoded from JSON."""
    found = f"$match({text}, {pattern}, 1)"
    return f"($found := {found}; $exists($found) ? $parse($found.groups[0]) : {otherwise})"


def caller(name: str, lanes: tuple[str, ...]) -> str:
    """Return Lambda's client context, from which `lambda_handler` reads the caller.

    It contains only ASCII, because `$base64encode` cannot encode other text. Its entry is the same
    in every attempt.
    """
    state = json.dumps(name.encode("ascii", "backslashreplace").decode())
    indexes = "".join(f' & " " & $string({lane})' for lane in lanes)
    context = "$states.context"
    fields = {
        "execution": f"$encodeUrlComponent({context}.Execution.Id)",
        "entry": f'{context}.State.EnteredTime & " " & {state}{indexes}',
        "attempt": f"{context}.State.RetryCount + 1",
    }
    written = ", ".join(f'"{key}": {value}' for key, value in fields.items())
    return f'$base64encode($string({{"custom": {{"holdfast": {{{written}}}}}}}))'


_LITERAL_OR_NAME: Final = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\$[\w.]+')


def replaced(value: Any, name: str, wrap: Callable[[str], str], by: str) -> Any:
    """Return the template with `name` replaced in its expressions. `wrap` is applied to changed
    ones.
    """
    match value:
        case str() if value.startswith("{%") and value.endswith("%}"):
            text = inside(value)
            changed = _LITERAL_OR_NAME.sub(lambda found: _renamed(found[0], name, by), text)
            return value if changed == text else expression(wrap(changed))
        case dict():
            return {key: replaced(item, name, wrap, by) for key, item in value.items()}
        case list():
            return [replaced(item, name, wrap, by) for item in value]
        case _:
            return value


def _renamed(token: str, name: str, by: str) -> str:
    is_it = token == name or token.startswith(f"{name}.")
    return by + token.removeprefix(name) if is_it else token


def inside(expression: str) -> str:
    return expression.removeprefix("{%").removesuffix("%}").strip()


def expression(text: str) -> str:
    return f"{{% {text} %}}"
