"""The command line without a cloud: compiling, checking, arguments, and finding the API."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast.cli import main
from holdfast.local import project

ROOT = Path(__file__).parents[2]
GREETING = """
from holdfast import task, workflow

@task
def greet(name: str) -> str:
    return f"hello {name}"

@workflow
def hello(name: str) -> str:
    return greet(name)
"""
TYPED_DICT = """
from typing import TypedDict
from holdfast import workflow

class Order(TypedDict):
    pence: int

@workflow
def pay({place}) -> int:
    return 1
"""
REFUSED = """
from holdfast import workflow

@workflow
def wrong(name: str) -> str:
    with open(name) as file:
        return file.read()

@workflow
def wrong_too(name):
    return name
"""


@dataclass
class Project:
    """A folder with modules, and the command line inside it."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    printed: str = ""
    complaints: str = ""

    def module(self, name: str, source: str) -> None:
        (self.folder / f"{name}.py").write_text(source)
        importlib.invalidate_caches()

    def __call__(self, *arguments: str) -> int:
        status = main(arguments)
        self.printed, self.complaints = self.capture.readouterr()
        assert "Traceback" not in self.printed + self.complaints
        return status


@pytest.fixture
def holdfast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    yield Project(tmp_path, capsys)
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


# -- compile ---------------------------------------------------------------------------------------


def test_compile_writes_definition_and_map_beside_the_module(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING)
    assert holdfast("compile", "greeting") == 0
    assert holdfast.printed == "written  hello.asl.json\nwritten  hello.map.json\n"
    asl = json.loads((holdfast.folder / "hello.asl.json").read_text())
    assert asl["QueryLanguage"] == "JSONata"
    source_map = json.loads((holdfast.folder / "hello.map.json").read_text())
    assert source_map["function"] == "greeting:hello"


def test_a_module_may_be_named_by_its_file_also_one_that_begins_with_a_digit(
    holdfast: Project,
) -> None:
    holdfast.module("01_greeting", GREETING)
    assert holdfast("compile", str(holdfast.folder / "01_greeting.py")) == 0
    source_map = json.loads((holdfast.folder / "hello.map.json").read_text())
    assert source_map["function"] == "01_greeting:hello"
    assert holdfast("check", "01_greeting.py") == 0


def test_compile_leaves_a_file_that_is_current_alone(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING)
    holdfast("compile", "greeting")
    written = (holdfast.folder / "hello.asl.json").stat().st_mtime_ns
    assert holdfast("compile", "greeting") == 0
    assert "current  hello.asl.json" in holdfast.printed
    assert (holdfast.folder / "hello.asl.json").stat().st_mtime_ns == written


def test_compile_check_names_stale_files_and_writes_nothing(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING)
    holdfast("compile", "greeting")
    assert holdfast("compile", "--check", "greeting") == 0
    (holdfast.folder / "hello.asl.json").write_text("{}")
    assert holdfast("compile", "--check", "greeting") == 1
    assert holdfast.complaints == "hello.asl.json is not what its source compiles to\n"
    assert (holdfast.folder / "hello.asl.json").read_text() == "{}"


def test_the_modules_of_the_project_are_the_default_also_from_a_folder_below(
    holdfast: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdfast.module("greeting", GREETING)
    (holdfast.folder / "pyproject.toml").write_text('[tool.holdfast]\nmodules = ["greeting"]\n')
    (holdfast.folder / "below").mkdir()
    monkeypatch.chdir(holdfast.folder / "below")
    assert holdfast("compile") == 0
    assert (holdfast.folder / "hello.asl.json").exists()


@pytest.mark.parametrize("command", ["compile", "check"])
def test_a_module_without_workflows_is_reported(holdfast: Project, command: str) -> None:
    holdfast.module("forgotten", "def hello(name: str) -> str: ...\n")
    assert holdfast(command, "forgotten") == 0
    assert holdfast.printed == "no workflows in forgotten\n"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (None, "HF270"),
        ("[tool.other]", "HF270"),
        ("[tool.holdfast]\nmodules = 7", "HF271"),
        ("[tool.holdfast", "HF271"),
    ],
)
def test_without_modules_compile_says_where_to_name_them(
    holdfast: Project, settings: str | None, code: str
) -> None:
    if settings is not None:
        (holdfast.folder / "pyproject.toml").write_text(settings)
    assert holdfast("compile") == 2
    assert f"error[{code}]" in holdfast.complaints
    assert "pyproject.toml" in holdfast.complaints


# -- check -----------------------------------------------------------------------------------------


