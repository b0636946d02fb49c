"""`orchestra pin` and `orchestra note`."""

from tests.unit.cli.conftest import Cli
from tests.unit.cli.recording import HOSTILE, REVIEW


def test_pin_and_unpin(own: Cli) -> None:
    assert own("pin", f"{REVIEW}@4").out == f"{REVIEW}@4 is pinned.\n"
    assert own("pin", f"{REVIEW}@4", "--json").json["pinned"] is True
    assert own("pin", f"{REVIEW}@4", "--remove").out == f"{REVIEW}@4 is no longer pinned.\n"
    assert own("pin", f"{REVIEW}@4", "--remove", "--json").json["pinned"] is False


def test_write_read_and_remove_a_note(own: Cli) -> None:
    assert own("note", REVIEW).out == f"{REVIEW}@10 has no note.\n"
    assert own("note", REVIEW, "look\nhere").out == f"{REVIEW}@10 has a note.\n"
    assert own("note", REVIEW).out == "look\nhere\n"
    assert own("note", REVIEW, "--json").json["note"] == "look\nhere"
    assert own("note", REVIEW, "instead", "--json").json["note"] == "instead"
    assert own("note", REVIEW, "--remove").code == 0
    assert own("note", REVIEW, "--json").json["note"] is None


def test_a_hostile_note_is_shown_harmlessly(own: Cli) -> None:
    own("note", REVIEW, HOSTILE)
    assert "\x1b" not in own("note", REVIEW).out + own("show", REVIEW).out
    assert own("note", REVIEW, "--json").json["note"] == HOSTILE


def test_bad_input(own: Cli) -> None:
    assert own("note", REVIEW, "text", "--remove").code == 2
    assert own("note", REVIEW, "").code == 2
    assert own("note", REVIEW, "x" * 20_000).code == 2
    assert own("pin", "nobody").code == 2
    assert own("pin", f"{REVIEW}@99").code == 2
