"""The work is the same for everybody: equal for a seed, of the size and kind that was promised."""

import random
import subprocess
import sys
from pathlib import Path

from benchmarks import work

ROOT = Path(__file__).parents[3]


def test_steps_depend_on_their_number_and_the_seed_only() -> None:
    assert list(work.steps(3, 6)) == [work.step(3), work.step(4), work.step(5)]
    assert work.step(3) != work.step(4)
    assert work.step(3, seed=1) != work.step(3, seed=2)


def test_another_process_makes_the_same_steps() -> None:
    script = "from benchmarks.work import step; print(repr(step(42)))"
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "99", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == repr(work.step(42))


def test_a_step_is_about_as_large_as_promised() -> None:
    sizes = [work.raw_bytes(step) for step in work.steps(0, 50)]
    assert 850 < sum(sizes) / len(sizes) < 1050


def test_prose_has_the_size_asked_for() -> None:
    for size in (1, 70, 450):
        text = work.prose(size, random.Random(1))
        assert len(text) == size
        assert text.isascii()
        assert text.endswith(".")


def test_words_are_many_and_different() -> None:
    words = work.vocabulary()
    assert len(words) == len(set(words)) == work.WORDS
    assert "" not in words


def test_prose_compresses_like_a_natural_language() -> None:
    assert 2.0 < work.compressibility() < 2.7
