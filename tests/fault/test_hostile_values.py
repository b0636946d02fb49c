"""What agents and people hand in comes back exactly, or is refused by name before anything is stored."""

import math
import os
import subprocess
import sys
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn
from uuid import UUID

import pytest

from orchestra.codec.address import Addresser
from orchestra.codec.values import contribution, freeze, freeze_leniently, thaw
from orchestra.errors import UnstorableValue
from orchestra.limits import VALUE_DEPTH, VALUE_INTEGER_BITS
from tests.property.exact import exact

PLAIN = Addresser()
ROOT = Path(__file__).parents[2]
Point = namedtuple("Point", "x y")


class Colour(IntEnum):
    RED = 1


class Word(StrEnum):
    HELLO = "hello"


class Shape(Enum):
    ROUND = 1


class Title(str):
    __slots__ = ()


class Count(int):
    __slots__ = ()


class Moment(datetime):
    pass


class Rude:
    """Raises whatever it is asked."""

    def __repr__(self) -> NoReturn:
        raise RuntimeError("no")

    __str__ = __repr__
    __eq__ = __repr__  # type: ignore[assignment]
    __hash__ = object.__hash__


def nested(depth: int, make: Any = lambda inner: [inner]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = make(value)
    return value


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


EXACT: dict[str, Any] = {
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "minus zero": -0.0,
    "tiny": 5e-324,
    "2**63": 2**63,
    "2**64-1": 2**64 - 1,
    "2**64": 2**64,
    "2**70": 2**70,
    "-2**64": -(2**64),
    "-2**64-1": -(2**64) - 1,
    "-2**70": -(2**70),
    "the largest integer": 2**VALUE_INTEGER_BITS - 1,
    "the smallest integer": -(2**VALUE_INTEGER_BITS) + 1,
    "NUL": "a\0b",
    "bidi": "\u202eabc\u2066",
    "escapes": "\x1b[31mred\x1b[0m\x07",
    "line breaks": "a\r\nb\u2028c\x85",
    "not a character": "\ufffe\uffff\U0010ffff",
    "combining": "e\u0301 and é",
    "a key that is empty": {"": 1},
    "odd keys": {"\0": 1, "\u202e": 2, "__proto__": 3, "constructor": 4, "$unstorable": 5},
    "tuples": ((), (1,), ((2,), [3])),
    "sets": [set(), {1, "a", None}, frozenset({(1, 2)}), {frozenset({1})}],
    "bytes": [b"", b"\0\xff", bytes(range(256))],
    "as deep as may be": nested(VALUE_DEPTH),
    "tuples as deep as may be": nested(VALUE_DEPTH, lambda inner: (inner,)),
    "sets as deep as may be": nested(VALUE_DEPTH, lambda inner: frozenset({inner})),
    "maps as deep as may be": nested(VALUE_DEPTH, lambda inner: {"a": inner}),
    "a time": datetime(2026, 11, 15, 14, 30, 22, 118_000, tzinfo=UTC),
    "a time elsewhere": datetime(2026, 11, 15, tzinfo=timezone(timedelta(hours=-9, minutes=-30))),
    "a time with seconds of offset": datetime(1900, 1, 1, tzinfo=timezone(timedelta(seconds=4772))),
    "the first time": datetime.min.replace(tzinfo=UTC),
    "the last time": datetime.max.replace(tzinfo=UTC),
}

REFUSED: dict[str, tuple[Any, str]] = {
    "one level too deep": (nested(VALUE_DEPTH + 1), "deeper"),
    "depth 401": (nested(401), "deeper"),
    "depth 10,000": (nested(10_000), "deeper"),
    "maps 10,000 deep": (nested(10_000, lambda inner: {"a": inner}), "deeper"),
    "tuples 10,000 deep": (nested(10_000, lambda inner: (inner,)), "deeper"),
    "a cycle": (cycle(), "deeper"),
    "a huge integer": (2**VALUE_INTEGER_BITS, "bits"),
    "a huge negative integer": (-(2**VALUE_INTEGER_BITS), "bits"),
    "an integer of a million bits": (1 << 1_000_000, "bits"),
    "a lone surrogate": ("a\ud800b", "surrogates"),
    "a lone surrogate in a key": ({"\udfff": 1}, "surrogates"),
    "a key that is a number": ({1: "a"}, "int"),
    "a key that is a tuple": ({(1, 2): "a"}, "tuple"),
    "a key that is nothing": ({None: "a"}, "NoneType"),
    "a key of a subclass": ({Title("a"): 1}, "Title"),
    "bytearray": (bytearray(b"abc"), "bytearray"),
    "memoryview": (memoryview(b"abc"), "memoryview"),
    "OrderedDict": (OrderedDict(a=1), "OrderedDict"),
    "defaultdict": (defaultdict(list), "defaultdict"),
    "UserDict": (UserDict(a=1), "UserDict"),
    "namedtuple": (Point(1, 2), "Point"),
    "IntEnum": (Colour.RED, "Colour"),
    "StrEnum": (Word.HELLO, "Word"),
    "Enum": (Shape.ROUND, "Shape"),
    "a subclass of str": (Title("a"), "Title"),
    "a subclass of int": (Count(1), "Count"),
    "a subclass of datetime": (Moment(2026, 1, 1, tzinfo=UTC), "Moment"),
    "a time without a zone": (datetime(2026, 1, 1), "zone"),
    "a date": (date(2026, 1, 1), "date"),
    "a time of day": (time(12), "time"),
    "a duration": (timedelta(1), "timedelta"),
    "a decimal": (Decimal("1.1"), "Decimal"),
    "a fraction": (Fraction(1, 3), "Fraction"),
    "complex": (1j, "complex"),
    "a UUID": (UUID(int=1), "UUID"),
    "a path": (PurePosixPath("/"), "PurePosixPath"),
    "range": (range(3), "range"),
    "an iterator": (iter([1]), "list_iterator"),
    "a function": (len, "builtin_function_or_method"),
    "a class": (int, "type"),
    "an exception": (ValueError("x"), "ValueError"),
    "something rude": (Rude(), "Rude"),
    "something rude, deeper": ({"a": [Rude()]}, r"\$\.a\[0\].*Rude"),
}


@pytest.mark.parametrize("name", EXACT)
def test_it_comes_back_exactly(name: str) -> None:
    value = EXACT[name]
    assert exact(thaw(freeze(value, PLAIN))) == exact(value)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_name(name: str) -> None:
    value, reason = REFUSED[name]
    with pytest.raises(UnstorableValue, match=reason) as caught:
        freeze(value, PLAIN)
    assert caught.value.data["path"]
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", REFUSED)
def test_leniently_a_placeholder_stands_in_its_place(name: str) -> None:
    value, _ = REFUSED[name]
    found = thaw(freeze_leniently({"before": 1, "it": value, "after": 2}, PLAIN))
    assert (found["before"], found["after"]) == (1, 2)
    assert "$unstorable" in repr(found["it"])


@pytest.mark.parametrize("make", [set, frozenset, list, tuple])
def test_placeholders_inside_other_things(make: Any) -> None:
    found = thaw(freeze_leniently(make([Rude(), "kept"]), PLAIN))
    assert "kept" in found
    assert "Rude" in repr(found)


@pytest.mark.parametrize("offset", [timedelta(hours=14), timedelta(hours=-12)])
@pytest.mark.parametrize("edge", [datetime.min, datetime.max])
def test_times_at_the_edges_of_the_calendar(edge: datetime, offset: timedelta) -> None:
    """Some of them have no counterpart in UTC."""
    value = edge.replace(tzinfo=timezone(offset))
    try:
        frozen = freeze(value, PLAIN)
    except UnstorableValue:
        return
    assert exact(thaw(frozen)) == exact(value)


def test_a_time_is_an_atom_at_any_depth() -> None:
    deepest = nested(VALUE_DEPTH, lambda inner: [datetime(2026, 1, 1, tzinfo=UTC) if inner == 1 else inner])
    assert exact(thaw(freeze(deepest, PLAIN))) == exact(deepest)


def test_a_million_keys() -> None:
    value = {f"key-{n}": n for n in range(1_000_000)}
    assert thaw(freeze(value, PLAIN)) == value


@pytest.mark.parametrize(
    ("reducer", "value"),
    [
        ("sum", "1"),
        ("sum", True),
        ("sum", None),
        ("sum", 2**VALUE_INTEGER_BITS),
        ("max", [1]),
        ("max", Decimal(1)),
        ("merge", [("a", 1)]),
        ("merge", {1: 2}),
        ("merge", {"a": Rude()}),
        ("append", [Rude()]),
        ("replace", Rude()),
    ],
)
def test_contributions_are_refused_by_name(reducer: Any, value: Any) -> None:
    with pytest.raises(UnstorableValue):
        contribution(reducer, value, PLAIN, where="$.here")


EXPLODING = """
import resource, signal, sys
from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze, freeze_leniently
from orchestra.errors import ValueRefused

signal.alarm(180)  # it hangs: seconds do not tell, the suite may run on a busy machine
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
value = ["x" * 100]
for _ in range(60):
    value = [value, value]
cycle = []
cycle += [cycle, cycle]
try:
    {call}
except ValueRefused as error:
    sys.exit(f"refused: {{error}}")
"""


@pytest.mark.parametrize(
    "call",
    [
        "freeze(value, Addresser())",
        "freeze_leniently(value, Addresser())",
        "freeze_leniently(cycle, Addresser())",
    ],
)
def test_a_small_value_that_is_huge_when_written(call: str) -> None:
    """Sixty lists, each holding the one before twice: more than all memory when written out."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = EXPLODING.format(call=call)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert "refused" in done.stderr, f"{done.returncode}: {done.stderr[-300:]}"


def test_placeholders_are_canonical() -> None:
    """What was put in for something else is a value like any other: the same again has the same bytes."""
    frozen = freeze_leniently({"a": Rude(), "b": [Rude()]}, PLAIN)
    assert freeze(thaw(frozen), PLAIN) == frozen
