"""What a command loads: looking at the help or at the runs of a store is quick because little is imported."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.unit.cli.recording import record, url_of

ROOT = Path(__file__).parents[2]
HEAVY = ("cattrs", "anyio", "minijinja", "pydantic", "opentelemetry", "fastapi", "rich", "cbor2", "blake3")
_TELL = """
import sys
from orchestra.cli.dispatch import run_command_line
code = run_command_line(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def _loaded(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _TELL, *arguments],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = url_of(tmp_path_factory.mktemp("store"))
    anyio.run(record, made)
    return made


@pytest.mark.parametrize("options", [("--json",), ()])
def test_runs_loads_no_heavy_library(url: str, options: tuple[str, ...]) -> None:
    loaded = _loaded("runs", "--store", url, *options)
    assert loaded.isdisjoint({*HEAVY, "cyclopts"})
    assert not {name for name in loaded if name.startswith(("orchestra.checkpoint", "orchestra.model"))}


def test_runs_with_other_options_loads_no_heavy_library(url: str) -> None:
    assert _loaded("runs", "--limit", "3", "--store", url).isdisjoint(HEAVY)


def test_names_for_a_shell_load_no_heavy_library() -> None:
    assert _loaded("completion", "--runs").isdisjoint({*HEAVY, "cyclopts"})


def test_help_loads_no_command_and_no_library() -> None:
    loaded = _loaded("--help")
    assert loaded.isdisjoint(
        {*HEAVY, "cyclopts", "attrs", "apsw", "orchestra.cli.commands.runs", "orchestra.stores"}
    )


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, orchestra.cli; print(*[n for n in sys.modules if n.startswith('orchestra')])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) <= {"orchestra", "orchestra.cli", "orchestra.version"}


@pytest.mark.parametrize("command", [("status", "review_20261115_120000_k7"), ("questions",)])
def test_looking_at_runs_loads_neither_the_engine_nor_the_workflow_language(
    url: str, command: tuple[str, ...]
) -> None:
    loaded = _loaded(*command, "--store", url)
    heavy = {"rich", "pydantic", "yaml", "opentelemetry", "orchestra.app.compose", "orchestra.engine"}
    assert loaded.isdisjoint(heavy)
