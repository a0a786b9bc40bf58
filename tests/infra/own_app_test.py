"""What a user's own app is refused, without a synthesis: sizes, modules, the lock file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import HoldfastError
from holdfast.infra import Size
from holdfast.infra.bundle import compile_workflows
from holdfast.infra.locked import only_for_tools
from holdfast.infra.plain_errors import plain_errors
from holdfast.infra.settings import Settings
from holdfast.infra.sizes import read_sizes

LOCK = """
version = 1
[[package]]
name = "shop"
source = { virtual = "." }
dependencies = [{ name = "holdfast", extra = ["local", "infra"] }, { name = "cli" }]

[[package]]
name = "cli"
dependencies = [{ name = "rich" }]

[[package]]
name = "rich"

[[package]]
name = "holdfast"
dependencies = [{ name = "pydantic" }]
[package.optional-dependencies]
local = [{ name = "moto", extra = ["s3"] }, { name = "rich" }]
infra = [{ name = "aws-cdk-lib" }, { name = "constructs" }]

[[package]]
name = "moto"
"""


def project(directory: Path, lock: str = LOCK) -> Path:
    (directory / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
    (directory / "uv.lock").write_text(lock)
    return directory


def test_extras_of_holdfast_do_not_reach_the_functions_unless_the_project_needs_them_itself(
    tmp_path: Path,
) -> None:
    # `rich` stays: `cli`, which tasks may use, depends on it.
    assert only_for_tools(project(tmp_path)) == ["aws-cdk-lib", "constructs", "moto"]


def test_a_member_of_a_workspace_has_the_lock_file_of_the_folder_above(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(LOCK)
    member = tmp_path / "shop"
    member.mkdir()
    (member / "pyproject.toml").write_text('[project]\nname = "Shop"\n')
    assert "moto" in only_for_tools(member)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"modules": ()}, "`modules` is ''; expected Python module names"),
        ({"python": "3.9"}, "`python` is '3.9'; expected one of 3.11, 3.12"),
        ({"architecture": "sparc"}, "`architecture` is 'sparc'; expected arm64 or x86_64"),
        ({"work_batch": 11}, "`work_batch` is 11; expected a whole number from 1 to 10"),
        ({"log_retention_days": 31}, "`log_retention_days` is 31; expected one of"),
        ({"environment": {"HOLDFAST_X": "1"}}, "`environment` is 'HOLDFAST_X'; expected names"),
        ({"start_concurrency": 49}, "a whole number from 2 to 48"),
        ({"starts_per_second": 16_001}, "a whole number from 1 to 16000"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_by_its_name_and_the_place_of_the_construct(
    given: dict[str, object], said: str
) -> None:
    with pytest.raises(HoldfastError) as refused, plain_errors("Shop/Flows"):
        Settings(**{"modules": ("shop.order",), **given})  # type: ignore[arg-type]
    assert refused.value.code == "HF405"
    assert "Holdfast Shop/Flows: " in str(refused.value)
    assert said in str(refused.value)
    assert f"correct `{next(iter(given))}=`" in refused.value.help


def test_a_size_names_its_function_and_its_bounds() -> None:
    with (
        pytest.raises(HoldfastError, match=r"`functions\.api\.timeout_seconds` is 30"),
        plain_errors("Shop/Flows"),
    ):
        read_sizes({"api": Size(timeout_seconds=30).changes()})


def test_workflows_that_do_not_compile_are_refused_with_every_error(tmp_path: Path) -> None:
    source = (
        "from holdfast import task, workflow\n\n\n"
        "@task\ndef number() -> int: ...\n\n\n"
        "@workflow\ndef first() -> int:\n    return open('x').read()\n\n\n"
        "@workflow\ndef second() -> int:\n    return number().missing\n"
    )
    (tmp_path / "shop_of_errors.py").write_text(source)
    with pytest.raises(HoldfastError) as refused:
        compile_workflows(["shop_of_errors"], project=tmp_path)
    assert refused.value.code == "HF406"
    assert "shop_of_errors.py:10:" in str(refused.value)
    assert "shop_of_errors.py:15:" in str(refused.value)


def test_an_app_that_is_refused_prints_the_error_alone(tmp_path: Path) -> None:
    app = (
        "from holdfast.infra.plain_errors import plain_errors\n"
        "from holdfast.infra.settings import Settings\n"
        "with plain_errors('Shop/Flows'):\n"
        "    Settings(modules=('shop.order',), log_retention_days=31)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", app], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 1
    assert run.stderr.startswith("error[HF405]: Holdfast Shop/Flows: `log_retention_days` is 31")
    assert "Traceback" not in run.stderr
