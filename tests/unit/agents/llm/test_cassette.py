"""Cassettes give recorded answers back, keep to their workflow, and say what has changed in a prompt."""

import json
import os
import pickle
import resource
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from orchestra.agents.llm.cassette import Cassette, CassetteMode, prompt_changes
from orchestra.errors import BadCassette, BadName, NotOnCassette, StoreFull, UnstorableValue
from orchestra.limits import AGENT_LINE_BYTES, CASSETTE_DIFF_LINES

HEADER = b'{"cassette":1,"workflow":"research","digest":"d1"}\n'


def _open(path: Path, mode: CassetteMode = "replay", **more: Any) -> Cassette:
    return Cassette.open(path, mode, **{"workflow": "research", "digest": "d1", **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.cassette"


def _record(file: Path, *entries: tuple[str, int, str, str, dict[str, Any]], **more: Any) -> None:
    with _open(file, "record", **more) as cassette:
        for entry in entries:
            cassette.add(*entry)


def test_answers_come_back(file: Path) -> None:
    _record(
        file,
        ("scout", 0, "a1", "Find it", {"text": "found é \U0001f600"}),
        ("judge", 0, "a1", "Judge it", {"score": 0.5, "deep": [{"x": None}]}),
    )
    with _open(file) as cassette:
        assert cassette.find("scout", "a1") == {"text": "found é \U0001f600"}
        assert cassette.find("judge", "a1") == {"score": 0.5, "deep": [{"x": None}]}
        assert cassette.find("scout", "a2") is None
        assert cassette.find("nobody", "a1") is None
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[0] == HEADER
    assert json.loads(lines[1]) == {
        "agent": "scout",
        "step": 0,
        "digest": "a1",
        "asked": "Find it",
        "response": {"text": "found é \U0001f600"},
    }


def test_a_question_asked_often_gets_its_answers_in_order(file: Path) -> None:
    _record(file, *[("scout", 0, "a1", "x", {"n": number}) for number in range(3)])
    with _open(file) as cassette:
        assert cassette.unused == 3
        assert [cassette.find("scout", "a1") for _ in range(5)] == [{"n": n} for n in (0, 1, 2, 2, 2)]
        assert cassette.unused == 0


def test_recording_asks_anew(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "x", {"n": 1}))
    with _open(file, "record") as cassette:
        assert cassette.find("scout", "a1") is None


def test_recording_goes_on_or_begins_anew(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "x", {"n": 1}))
    _record(file, ("scout", 1, "a2", "y", {"n": 2}))
    assert _open(file).unused == 2
    _record(file, ("scout", 1, "a3", "z", {"n": 3}), fresh=True)
    assert _open(file).unused == 1
    assert file.read_bytes().startswith(HEADER)


def test_folders_are_made(tmp_path: Path) -> None:
    _record(tmp_path / "new" / "run.cassette", ("scout", 0, "a1", "x", {"n": 1}))
    assert _open(tmp_path / "new" / "run.cassette").unused == 1


def test_nothing_can_be_added_while_playing_or_after_the_end(file: Path) -> None:
    _record(file)
    with _open(file) as cassette, pytest.raises(BadCassette, match="not open for recording"):
        cassette.add("scout", 0, "a1", "x", {})
    cassette = _open(file, "record")
    cassette.close()
    cassette.close()
    with pytest.raises(BadCassette, match="not open for recording"):
        cassette.add("scout", 0, "a1", "x", {})


# --- other workflows, other files -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_a_cassette_of_another_workflow_is_refused(file: Path, mode: CassetteMode) -> None:
    _record(file, ("scout", 0, "a1", "x", {"n": 1}))
    before = file.read_bytes()
    with pytest.raises(BadCassette, match="of the workflow 'research', not of 'review'") as caught:
        _open(file, mode, workflow="review")
    assert "--record" in str(caught.value)
    assert file.read_bytes() == before


