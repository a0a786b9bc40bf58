"""The names of the package `holdfast`, of which some are imported at their first use."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import holdfast


def test_completion_and_help_show_every_public_name() -> None:
    text = "import holdfast\nassert set(holdfast.__all__) <= set(dir(holdfast))\n"
    subprocess.run([sys.executable, "-c", text], check=True)
    shown = pydoc.plain(pydoc.render_doc(holdfast))
    assert [name for name in holdfast.__all__ if name not in shown] == []


def test_a_star_import_takes_every_public_name() -> None:
    names: dict[str, object] = {}
    exec("from holdfast import *", names)
    assert set(holdfast.__all__) <= names.keys()