def test_check_shows_every_refusal_of_every_module(holdfast: Project) -> None:
    holdfast.module("refused", REFUSED)
    holdfast.module("greeting", GREETING)
    assert holdfast("check", "refused", "greeting", "nowhere") == 1
    assert "refused.py:6:" in holdfast.printed
    assert "refused.py:10:" in holdfast.printed
    assert "error[HF070]: module nowhere cannot be found" in holdfast.printed
    assert holdfast.printed.endswith("problems\n")
    assert not list(holdfast.folder.glob("*.json"))


def test_a_file_that_does_not_exist_is_named_back_as_a_module(holdfast: Project) -> None:
    assert holdfast("compile", "./greeting.py") == 1
    assert "help: name the module: `greeting`" in holdfast.complaints


def test_a_workflow_with_two_names_is_compiled_once(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING + "\n\nother_name = hello\n")
    assert holdfast("compile", "greeting") == 0
    assert holdfast.printed == "written  hello.asl.json\nwritten  hello.map.json\n"


def test_check_has_nothing_to_say_about_good_modules(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING)
    assert holdfast("check", "greeting") == 0
    assert holdfast.printed.endswith("\n\nno problems\n")


MACHINE = """{
  "StartAt": "A",
  "States": {
    "A": {"Type": "Pass", "Next": "Nowhere"},
    "B": {"Type": "Wait", "End": true,
          "Timestamp": "tomorrow"}
  }
}
"""


def test_check_prints_the_findings_of_aws_with_line_and_column(
    holdfast: Project,
) -> None:
    (holdfast.folder / "machine.json").write_text(MACHINE)
    assert holdfast("check", "machine.json") == 1
    assert holdfast.printed.split("\n\n") == [
        (
            "machine.json:6:24: error[SCHEMA_VALIDATION_FAILED]: /States/B/Timestamp: "
            "String does not match RFC3339 timestamp\n  = help: write it as 2026-01-31T13:00:00Z"
        ),
        (
            "machine.json:4:35: error[MISSING_TRANSITION_TARGET]: /States/A/Next: "
            "Missing 'Next' target: Nowhere\n  = help: name a state of the same level"
        ),
        (
            "machine.json:5:10: error[MISSING_TRANSITION_TARGET]: /States/B: "
            'State "B" is not reachable.\n  = help: let another state go on to it, or remove it'
        ),
        "3 problems\n",
    ]


def test_check_prints_its_findings_as_json(holdfast: Project) -> None:
    holdfast.module("refused", REFUSED)
    (holdfast.folder / "broken.json").write_text('{"StartAt": x}')
    assert holdfast("check", "--json", "broken.json", "refused") == 1
    machine, *modules = json.loads(holdfast.printed)
    assert (machine["file"], machine["line"], machine["column"]) == ("broken.json", 1, 14)
    assert machine["code"] == "INVALID_JSON_DESCRIPTION"
    assert "refused.py:6:" in modules[0]["message"]


def test_check_prints_the_warnings_of_aws_and_fails_with_them_only_when_strict(
    holdfast: Project,
) -> None:
    fail = {"Type": "Fail", "Error": "$.error"}
    machine = {"StartAt": "A", "States": {"A": fail}}
    (holdfast.folder / "machine.json").write_text(json.dumps(machine))
    assert holdfast("check", "machine.json") == 0
    assert holdfast.printed.startswith(
        "machine.json:1:60: warning[NO_PATH]: /States/A/Error: The value of 'Error' looks like a "
        "JSONPath. Instead of 'Error', use 'ErrorPath' to evaluate it as a JSONPath at runtime.\n"
    )
    assert holdfast.printed.endswith("\n\naccepted, 1 warning\n")
    assert holdfast("check", "--strict", "machine.json") == 1
    assert holdfast.printed.endswith("\n\n1 problem\n")


def test_check_has_nothing_to_say_about_a_good_machine(holdfast: Project) -> None:
    good = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    (holdfast.folder / "machine.json").write_text(json.dumps(good))
    assert holdfast("check", "machine.json") == 0
    assert holdfast.printed.endswith("\n\nno problems\n")
    assert holdfast("check", "--json", "machine.json") == 0
    (proved,) = json.loads(holdfast.printed)
    assert (proved["severity"], proved["events"]) == ("PROVED", "4")


UNBOUNDED = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Resource": "holdfast:token.waitForTaskToken", "End": True},
    },
}


