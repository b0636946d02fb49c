"""Values as JSON within a budget."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.json_values import from_json
from orchestra.codec.loader import Loader
from orchestra.codec.values import freeze
from orchestra.history.places import Place
from orchestra.limits import WEB_COLLECTION_ITEMS, WEB_TEXT_CHARS
from orchestra.model.tree import Table, Vec
from orchestra.web.views.forms import Former, data_form, kind_of

AT = 1_794_744_000_000_000
LOADER = Loader(lambda _digests: {}, Framer(Addresser()))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def _form(held: Any, budget: int = 1 << 20, **more: Any) -> tuple[Any, bool]:
    former = Former(LOADER, budget)
    return former.form(Place(held, True), **more), former.whole


@given(VALUES)
def test_what_fits_comes_back_exact(value: Any) -> None:
    form, whole = _form(value)
    assert whole
    assert from_json(json.loads(json.dumps(form))) == value


@given(VALUES, st.integers(min_value=0, max_value=400))
def test_a_budget_is_kept_and_what_is_left_out_is_said(value: Any, budget: int) -> None:
    form, whole = _form({"a": value}, budget)
    assert whole == (not _leaves_out(form))


def _leaves_out(form: Any) -> bool:
    """Whether a form says that there is more; a key of the data that looks so has another `$`."""
    if isinstance(form, dict):
        return "$more" in form or any(map(_leaves_out, form.values()))
    return isinstance(form, list) and any(map(_leaves_out, form))


def test_the_top_is_opened_before_what_lies_below() -> None:
    value = {f"k{each}": {"deep": {"deeper": "x" * 100}} for each in range(20)}
    form, whole = _form(value, 2000)
    assert not whole
    assert list(form) == list(value)
    opened = [name for name, each in form.items() if each != {"$more": {"kind": "object", "count": 1}}]
    assert opened == list(value)
    assert form["k19"] == {"deep": {"$more": {"kind": "object", "count": 1}}}


def test_a_long_text_is_cut_inside_and_whole_alone() -> None:
    long = "ä" * (WEB_TEXT_CHARS + 1)
    assert _form([long])[0] == [{"$cut": {"text": long[:WEB_TEXT_CHARS], "size": WEB_TEXT_CHARS + 1}}]
    assert _form(long)[0] == long


def test_a_long_collection_is_paged() -> None:
    many = list(range(WEB_COLLECTION_ITEMS * 2))
    assert _form({"many": many})[0] == {"many": {"$more": {"kind": "array", "count": len(many)}}}
    form, whole = _form(many, offset=5, limit=3)
    assert (form, whole) == ([5, 6, 7], False)
    assert _form(many, offset=len(many))[0] == []


def test_parts_of_a_state_are_opened_and_its_instants_told() -> None:
    frozen = freeze({"at": AT, "raw": b"x"}, Addresser())
    state = {
        "created_at": AT,
        "until": 5,
        "tasks": Table([("$odd", {"result": frozen.encoded})]),
        "path": Vec([{"phase": "a"}]),
    }
    form = Former(LOADER, 10_000).form(Place(state))
    assert form == {
        "created_at": {"$at": AT},
        "until": 5,
        "tasks": {"$$odd": {"result": {"at": AT, "raw": {"$bytes": "eA=="}}}},
        "path": [{"phase": "a"}],
    }


def test_ordinary_data_of_a_difference() -> None:
    task = {
        "started_at": AT,
        "result": {"started_at": AT, "b": b"\xff"},
    }
    assert data_form(task, ("tasks", "a"), LOADER, 10_000) == {
        "started_at": {"$at": AT},
        "result": {"started_at": AT, "b": {"$bytes": "/w=="}},
    }
    assert data_form(AT, ("tasks", "a", "result", "at"), LOADER, 100) == AT


def test_kinds() -> None:
    held = [{}, [], (), {1}, "", b"", True, 1, 1.5, None]
    words = ["object", "array", "array", "array", "text", "bytes", "bool", "number", "number", "null"]
    assert [kind_of(Place(each, True)) for each in held] == words
    assert kind_of(Place(AT, False, "opened_at")) == "time"
