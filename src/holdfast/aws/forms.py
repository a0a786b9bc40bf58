"""Pages for people without an account: a signed link shows a question, and its form sends the
answer.

    GET  /forms/TOKEN   shows the question and a form made from the answer's type; changes nothing,
                        because mail programs and chat previews open every link
    POST /forms/TOKEN   stores the answer

The token gives the right to answer this one question; the person who opens the link is not
identified. For a wrong, an expired or a used link the page says so, and shows nothing of the
question.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from holdfast.aws.host import Host
from holdfast.errors import HoldfastError, RequestError
from holdfast.limits import BODY_BYTES_MAX
from holdfast.resources import FORMS_PATH

#: The content policy of a page. The page shows text from workflows, which may contain anything, so
#: no script and no other site is allowed.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem;"
    "color:#1b1f24}h1{font-size:1.4rem}label{display:block;margin:1rem 0 .25rem}"
    "input:not([type=radio]),select,textarea{font:inherit;width:100%;box-sizing:border-box;"
    "padding:.5rem;border:1px solid #8b949e;border-radius:4px}button{font:inherit;"
    "margin-top:1.5rem;padding:.5rem 1.5rem;border:0;border-radius:4px;background:#0b5cad;"
    "color:#fff}"
    "dt{color:#57606a}dd{margin:0 0 .5rem}ul{margin:0;padding-left:1.2rem}"
    ".choice{display:inline-block;margin-right:1.5rem}"
    ".problem{border-left:4px solid #b42318;padding:.25rem 1rem}small{color:#57606a}"
)
#: The name of the form field for an answer that is a single value and not an object.
_WHOLE: Final = "answer"


def form_handler(host: Host) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the handler of both routes: the page and its form."""

    def handle(request: Mapping[str, Any]) -> dict[str, Any]:
        token = unquote(str(request["rawPath"])).removeprefix(FORMS_PATH)
        method = request["requestContext"]["http"]["method"]
        try:
            question = host.perform(host.front.form(token))
            if method == "GET":
                return _page(200, _form(question))
            if method != "POST":
                return _page(405, _message("This page takes GET and POST."))
            return _submit(host, token, question, request)
        except RequestError as error:
            return _page(*_refusal(error))
        except HoldfastError as error:
            host.log_fault("a form was not served", error)
            return _page(503, _message("The service does not answer. Please try again later."))

    return handle


def _submit(
    host: Host, token: str, question: Mapping[str, Any], request: Mapping[str, Any]
) -> dict[str, Any]:
    given = _fields_of(request)
    try:
        output = answer_of(question["schema"], given)
        host.perform(host.front.submit(token, output))
    except ValueError as error:
        return _page(422, _form(question, given, str(error)))
    except RequestError as error:
        if error.code == "HF211":
            return _page(422, _form(question, given, error.message))
        raise
    return _page(200, _message("Thank you. Your answer has been stored."))


def _refusal(error: RequestError) -> tuple[int, str]:
    if error.code == "HF230":
        return 403, _message("This link is not valid, or has expired.")
    if error.code in {"HF231", "HF232", "HF254"}:
        return 410, _message("This question has been answered, or is over.")
    return error.status, _message("This answer cannot be taken.")


def _fields_of(request: Mapping[str, Any]) -> dict[str, str]:
    text = str(request.get("body") or "")
    if len(text) > BODY_BYTES_MAX:
        raise RequestError("HF241", f"the body is over {BODY_BYTES_MAX} bytes", status=413)
    if request.get("isBase64Encoded"):
        text = base64.b64decode(text).decode("utf-8", "replace")
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}


# -- from the schema to fields, and back -----------------------------------------------------------


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a reference names; for `X | None` the schema of X."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return {**_resolved(root.get("$defs", {}).get(name, {}), root), **_without_ref(schema)}
    options = schema.get("anyOf", [])
    known = [option for option in options if option.get("type") != "null"]
    if len(known) == 1 and len(options) == 2:
        return {**_resolved(known[0], root), **_without_ref(schema), "optional": True}
    return schema


