"""`orchestra diff`."""

from pathlib import Path

import pytest

from orchestra.cli.render.changes import ChangeList, by_meaning, with_times
from orchestra.cli.render.screen import Line
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.json_values import LargeValue
from orchestra.codec.loader import Loader
from orchestra.history.compare import Change
from orchestra.history.paths import parse_path
from orchestra.ids import Digest
from tests.unit.cli.conftest import Cli
from tests.unit.cli.project import Project
from tests.unit.cli.recording import FORK, REVIEW


def test_two_snapshots(cli: Cli) -> None:
    outcome = cli("diff", f"{REVIEW}@3", f"{REVIEW}@9")
    assert outcome.code == 0
    assert outcome.lines[0] == f"{REVIEW}@3 → @9  6 snapshots, 6.0 s apart"
    assert "completed_tasks" not in outcome.out
    assert "~ completed_tasks  1 → 2" in cli("diff", f"{REVIEW}@3", f"{REVIEW}@9", "--all").out
    assert "  + large  {status: completed" in outcome.out
    assert outcome.lines[-1].endswith(" removed")


def test_what_means_something_comes_first_and_the_rest_is_counted(bare: Cli) -> None:
    Project(Path()).workflow("quick")
    for name, topic in (("r1", "tea"), ("r2", "rum")):
        assert bare("run", "flow.yaml", "--run-id", name, "--input", f"topic={topic}").code == 0
    said = bare("diff", "r1", "r2")
    assert [line for line in said.lines if line and line[0].isalpha()][1:4] == [
        "inputs",
        "context",
        "outputs",
    ]
    assert "~ found[0]  tea → rum" in said.out
    for little in ("_at", "effect_key", "digest", "elapsed_us", "family", "~ run"):
        assert little not in said.out
    (more,) = [line for line in said.lines if line.startswith("… ")]
    shown = bare("diff", "r1", "r2", "--all").out
    assert "updated_at" in shown
    assert "effect_key" in shown
    told = bare("diff", "r1", "r2", "--json").json["changes"]
    assert int(more.split()[1]) == len(told) - sum(
        line.startswith(("  ~", "  +", "~")) for line in said.lines
    )


def test_two_runs_that_came_to_the_same(bare: Cli) -> None:
    Project(Path()).workflow("asks")
    for name in ("r1", "r2"):
        assert bare("run", "flow.yaml", "--run-id", name).code == 3
    assert "little meaning: times, keys, ids and counters" in bare("diff", "r1@0", "r2@0").out


def test_a_name_that_people_gave_is_no_detail() -> None:
    changes = [
        Change(path=parse_path(path), kind="changed", before=1, after=2)
        for path in (
            "tasks.key.attempts",
            "inputs.at",
            "context.digest",
            "tasks.key.key",
            "metrics.elapsed_us",
        )
    ]
    telling, details = by_meaning(changes)
    assert [change.path[0] for change in telling] == ["inputs", "context", "tasks"]
    assert [change.path[-1] for change in details] == ["key", "elapsed_us"]


def test_a_field_back_at_its_default_is_not_removed(bare: Cli) -> None:
    Project(Path()).workflow("breaks")
    assert bare("run", "flow.yaml", "--run-id", "r1").code == 1
    Path("repaired").touch()
    assert bare("resume", "r1").code == 0
    failed = bare("bisect", "r1", "open_failures > 0", "--json").json["snapshot"]["seq"]
    changes = bare("diff", f"r1@{failed}", "r1", "--json").json["changes"]
    told = {change["path"]: change for change in changes}
    assert told["open_failures"] == {"path": "open_failures", "kind": "changed", "before": 1, "after": 0}
    assert not [change for change in changes if change["kind"] == "removed"]


def test_the_same_snapshot(cli: Cli) -> None:
    assert "No difference." in cli("diff", REVIEW, REVIEW).out


def test_one_reference_is_compared_with_what_it_follows(cli: Cli) -> None:
    assert cli("diff", f"{REVIEW}@4").out == cli("diff", f"{REVIEW}@3", f"{REVIEW}@4").out
    fork = cli("diff", f"{FORK}@0", "--json").json
    assert fork["from"]["reference"] == f"{REVIEW}@3"
    first = cli("diff", f"{REVIEW}@0")
    assert first.code == 2
    assert "it is the first one" in first.err


