"""The persistent tree behaves like a list and a dictionary, in every version at once."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra.errors import Damaged
from orchestra.model.tree import Table, Vec, changed_leaves, only_grew, shift_for

SIZES = st.sampled_from([0, 1, 2, 31, 32, 33, 63, 64, 65, 500, 1023, 1024, 1025, 1056, 1057])
LENGTHS = [0, 1, 31, 32, 33, 64, 65, 1023, 1024, 1025, 1055, 1056, 1057, 1088, 2080, 32_768, 32_800, 32_801]
Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "set", "extend"]), st.integers(0, 10**6), SIZES), max_size=12
)


def _vec_step(vec: Vec[int], model: list[int], step: Step) -> tuple[Vec[int], list[int]]:
    kind, number, size = step
    if kind == "extend":
        return vec.extend(range(number, number + size)), [*model, *range(number, number + size)]
    if kind == "append" or not model:
        return vec.append(number), [*model, number]
    position = number % len(model)
    return vec.set(position, -number), [*model[:position], -number, *model[position + 1 :]]


def _same_vec(vec: Vec[int], model: list[int]) -> None:
    assert len(vec) == len(model)
    assert list(vec) == model
    assert vec == Vec(model)
    assert hash(vec) == hash(Vec(model))
    assert vec.shift == Vec(model).shift == shift_for(len(model))
    for position in {0, 1, 31, 32, len(model) - 1, len(model) // 2} & set(range(len(model))):
        assert vec[position] == model[position]
        assert vec[position - len(model)] == model[position]
    assert vec[1:40:3] == model[1:40:3]


@settings(max_examples=60)
@given(steps=st.lists(st.tuples(STEPS.map(tuple), st.integers(0, 10)), max_size=6))
def test_sequences_against_lists(steps: list[tuple[tuple[Step, ...], int]]) -> None:
    """Each line of steps starts from any earlier version; all versions stay what they were."""
    versions: list[tuple[Vec[int], list[int]]] = [(Vec(), [])]
    for line, origin in steps:
        vec, model = versions[origin % len(versions)]
        for step in line:
            vec, model = _vec_step(vec, model, step)
            versions.append((vec, model))
    for vec, model in versions:
        _same_vec(vec, model)


def _table_step(table: Table[int], model: dict[str, int], step: Step) -> tuple[Table[int], dict[str, int]]:
    kind, number, size = step
    count = size % 70 if kind == "extend" else 1
    for at in range(count):
        key = f"k{(number + at) % 150}"
        table, model = table.set(key, number), {**model, key: number}
    return table, model


def _same_table(table: Table[int], model: dict[str, int]) -> None:
    assert len(table) == len(model)
    assert list(table.items()) == list(model.items())
    assert list(table) == list(table.keys()) == list(model)
    assert list(table.values()) == list(model.values())
    assert table == Table(model.items())
    assert hash(table) == hash(Table(model.items()))
    for key in [f"k{n}" for n in range(0, 150, 7)]:
        assert table.get(key) == model.get(key)
        assert (key in table) == (key in model)
    for position, key in enumerate(model):
        assert table.position(key) == position


@settings(max_examples=80)
@given(steps=st.lists(st.tuples(STEPS.map(tuple), st.integers(0, 10), st.booleans()), max_size=6))
def test_tables_against_dictionaries(steps: list[tuple[tuple[Step, ...], int, bool]]) -> None:
    versions: list[tuple[Table[int], dict[str, int]]] = [(Table(), {})]
    for line, origin, reopened in steps:
        table, model = versions[origin % len(versions)]
        if reopened:  # as a loaded one, whose index is made when it is needed
            table = Table.of_pairs(table.pairs)
        for step in line:
            table, model = _table_step(table, model, step)
            versions.append((table, model))
    for table, model in versions:
        _same_table(table, model)


@pytest.mark.parametrize("count", LENGTHS)
def test_building_and_growing_give_the_same_shape(count: int) -> None:
    built, grown = Vec(range(count)), Vec[int]().extend(range(count))
    assert _shape(built) == _shape(grown)
    assert built == grown
    assert shift_for(count) == built.shift


def _shape(vec: Vec[Any]) -> Any:
    def walk(node: Any, shift: int) -> Any:
        return len(node.items) if shift == 0 else [walk(child, shift - 5) for child in node.items]

    return vec.shift, None if vec.root is None else walk(vec.root, vec.shift), len(vec.tail.items)


@settings(max_examples=60)
@given(size=SIZES, sets=st.lists(st.integers(0, 2000), max_size=4), more=SIZES)
def test_changed_leaves_names_every_change(size: int, sets: list[int], more: int) -> None:
    old = Vec(range(size))
    new = old
    for position in sets:
        if position < size:
            new = new.set(position, -1)
    new = new.extend(range(more))
    found = {
        start + offset
        for start, olds, news in changed_leaves(old, new)
        for offset, (before, after) in enumerate(zip(olds, news, strict=False))
        if before is not after
    }
    assert found == {position for position in sets if position < size}
    assert not (found and only_grew(old, new))
    assert only_grew(old, old.extend(range(more))) or (size + more - 1) // 32 != (size - 1) // 32
    leaves = [start for start, _, _ in changed_leaves(old, new)]
    assert len(leaves) <= len(found) + 1, "only leaves on a changed path are looked at"


@pytest.mark.parametrize("position", [-1, 3, 100])
def test_setting_outside_is_refused(position: int) -> None:
    with pytest.raises(IndexError):
        Vec([1, 2, 3]).set(position, 0)
    with pytest.raises(IndexError):
        Vec([1, 2, 3])[position if position > 0 else -4]


def test_two_entries_of_one_key_are_found() -> None:
    table = Table.of_pairs(Vec([("a", 1), ("a", 2)]))
    with pytest.raises(Damaged, match="two entries"):
        table.get("a")


def test_other_types_are_never_equal() -> None:
    assert Vec([1]) != [1]
    assert Table([("a", 1)]) != {"a": 1}
    assert 1 not in Table([("a", 1)])
    assert repr(Vec([1])) == "Vec([1])"
    assert repr(Table([("a", 1)])) == "Table({'a': 1})"
