"""`orchestra export`, `orchestra import` and `orchestra verify --file`."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import FORK, REVIEW

NEW = "sqlite:new/store.db"


@pytest.fixture
def exported(cli: Cli) -> Path:
    assert cli("export", REVIEW, "run.orchestra").code == 0
    return Path("run.orchestra")


def test_out_and_in(cli: Cli, exported: Path) -> None:
    outcome = cli("import", str(exported), "--store", NEW)
    assert outcome.code == 0
    assert outcome.out == f"{REVIEW}  11 snapshots added to new/store.db\n"
    assert cli("snapshots", REVIEW, "--json", "--store", NEW).json == cli("snapshots", REVIEW, "--json").json
    again = cli("import", str(exported), "--store", NEW)
    assert again.out == f"{REVIEW} is in new/store.db already; nothing was changed.\n"
    assert cli("verify", "--store", NEW).code == 0


def test_as_json(cli: Cli, exported: Path) -> None:
    said = cli("export", REVIEW, "again.orchestra", "--json").json
    assert (said["run"], said["file"], said["snapshots"]) == (REVIEW, "again.orchestra", 11)
    assert Path("again.orchestra").read_bytes() == exported.read_bytes()
    assert said["size"] == exported.stat().st_size
    done = cli("import", str(exported), "--store", NEW, "--json").json
    assert (done["snapshots"], done["snapshots_added"], done["was_there"]) == (11, 11, False)


def test_the_file_is_named_after_the_run(cli: Cli) -> None:
    cli("export", "review_20261115_13")
    assert Path(f"{FORK}.orchestra").exists()


def test_a_file_is_not_replaced_unless_asked_for(cli: Cli, exported: Path) -> None:
    assert cli("export", REVIEW, str(exported)).code == 2
    assert cli("export", REVIEW, str(exported), "--force").code == 0


def test_the_json_form(cli: Cli) -> None:
    outcome = cli("export", REVIEW, "--json-form", "form")
    assert outcome.code == 0
    names = sorted(path.name for path in Path("form").iterdir())
    assert "latest.json" in names
    assert cli("verify", "--file", "form/latest.json").out == "✔ form/latest.json is whole: a snapshot.\n"
    whole = cli("validate-checkpoint", "--file=form/latest.json")
    assert (whole.code, whole.out) == (0, "✔ form/latest.json is whole: a snapshot.\n")
    answer = cli("validate-checkpoint", "--file=form/latest.json", "--json").json
    assert (answer["whole"], answer["kind"], answer["findings"]) == (True, "json", [])
    marked = cli("export", REVIEW, "--json-form", "form", "--json").json["files"]
    everything = cli("export", REVIEW, "--json-form", "more", "--all", "--json").json["files"]
    assert len(everything) > len(marked)


def test_a_changed_json_file(cli: Cli) -> None:
    cli("export", REVIEW, "--json-form", "form")
    latest = Path("form/latest.json")
    latest.write_text(latest.read_text().replace("completed", "complete", 1))
    outcome = cli("verify", "--file", str(latest))
    assert outcome.code == 4
    assert "the file was changed" in outcome.out
    assert "Next: " in outcome.out
    answer = cli("validate-checkpoint", f"--file={latest}", "--json")
    assert (answer.code, answer.json["whole"], answer.json["kind"]) == (4, False, "json")
    assert answer.json["findings"][0]["severity"] == "damage"


def test_a_whole_export(cli: Cli, exported: Path) -> None:
    assert cli("verify", "--file", str(exported)).out == "✔ run.orchestra is whole: a run.\n"


def test_a_truncated_export(cli: Cli, exported: Path) -> None:
    cut = Path("cut.orchestra")
    cut.write_bytes(exported.read_bytes()[:-100])
    outcome = cli("import", str(cut), "--store", NEW)
    assert outcome.code == 4
    assert "cut.orchestra is damaged" in outcome.err
    assert not Path("new").exists()
    assert cli("verify", "--file", str(cut)).code == 4


def test_an_export_of_a_newer_format(cli: Cli, exported: Path) -> None:
    newer = Path("newer.orchestra")
    data = bytearray(exported.read_bytes())
    data[19] += 1
    newer.write_bytes(data)
    outcome = cli("import", str(newer), "--store", NEW)
    assert outcome.code == 2
    assert "use a newer version of orchestra" in outcome.err
    assert not Path("new").exists()


@pytest.mark.parametrize(
    "content", [b"", b"hello", json.dumps({"version": "1.0"}).encode(), b"\x89orchestra"]
)
def test_what_is_no_export(cli: Cli, content: bytes) -> None:
    Path("odd").write_bytes(content)
    outcome = cli("import", "odd", "--store", NEW)
    assert outcome.code in (2, 4)
    assert outcome.err.startswith("error: ")
    assert "Traceback" not in outcome.err
    assert cli("verify", "--file", "odd").code in (2, 4)
    assert not Path("new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "gone"),
        ("import", "."),
        ("verify", "--file", "gone"),
        ("verify", "--file", "."),
        ("verify", REVIEW, "--file", "x"),
        ("export", "nobody"),
        ("export", REVIEW, "."),
        ("export", REVIEW, "x", "--json-form", "y"),
        ("export", REVIEW, "--all"),
    ],
)
def test_bad_input(cli: Cli, arguments: tuple[str, ...]) -> None:
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")


def test_a_run_as_one_page(cli: Cli) -> None:
    outcome = cli("export", REVIEW, "--html", "run.html")
    assert outcome.code == 0
    assert outcome.out.startswith("run.html  11 snapshots, ")
    assert Path("run.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert cli("export", REVIEW, "--html", "run.html").code == 2
    said = cli("export", REVIEW, "--html", "run.html", "--force", "--json").json
    assert (said["run"], said["file"], said["snapshots"]) == (REVIEW, "run.html", 11)
    assert said["size"] == Path("run.html").stat().st_size


@pytest.mark.parametrize("other", [["run.orchestra"], ["--json-form", "form"], ["--all"]])
def test_one_form_at_a_time(cli: Cli, other: list[str]) -> None:
    outcome = cli("export", REVIEW, *other, "--html", "run.html")
    assert outcome.code == 2
    assert not Path("run.html").exists()
