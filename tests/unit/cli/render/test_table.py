"""Tables in the room there is."""

import io
from pathlib import Path

import pytest

from orchestra.cli.render.screen import PIPE_COLUMNS, Column, Screen, print_table
from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project

COLUMNS: tuple[Column[tuple[str, str, str]], ...] = (
    Column("run", lambda row: row[0], least=10, name=True),
    Column("text", lambda row: row[1], least=10),
    Column("more", lambda row: row[2], least=10, drop=1),
)
RUN = "a_run_with_a_long_name_20261115_143022_k7"


def _printed(*rows: tuple[str, str, str], columns: int | None = None) -> list[str]:
    out = io.StringIO()
    screen = Screen(out, tty=columns is not None, colour=False, columns=columns)
    print_table(screen, COLUMNS, rows)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("text", ["short", "long " * 100])
def test_in_a_pipe_a_table_fits_a_page(text: str) -> None:
    lines = _printed((RUN, text, text))
    assert max(map(len, lines)) <= PIPE_COLUMNS
    assert all(line.startswith((RUN, "run")) for line in lines)


def test_in_a_pipe_names_are_never_cut() -> None:
    assert _printed((RUN * 4, "long " * 100, ""))[1].startswith(RUN * 4)


def test_a_narrow_terminal_cuts_names_too() -> None:
    assert max(map(len, _printed((RUN, "long " * 100, "x"), columns=30))) <= 30


def test_what_watches_a_run_from_a_pipe_folds_its_progress(bare: Cli) -> None:
    project = Project(Path())
    Path("quick.py").write_text(
        "async def agent(ctx):\n"
        "    for at in range(200):\n"
        "        await ctx.save(at, progress=at / 200, step=f'page {at}')\n"
    )
    project.workflow("quick")
    assert bare("run", "flow.yaml", "--run-id", "r1").out.count("quick is at") <= 12
    told = [line for line in bare("watch", "r1", "--all").lines if "quick is at" in line]
    assert 2 <= len(told) <= 12
