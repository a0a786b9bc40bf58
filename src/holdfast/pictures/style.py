"""The style of a picture: one style sheet, light or dark according to the reader's system."""

from __future__ import annotations

from typing import Final

from holdfast.pictures.model import NodeKind, StateMark

#: Each selector begins with `svg.holdfast`. Otherwise it could change other parts of the page that
#: contains the picture.
STYLE: Final = """
svg.holdfast{--hf-ground:#fff;--hf-box:#f6f8fa;--hf-line:#57606a;--hf-text:#1f2328;
--hf-muted:#59636e;--hf-frame:#8c959f;--hf-task:#0969da;--hf-wait:#7d4e00;--hf-end:#1a7f37;
--hf-fail:#cf222e;--hf-handler:#bc4c00;--hf-undo:#8250df;--hf-handler-box:#fff5ec;
--hf-undo-box:#f8f2ff;--hf-ok-box:#dafbe1;--hf-now-box:#ddf4ff;--hf-bad-box:#ffebe9;
background:var(--hf-ground);font-family:ui-sans-serif,system-ui,"Segoe UI",Roboto,
"Noto Sans","DejaVu Sans",sans-serif}
@media(prefers-color-scheme:dark){svg.holdfast{--hf-ground:#0d1117;--hf-box:#161b22;
--hf-line:#9198a1;--hf-text:#f0f6fc;--hf-muted:#9da5ae;--hf-frame:#6e7681;--hf-task:#58a6ff;
--hf-wait:#d29922;--hf-end:#3fb950;--hf-fail:#ff7b72;--hf-handler:#f0883e;--hf-undo:#bc8cff;
--hf-handler-box:#271a10;--hf-undo-box:#201831;--hf-ok-box:#12261e;--hf-now-box:#0c2d4d;
--hf-bad-box:#35171a}}
svg.holdfast .box{fill:var(--hf-box);stroke:var(--hf-line);stroke-width:1.3}
svg.holdfast .handler>.box{fill:var(--hf-handler-box);stroke:var(--hf-handler)}
svg.holdfast .undo>.box{fill:var(--hf-undo-box);stroke:var(--hf-undo)}
svg.holdfast .frame>.box{fill:none;stroke-width:1.6}
svg.holdfast .end>.box{stroke:var(--hf-end);stroke-width:2}
svg.holdfast .fail>.box{stroke:var(--hf-fail);stroke-width:2}
svg.holdfast .branch{fill:none;stroke:var(--hf-frame);stroke-dasharray:1 3;stroke-linecap:round}
svg.holdfast text{fill:var(--hf-text);text-anchor:middle;unicode-bidi:plaintext}
svg.holdfast .name{font-size:13px}
svg.holdfast .detail{font-size:11px;fill:var(--hf-muted)}
svg.holdfast .source{font-size:10px;fill:var(--hf-muted)}
svg.holdfast a .source{fill:var(--hf-task);text-decoration:underline}
svg.holdfast .word{font-size:11px;fill:var(--hf-muted);stroke:var(--hf-ground);stroke-width:3px;
paint-order:stroke}
svg.holdfast .behind{fill:var(--hf-ground)}
svg.holdfast .begin{text-anchor:start}
svg.holdfast .icon{fill:none;stroke:var(--hf-task);stroke-width:1.5;stroke-linecap:round;
stroke-linejoin:round}
svg.holdfast .wait>.icon,svg.holdfast .event>.icon,svg.holdfast .ask>.icon{stroke:var(--hf-wait)}
svg.holdfast .succeed>.icon{stroke:var(--hf-end)}
svg.holdfast .fail>.icon{stroke:var(--hf-fail)}
svg.holdfast .pass>.icon,svg.holdfast .choice>.icon{stroke:var(--hf-muted)}
svg.holdfast .line{fill:none;stroke:var(--hf-line);stroke-width:1.4}
svg.holdfast .tip,svg.holdfast .dot{fill:var(--hf-line)}
svg.holdfast .catch>.line{stroke:var(--hf-handler);stroke-dasharray:5 4}
svg.holdfast .catch>.tip,svg.holdfast .catch>.dot{fill:var(--hf-handler)}
svg.holdfast .deadline>.line{stroke:var(--hf-wait);stroke-dasharray:2 3}
svg.holdfast .deadline>.tip,svg.holdfast .deadline>.dot{fill:var(--hf-wait)}
svg.holdfast .succeeded>.box{fill:var(--hf-ok-box);stroke:var(--hf-end);stroke-width:2}
svg.holdfast .running>.box{fill:var(--hf-now-box);stroke:var(--hf-task);stroke-width:3}
svg.holdfast .failed>.box{fill:var(--hf-bad-box);stroke:var(--hf-fail);stroke-width:2}
svg.holdfast .cancelled>.box{stroke:var(--hf-fail);stroke-dasharray:4 3}
svg.holdfast .not_reached>.box,svg.holdfast .not_reached>.icon,svg.holdfast .not_reached>text,
svg.holdfast .not_reached>a
{opacity:.45}
svg.holdfast .mark{fill:var(--hf-text)}
svg.holdfast .mark-text{fill:var(--hf-ground);font-size:10px;font-weight:600}
""".replace("\n", "")

#: For each kind of state, the path of an icon of 16 by 16 pixels.
ICONS: Final[dict[NodeKind, str]] = {
    "task": "M3 4h10v8H3zM6 7l2 2-2 2M9.5 11h2",
    "pure": "M11 3H9.5C8 3 8 5 7.5 8S7 13 5 13M5 7h5",
    "event": "M2 4h12v9H2zM2 5l6 4.5L14 5",
    "ask": "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 14c0-6 10-6 10 0",
    "child": "M2 3h7v7H2zM7 10v4h7V7H9",
    "wait": "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.5l2.5 1.5",
    "choice": "M8 2l6 6-6 6-6-6z",
    "pass": "M2 8h11M9 4l4 4-4 4",
    "succeed": "M3 8.5l3.5 3.5L13 4.5",
    "fail": "M4 4l8 8M12 4l-8 8",
    "parallel": "M4 2v12M8 2v12M12 2v12",
    "map": "M3 4h10M3 8h10M3 12h10M1 4v0M1 8v0M1 12v0",
}
KIND_WORDS: Final[dict[NodeKind, str]] = {
    "task": "Task",
    "pure": "Pure task",
    "event": "Wait for an event",
    "ask": "Question to a person",
    "child": "Child workflow",
    "wait": "Wait",
    "choice": "Choice",
    "pass": "Step",
    "succeed": "End",
    "fail": "Failure",
    "parallel": "Parallel",
    "map": "For each item",
}
STATUS_WORDS: Final[dict[StateMark, str]] = {
    "succeeded": "succeeded",
    "running": "running now",
    "failed": "failed",
    "cancelled": "cancelled",
    "not_reached": "not reached",
}
