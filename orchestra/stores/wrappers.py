"""Stores around other stores: the base that passes every call on, and a store that refuses every change."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from orchestra.errors import StoreReadOnly
from orchestra.ports.store import Store

Method = TypeVar("Method", bound=Callable[..., Any])

_READS: Final = frozenset(
    {"get_objects", "objects", "run", "runs", "rows", "find", "commands", "annotations", "last_no", "stats"}
    | {"check", "meta"}
)


def _pass_on(method: Method) -> Method:
    """A method of the port that goes through `WrappedStore.call`."""
    name = method.__name__

    def call(self: "WrappedStore", *args: Any, **kwargs: Any) -> Any:
        return self.call(name, *args, **kwargs)

    return cast(Method, call)


class WrappedStore(Store):
    """Passes every call on to the store inside. A subclass overrides one method, or `call` for all."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.properties = inner.properties
        self.place = inner.place

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner, method)(*args, **kwargs)

    claim = _pass_on(Store.claim)
    release = _pass_on(Store.release)
    commit = _pass_on(Store.commit)
    put_objects = _pass_on(Store.put_objects)
    get_objects = _pass_on(Store.get_objects)
    objects = _pass_on(Store.objects)
    run = _pass_on(Store.run)
    runs = _pass_on(Store.runs)
    rows = _pass_on(Store.rows)
    find = _pass_on(Store.find)
    send = _pass_on(Store.send)
    commands = _pass_on(Store.commands)
    withdraw = _pass_on(Store.withdraw)
    annotate = _pass_on(Store.annotate)
    annotations = _pass_on(Store.annotations)
    prune = _pass_on(Store.prune)
    delete = _pass_on(Store.delete)
    sweep = _pass_on(Store.sweep)
    last_no = _pass_on(Store.last_no)
    stats = _pass_on(Store.stats)
    check = _pass_on(Store.check)
    compact = _pass_on(Store.compact)
    meta = _pass_on(Store.meta)
    set_meta = _pass_on(Store.set_meta)

    def close(self) -> None:
        self.inner.close()


class ReadOnlyStore(WrappedStore):
    """Another store, on which every method that changes something raises `StoreReadOnly`."""

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if method not in _READS:
            raise StoreReadOnly(place=self.place, reason="it was opened for reading only")
        return super().call(method, *args, **kwargs)