def test_two_runs(cli: Cli) -> None:
    outcome = cli("diff", REVIEW, FORK)
    assert f"@10 → {FORK}@1" in outcome.lines[0]
    assert "− large" in outcome.out


def test_as_json(cli: Cli) -> None:
    found = cli("diff", f"{REVIEW}@8", f"{REVIEW}@9", "--json").json
    assert set(found) == {"from", "to", "counts", "truncated", "changes"}
    assert set(found["from"]) == {"reference", "digest", "at"}
    by_path = {change["path"]: change for change in found["changes"]}
    assert by_path["updated_at"] == {
        "path": "updated_at",
        "kind": "changed",
        "before": "2026-11-15T12:00:08.000000Z",
        "after": "2026-11-15T12:00:09.000000Z",
    }
    assert by_path["decisions[1]"]["after"]["description"] == "write it"
    assert "before" not in by_path["decisions[1]"]
    assert sum(found["counts"].values()) == len(found["changes"])
    assert found["truncated"] is False


def test_below_a_path(cli: Cli) -> None:
    changes = cli("diff", f"{REVIEW}@3", REVIEW, "--path", "tasks", "--json").json["changes"]
    assert changes
    assert all(change["path"].startswith("tasks") for change in changes)
    assert cli("diff", f"{REVIEW}@3", REVIEW, "--path", "tasks[").code == 2


def test_stat(cli: Cli) -> None:
    lines = cli("diff", f"{REVIEW}@3", REVIEW, "--stat").lines
    assert lines[2].split() == ["field", "added", "changed"]
    assert any(line.split()[0] == "decisions" for line in lines[3:])


def test_an_unknown_reference(cli: Cli) -> None:
    assert cli("diff", REVIEW, f"{REVIEW}@99").code == 2


def _lines(*changes: Change, whole: bool = False) -> list[str]:
    loader = Loader(lambda _: {}, Framer(Addresser()))
    printed: list[Line] = list(ChangeList(loader, columns=60, whole=whole).lines(changes))
    return ["".join(text for text, _ in line) for line in printed]


def _change(path: str, before: object, after: object) -> Change:
    return Change(path=parse_path(path), kind="changed", before=before, after=after)


def test_long_text_is_a_small_diff() -> None:
    old = "".join(f"line {number}\n" for number in range(30))
    new = old.replace("line 7\n", "line seven\n")
    assert _lines(_change("a.b", old, new), _change("a.c", 1, 2)) == [
        "a",
        "  ~ b  ",
        "        line 6",
        "      − line 7",
        "      + line seven",
        "        line 8",
        "  ~ c  1 → 2",
    ]


def test_text_that_grew_shows_its_new_end() -> None:
    old = "The beginning of a longer text that streams in"
    assert _lines(_change("a", old, old + ", and its end")) == [
        "~ a  ",
        "      + …text that streams in, and its end",
    ]


def test_instants_within_one_second_are_told_apart() -> None:
    second = 1_794_744_000_000_000
    assert _lines(_change("updated_at", second + 7_000, second + 45_900))[0].endswith(".007 → 12:00:00.045")
    assert _lines(_change("updated_at", second, second + 1_000_000))[0].endswith("12:00:00 → 12:00:01")


def test_a_large_value_is_told_by_its_size() -> None:
    large = LargeValue(Digest(bytes(32)), 20_000_000)
    assert _lines(_change("tasks.x.result", None, large)) == [
        "tasks",
        "  ~ x.result  none → a value of 19.1 MB",
    ]


def test_many_changes_are_cut_unless_all_are_wanted() -> None:
    changes = [_change(f"tasks.t{number}", 1, 2) for number in range(30)]
    assert _lines(*changes)[-1] == "  … 10 more changes (--full shows all)"
    assert len(_lines(*changes, whole=True)) == 31


@pytest.mark.parametrize(
    ("path", "shown"),
    [("updated_at", "2026-11-15T12:00:00.000000Z"), ("tasks.x.result.made_at", 1_794_744_000_000_000)],
)
def test_only_instants_of_our_own_become_text(path: str, shown: object) -> None:
    assert with_times(1_794_744_000_000_000, parse_path(path)) == shown
