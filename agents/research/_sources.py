"""The researchers' tool: passages of text files under the folder the run was started in."""

import os
from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = (".md", ".rst", ".txt")
_LEFT_OUT = ("outputs", "node_modules", "__pycache__")
_MOST_FILES = 2000
_MOST_BYTES = 500_000
_MOST_PASSAGES = 5
_SHOWN_CHARS = 600


def search_sources(words: str) -> list[dict[str, str]]:
    """Find the passages of the sources that have most of some words in them, each with where it stands."""
    wanted = {word.lower() for word in words.split()}
    scored = []
    for place, passage in _passages(Path()):
        text = passage.lower()
        hits = sum(word in text for word in wanted)
        if hits:
            scored.append((-hits, place, passage))
    best = sorted(scored)[:_MOST_PASSAGES]
    return [{"source": place, "text": passage[:_SHOWN_CHARS]} for _, place, passage in best]


def _passages(folder: Path) -> Iterator[tuple[str, str]]:
    """Every paragraph with its file and line."""
    for file in _files(folder):
        line = 1
        for passage in file.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            if passage.strip():
                yield f"{file}:{line}", passage.strip()
            line += passage.count("\n") + 2


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _LEFT_OUT)
        paths = (Path(here) / name for name in sorted(names) if name.endswith(_SUFFIXES))
        found += [path for path in paths if path.is_file() and path.stat().st_size <= _MOST_BYTES]
        if len(found) >= _MOST_FILES:
            break
    return found[:_MOST_FILES]
