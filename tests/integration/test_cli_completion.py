"""Completion in a real bash: commands, options, and the names of runs."""

import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.unit.cli.project import Project
from tests.unit.cli.recording import record, url_of

BASH = shutil.which("bash")
_SCRIPT = """
orchestra() { "$PYTHON" -m orchestra "$@"; }
source completions
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
set -- $(complete -p orchestra)
while [[ $1 != -F ]]; do shift; done
"$2"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("project")
    (made / "completions").write_text(Project(made).run("completion", "bash").stdout)
    anyio.run(record, url_of(made))
    return made


def _proposed(folder: Path, *words: str, store: str | None = None) -> list[str]:
    assert BASH is not None
    extra = {"PYTHON": sys.executable, "ORCHESTRA_STORE": store or url_of(folder)}
    done = subprocess.run(
        [BASH, "--norc", "-c", _SCRIPT, "bash", "orchestra", *words],
        cwd=folder,
        env=Project(folder).environment(**extra),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(BASH is None, reason="there is no bash")
class TestBash:
    """What is proposed where somebody presses Tab."""

    def test_runs_where_one_is_to_be_named(self, folder: Path) -> None:
        known = [row["run"] for row in Project(folder).json("runs", "--store", url_of(folder))]
        assert len(known) > 1
        for command in ("show", "status", "fork", "verify"):
            assert _proposed(folder, command, "") == known
        begun = [name for name in known if name.startswith("review")]
        assert _proposed(folder, "show", "rev") == begun != known

    def test_no_runs_elsewhere(self, folder: Path) -> None:
        assert _proposed(folder, "stat") == ["status", "stats"]
        assert "--tree" in _proposed(folder, "show", "--")
        assert _proposed(folder, "show", "some_run", "") == []
        assert _proposed(folder, "run", "rev") == []

    def test_without_a_store_there_is_nothing_to_propose(self, folder: Path) -> None:
        assert _proposed(folder, "show", "", store="sqlite:nowhere.db") == []
        assert _proposed(folder, "show", "", store="nonsense") == []


@pytest.mark.parametrize(("shell", "asks"), [("zsh", "compadd"), ("fish", "using_command show' -f")])
def test_other_shells_ask_for_runs_as_well(folder: Path, shell: str, asks: str) -> None:
    script = Project(folder).run("completion", shell).stdout
    (line,) = [each for each in script.splitlines() if asks in each]
    assert "orchestra completion --runs" in line