def test_a_warning_fails_a_strict_check_and_no_other(holdfast: Project) -> None:
    (holdfast.folder / "machine.json").write_text(json.dumps(UNBOUNDED, indent=2))
    assert holdfast("check", "machine.json") == 0
    assert "machine.json:4:10: warning[HF098]: " in holdfast.printed
    assert holdfast.printed.endswith("accepted, 1 warning\n")
    assert holdfast("check", "--strict", "machine.json") == 1
    assert holdfast.printed.endswith("1 problem\n")


def test_an_error_that_only_the_proofs_find_fails_a_check(holdfast: Project) -> None:
    state = {"Type": "Succeed", "Output": "{% $nobody %}"}
    machine = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}}
    (holdfast.folder / "machine.json").write_text(json.dumps(machine))
    assert holdfast("check", "machine.json") == 1
    assert "error[HF094]" in holdfast.printed


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_file_that_cannot_be_read_is_wrong_usage(
    holdfast: Project, content: bytes | None
) -> None:
    if content is not None:
        (holdfast.folder / "machine.json").write_bytes(content)
    assert holdfast("check", "machine.json") == 2
    assert "error[HF282]: machine.json: " in holdfast.complaints


def test_a_refused_module_is_not_compiled(holdfast: Project) -> None:
    holdfast.module("refused", REFUSED)
    assert holdfast("compile", "refused") == 1
    assert "refused.py:6:" in holdfast.complaints
    assert holdfast.printed == ""


def test_two_modules_that_use_one_name_are_distinguished(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING)
    holdfast.module("farewell", GREETING)
    assert holdfast("check", "greeting", "farewell") == 1
    assert "error[HF071]: two workflows are called hello" in holdfast.printed


def test_what_a_decorator_refuses_has_the_line_of_the_module(holdfast: Project) -> None:
    source = '\n\n@task(group="Pay ments")\ndef charge(order: str) -> str: ...\n'
    holdfast.module("grouped", f"from holdfast import task{source}")
    assert holdfast("check", "grouped") == 1
    assert "grouped.py:3:1: error[HF421]: the task charge is in the group" in holdfast.printed


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import holdfast\n1 / 0", "broken.py:2: module broken cannot be imported: ZeroDivision"),
        ("def f(:\n", "broken.py:1: module broken cannot be imported: SyntaxError"),
        ("import not_installed_here", "No module named 'not_installed_here'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_its_authors_to_mend(
    holdfast: Project, source: str, says: str
) -> None:
    holdfast.module("broken", source)
    assert holdfast("compile", "broken") == 1
    assert "error[HF072]" in holdfast.complaints
    assert says in holdfast.complaints


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic reads it from 3.12 on")
@pytest.mark.parametrize("place", ["order: Order", "order: list[Order] | None"])
def test_a_typed_dict_that_pydantic_cannot_read_is_refused_with_the_one_to_import(
    holdfast: Project, place: str
) -> None:
    holdfast.module("ordering", TYPED_DICT.format(place=place))
    assert holdfast("check", "ordering") == 1
    assert "error[HF004]: an annotation names Order, a `typing.TypedDict`" in holdfast.printed
    assert "help: from typing_extensions import TypedDict" in holdfast.printed


def test_a_file_with_bytes_outside_its_encoding_is_named(holdfast: Project) -> None:
    source = GREETING.encode() + b"# caf\xe9\n"
    (holdfast.folder / "latin.py").write_bytes(source)
    assert holdfast("check", "latin") == 1
    assert "latin.py has bytes that are not in its encoding" in holdfast.printed


def test_a_folder_that_is_no_package_is_named_as_one(holdfast: Project) -> None:
    (holdfast.folder / "flows").mkdir()
    for options in (("check", "flows"), ("compile", "flows", "--check")):
        assert holdfast(*options) == 1
        assert "module flows is a folder without an __init__.py" in (
            holdfast.printed + holdfast.complaints
        )


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("dance",),
        ("show",),
        ("event", "x"),
        ("answer", "token"),
        ("answer", "token", "--output", "1", "--error", "E"),
        ("start", "hello", "--wait", "-1"),
        ("start", "hello", "--wait", "nan"),
        ("fork", "x", "--at", "s", "--reason", "r", "--set", "n"),
        ("fork", "x", "--at", "s", "--reason", "r", "--set", "=1"),
        ("list", "--endpoint", "http://x", "--stack", "y"),
        ("list", "--status", "BORED"),
        ("serve", "--port", "eighty"),
        ("list", "--endpoint", ""),
    ],
)
def test_wrong_usage_is_status_two(holdfast: Project, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stopped:
        holdfast(*arguments)
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{not json", "--input is not JSON"),
        ("@nowhere.json", "--input: nowhere.json: No such file"),
        ("[" * 100_000, "--input is not JSON"),
        ("NaN", "--input is not JSON: it has no NaN"),
        ('{"pence": -Infinity}', "--input is not JSON: it has no -Infinity"),
    ],
)
def test_an_input_that_is_no_json_never_leaves(holdfast: Project, text: str, says: str) -> None:
    assert holdfast("start", "hello", "--input", text, "--endpoint", "http://127.0.0.1:1") == 2
    assert f"error[HF282]: {says}" in holdfast.complaints


