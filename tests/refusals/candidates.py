"""The sources of candidates: library functions, changed workflows, and the grammar itself."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

import holdfast
from holdfast.api.surface import Workflow
from tests.golden import shop
from tests.refusals.grammar import Grammar

HEADER = "from __future__ import annotations\n"
ANNOTATIONS = (
    "int", "str", "bool", "float", "Any", "Order", "Payment", "Colour", "Line | Payment",
    "list[int]", "list[str]", "list[Line]", "dict[str, int]", "tuple[int, str]", "str | None",
    "Order | None", "list", "dict", "object", "datetime.datetime", "bytes", "set[str]",
)  # fmt: skip

#: Modules of the standard library with many different functions.
LIBRARY = (
    "argparse", "ast", "asyncio.tasks", "base64", "bisect", "calendar", "cmd", "collections",
    "concurrent.futures._base", "configparser", "contextlib", "copy", "csv", "ctypes.util",
    "dataclasses", "datetime", "difflib", "dis", "doctest", "email.message", "enum", "filecmp",
    "fractions", "functools", "gettext", "glob", "gzip", "heapq", "html.parser", "http.client",
    "http.cookiejar", "imaplib", "inspect", "ipaddress", "json.decoder", "json.encoder",
    "locale", "logging", "mailbox", "multiprocessing.pool", "numbers", "optparse", "os", "pathlib",
    "pdb", "pickle", "pickletools", "platform", "plistlib", "posixpath", "pprint", "pydoc",
    "queue", "random", "sched", "selectors", "shelve", "shlex", "shutil", "smtplib", "socket",
    "socketserver", "sqlite3.dbapi2", "ssl", "statistics", "string", "subprocess", "tarfile",
    "tempfile", "textwrap", "threading", "timeit", "tokenize", "traceback", "types", "typing",
    "unittest.case", "unittest.mock", "urllib.parse", "urllib.request", "uuid", "warnings",
    "weakref", "xml.dom.minidom", "xml.etree.ElementTree", "zipfile", "zoneinfo",
    "holdfast.core.advance", "holdfast.core.apply.apply",
    "holdfast.compiler.expressions.expressions",
    "holdfast.compiler.statements.statements", "holdfast.compiler.statements.loops",
)  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A module's text, and what its globals are besides."""

    text: str
    known: Mapping[str, Any]


def public_names() -> dict[str, Any]:
    words = {name: getattr(holdfast, name) for name in holdfast.__all__}
    return {**vars(shop), **words}


def as_workflow(function: ast.FunctionDef | ast.AsyncFunctionDef, random: Random) -> str:
    """`function` with parameters that a workflow may have."""
    node = copy.deepcopy(function)
    node.name = "flow"
    node.decorator_list = [ast.Name("workflow", ast.Load())]
    arguments = node.args
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    if random.random() < 0.7:
        arguments.vararg = arguments.kwarg = None
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = ast.parse(random.choice(ANNOTATIONS), mode="eval").body
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            extra.annotation = None
    node.returns = None
    return HEADER + ast.unparse(ast.fix_missing_locations(node)) + "\n"


def functions_of(module: ModuleType) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def library(random: Random) -> Iterator[Candidate]:
    """Every function of LIBRARY, module by module."""
    words = public_names()
    for name in random.sample(LIBRARY, len(LIBRARY)):
        try:
            module = importlib.import_module(name)
            functions = functions_of(module)
        except (ImportError, OSError, TypeError):
            continue  # this Python or this machine does not have it
        for function in functions:
            yield Candidate(as_workflow(function, random), {**vars(module), **words})


def workflows_of(modules: list[ModuleType]) -> list[tuple[ast.FunctionDef, Mapping[str, Any]]]:
    """The workflows' definitions, each with its module's globals."""
    found: list[tuple[ast.FunctionDef, Mapping[str, Any]]] = []
    for module in modules:
        named = {name for name, value in vars(module).items() if isinstance(value, Workflow)}
        found += [
            (node, {**public_names(), **vars(module)})
            for node in functions_of(module)
            if isinstance(node, ast.FunctionDef) and node.name in named
        ]
    return found


def mutants(modules: list[ModuleType], random: Random) -> Iterator[Candidate]:
    """Workflows in which nodes were left out, doubled, swapped, or come from another workflow."""
    originals = workflows_of(modules)
    while True:
        node, known = random.choice(originals)
        donor, others = random.choice(originals)
        changed = copy.deepcopy(node)
        for _ in range(random.randint(1, 3)):
            _mutate(changed, donor, random)
        changed.decorator_list = [ast.Name("workflow", ast.Load())]
        try:
            text = ast.unparse(ast.fix_missing_locations(changed))
        except Exception:  # noqa: BLE001 - a tree that no text can have
            continue
        yield Candidate(f"{HEADER}{text}\n", {**others, **known})


def _mutate(tree: ast.AST, donor: ast.AST, random: Random) -> None:
    match random.randrange(6):
        case 0:
            body = random.choice(_bodies(tree))
            if len(body) > 1:
                del body[random.randrange(len(body))]
        case 1:
            body = random.choice(_bodies(tree))
            body.insert(random.randrange(len(body) + 1), copy.deepcopy(random.choice(body)))
        case 2:
            body = random.choice(_bodies(tree))
            random.shuffle(body)
        case 3:
            body = random.choice(_bodies(tree))
            taken = random.choice(random.choice(_bodies(donor)))
            body.insert(random.randrange(len(body) + 1), copy.deepcopy(taken))
        case 4:
            _replace(tree, random.choice(_expressions(tree)), random)
        case _:
            _replace(tree, random.choice(_expressions(donor)), random)


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    return [
        body
        for node in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
        if isinstance(body := getattr(node, name, None), list) and body
    ]


def _expressions(tree: ast.AST) -> list[ast.expr]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    return [node for node in found if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)]


def _replace(tree: ast.AST, taken: ast.expr, random: Random) -> None:
    places = [
        (node, name, value)
        for node in ast.walk(tree)
        for name, value in ast.iter_fields(node)
        if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", ast.Load()), ast.Load)
    ]
    node, name, _ = random.choice(places)
    setattr(node, name, copy.deepcopy(taken))


def grammatical(random: Random) -> Iterator[Candidate]:
    """Programs out of Python's own grammar; the names are those that a workflow might know."""
    words = public_names()
    grammar = Grammar(random, tuple(name for name in words if not name.startswith("_")))
    while True:
        yield Candidate(f"{HEADER}{grammar.function()}\n", words)
