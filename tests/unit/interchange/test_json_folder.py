"""Verifying files by themselves: everything that is wrong is said, with its place."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestra.codec.json_values import pretty_json
from orchestra.errors import NotAStore, StoreTooNew
from orchestra.history.archive import Archive
from orchestra.interchange.json_check import verify_file
from orchestra.interchange.json_form import digest_of, snapshot_json
from orchestra.interchange.transfer import export_run
from tests.unit.recordings import R1, at, flipped

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]


@pytest.fixture
def form(archive: Archive) -> dict[str, Any]:
    return snapshot_json(at(archive, 60), archive)


def findings(path: Path, content: object) -> list[str]:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    report = verify_file(path)
    assert not report.is_whole
    return [f"{finding.what}: {finding.reason}".removeprefix(str(path)) for finding in report.findings]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n  "a": 1,\n  "b": }', ":3:8: Expecting value"),
        (b"", ":1:1: Expecting value"),
        (b'{"a": 1} x', ":1:10: Extra data"),
        (b'{"a": 1, "a": 2}', ": the key 'a' stands twice in one object"),
        (b'{"a": NaN}', ": NaN is not JSON"),
        (b'{"a": "\xff"}', ": it is not UTF-8 at byte 7"),
        (b"[" * 100_000, ": it is nested too deeply"),
        (b"[]", ": it is not an object"),
        (b'{"a": ' + b"9" * 10_000 + b"}", ": Exceeds the limit"),
    ],
)
def test_what_is_no_json_is_said_with_its_place(tmp_path: Path, content: bytes, said: str) -> None:
    [found] = findings(tmp_path / "x.json", content)
    assert found.startswith(said)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path, form: dict[str, Any]) -> None:
    form |= {
        "phase": "one",
        "resumable": 1,
        "checkpoint_id": "x",
        "timestamp": "yesterday",
        "status": "running",
    }
    form["workflow_id"] = "../x"
    del form["metrics"], form["agents"]["mercury_1"]["state"]
    form["decisions"][0]["agent"] = None
    form["confidence"]["overall"] = "high"
    form["tasks"][1] = []
    form["integrity"]["digest"] = digest_of(form)
    found = {said.partition(": ")[0] for said in findings(tmp_path / "x.json", form)}
    assert found == {
        f" at {place}"
        for place in (
            "/phase", "/resumable", "/checkpoint_id", "/timestamp", "/status", "/workflow_id", "/metrics",
            "/agents/mercury_1/state", "/decisions/0/agent", "/confidence/overall", "/tasks/1",
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda form: form.update(version="2.0"), "/version"),
        (lambda form: form["metrics"].update(api_calls=999), "/integrity/digest"),
        (lambda form: form.update(extra=1), "/integrity/digest"),
        (lambda form: form["decisions"].pop(), "/integrity/digest"),
        (lambda form: form["integrity"].update(algorithm="md5"), "/integrity/algorithm"),
        (lambda form: form["snapshot"].update(digest="00" * 32), "/checkpoint_id"),
        (lambda form: form["context"].update(x="\ud800"), "/integrity/digest"),
    ],
    ids=["version", "figure", "more", "less", "algorithm", "other snapshot", "surrogate"],
)
def test_a_changed_file_is_noticed(
    tmp_path: Path, form: dict[str, Any], change: Callable[[dict[str, Any]], None], place: str
) -> None:
    change(form)
    assert any(said.startswith(f" at {place}: ") for said in findings(tmp_path / "x.json", form))


def test_a_value_in_no_known_form_is_noticed(tmp_path: Path, form: dict[str, Any]) -> None:
    form["context"]["x"] = {"$pickle": "gASVAA=="}
    form["integrity"]["digest"] = digest_of(form)
    assert findings(tmp_path / "x.json", form) == [": there is no form '$pickle'"]


def test_every_flipped_bit_that_changes_a_file_is_noticed(tmp_path: Path, form: dict[str, Any]) -> None:
    data, chance = pretty_json(form), random.Random(4)
    for bit in chance.sample(range(len(data) * 8), 150):
        changed = flipped(data, bit)
        (tmp_path / "x.json").write_bytes(changed)
        if verify_file(tmp_path / "x.json").is_whole:
            assert json.loads(changed) == form  # e.g. another way to write the same number


def test_a_file_that_was_changed_is_not_whole(tmp_path: Path, form: dict[str, Any]) -> None:
    form["phase"] = 9
    (tmp_path / "x.json").write_bytes(pretty_json(form))
    (found,) = verify_file(tmp_path / "x.json").findings
    assert "the file was changed" in found.reason


def test_exports_are_verified_too(archive: Archive, tmp_path: Path) -> None:
    path = export_run(archive, R1, tmp_path / "r1.orchestra").path
    report = verify_file(path)
    assert (report.kind, report.is_whole) == ("export", True)
    data = path.read_bytes()
    for changed in (data[:-1], data + b"x", flipped(data, 8000), flipped(data, 100)):
        path.write_bytes(changed)
        assert not verify_file(path).is_whole
    path.write_bytes(data[:19] + b"\1\1" + data[21:])
    with pytest.raises((StoreTooNew, AssertionError)):
        assert verify_file(path).is_whole


@pytest.mark.parametrize("name", ["nothing.json", "."])
def test_no_file_is_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotAStore):
        verify_file(tmp_path / name)