def test_a_cause_without_an_error_is_refused(holdfast: Project) -> None:
    assert holdfast("answer", "token", "--output", "1", "--cause", "none") == 2
    assert "--cause belongs to --error" in holdfast.complaints


def test_an_interrupted_command_ends_without_a_word(
    holdfast: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(project, "modules_or_default", interrupt)
    assert holdfast("compile") == 130
    assert holdfast.printed + holdfast.complaints == ""


def test_a_bug_is_reported_as_one(holdfast: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "modules_or_default", lambda _: 1 / 0)
    assert holdfast("compile") == 2
    assert "error[HF900]: ZeroDivisionError" in holdfast.complaints


def test_a_port_that_is_taken_is_said(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert holdfast("serve", "--port", port, "--modules", "greeting") == 2
    assert f"error[HF277]: cannot listen on 127.0.0.1:{port}" in holdfast.complaints


def test_a_folder_for_the_archive_that_cannot_be_made_is_said_at_once(holdfast: Project) -> None:
    holdfast.module("greeting", GREETING)
    folder = holdfast.folder / "greeting.py" / "archive"
    assert holdfast("serve", "--archive", str(folder), "--modules", "greeting") == 2
    assert f"error[HF282]: the folder {folder} of --archive" in holdfast.complaints


# -- finding the API -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "x"),
        ("history", "x"),
        ("stop", "x"),
        ("pause", "x", "--reason", "why"),
        ("resume", "x", "--reason", "why"),
        ("retry", "x"),
        ("start", "hello"),
        ("event", "e", "--key", "k", "--data", "1"),
        ("answer", "t", "--output", "1"),
        ("advance", "+2h"),
    ],
)
def test_without_an_api_a_command_names_both_ways_to_one(
    holdfast: Project, arguments: tuple[str, ...]
) -> None:
    assert holdfast(*arguments) == 2
    assert "holdfast serve" in holdfast.complaints
    assert "--endpoint URL or --stack NAME" in holdfast.complaints


def test_an_endpoint_without_an_answer_is_named(holdfast: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert holdfast("list", "--endpoint", url) == 2
    assert f"error[HF275]: {url} cannot be reached" in holdfast.complaints
    assert "start `holdfast serve`, or name another API with --endpoint" in holdfast.complaints


@pytest.mark.parametrize("endpoint", ["ftp://host", "file:///etc/passwd", "localhost:8080"])
def test_an_endpoint_that_is_no_url_is_refused(holdfast: Project, endpoint: str) -> None:
    assert holdfast("list", "--endpoint", endpoint) == 2
    assert "error[HF274]" in holdfast.complaints


STACKS = """<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
<DescribeStacksResult><Stacks><member><StackName>shop</StackName>
<CreationTime>2026-01-01T00:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus>
<Outputs>{outputs}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>"""
OUTPUT = "<member><OutputKey>ApiUrl</OutputKey><OutputValue>{url}</OutputValue></member>"


class Aws(BaseHTTPRequestHandler):
    """CloudFormation, and an API that wants signatures, at one address."""

    outputs: ClassVar[str] = OUTPUT
    authorizations: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        outputs = self.outputs.format(url=f"http://{self.headers['Host']}")
        self._say(200, "text/xml", STACKS.format(outputs=outputs))

    def do_GET(self) -> None:
        self.authorizations.append(self.headers.get("Authorization", ""))
        self._say(200, "application/json", '{"executions": []}')

    def _say(self, status: int, kind: str, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Aws]]:
    monkeypatch.setattr(Aws, "authorizations", [])
    monkeypatch.delenv("AWS_REGION", raising=False)
    with HTTPServer(("127.0.0.1", 0), Aws) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        for name, value in {
            "AWS_ENDPOINT_URL_CLOUDFORMATION": url,
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "eu-north-1",
        }.items():
            monkeypatch.setenv(name, value)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Aws
        server.shutdown()
        thread.join()


