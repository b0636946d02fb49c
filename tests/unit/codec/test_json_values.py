"""The JSON form of values: exactly reversible, and nothing else is taken."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.codec.json_values import FORMS, BadForm, LargeValue, from_json, pretty_json, to_json
from orchestra.codec.values import freeze, thaw
from orchestra.ids import Digest
from tests.unit.recordings import ADDRESSER

_atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 1023), 1 << 1023)
    | st.integers(-(1 << 54), 1 << 54)
    | st.floats(allow_nan=True)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(["$", "$$", "$bytes", "$large"])
    | st.binary()
    | st.datetimes(
        min_value=datetime(2, 1, 1),
        max_value=datetime(9998, 1, 1),
        timezones=st.integers(-86399, 86399).map(lambda seconds: timezone(timedelta(seconds=seconds))),
    )
)
_keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(["$", "$$x", *FORMS])
_members = st.recursive(
    _atoms, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4
)
values = st.recursive(
    _atoms | st.sets(_members, max_size=4) | st.frozensets(_members, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(_keys, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_every_value_comes_back_exactly(value: object) -> None:
    frozen = freeze(value, ADDRESSER)
    text = pretty_json(to_json(thaw(frozen)))
    back = from_json(json.loads(text, parse_constant=pytest.fail))
    assert freeze(back, ADDRESSER).encoded == frozen.encoded


@given(st.recursive(st.none() | st.integers() | st.text(), lambda i: st.lists(i) | st.dictionaries(_keys, i)))
def test_any_json_is_a_value_or_refused(form: Any) -> None:
    try:
        value = from_json(form)
    except BadForm:
        return
    assert from_json(to_json(value)) == value


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (b"\0\1\xff", {"$bytes": "AAH/"}),
        (1 << 53, {"$int": "9007199254740992"}),
        ((1 << 53) - 1, (1 << 53) - 1),
        (float("-inf"), {"$float": "-inf"}),
        ((1, [2]), {"$tuple": [1, [2]]}),
        ({2, 1}, {"$set": [1, 2]}),
        (frozenset({"b", "a"}), {"$frozenset": ["a", "b"]}),
        (datetime(2026, 11, 15, tzinfo=UTC), {"$datetime": "2026-11-15T00:00:00.000000+00:00"}),
        ({"$bytes": 1, "$$": 2}, {"$$bytes": 1, "$$$": 2}),
        (LargeValue(Digest(b"\1" * 32), 70_000), {"$large": {"digest": "01" * 32, "size": 70000}}),
    ],
)
def test_forms_are_as_documented(value: object, form: object) -> None:
    assert to_json(value) == form
    assert from_json(form) == value


@pytest.mark.parametrize(
    "form",
    [
        {"$nothing": 1},
        {"$bytes": "?"},
        {"$bytes": 3},
        {"$int": "1_0"},
        {"$int": "9" * 5000},
        {"$int": 5},
        {"$float": "1.5"},
        {"$float": "nan:3ff0000000000000"},
        {"$tuple": 3},
        {"$set": [1, 1]},
        {"$set": [[1]]},
        {"$datetime": "2026-11-15T00:00:00"},
        {"$datetime": "soon"},
        {"$large": {"digest": "01", "size": 1}},
        {"$large": []},
        {"$a": 1, "b": 2},
    ],
)
def test_bad_forms_are_refused(form: object) -> None:
    with pytest.raises(BadForm):
        from_json([form])
