"""The HTTP API as Python calls, over one of three carriers of requests.

The carriers are a URL (a running `serve`), a deployed stack (found through CloudFormation, requests
signed for its IAM authoriser), and the handler itself in this process (the demo).
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from holdfast.errors import RequestError, ServiceFault
from holdfast.local.project import find_serving

AnyJson: TypeAlias = Any
#: method, target, body -> status, body
Carry: TypeAlias = Callable[[str, str, bytes], tuple[int, bytes]]
Sign: TypeAlias = Callable[[str, str, bytes], dict[str, str]]

TIMEOUT_SECONDS: Final = 35  # API Gateway gives up after 30
API_OUTPUT: Final = "ApiUrl"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


#: The API's limit for one page, and the number of pages that one call reads.
PAGE_EXECUTIONS_MAX: Final = 100
PAGES_MAX: Final = 50
LISTED_MAX: Final = PAGE_EXECUTIONS_MAX * PAGES_MAX


class ExecutionList(NamedTuple):
    """Executions, newest first. `after` is the place of the next older one, None at the end."""

    rows: list[AnyJson]
    after: str | None


@dataclass(frozen=True, slots=True)
class Client:
    """`where` names the API in messages. Errors of the API are raised as it gave them."""

    carry: Carry
    where: str

    def start(
        self, workflow: str, data: AnyJson, name: str | None = None, priority: int | None = None
    ) -> AnyJson:
        request = {"workflow": workflow, "input": data}
        request |= _without_none({"name": name, "priority": priority})
        return self._post("/executions", request)

    def stop(
        self,
        identifier: str,
        error: str | None = None,
        cause: str | None = None,
        *,
        is_now: bool = False,
    ) -> AnyJson:
        request: AnyJson = {**_without_none({"error": error, "cause": cause})}
        if is_now:
            request["now"] = True
        return self._post(f"{_path(identifier)}/stop", request)

    def retry(self, identifier: str, reason: str | None = None) -> AnyJson:
        return self._post(f"{_path(identifier)}/retry", {**_without_none({"reason": reason})})

    def pause(self, identifier: str, reason: str, by: str, timers: str) -> AnyJson:
        request = {"reason": reason, "by": by, "timers": timers}
        return self._post(f"{_path(identifier)}/pause", request)

    def change_priority(self, identifier: str, priority: int, reason: str, by: str) -> AnyJson:
        request = {"priority": priority, "reason": reason, "by": by}
        return self._post(f"{_path(identifier)}/priority", request)

    def resume(self, identifier: str, reason: str, by: str) -> AnyJson:
        return self._post(f"{_path(identifier)}/resume", {"reason": reason, "by": by})

    def skip(
        self, identifier: str, step: str, result: AnyJson, words: Mapping[str, str]
    ) -> AnyJson:
        """`words`: reason, by."""
        return self._post(f"{_path(identifier)}/skip", {"step": step, "result": result, **words})

    def change_pause(self, changed: Mapping[str, AnyJson]) -> AnyJson:
        """`changed`: task, workflow or all; paused, until?, reason, by."""
        return self._post("/pauses", dict(changed))

    def pauses(self) -> list[AnyJson]:
        found: list[AnyJson] = self._call("GET", "/pauses")["pauses"]
        return found

    def limits(self) -> list[AnyJson]:
        found: list[AnyJson] = self._call("GET", "/limits")["limits"]
        return found

    def limit(self, name: str, key: str | None = None) -> AnyJson:
        """`key`: a value of the limit's key parameter, whose own queue is wanted."""
        query = "" if key is None else f"?{urlencode({'key': key})}"
        return self._call("GET", f"/limits/{quote(name, safe='')}{query}")

    def change_limit(self, name: str, changed: Mapping[str, AnyJson]) -> AnyJson:
        """`changed`: rate?, burst?, concurrency?, paused?, clear?, reason, by?."""
        return self._post(f"/limits/{quote(name, safe='')}", dict(changed))

    def event(self, name: str, key: str, data: AnyJson, event_id: str | None = None) -> AnyJson:
        request = {"name": name, "key": key, "data": data}
        return self._post("/events", request if event_id is None else {**request, "id": event_id})

    def answer(self, token: str, answer: dict[str, AnyJson]) -> AnyJson:
        """`answer`: output, or error and cause."""
        return self._post("/answers", {"token": token, **answer})

    def questions(self, query: dict[str, AnyJson]) -> AnyJson:
        return self._call("GET", "/questions" + (f"?{urlencode(query)}" if query else ""))

    def question(self, identifier: str) -> AnyJson:
        return self._call("GET", f"/questions/{quote(identifier, safe='')}")

    def act_on_question(self, identifier: str, action: str, request: dict[str, AnyJson]) -> AnyJson:
        """`action`: answer, claim, release or delegate."""
        return self._post(f"/questions/{quote(identifier, safe='')}/{action}", request)

    def execution(self, identifier: str) -> AnyJson:
        return self._call("GET", _path(identifier))

    def history(self, identifier: str) -> list[AnyJson]:
        """Return every event, page by page."""
        target, found = f"{_path(identifier)}/history", list[AnyJson]()
        asked = ""
        while True:
            answer = self._call("GET", target + asked)
            found += answer["events"]
            if "next" not in answer:
                return found
            asked = f"?{urlencode({'after': answer['next']})}"

    def executions(
        self,
        workflow: str | None = None,
        status: str | None = None,
        *,
        limit: int = PAGE_EXECUTIONS_MAX,
        after: str | None = None,
        filters: Mapping[str, str | None] | None = None,
    ) -> ExecutionList:
        """Return the newest `limit` executions, page by page; `after`: only older ones. `filters`:
        see `GET /executions` in docs/how-to/find.md.

        A page with a filter may be empty. After `PAGES_MAX` pages the list ends early, and `after`
        of the result is the place to continue from.
        """
        rows: list[AnyJson] = []
        for _ in range(PAGES_MAX):
            size = str(min(limit - len(rows), PAGE_EXECUTIONS_MAX))
            wanted = {"workflow": workflow, "status": status, "after": after, "limit": size}
            wanted |= filters or {}
            answer = self._call("GET", f"/executions?{urlencode(_without_none(wanted))}")
            rows += answer["executions"]
            after = answer.get("next")
            if after is None or len(rows) >= limit:
                break
        return ExecutionList(rows, after)

    def format(self) -> AnyJson:
        """Return `format`, the format that the stack writes, and `readable`, the formats that its
        code can read.
        """
        return self._call("GET", "/format")

    def ask_format(self, number: int) -> AnyJson:
        return self._post("/format", {"format": number})

    def doctor(self, execution: str | None, *, is_repairing: bool) -> list[AnyJson]:
        """Return every finding, page by page; `execution`: only the findings of that execution."""
        asked = {} if execution is None else {"execution": execution}
        found: list[AnyJson] = []
        while True:
            if is_repairing:
                answer = self._post("/doctor", asked)
            else:
                answer = self._call("GET", f"/doctor?{urlencode(asked)}")
            found += answer["findings"]
            if "next" not in answer:
                return found
            asked = {"after": answer["next"]}

    def events(self) -> list[AnyJson]:
        return list(self._call("GET", "/events")["events"])

    def _post(self, target: str, request: dict[str, AnyJson]) -> AnyJson:
        return self._call("POST", target, json.dumps(request).encode())

    def _call(self, method: str, target: str, body: bytes = b"") -> AnyJson:
        status, content = self.carry(method, target, body)
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if 200 <= status < 300 and isinstance(answer, dict):
            return answer
        raise _error(self.where, status, answer)