def test_a_changed_workflow_is_no_other(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "x", {"n": 1}))
    with _open(file, digest="d2") as cassette:
        assert cassette.is_of_changed_workflow
        assert cassette.find("scout", "a1") == {"n": 1}
    assert not _open(file).is_of_changed_workflow


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "its first line is no header"),
        (b"hello\n", "its first line is no header"),
        (b"[]\n", "its first line is no header"),
        (b'{"cassette": "x"}\n', "its first line is no header"),
        (b'{"cassette": 2}\n', "of format 2 and this program reads up to 1"),
        (b'{"cassette": 1}\n', "of the workflow None"),
        (HEADER + b"hello\n", "line 2 is no JSON"),
        (
            HEADER + b'{"agent":"a","step":0,"digest":"d","asked":"x","response":{}}\n\xff\n',
            "line 3 is no JSON",
        ),
        (HEADER + b"[" * 100_000 + b"\n", "line 2 is no JSON"),
        (HEADER + b"[]\n", "line 2 is no answer"),
        (HEADER + b"{}\n", "line 2 has no `agent`"),
        (HEADER + b'{"agent":"a","step":"0"}\n', "line 2 has a wrong `step`"),
        (HEADER + b'{"agent":"a","step":true}\n', "line 2 has a wrong `step`"),
        (HEADER + b'{"agent":"a","step":0,"digest":"d","asked":"x","response":[]}\n', "wrong `response`"),
        (HEADER + b'{"agent":"a","st', "line 2 is not complete"),
        (HEADER + b"\n", "line 2 is no JSON"),
    ],
)
def test_damage_is_named_with_its_line(file: Path, data: bytes, reason: str) -> None:
    file.write_bytes(data)
    with pytest.raises(BadCassette, match=reason):
        _open(file)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadCassette, match="no such file"):
        _open(tmp_path / "none")
    with pytest.raises(BadCassette, match="cannot be read"):
        _open(tmp_path)
    with pytest.raises(BadName):
        _open(tmp_path, "record")


def test_a_recording_that_was_cut_off_goes_on(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "x", {"n": 1}))
    with file.open("ab") as stream:
        stream.write(b'{"agent":"scout","st')
    _record(file, ("scout", 1, "a2", "y", {"n": 2}))
    assert _open(file).unused == 2


def test_a_header_that_was_cut_off_is_no_cassette(file: Path) -> None:
    file.write_bytes(b'{"cassette":')
    with pytest.raises(BadCassette, match="no header"):
        _open(file, "record")


# --- what is written --------------------------------------------------------------------------------------


@pytest.mark.parametrize("response", [{"x": float("nan")}, {"x": {1, 2}}, {"x": b"bytes"}])
def test_only_json_can_be_recorded(file: Path, response: dict[str, Any]) -> None:
    with _open(file, "record") as cassette:
        with pytest.raises(UnstorableValue):
            cassette.add("scout", 0, "a1", "x", response)
        cassette.add("scout", 0, "a1", "x", {"n": 1})
    assert _open(file).find("scout", "a1") == {"n": 1}


def test_half_characters_are_escaped(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "\ud800", {"text": "\udfff"}))
    assert _open(file).find("scout", "a1") == {"text": "\udfff"}


def test_answers_have_a_limit(file: Path) -> None:
    with _open(file, "record") as cassette, pytest.raises(UnstorableValue, match="the limit is 16 MB"):
        cassette.add("scout", 0, "a1", "x" * AGENT_LINE_BYTES, {})
    assert file.read_bytes() == HEADER


