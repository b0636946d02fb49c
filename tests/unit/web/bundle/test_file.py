"""A run in one file: what it holds, and when it is refused."""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.cli.store import archive
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.loader import Loader
from orchestra.codec.values import freeze
from orchestra.errors import UnknownRun
from orchestra.history.archive import Archive
from orchestra.history.places import Place
from orchestra.ids import RunId
from orchestra.limits import BUNDLE_VALUE_BYTES
from orchestra.model.tree import Table, Vec
from orchestra.web.bundle.file import States, form_of, gather_run, make_bundle, whole_form
from orchestra.web.errors import BundleTooLarge
from tests.unit.cli.recording import FORK, HOSTILE, REVIEW, record, url_of

LOADER = Loader(lambda _: {}, Framer(Addresser()))
NOON = 1_794_744_000_000_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("recorded")
    anyio.run(record, url_of(folder))
    return url_of(folder)


@pytest.fixture
def opened(store: str) -> Iterator[Archive]:
    with archive(store) as found:
        yield found


def _data(content: bytes) -> dict[str, Any]:
    text = content.decode()
    packed = re.search(r'id="orchestra-bundle">\s*(\S+)\s*</script>', text)
    assert packed is not None
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    return found


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def applied(state: Any, path: list[str | int], after: list[Any]) -> Any:
    """What the page does with a change, written down once more."""
    if not path:
        return after[0]
    if isinstance(state, dict) and list(state) == ["$tuple"]:
        return {"$tuple": applied(state["$tuple"], path, after)}
    step, rest = path[0], path[1:]
    if isinstance(state, list):
        assert isinstance(step, int)
        if not rest and not after:
            return state[:step]
        below = state[step] if step < len(state) else None
        return [*state[:step], applied(below, rest, after), *state[step + 1 :]]
    name = f"${step}" if str(step).startswith("$") else step
    if not rest and not after:
        return {key: held for key, held in state.items() if key != name}
    return {**state, name: applied(state.get(name), rest, after)}


@pytest.mark.parametrize("run", [REVIEW, FORK])
def test_every_state_follows_from_what_is_in_the_file(opened: Archive, run: str) -> None:
    data = gather_run(opened, RunId(run))
    full = dict(data["states"])
    state: Any = None
    for place, row in enumerate(data["headlines"]):
        patch = data["patches"][place]
        if isinstance(patch, list) and state is not None:
            for path, *after in patch:
                state = applied(state, path, after)
        else:
            state = full[row["seq"]]
        wanted = whole_form(opened.document(RunId(run), row["seq"]), opened.loader)
        assert state == wanted
        assert full.get(row["seq"], wanted) == wanted


def test_the_file_holds_all_that_the_page_asks_for(opened: Archive) -> None:
    made = make_bundle(opened, RunId(REVIEW))
    data = _data(made.content)
    assert made.snapshots == len(data["headlines"]) == len(data["details"]) == len(data["patches"])
    assert data["info"]["actions"] is False
    assert data["info"]["bundle"] is True
    assert data["run"]["run"] == REVIEW
    assert data["verify"]["whole"] is True
    assert data["decisions"]["decisions"][0]["description"] == "go on: " + HOSTILE


def test_text_of_a_run_stands_nowhere_in_the_clear(opened: Archive) -> None:
    text = make_bundle(opened, RunId(REVIEW)).content.decode()
    assert HOSTILE not in text
    assert html.escape(HOSTILE) not in text
    assert text.count("</script") == 3


def test_the_file_allows_itself_its_own_script_and_nothing_else(opened: Archive) -> None:
    text = make_bundle(opened, RunId(REVIEW)).content.decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy[1]).split(";"))
    assert rules["default-src"] == "'none'"
    for element, rule in (("script", "script-src"), ("style", "style-src")):
        bodies = re.findall(rf"<{element}(?: type=\"module\")?>(.*?)</{element}>", text, re.DOTALL)
        digests = {
            f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in bodies
        }
        assert set(rules[rule].split()) == digests
    assert not re.search(r"\b(?:src|href)=\"(?!#)", text)


@pytest.mark.parametrize("limits", [{"file_bytes": 1000}, {"state_bytes": 1000}])
def test_what_is_too_much_is_refused_with_a_way_out(opened: Archive, limits: dict[str, int]) -> None:
    with pytest.raises(BundleTooLarge, match=rf"orchestra export {REVIEW}"):
        make_bundle(opened, RunId(REVIEW), **limits)


def test_no_such_run(opened: Archive) -> None:
    with pytest.raises(UnknownRun):
        make_bundle(opened, RunId("nothing"))


def test_forms_keep_what_json_has_not() -> None:
    held = {
        "at": NOON,
        "inputs": freeze({"at": NOON, "$x": (1, b"\x00"), "s": {"b"}}, Addresser()).encoded,
        "tasks": Table([("$odd", Vec([1, 2]))]),
    }
    assert form_of(Place(held), LOADER) == {
        "at": {"$at": NOON},
        "inputs": {"at": NOON, "$$x": {"$tuple": [1, {"$bytes": "AA=="}]}, "s": {"$set": ["b"]}},
        "tasks": {"$$odd": [1, 2]},
    }


def test_a_text_that_is_too_long_is_cut() -> None:
    found = form_of(Place("x" * (BUNDLE_VALUE_BYTES + 5), True), LOADER)
    assert found["$cut"]["size"] == BUNDLE_VALUE_BYTES + 5
    assert len(found["$cut"]["text"]) == BUNDLE_VALUE_BYTES


def test_whole_states_are_written_again_once_changes_take_as_much_room() -> None:
    states = States(LOADER)
    numbers: Vec[int] = Vec()
    for seq in range(200):
        numbers = numbers.append(seq)
        states.add(seq, {"numbers": numbers, "text": "t" * 400}, last=seq == 199)
    written = [seq for seq, _ in states.full]
    assert written[0] == 0
    assert written[-1] > 199 - 64
    assert 3 <= len(written) <= 20
    assert states.patches[1] == [[["numbers", 1], 1]]


def test_after_a_gap_the_whole_state_is_written() -> None:
    states = States(LOADER)
    states.add(0, {"a": 1}, last=False)
    states.skip("it was pruned", pruned=True)
    states.add(2, {"a": 2}, last=False)
    assert [seq for seq, _ in states.full] == [0, 2]
    assert states.patches[1] == {"reason": "it was pruned", "pruned": True}


def test_the_file_can_be_written_for_every_run(opened: Archive, tmp_path: Path) -> None:
    for run in (REVIEW, FORK):
        path = tmp_path / f"{run}.html"
        path.write_bytes(make_bundle(opened, RunId(run)).content)
        assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