def test_requests_to_a_stack_are_signed_for_its_api(holdfast: Project, aws: type[Aws]) -> None:
    assert holdfast("list", "--stack", "shop", "--json") == 0
    assert holdfast.printed == "[]\n"
    (authorization,) = aws.authorizations
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-north-1/execute-api/aws4_request" in authorization
    assert "secret" not in authorization


def test_the_region_is_the_one_that_the_aws_cli_would_use(
    holdfast: Project, aws: type[Aws], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-south-2")
    assert holdfast("list", "--stack", "shop", "--json") == 0
    (authorization,) = aws.authorizations
    assert "/eu-south-2/execute-api/aws4_request" in authorization


def test_a_stack_of_something_else_is_refused(
    holdfast: Project, aws: type[Aws], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws, "outputs", "")
    assert holdfast("list", "--stack", "shop") == 2
    assert "error[HF276]: stack shop has no output ApiUrl" in holdfast.complaints


def test_a_stack_without_a_region_is_said(
    holdfast: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    assert holdfast("list", "--stack", "shop") == 2
    assert "error[HF276]: stack shop: You must specify a region" in holdfast.complaints


# -- the script of a checkout ----------------------------------------------------------------------


class Script:
    """`./holdfast` on a machine without uv; its commands are noted, those that fail are given."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = str(ROOT / "holdfast")
        loader = SourceFileLoader("holdfast_script", path)
        spec = importlib.util.spec_from_loader(loader.name, loader)
        assert spec is not None
        self.module = importlib.util.module_from_spec(spec)
        loader.exec_module(self.module)
        self.ran: list[list[str]] = []
        self.failing: set[str] = set()
        monkeypatch.setattr(self.module, "ROOT", folder)
        monkeypatch.setattr(shutil, "which", lambda _: None)
        monkeypatch.setattr(subprocess, "run", self._run)
        monkeypatch.setattr(os, "execv", lambda _, command: self.ran.append(command))
        self._argv = partial(monkeypatch.setattr, sys, "argv")

    def _run(
        self, command: list[Any], *, check: bool, **_: Any
    ) -> subprocess.CompletedProcess[bytes]:
        words = [str(word) for word in command]
        self.ran.append(words)
        status = int(bool(self.failing.intersection(words)))
        if check and status:
            raise subprocess.CalledProcessError(status, words)
        return subprocess.CompletedProcess(words, status)

    def __call__(self, *arguments: str) -> list[str]:
        """Return its last command. `test` exits with a code, which is kept."""
        self._argv(["./holdfast", *arguments])
        if arguments[0] != "test":
            self.module.main()
            return self.ran[-1]
        with pytest.raises(SystemExit) as ended:
            self.module.main()
        self.code = ended.value.code
        return self.ran[-1]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    # Set and deleted, so that the test's end undoes what the script does to the environment.
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Script(tmp_path, monkeypatch)


def test_the_script_brings_the_development_set_for_test_alone(script: Script) -> None:
    assert "--no-dev" in script("demo")
    assert script.ran[-1][-2:] == ["holdfast", "demo"]
    assert "--no-dev" not in script("test", "-k", "this")
    assert script.ran[-1][-4:] == ["pytest", "--assert=plain", "-k", "this"]


def test_the_script_explains_the_tests_that_failed_and_exits_with_their_code(
    script: Script,
) -> None:
    script.failing = {"--assert=plain"}
    assert script("test", "-k", "this")[-4:] == ["pytest", "--last-failed", "-k", "this"]
    assert script.code == 1


def test_the_script_keeps_the_bytecode_of_tests_out_of_the_tree_where_none_is_to_be_there(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("test")
    assert "PYTHONPYCACHEPREFIX" not in os.environ
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    script("demo")
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
    script("test")
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    assert os.environ["PYTHONPYCACHEPREFIX"] == str(tmp_path / ".tools" / "bytecode")


def test_the_script_installs_uv_without_ensurepip(script: Script, tmp_path: Path) -> None:
    script.failing = {"venv"}
    assert script("demo")[0] == str(tmp_path / ".tools" / "bin" / "uv")
    assert str(tmp_path / ".tools") in script.ran[1][script.ran[1].index("--target") :]


def test_the_script_says_how_to_continue_when_uv_cannot_be_installed(script: Script) -> None:
    script.failing = {"pip"}
    with pytest.raises(SystemExit, match=r"not install uv into .*astral\.sh/uv.* try again"):
        script("demo")
