"""What is said: the same in every conversation, whoever holds it, made from a seed.

In a conversation each answer of the model says a few sentences and calls a tool, which gives a text back,
until the last says the end. In a stream one answer comes token by token; a token is a word here.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from functools import cache

import attrs

from benchmarks.work import SEED, prose

PROMPT = "Look everything up, one after the other, and say when you are done."
INSTRUCTIONS = "You look things up."
END = "That is all."
ANSWER_CHARS, RESULT_CHARS = 300, 450
AT_ONCE = 16
"""After how many tokens a stream lets others work at least, as one does that waits for its connection."""


@attrs.frozen(kw_only=True)
class Line:
    """One step: what the model says while it calls the tool, and what the tool gives back."""

    said: str
    found: str


@cache
def line(number: int) -> Line:
    """The step of that number."""
    chance = random.Random(f"{SEED}/talk/{number}")
    return Line(said=prose(ANSWER_CHARS, chance), found=prose(RESULT_CHARS, chance))


@cache
def tokens(count: int) -> tuple[str, ...]:
    """So many words with the spaces before them."""
    chance, found = random.Random(f"{SEED}/stream"), list[str]()
    while len(found) < count:
        found += [f" {word}" for word in prose(10_000, chance).split()]
    return tuple(found[:count])


class Ticks:
    """When the model was asked, by the clock and by the processor time of the process."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, float]] = []

    def tick(self) -> None:
        """The model is asked now."""
        self.asked.append((time.perf_counter(), time.process_time()))

    def steps(self) -> list[tuple[float, float]]:
        """How long it took from each request to the next, and how much processor time."""
        pairs = zip(self.asked, self.asked[1:], strict=False)
        return [(later[0] - sooner[0], later[1] - sooner[1]) for sooner, later in pairs]


@attrs.define(kw_only=True)
class Source:
    """An answer that comes token by token, so many a second; 0 is as fast as it is taken."""

    count: int
    rate: float = 0.0
    began: tuple[float, float] = (0.0, 0.0)

    async def flow(self) -> AsyncIterator[str]:
        """The tokens, each when it is due."""
        self.began = time.perf_counter(), time.process_time()
        begun = self.began[0]
        for number, token in enumerate(tokens(self.count)):
            early = begun + number / self.rate - time.perf_counter() if self.rate else 0.0
            if early > 0:
                await asyncio.sleep(early)
            elif number % AT_ONCE == 0:
                await asyncio.sleep(0)
            yield token

    def taken(self) -> tuple[float, float]:
        """How long it has been since the first token was asked for, and the processor time since."""
        return time.perf_counter() - self.began[0], time.process_time() - self.began[1]
