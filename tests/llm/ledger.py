"""The books of a provider: a JSON line for every request when it begins, and one when its answer is over."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

from tests.llm.asked import Json, Usage


@attrs.frozen
class Ledger:
    """What was written, for questions."""

    entries: tuple[Json, ...] = ()

    def of(self, session: str) -> "Ledger":
        """Only what belongs to a session; the one without a name sees all."""
        return Ledger(tuple(each for each in self.entries if session in ("", each["session"])))

    def begun(self, **wanted: Any) -> list[Json]:
        """Requests that began, as wanted: `begun(conversation="main", step=2)`."""
        return self._events("begin", wanted)

    def ended(self, **wanted: Any) -> list[Json]:
        """Requests whose answer is over, sent whole or not."""
        return self._events("end", wanted)

    def completed(self, **wanted: Any) -> list[Json]:
        """Requests to which the model's answer was sent whole: those that a provider would charge."""
        return self.ended(completed=True, **wanted)

    @property
    def is_settled(self) -> bool:
        """Whether every request that began has ended."""
        return len(self.begun()) == len(self.ended())

    def usage(self) -> Usage:
        """The tokens that were reported to clients, summed up."""
        total = Usage()
        for each in self.completed():
            if each["usage"] is not None:
                total += Usage(**each["usage"])
        return total

    def _events(self, event: str, wanted: Json) -> list[Json]:
        all_wanted = {"event": event, **wanted}
        return [each for each in self.entries if all(each.get(key) == all_wanted[key] for key in all_wanted)]


class Journal:
    """Writes the ledger, to memory and to a file if there is one; goes on where the file ends."""

    def __init__(self, path: Path | None = None) -> None:
        self._entries = [] if path is None else _earlier(path)
        self._file = None if path is None else path.open("ab", buffering=0)
        self._numbers = max((each["number"] for each in self._entries), default=0)
        self._asks = Counter(_step(each) for each in self._entries if each["event"] == "begin")

    @property
    def ledger(self) -> Ledger:
        """All that was written up to now."""
        return Ledger(tuple(self._entries))

    def asks(self, session: str, conversation: str, step: int) -> int:
        """How often a step was asked."""
        return self._asks[session, conversation, step]

    def begin(self, **what: Any) -> int:
        """A request begins; its number is for the end."""
        self._numbers += 1
        entry = {"event": "begin", "number": self._numbers, **what}
        self._asks[_step(entry)] += 1
        self._write(entry)
        return self._numbers

    def end(self, number: int, **what: Any) -> None:
        """A request's answer is over."""
        self._write({"event": "end", "number": number, **what})

    def _write(self, entry: Json) -> None:
        self._entries.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _step(entry: Json) -> tuple[str, str, int]:
    return entry["session"], entry["conversation"], entry["step"]


def _earlier(path: Path) -> list[Json]:
    """What the file holds already; half a line at its end is taken away, so that new ones can follow."""
    if not path.exists():
        return []
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        os.truncate(path, data.rfind(b"\n") + 1)
    return read_lines(data)


def read_lines(data: bytes) -> list[Json]:
    """The entries of a log file; a line that was not finished is left out."""
    whole, _, _ = data.rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def read_ledger(path: Path) -> Ledger:
    """The ledger of a log file."""
    return Ledger(tuple(read_lines(path.read_bytes())))