def _without_ref(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in ("$ref", "anyOf")}


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield for each field of the form its name, its schema, and True when it is required."""
    root = _resolved(schema, schema)
    if root.get("type") != "object" or not root.get("properties"):
        yield _WHOLE, root, True
        return
    required = root.get("required", [])
    for name, part in root["properties"].items():
        found = _resolved(part, schema)
        yield name, found, name in required and "optional" not in found


def answer_of(schema: Mapping[str, Any], given: Mapping[str, str]) -> Any:
    """Return the JSON value of a filled form. Raises ValueError for text that does not fit the type
    of its field.

    A field that is empty and not required is left out, so that the default of the type is used. One
    without a default that may be None is None.
    """
    values: dict[str, Any] = {}
    root = _resolved(schema, schema)
    needed = root.get("required", [])
    for name, part, is_required in _parts(schema):
        text = given.get(name, "")
        if text or (is_required and part.get("type") == "string"):
            values[name] = _value(name, part, text)
        elif is_required:
            raise ValueError(f"{name}: please fill in this field")
        elif name in needed:
            values[name] = None
    is_object = root.get("type") == "object" and root.get("properties")
    return values if is_object else values.get(_WHOLE)


def _value(name: str, part: Mapping[str, Any], text: str) -> Any:
    if "enum" in part:
        return next((one for one in part["enum"] if str(one) == text), text)
    match part.get("type"):
        case "string":
            return text
        case "integer" | "number":
            return _number(name, part, text)
        case _:
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError(f"{name}: this is not JSON") from None


def _number(name: str, part: Mapping[str, Any], text: str) -> int | float:
    try:
        return int(text) if part["type"] == "integer" else float(text)
    except ValueError:
        raise ValueError(f"{name}: {text[:40]!r} is no number") from None


# -- pages -----------------------------------------------------------------------------------------


def _page(status: int, content: str) -> dict[str, Any]:
    body = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Question</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head><body>{content}</body></html>"
    )
    return {
        "statusCode": status,
        "headers": dict(_HEADERS),
        "body": body,
        "isBase64Encoded": False,
    }


def _message(text: str) -> str:
    return f"<h1>{html.escape(text)}</h1>"


def _form(
    question: Mapping[str, Any], given: Mapping[str, str] | None = None, problem: str = ""
) -> str:
    fields = "".join(
        _field(name, part, (given or {}).get(name), is_required=is_required)
        for name, part, is_required in _parts(question["schema"])
    )
    details, until = question["details"], question.get("until")
    return (
        f"<h1>{html.escape(question['title'])}</h1>{_shown(details) if details else ''}"
        f"{f'<p><small>Until {_moment(until)}</small></p>' if until else ''}"
        f"{f'<p class=problem role=alert>{html.escape(problem)}</p>' if problem else ''}"
        f'<form method="post">{fields}<button>Send</button></form>'
    )


def _moment(text: str) -> str:
    """Return `2026-01-01 09:30 UTC` for a moment of the API."""
    return html.escape(f"{text[:10]} {text[11:16]} UTC")


def _shown(value: Any) -> str:
    """Return a detail as HTML: people read it, so a list is no JSON."""
    match value:
        case dict():
            rows = (
                f"<dt>{html.escape(name)}</dt><dd>{_shown(one)}</dd>" for name, one in value.items()
            )
            return f"<dl>{''.join(rows)}</dl>"
        case list():
            return f"<ul>{''.join(f'<li>{_shown(one)}</li>' for one in value)}</ul>"
        case bool():
            return "Yes" if value else "No"
        case None:
            return "none"
        case _:
            return html.escape(str(value))


def _field(name: str, part: Mapping[str, Any], given: str | None, *, is_required: bool) -> str:
    shown = html.escape(str(part.get("title") or name.replace("_", " ").capitalize()))
    key, value = html.escape(name), given
    if value is None and part.get("default") is not None:
        default = part["default"]
        value = default if isinstance(default, str) else json.dumps(default)
    needed = " required" if is_required else ""
    match part:
        case {"enum": options}:
            return f"{_label(key, shown)}{_select(key, options, value, needed)}"
        case {"type": "boolean"}:
            return f"<fieldset><legend>{shown}</legend>{''.join(_yes_no(key, value))}</fieldset>"
        case {"type": "integer"}:
            return _label(key, shown) + _input(key, "type=number step=1", value, needed)
        case {"type": "number"}:
            return _label(key, shown) + _input(key, "type=number step=any", value, needed)
        case {"type": "string", "format": "date"}:
            return _label(key, shown) + _input(key, "type=date", value, needed)
        case {"type": "string"}:
            # An empty text is a valid answer, so the field is not required.
            return _label(key, shown) + _input(key, "", value, "")
        case _:
            area = f'<textarea id="{key}" name="{key}" rows=6{needed}>'
            return f"{_label(key, f'{shown} (JSON)')}{area}{html.escape(value or '')}</textarea>"


def _input(key: str, kind: str, value: str | None, needed: str) -> str:
    filled = f' value="{html.escape(value)}"' if value else ""
    return f'<input id="{key}" name="{key}" {kind}{filled}{needed}>'


def _label(key: str, shown: str) -> str:
    return f'<label for="{key}">{shown}</label>'


def _select(key: str, options: Iterable[Any], value: str | None, needed: str) -> str:
    def option(one: Any) -> str:
        text = html.escape(str(one))
        return f"<option{' selected' if str(one) == value else ''}>{text}</option>"

    return f'<select id="{key}" name="{key}"{needed}>{"".join(map(option, options))}</select>'


def _yes_no(key: str, value: str | None) -> Iterator[str]:
    for text, shown in (("true", "Yes"), ("false", "No")):
        chosen = " checked" if value == text else ""
        yield (
            f'<label class=choice><input type=radio name="{key}" value={text} required{chosen}>'
            f" {shown}</label>"
        )
