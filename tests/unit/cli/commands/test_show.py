"""`orchestra show`."""

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestra.cli.dispatch import run_command_line
from orchestra.cli.store import archive
from orchestra.codec.json_values import from_json
from orchestra.history.variables import field_types, type_below
from orchestra.ids import RunId
from orchestra.model.records import Metrics, Task
from orchestra.model.state import State
from orchestra.web.views.states import state as state_told
from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import FORK, HEAD, HOSTILE, LARGE, REVIEW, url_of


def test_a_snapshot_with_its_state(cli: Cli) -> None:
    outcome = cli("show", f"{REVIEW}@6")
    assert outcome.code == 0
    assert outcome.lines[0] == f"{REVIEW}@6  ● running"
    head, _, state = outcome.out.partition("\n\n")
    assert all(
        label in head for label in ("time ", "triggers ", "phase ", "events ", "digest ", "uuid ", "parent ")
    )
    assert "finished: large" in head
    fields = [line.split()[0] for line in state.splitlines() if not line.startswith(" ")]
    assert fields[0] == "status"
    assert {"cursor", "tasks", "agents", "decisions", "context", "confidence"} < set(fields)


def test_all_of_it_with_full(cli: Cli) -> None:
    short, full = cli("show", f"{REVIEW}@6").out, cli("show", f"{REVIEW}@6", "--full").out
    assert "much much" not in short
    assert LARGE.strip() in full
    assert "│ one" in full


def test_the_state_drawn_as_a_tree(cli: Cli) -> None:
    lines = cli("show", f"{REVIEW}@6", "--tree").lines
    drawn = lines[lines.index("") + 1 :]
    assert drawn[0] == f"{REVIEW}@6"
    assert drawn[1].startswith("├─ status  running")
    tasks = drawn.index("├─ tasks  2 entries")
    assert drawn[tasks + 1] == "│  ├─ structure"
    assert any(line.startswith("│  │  ╰─ ") for line in drawn[tasks:])
    assert drawn[-1].lstrip(" │").startswith("╰─ ")
    assert "much much" not in "".join(drawn)


def test_a_tree_with_nothing_cut(cli: Cli) -> None:
    drawn = cli("show", f"{REVIEW}@6", "--tree", "--full").out
    assert LARGE.strip() in drawn
    assert "┊ one\n" in drawn


def test_a_value_drawn_as_a_tree(cli: Cli) -> None:
    outcome = cli("show", REVIEW, "tasks.structure.result", "--tree")
    assert outcome.lines[0] == "tasks.structure.result"
    assert "╰─ text  one… (2 lines)" in outcome.lines
    assert cli("show", REVIEW, "status", "--tree").out == "completed\n"


def test_hostile_text_in_a_tree_is_escaped(cli: Cli) -> None:
    assert "\x1b" not in cli("show", REVIEW, "--tree", "--full").out


@pytest.mark.parametrize("other", ["--raw", "--json"])
def test_a_tree_is_for_people(cli: Cli, other: str) -> None:
    outcome = cli("show", REVIEW, "tasks", "--tree", other)
    assert outcome.code == 2
    assert "--tree" in outcome.err


def test_a_snapshot_as_json(cli: Cli) -> None:
    found = cli("show", f"{REVIEW}@6", "--json").json
    assert found["snapshot"]["reference"] == f"{REVIEW}@6"
    state = found["state"]
    assert state["status"] == "running"
    assert state["created_at"] == "2026-11-15T12:00:00.000000Z"
    assert state["tasks"]["structure"]["finished_at"] == "2026-11-15T12:00:03.000000Z"
    assert set(state["tasks"]["large"]["result"]) == {"$large"}
    assert state["decisions"][0]["description"] == "go on: " + HOSTILE
    full = cli("show", f"{REVIEW}@6", "--json", "--full").json
    assert full["state"]["tasks"]["large"]["result"] == LARGE


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("status", "completed\n"),
        ("completed_tasks", "2\n"),
        ("open_failures", "0\n"),
        ("tasks.structure.result.text", "one\ntwo\n"),
        ("tasks.structure.description", "Look\nclosely\n"),
        ("decisions[-1].rationale", "because\n"),
        ("created_at", '"2026-11-15T12:00:00.000000Z"\n'),
        ("tasks.structure.result.raw", '{\n  "$bytes": "AP8="\n}\n'),
        ("tasks.structure.result.nan", '{\n  "$float": "nan"\n}\n'),
        ("failure", "null\n"),
    ],
)
def test_one_value(cli: Cli, path: str, shown: str) -> None:
    assert cli("show", REVIEW, path) == (0, shown, "")


def test_values_as_json_come_back_exactly(cli: Cli) -> None:
    form = cli("show", REVIEW, "tasks.structure.result", "--json").json
    value = from_json(form)
    assert value["raw"] == b"\x00\xff"
    assert value["tags"] == {"a", "b"}
    assert value["pair"] == (1, 2)
    assert value["nan"] != value["nan"]


def test_hostile_text_is_escaped_unless_raw_is_asked_for(cli: Cli) -> None:
    shown = cli("show", REVIEW, "context.findings[0].text").out
    assert "\\x1b[31mred" in shown
    assert "\x1b" not in shown


