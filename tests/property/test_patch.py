"""A patch leads from one state to the other, whichever two they are, and a seal is the whole state."""

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from orchestra.codec import patch
from orchestra.codec.address import Addresser
from orchestra.codec.document import Document, apply_patch
from orchestra.codec.frame import Framer, pair_references
from orchestra.codec.loader import Loader
from orchestra.codec.readers import structure
from orchestra.codec.seal import Sealer
from orchestra.codec.writers import Writer
from orchestra.ids import Digest
from orchestra.model.apply.apply import apply_all, begin
from orchestra.model.state import State
from orchestra.testing.strategies import models
from tests.property.exact import exact
from tests.property.stories import Story

FRAMER = Framer(Addresser())
LOADER = Loader(lambda _: {}, FRAMER)


def document_of(state: State) -> Document:
    """The state as generic data, as a reader would find it."""
    found: Document = LOADER.decode(pair_references([], Writer().write(state)), what="a state")[1]
    return found


def operations(old: State, new: State) -> list[Any]:
    """The patch from one state to another, through its bytes."""
    made = patch.make(Writer(), old, new)
    found: list[Any] = LOADER.decode(patch.encode([], made), what="a patch")[1]
    return found


def check(old: State, new: State) -> None:
    """The patch leads from `old` to `new` exactly, and leaves what it started from alone."""
    before = document_of(old)
    kept = exact(before)
    after = apply_patch(before, operations(old, new))
    assert exact(after) == exact(document_of(new))
    assert exact(structure(after, State, what="a state")) == exact(new)
    assert exact(before) == kept


def states_of(seed: int, turns: int) -> list[State]:
    """The states of a story."""
    story = Story(seed)
    states = [begin(story.opening()[0])]
    for _ in range(turns):
        states.append(apply_all(states[-1], story.turn(states[-1])))
    return states


@pytest.mark.parametrize("chunk", range(4))
def test_consecutive_states(chunk: int) -> None:
    for seed in range(chunk * 5, chunk * 5 + 5):
        states = states_of(seed, 30)
        for old, new in pairwise(states):
            check(old, new)


@pytest.mark.parametrize("chunk", range(4))
def test_any_two_states_of_any_runs(chunk: int) -> None:
    """Nobody asks for such patches today; a patch that is wrong for them would be found out too late."""
    chance = random.Random(chunk)
    states = [state for seed in range(chunk * 5, chunk * 5 + 5) for state in states_of(seed, 40)]
    for _ in range(50):
        check(chance.choice(states), chance.choice(states))


@settings(max_examples=25)
@given(old=models(State), new=models(State))
def test_states_that_never_were(old: State, new: State) -> None:
    check(old, new)


@settings(max_examples=15)
@given(state=models(State))
def test_nothing_changed_is_no_operation(state: State) -> None:
    assert patch.make(Writer(), state, state) == []


def test_the_cost_of_a_patch_follows_the_change() -> None:
    states = states_of(3, 150)
    patches = [patch.make(Writer(), old, new) for old, new in pairwise(states)]
    sizes = [len(patch.encode([], made)) for made in patches]
    assert sum(sizes[100:]) < 3 * sum(sizes[:50])


# --- seals


def sealed(state: State, objects: dict[Digest, bytes]) -> Digest:
    """Seal a state into a dictionary of objects."""
    seal = Sealer(FRAMER).seal(state)
    objects.update(seal.objects)
    seal.mark()
    return seal.root


def loaded(root: Digest, objects: dict[Digest, bytes]) -> State:
    """A sealed state, whole."""
    loader = Loader(lambda digests: {digest: objects[digest] for digest in digests}, FRAMER)
    _, document = loader.root(root)
    loader.fetch_all(document)
    return structure(document, State, what="a state")


@settings(max_examples=40)
@given(state=models(State))
def test_seals_of_states_that_never_were(state: State) -> None:
    objects: dict[Digest, bytes] = {}
    assert exact(loaded(sealed(state, objects), objects)) == exact(state)


@pytest.mark.parametrize("seed", range(10))
def test_seals_share_what_did_not_change(seed: int) -> None:
    objects: dict[Digest, bytes] = {}
    roots = []
    for state in states_of(seed, 120)[::10]:
        roots.append((sealed(state, objects), state))
    for root, state in roots:
        assert exact(loaded(root, objects)) == exact(state)
        fresh: dict[Digest, bytes] = {}
        again = structure(document_of(state), State, what="a state")
        assert sealed(again, fresh) == root, "the seal depends on the content alone"
        assert fresh.keys() <= objects.keys()


def test_a_sealed_state_is_not_written_twice() -> None:
    state = states_of(1, 60)[-1]
    sealer = Sealer(FRAMER)
    first = sealer.seal(state)
    assert len(sealer.seal(state).objects) == len(first.objects), "not stored yet, so written again"
    first.mark()
    assert [digest for digest, _ in sealer.seal(state).objects] == [first.root]
