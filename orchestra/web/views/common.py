"""What views share: objects made of fields, a small memory, and asking whether an answer is still wanted."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from orchestra.codec.document import Document

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Json = dict[str, Any]
CheckWanted = Callable[[], None]
"""Called between two steps of long work; raises when whoever asked has gone."""


def always_wanted() -> None:
    """For those who wait in any case."""


def attributes(source: object, *names: str) -> Json:
    """Some attributes of an object by their names; of nothing, None for each."""
    return {name: None if source is None else getattr(source, name) for name in names}


def fields(held: Document, *names: str, **defaults: Any) -> Json:
    """Some fields of a document: those that are always stored, and those with a default."""
    return {name: held[name] for name in names} | {
        name: held.get(name, default) for name, default in defaults.items()
    }


class Cached(Generic[K, V]):
    """Remembers the newest so many answers by what they depend on. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def peek(self, key: K) -> V | None:
        """What is known of a key."""
        with self._lock:
            return self._held.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """What belongs to a key; made now when it is not known. Two threads may both make it."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        return self.put(key, make())

    def put(self, key: K, made: V) -> V:
        """Remember what belongs to a key, and return it."""
        with self._lock:
            self._held[key] = made
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return made