def _error(where: str, status: int, answer: AnyJson) -> RequestError | ServiceFault:
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict) or not {"code", "message"} <= error.keys():
        said = answer.get("message", "") if isinstance(answer, dict) else ""
        said = f": {said}" if said else ", which is no answer of Holdfast"
        return RequestError("HF272", f"{where} answered with HTTP status {status}{said}")
    if status >= 500:
        return ServiceFault(str(error["code"]), str(error["message"]))
    return RequestError(
        str(error["code"]), str(error["message"]), status=status, help=str(error.get("help", ""))
    )


def _path(identifier: str) -> str:
    return f"/executions/{quote(identifier, safe='')}"


def _without_none(fields: Mapping[str, AnyJson]) -> dict[str, AnyJson]:
    return {name: value for name, value in fields.items() if value is not None}


# -- carriers --------------------------------------------------------------------------------------


def connect(endpoint: str | None, stack: str | None) -> Client:
    """Return a client of the endpoint, of the stack, or of the project's running `serve`."""
    if stack is not None:
        return _of_stack(stack)
    if endpoint is not None:
        return Client(_over_http(_require_url(endpoint)), endpoint)
    serving = find_serving()
    if serving is None:
        raise RequestError(
            "HF273",
            "there is nothing to talk to: no `serve` of this project is running",
            help="run `holdfast serve`, or give --endpoint URL or --stack NAME",
        )
    return Client(_over_http(_require_url(serving.url)), serving.url)


