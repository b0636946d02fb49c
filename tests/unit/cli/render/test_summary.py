"""What a run came to, in the room there is."""

import io
from pathlib import Path

import pytest

from orchestra.cli.render.screen import Screen
from orchestra.cli.render.summary import facts, open_waits, print_summary
from orchestra.engine.atlas import Ending
from orchestra.history.story import DecisionCount
from orchestra.ids import AgentId, Digest
from orchestra.model import events as ev
from orchestra.model.records import Output
from tests.unit.cli.states import RUN, asked, at, state_after

FILE = f"outputs/{RUN}/find/a_long_name.md"


def test_files_that_are_in_the_store_only_are_had_from_that_store() -> None:
    written = Output(digest=Digest(bytes(32)), media_type="text/plain", size=12, agent=AgentId("a"), at=at(1))
    made = [ev.OutputWritten(at=at(1), path=f"find/{name}.md", output=written) for name in range(13)]
    told = facts(state_after(*made), "outputs", "sqlite:other.db")
    lines = ["".join(text for text, _ in line) for line in told]
    command = f"orchestra outputs {RUN} --store sqlite:other.db"
    assert lines[-1].strip() == f"and 1 more: {command}"
    assert lines[-2].endswith(f"12 B  in the store only: {command}")


@pytest.mark.parametrize(
    ("columns", "there", "told"),
    [
        (80, True, [f"  outputs    {FILE}  12 B"]),
        (58, True, [f"  outputs    {FILE}"]),
        (40, True, [f"  outputs    {FILE}"]),
        (
            60,
            False,
            [
                f"  outputs    {FILE}",
                "             12 B  in the store only: orchestra outputs",
                f"             {RUN}",
            ],
        ),
    ],
)
def test_a_file_takes_one_line_where_all_is_said_of_it(columns: int, there: bool, told: list[str]) -> None:
    """A path that is wider than the terminal is left to it: whoever copies it gets all of it."""
    written = Output(digest=Digest(bytes(32)), media_type="text/plain", size=12, agent=AgentId("a"), at=at(1))
    state = state_after(ev.OutputWritten(at=at(1), path="find/a_long_name.md", output=written))
    if there:
        Path(FILE).parent.mkdir(parents=True)
        Path(FILE).touch()
    out = io.StringIO()
    screen = Screen(out, tty=True, colour=False, columns=columns)
    ending = Ending(run=RUN, kind="interrupted", state=state)
    print_summary(screen, ending, DecisionCount(0), outputs="outputs", store=None)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines[1:-1] == told


def test_a_run_that_is_over_waits_for_nothing() -> None:
    question = asked("Go on?")
    assert [wait.text for _, wait in open_waits(state_after(question))] == ["Go on?"]
    cancelled = ev.RunEnded(at=at(2), outcome="cancelled", reason="")
    assert open_waits(state_after(question, cancelled)) == []
