"""The work that every contestant is given: a run that grows by one task and one decision a step.

All texts come from one seed, so that every contestant, in whatever process, saves the same bytes. They are
prose over some two thousand invented words with the word frequencies of a natural language, because how
well a text compresses decides how many bytes a checkpoint takes; `compressibility` measures it.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeAlias

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Item: TypeAlias = dict[str, Any]

SEED = 7
WORDS = 2000
RESULT_BYTES = 450
DESCRIPTION_BYTES = 70
RATIONALE_BYTES = 130
BLOCK_BYTES = 16 * 1024

AGENTS = ("mercury-structure", "mercury-security", "mercury-tests", "mercury-docs")
KINDS = ("workflow_adjustment", "agent_selection", "retry", "acceptance")
ALTERNATIVES = ("another specialist", "accept as it is", "ask a person", "stop")
START_US = 1_700_000_000_000_000
STEP_US = 1_250_000

_ONSETS = "- b br c ch cl d dr f g gr h j k l m n p pl pr qu r s sh st str t th tr v w"
_VOWELS = "a e i o u ai ea ee io ou"
_CODAS = "- - b d ck g l m n nd nt p r rs s st t th x"
_SYLLABLES = (1, 1, 2, 2, 2, 3)
_SKEW = 1.25


class Step(NamedTuple):
    """One step of work: what is added to the state before the next checkpoint."""

    number: int
    task: Item
    decision: Item


def steps(first: int, last: int, seed: int = SEED) -> Iterator[Step]:
    """The steps from `first` up to, not including, `last`; each depends on its number and the seed only."""
    for number in range(first, last):
        yield step(number, seed)


def step(number: int, seed: int = SEED) -> Step:
    """One step."""
    chance = random.Random(f"{seed}/{number}")
    return Step(number, _task(number, chance, seed), _decision(number, chance, seed))


@cache
def vocabulary(seed: int = SEED) -> tuple[str, ...]:
    """The invented words, the frequent ones first; frequent words tend to be short."""
    chance = random.Random(seed)
    found: dict[str, float] = {}
    while len(found) < WORDS:
        word = "".join(_syllable(chance) for _ in range(chance.choice(_SYLLABLES)))
        found.setdefault(word, len(word) + 6 * chance.random())
    return tuple(sorted(found, key=found.__getitem__))


def prose(size: int, chance: random.Random, seed: int = SEED) -> str:
    """Sentences of exactly `size` characters, all of them ASCII."""
    text = ""
    while len(text) < size:
        words = chance.choices(vocabulary(seed), cum_weights=_weights(), k=chance.randint(6, 16))
        text += " ".join(words).capitalize() + ". "
    return text[: size - 1].rstrip(" .").ljust(size, ".")


def raw_bytes(item: Step) -> int:
    """How large a step's data is as compact JSON."""
    return len(json.dumps([item.task, item.decision], separators=(",", ":")))


def compressibility(seed: int = SEED, blocks: int = 16) -> float:
    """By how much zstd, level 3, shrinks blocks of 16 KB of this prose."""
    chance = random.Random(seed)
    texts = [prose(BLOCK_BYTES, chance, seed).encode() for _ in range(blocks)]
    return blocks * BLOCK_BYTES / sum(len(zstd.compress(text, 3)) for text in texts)


def _task(number: int, chance: random.Random, seed: int) -> Item:
    return {
        "id": f"task-{number:06d}",
        "agent": chance.choice(AGENTS),
        "phase": "work",
        "status": "completed",
        "result": {"text": prose(RESULT_BYTES, chance, seed)},
        "confidence": round(chance.uniform(0.5, 1.0), 2),
        "finished_at": START_US + number * STEP_US,
    }


def _decision(number: int, chance: random.Random, seed: int) -> Item:
    return {
        "at": START_US + number * STEP_US + 1000,
        "agent": "atlas",
        "kind": chance.choice(KINDS),
        "description": prose(DESCRIPTION_BYTES, chance, seed),
        "rationale": prose(RATIONALE_BYTES, chance, seed),
        "confidence": round(chance.uniform(0.5, 1.0), 2),
        "alternatives": chance.sample(ALTERNATIVES, 2),
    }


def _syllable(chance: random.Random) -> str:
    return "".join(chance.choice(part.split()) for part in (_ONSETS, _VOWELS, _CODAS)).replace("-", "")


@cache
def _weights() -> tuple[float, ...]:
    """Cumulative frequencies after Zipf."""
    total, sums = 0.0, []
    for rank in range(WORDS):
        total += (rank + 2) ** -_SKEW
        sums.append(total)
    return tuple(sums)