def _require_url(text: str) -> str:
    if not _is_http(text):
        raise RequestError(
            "HF274", f"{text!r:.200} is not an HTTP URL", help="--endpoint http://127.0.0.1:8080"
        )
    return text.rstrip("/")


def _is_http(text: str) -> bool:
    try:
        url = urlsplit(text)
    except ValueError:
        return False  # half an IPv6 address
    return url.scheme in {"http", "https"} and bool(url.hostname)


def _over_http(base: str, sign: Sign = lambda *_: {}) -> Carry:
    # A proxy cannot reach this machine's loopback address.
    proxies: dict[str, str] | None = {} if urlsplit(base).hostname in _LOOPBACK else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))

    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        url = base + target
        headers = {"Content-Type": "application/json", **sign(method, url, body)}
        request = urllib.request.Request(  # noqa: S310  # the scheme is checked by _require_url
            url, data=body or None, headers=headers, method=method
        )
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                return int(response.status), bytes(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except (OSError, HTTPException) as error:
            raise ServiceFault(
                "HF275", f"{base} cannot be reached: {getattr(error, 'reason', error)}"
            ) from None

    return carry


def _of_stack(name: str) -> Client:
    """Signs for the API's IAM authoriser with the credentials that the AWS CLI would use."""
    from botocore.auth import SigV4Auth  # noqa: PLC0415
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    try:
        session = Session()
        formation = session.create_client("cloudformation")
        outputs = formation.describe_stacks(StackName=name.partition("/")[0])["Stacks"][0].get(
            "Outputs", []
        )
        credentials = session.get_credentials()
    except (BotoCoreError, ClientError) as error:
        raise RequestError(
            "HF276",
            f"stack {name}: {error}",
            help="name a deployed stack; region and credentials are those of the AWS CLI",
        ) from None
    region = formation.meta.region_name

    def sign(method: str, url: str, body: bytes) -> dict[str, str]:
        request = AWSRequest(method, url, {"Content-Type": "application/json"}, body)
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region).add_auth(request)
        return dict(request.headers.items())

    url = _api_url({output["OutputKey"]: output["OutputValue"] for output in outputs}, name)
    return Client(_over_http(_require_url(url), sign), f"stack {name}")


def _api_url(outputs: Mapping[str, str], name: str) -> str:
    """Return the address of the only Holdfast of a stack, or of the one that `Shop/Flows` names.

    The outputs of a construct begin with its name: `FlowsApiUrl`.
    """
    construct = name.partition("/")[2]
    keys = [key for key in outputs if key.endswith(API_OUTPUT)]
    found = [key for key in keys if key == f"{construct}{API_OUTPUT}"] if construct else keys
    if len(found) == 1:
        return outputs[found[0]]
    stack = name.partition("/")[0]
    several = ", ".join(f"{stack}/{key.removesuffix(API_OUTPUT)}" for key in keys)
    if keys:
        message = f"stack {stack} has the outputs {', '.join(keys)}; {name} names none of them"
        raise RequestError("HF276", message, help=f"name one of {several}")
    raise RequestError(
        "HF276",
        f"stack {name} has no output {API_OUTPUT}",
        help="name a stack that was deployed from a CDK app with Holdfast in it",
    )
