"""`holdfast graph`: pictures of the workflows in modules, and of definitions in files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from holdfast.api.registry import Registry
from holdfast.asl.json_text import JsonDepthError, JsonTextError, read_json
from holdfast.asl.program import Json
from holdfast.compiler.compile import compile_module
from holdfast.errors import RequestError, WorkflowError
from holdfast.local.build import import_module
from holdfast.local.source_maps import find_source_map, machine_name
from holdfast.pictures.mermaid import draw_mermaid
from holdfast.pictures.model import Drawing, Look
from holdfast.pictures.read import DrawnLimits, read_drawing
from holdfast.pictures.svg import draw_svg

Format: TypeAlias = Literal["svg", "mermaid"]
#: A name with one of these endings means the file of one picture. Any other name means a folder.
_PICTURES: Final = frozenset({".svg", ".mmd", ".md", ".png", ".jpg", ".pdf", ".html"})
SUFFIXES: Final[dict[Format, str]] = {"svg": ".svg", "mermaid": ".mmd"}
#: Only a link that begins like this is drawn. A picture in a web page must not run code, as a
#: `javascript:` link would.
_LINKS: Final = ("https://", "http://", "/", "./", "../", "file:///")


@dataclass(frozen=True, slots=True)
class DrawnSubject:
    """A definition to draw, and the name of the picture's file without its suffix."""

    name: str
    drawing: Drawing


def subjects_of_modules(names: Sequence[str]) -> list[DrawnSubject]:
    """Compile the present source of the modules, without reading the compiled files."""
    compiled = [found for name in names for found in compile_module(import_module(name))]
    of_task, of_workflow = Registry.from_modules(names).limits()
    drawn_tasks = {task: tuple(map(str, limits)) for task, limits in of_task.items()}
    subjects = list[DrawnSubject]()
    for found in compiled:
        limits = DrawnLimits(drawn_tasks, tuple(map(str, of_workflow.get(found.name, ()))))
        definition, source_map = json.loads(found.asl_text), json.loads(found.map_text)
        drawing = read_drawing(definition, source_map, limits=limits)
        subjects.append(DrawnSubject(found.name, drawing))
    return subjects


def subject_of_file(path: Path) -> DrawnSubject:
    """Return a definition from a file, with the lines of the map that belongs to it.

    Raises RequestError HF282 for a file that cannot be read, WorkflowError HF104 for its content.
    """
    definition = _read(path)
    name = machine_name(path)
    try:
        drawing = read_drawing(definition, find_source_map(path, definition), title=name)
    except WorkflowError as error:
        is_graph = isinstance(definition, dict) and "steps" in definition
        fix = f"holdfast compile {path} MODULE  # a graph of steps" if is_graph else error.help
        raise WorkflowError(error.code, f"{path}: {error.message}", help=fix) from None
    return DrawnSubject(name, drawing)


def _read(path: Path) -> Json:
    try:
        return read_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RequestError("HF282", f"{path}: {reason}") from None
    except JsonTextError as error:
        raise WorkflowError(
            "HF104", f"{path} cannot be drawn: {error.problem}", help=f"holdfast check {path}"
        ) from None
    except JsonDepthError:
        raise WorkflowError(
            "HF104", f"{path} cannot be drawn: it is nested too deeply", help="flatten it"
        ) from None


def draw(subject: DrawnSubject, form: Format, link_prefix: str) -> str:
    """Return the picture as text. Raises RequestError HF282 for a link prefix that is not an
    address.
    """
    if link_prefix and not link_prefix.startswith(_LINKS):
        raise RequestError(
            "HF282",
            f"--link {link_prefix}: expected an address",
            help="--link https://github.com/OWNER/PROJECT/blob/main/",
        )
    match form:
        case "svg":
            return draw_svg(subject.drawing, Look(link_prefix=link_prefix))
        case "mermaid":
            return draw_mermaid(subject.drawing)


def write(drawn: Sequence[tuple[str, str]], output: Path, suffix: str) -> list[Path]:
    """Write the pictures. `drawn` are names and texts. `output` is the file of the only picture, or
    a folder for several.

    Raises RequestError HF282, for a wrong name before anything is written.
    """
    is_file = output.suffix == suffix
    if output.suffix in _PICTURES - {suffix} and not output.is_dir():
        raise RequestError(
            "HF282",
            f"--output {output}: {suffix} is what is drawn",
            help=f"--output {output.with_suffix(suffix)}, or --format svg or mermaid",
        )
    paths = [output if is_file else output / f"{name}{suffix}" for name, _ in drawn]
    twice = [path for path, count in Counter(paths).items() if count > 1]
    if twice:
        raise RequestError(
            "HF282",
            f"two pictures would be {twice[0]}",
            help=f"--output {output.with_suffix('')}/" if is_file else "draw them one by one",
        )
    try:
        for path, (_, text) in zip(paths, drawn, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestError(
            "HF282",
            f"{output} cannot be written: {error.strerror}",
            help="name a file or a folder that is yours with --output",
        ) from None
    return paths