def test_raw_writes_exactly_what_there_is(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("ORCHESTRA_STORE", url_of(recorded))
    assert run_command_line(["show", REVIEW, "context.findings[0].text", "--raw"]) == 0
    assert capfdbinary.readouterr().out == HOSTILE.encode()
    assert run_command_line(["show", REVIEW, "tasks.structure.result.raw", "--raw"]) == 0
    assert capfdbinary.readouterr().out == b"\x00\xff"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nope", "the state has"),
        ("tasks.nope", "'tasks' has structure, large"),
        ("tasks.structure.status.deeper", "'tasks.structure.status' has no parts"),
        ("decisions[99]", "'decisions' has 2 entries"),
        ("decisions[", "cannot read '['"),
        ('tasks["', "cannot read"),
        ('tasks["\\x"]', "nothing at"),
    ],
)
def test_a_path_that_leads_nowhere(cli: Cli, path: str, said: str) -> None:
    outcome = cli("show", REVIEW, path)
    assert outcome.code == 2
    assert said in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("reference", ["{run}", "{run}@10", "{run}@head", "{digest}", "{short}", "{uuid}"])
def test_every_way_to_name_a_snapshot(cli: Cli, reference: str) -> None:
    head = cli("show", REVIEW, "--json").json["snapshot"]
    digest = head["digest"]
    text = reference.format(run=REVIEW, digest=digest, short=digest[:12], uuid=head["uuid"])
    assert cli("show", text, "--json").json["snapshot"]["seq"] == HEAD


@pytest.mark.parametrize(
    ("place", "seq"), [("-1", 9), ("last-good", 8), ("phase:find", 1), ("phase:write", 8)]
)
def test_places_in_a_run(cli: Cli, place: str, seq: int) -> None:
    assert cli("show", f"{REVIEW}@{place}", "--json").json["snapshot"]["seq"] == seq


def test_a_fork_names_where_it_came_from(cli: Cli) -> None:
    assert cli("show", f"{FORK}@0", "--json").json["state"]["origin"]["run"] == REVIEW


def test_pin_and_note_are_shown(own: Cli) -> None:
    own("pin", REVIEW)
    own("note", REVIEW, "two\nlines")
    shown = own("show", REVIEW).out
    assert "pinned     ◆" in shown
    assert "note       ✎ two\n             lines\n" in shown


def test_nothing_is_written(cli: Cli, recorded: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in recorded.iterdir() if path.suffix == ".db"}
    cli("show", REVIEW)
    assert {
        path.name: path.stat().st_mtime_ns for path in recorded.iterdir() if path.suffix == ".db"
    } == before


def _lacking(held: Any, kind: Any, where: str) -> list[str]:
    """The fields of a class and of all below it that JSON does not have."""
    if isinstance(held, list):
        return [each for item in held for each in _lacking(item, type_below(kind, 0), where)]
    if not isinstance(held, dict) or kind is None:
        return []
    names = field_types(kind) if attrs.has(kind) else {}
    missing = [f"{where}.{name}" for name in names if name not in held]
    return missing + [
        each
        for name, item in held.items()
        for each in _lacking(item, type_below(kind, name), f"{where}.{name}")
    ]


def test_every_field_is_documented() -> None:
    page = Path(__file__).parents[4].joinpath("docs/reference/json-form.md").read_text()
    rows = dict(re.findall(r"^\| (.+?) \| (`.+`) \|$", page.partition("## A state in JSON")[2], re.MULTILINE))
    for place, kind in (("the state", State), ("`tasks.NAME`", Task), ("`metrics`", Metrics)):
        assert re.findall(r"`(\w+)`", rows[place]) == list(field_types(kind))


@pytest.mark.parametrize("reference", [f"{REVIEW}@0", f"{REVIEW}@4", REVIEW])
def test_the_json_of_a_state_is_total(cli: Cli, reference: str) -> None:
    state = cli("show", reference, "--json").json["state"]
    assert _lacking(state, State, "state") == []
    assert list(state) == list(field_types(State))


def test_the_json_of_a_part_is_total(cli: Cli) -> None:
    tasks = cli("show", REVIEW, "tasks", "--json").json
    assert all(set(task) == set(field_types(Task)) for task in tasks.values())
    name = next(iter(tasks))
    assert cli("show", REVIEW, f'tasks["{name}"]', "--json").json == tasks[name]
    assert set(cli("show", REVIEW, "metrics", "--json").json) == set(field_types(Metrics))


def test_a_context_name_is_its_data_everywhere(cli: Cli) -> None:
    data = cli("show", REVIEW, "--json").json["state"]["context"]["findings"]
    assert cli("show", REVIEW, "context.findings", "--json").json == data
    assert cli("show", REVIEW, "context.findings[0].text", "--raw").out == data[0]["text"]
    found = cli("bisect", REVIEW, f"context.findings|length == {len(data)}", "--json").json
    assert "context.findings[" in str([change["path"] for change in found["changes"]])
    blamed = cli("blame", REVIEW, "context.findings", "--json").json
    assert (blamed["after"], blamed["snapshot"]["seq"]) == (data, found["snapshot"]["seq"])
    with archive(None) as opened:
        row = opened.newest(RunId(REVIEW))
        told = state_told(opened, row, ("context", "findings"), budget=1 << 20, offset=0, limit=100)
    assert (told["kind"], told["count"]) == ("array", len(data))