def test_many_threads_write_whole_lines(file: Path) -> None:
    with _open(file, "record") as cassette:
        threads = [
            threading.Thread(target=lambda at=at: cassette.add("scout", at, f"a{at}", "x" * 9999, {"n": at}))
            for at in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with _open(file) as cassette:
        assert [cassette.find("scout", f"a{at}") for at in range(20)] == [{"n": at} for at in range(20)]


def test_a_full_disk_leaves_no_half_a_line(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "x", {"n": 1}))
    before = file.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with _open(file, "record") as cassette:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
            with pytest.raises(StoreFull):
                cassette.add("scout", 1, "a2", "y" * 1000, {"n": 2})
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert file.read_bytes() == before
            cassette.add("scout", 1, "a2", "y", {"n": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert _open(file).unused == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_written(file: Path) -> None:
    _record(file)
    file.chmod(0o400)
    with pytest.raises(Exception, match="cannot be written"):
        _open(file, "record")


# --- what has changed -------------------------------------------------------------------------------------


def test_a_miss_says_what_has_changed(file: Path) -> None:
    asked = (
        "You are kind.\n"
        + "Look it up with care. Tell me about the sales of the last three years, please, and be brief. " * 3
    )
    _record(
        file,
        ("scout", 0, "a1", "Something else entirely", {}),
        ("scout", 1, "a2", asked, {}),
        ("scout", 1, "a3", "Another prompt of the same step", {}),
    )
    error = _open(file).miss("scout", 1, asked.replace("three", "four", 1))
    assert isinstance(error, NotOnCassette)
    assert (error.agent, error.step, error.reason) == ("scout", 1, "its prompt has changed")
    assert isinstance(error.changes, tuple)
    assert len(error.changes) == 2
    was, now = error.changes
    assert was.startswith("- …")
    assert "last three years" in was
    assert "last four years" in now
    assert "kind" not in str(error)
    assert "\n  - …" in str(error)
    assert "--record" in str(error)


def test_a_miss_in_a_step_that_was_not_recorded(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "one\ntwo", {}))
    error = _open(file).miss("scout", 7, "one\nthree")
    assert error.reason == "its prompt has changed (nearest is that of step 0)"


def test_a_miss_with_the_same_prompt(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "one", {}), ("scout", 0, "a2", "two", {}))
    error = _open(file).miss("scout", 0, "one")
    assert "its settings, its tools" in str(error.reason)
    assert error.changes == ()


def test_a_miss_of_an_agent_that_was_not_recorded(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "one", {}))
    error = _open(file).miss("scuot", 0, "one")
    assert "nothing was recorded of that agent; did you mean `scout`?" in str(error)
    _record(file, fresh=True)
    assert "nothing was recorded of that agent" in str(_open(file).miss("scout", 0, "one"))


def test_a_miss_travels_between_processes(file: Path) -> None:
    _record(file, ("scout", 0, "a1", "one", {}))
    error = pickle.loads(pickle.dumps(_open(file).miss("scout", 0, "two")))
    assert error.changes == ("- one", "+ two")
    assert str(error).endswith("\n  - one\n  + two")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("a\nb\nc", "a\nx\nc", ("- b", "+ x")),
        ("a\nb", "a\nb\nc", ("+ c",)),
        ("a\nb", "a", ("- b",)),
        ("", "a", ("+ a",)),
        ("one two three", "one three", ("- one two three", "+ one three")),
        ("x" * 100 + "A" + "y" * 100, "x" * 100 + "B" + "y" * 100,
         ("- …" + "x" * 40 + "A" + "y" * 40 + "…", "+ …" + "x" * 40 + "B" + "y" * 40 + "…")),
        ("z" * 30_000 + "a", "z" * 30_000 + "b", ("(the texts differ after 20,000 characters)",)),
    ],
    ids=range(7),
)  # fmt: skip
def test_changes(old: str, new: str, lines: tuple[str, ...]) -> None:
    assert prompt_changes(old, new) == lines


def test_changes_are_few_short_and_printable() -> None:
    old, new = ("\n".join(f"{word} {number}" for number in range(100)) for word in ("old", "new"))
    changes = prompt_changes(old, new)
    assert len(changes) == CASSETTE_DIFF_LINES + 1
    assert changes[-1] == f"… and {200 - CASSETTE_DIFF_LINES} lines more"
    long = prompt_changes("a" * 5000, "b" * 5000)
    assert all(len(line) < 200 for line in long)
    assert "\\x1b" in str(prompt_changes("a", "\x1b[31m"))
