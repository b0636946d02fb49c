"""Freezing values: plain data from agents and people, as canonical bytes that come back exactly.

Stored exactly: None, booleans, integers, floats, text, bytes, lists, tuples, sets, frozensets, dictionaries
with text keys (their order does not count), and datetimes with a zone. Anything else is refused with its
place, or replaced by a placeholder (`freeze_leniently`, for error details that must not lose the run).
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from orchestra.codec import cbor
from orchestra.codec.address import Addresser
from orchestra.codec.cbor import Tag
from orchestra.errors import Damaged, UnstorableValue, ValueTooLarge
from orchestra.ids import Digest, Instant, instant, moment
from orchestra.limits import (
    LARGE_VALUE_BYTES,
    PATH_SHOWN_CHARS,
    VALUE_BYTES,
    VALUE_DEPTH,
    VALUE_HEADS,
    VALUE_INTEGER_BITS,
    VALUE_ITEMS,
)
from orchestra.model import reducers
from orchestra.model.reducers import ContextValue, Reducer
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value, is_storable_text

VALUE_VERSION: Final = 1
_NO_ITEMS: Final[Vec[Value]] = Vec()
_ARRAY: Final = 4  # the upper three bits of a list's first byte
_ATOMS: Final = frozenset({type(None), bool, float})
_SIMPLE: Final[dict[Any, bytes]] = {each: cbor.encode(each) for each in (None, True, False)}
_SHORT: Final = {cbor.encode(each): each for each in (None, True, False, *range(24))}
"""The values of one byte, by that byte."""


def freeze(value: object, addresser: Addresser, *, where: str = "$") -> Value:
    """`value` as immutable bytes; raises `UnstorableValue` or `ValueTooLarge`."""
    quick = _quick(value)
    return _frozen(value, where, _Strict(where), addresser) if quick is None else Value(quick)


def _quick(value: Any) -> bytes | None:
    """The canonical bytes of what agents return most: a short text, a number, true, false or nothing."""
    kind = type(value)
    if kind is str:
        return cbor.text(value) if len(value) < LARGE_VALUE_BYTES // 2 and value.isascii() else None
    if kind is int:
        return cbor.integer(value) if value.bit_length() <= 64 else None
    if kind is float:
        return cbor.number(value)
    return _SIMPLE[value] if value is None or kind is bool else None


def freeze_leniently(value: object, addresser: Addresser, *, where: str = "$") -> Value:
    """`value` as immutable bytes, with placeholders for what cannot be stored; raises `ValueTooLarge`."""
    return _frozen(value, where, _Lenient(where), addresser)


def address_of(value: object, addresser: Addresser) -> Digest:
    """The digest of a value's canonical bytes, also of a small one; raises `UnstorableValue`."""
    canonical = cbor.encode(_plain(value, "$", 0, _Strict()))
    return addresser.address("value", VALUE_VERSION, canonical)


def address_of_parts(parts: list[Any], addresser: Addresser) -> Digest:
    """The digest of nested lists of texts, numbers and bytes that this program made itself."""
    return addresser.address("value", VALUE_VERSION, cbor.encode(parts))


def thaw(value: Value) -> Any:
    """A fresh copy of the data that was frozen; raises `Damaged` for bytes that are no value."""
    assert value.encoded is not None, "BUG: a large value must be fetched before it is opened"
    return thaw_bytes(value.encoded)


def thaw_bytes(encoded: bytes) -> Any:
    """The data in canonical bytes; raises `Damaged`."""
    if encoded in _SHORT:
        return _SHORT[encoded]
    try:
        value = _decode(encoded, "a value")
        again = cbor.encode(_plain(value, "$", -1, _Strict()))  # a placeholder may stand a level deeper
    except UnstorableValue as error:
        reason = f"it could not have been stored ({error.data['reason']})"
        raise Damaged(what="a value", reason=reason) from None
    if again != encoded:
        raise Damaged(what="a value", reason="its bytes are not the canonical ones")
    return value


def contribution(reducer: Reducer, value: object, addresser: Addresser, *, where: str = "$") -> ContextValue:
    """`value` as a contribution to a context name with that reducer; raises `UnstorableValue`."""
    match reducer:
        case "replace":
            return reducers.Replaced(value=freeze(value, addresser, where=where))
        case "append":
            items = value if isinstance(value, list) else [value]
            return reducers.Appended(items=Vec(freeze(item, addresser, where=where) for item in items))
        case "merge":
            if not isinstance(value, dict):
                reason = f"merge takes a dictionary, not {type(value).__name__}"
                raise _unstorable(where, reason, "Return a dict.")
            entries = (
                (_key(key, where), freeze(item, addresser, where=where)) for key, item in value.items()
            )
            return reducers.Merged(entries=Table(entries))
        case "sum":
            return reducers.Summed(total=_number(value, where))
        case "max":
            return reducers.Largest(largest=_number(value, where))


def pass_on(
    reducer: Reducer, value: Value, opener: Callable[[Value], Any], addresser: Addresser, *, where: str = "$"
) -> ContextValue:
    """What `contribution` makes of a value that is frozen already, which is opened only where it must be."""
    if value.encoded is not None:
        if reducer == "replace":
            return reducers.Replaced(value=value)
        if reducer == "append" and value.encoded[0] >> 5 != _ARRAY:
            return reducers.make_appended(items=_NO_ITEMS.append(value))
    return contribution(reducer, opener(value), addresser, where=where)


def context_data(held: ContextValue, opener: Callable[[Value], Any] = thaw) -> Any:
    """The data a context name holds; `opener` opens its values, which matters for large ones."""
    match held:
        case reducers.Replaced():
            return opener(held.value)
        case reducers.Appended():
            return [opener(item) for item in held.items]
        case reducers.Merged():
            return {key: opener(item) for key, item in held.entries.items()}
        case reducers.Summed():
            return held.total
        case reducers.Largest():
            return held.largest


def _frozen(value: object, where: str, odd: "_Strict", addresser: Addresser) -> Value:
    encoded = cbor.encode(_plain(value, where, 0, odd))
    if len(encoded) > VALUE_BYTES:
        raise ValueTooLarge(path=where, limit=VALUE_BYTES)
    if len(encoded) <= LARGE_VALUE_BYTES:
        return Value(encoded)
    return Value(encoded, digest=addresser.address("value", VALUE_VERSION, encoded))


class Room:
    """How much more a value may hold: it is refused while it is measured, before anything is made of it."""

    __slots__ = ("_root", "left", "room")

    def __init__(self, root: str = "$", things: float = VALUE_ITEMS, size: float = VALUE_BYTES) -> None:
        self._root = root
        self.left, self.room = things - 1, size

    def count(self, things: int, where: str = "$") -> None:
        """Have so many more things in the value; raises `UnstorableValue`."""
        self.left -= things
        if self.left < 0:
            raise _unstorable(where, f"it is made of more than {VALUE_ITEMS:,} things", "Write it to a file.")

    def weigh(self, size: int = 0) -> None:
        """Have so many more bytes or characters in the value; raises `ValueTooLarge`."""
        self.room -= size
        if self.room < 0:
            raise ValueTooLarge(path=self._root, limit=VALUE_BYTES)


class _Strict(Room):
    """Refuses what cannot be stored, and measures what can."""

    __slots__ = ()

    def __call__(self, value: object, where: str, reason: str, advice: str) -> object:
        raise _unstorable(where, reason, advice)

    def in_set(self) -> "_Strict":
        return self


class _Lenient(_Strict):
    """Puts a placeholder where something cannot be stored; in sets one that can be a member."""

    __slots__ = ("_hashable",)

    def __init__(self, root: str, hashable: bool = False) -> None:
        super().__init__(root)
        self._hashable = hashable

    def __call__(self, value: object, where: str, reason: str, advice: str) -> object:
        name = type(value).__name__
        if self._hashable:
            return Tag(cbor.TAG_TUPLE, ["$unstorable", name, reason])
        return {"reason": reason, "$unstorable": name}

    def in_set(self) -> "_Strict":
        inner = _Lenient(self._root, hashable=True)
        inner.left, inner.room = self.left, self.room
        return inner


def _plain(value: Any, where: str, depth: int, odd: _Strict) -> object:
    """`value` as data that cbor2 writes exactly; `odd` decides about everything else."""
    kind = type(value)
    if kind is str:
        odd.weigh(len(value))
        if is_storable_text(value):
            return value
        return odd(value, where, "the text has lone surrogates", "Decode it with errors='replace'.")
    if kind in _ATOMS:
        return value
    if kind is bytes:
        odd.weigh(len(value))
        return value
    if kind is int:
        if value.bit_length() <= VALUE_INTEGER_BITS:
            return value
        return odd(value, where, f"an integer of more than {VALUE_INTEGER_BITS} bits", "Store it as text.")
    if kind is datetime:
        return _time(value, where, odd)
    if depth >= VALUE_DEPTH:
        return odd(value, where, f"it is nested deeper than {VALUE_DEPTH} levels", "Flatten it.")
    if kind is dict:
        return _mapping(value, where, depth, odd)
    if kind is list:
        return _sequence(value, where, depth, odd)
    if kind is tuple:
        return Tag(cbor.TAG_TUPLE, _sequence(value, where, depth, odd))
    if kind is set or kind is frozenset:
        return _set(value, where, depth, odd)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return odd(value, where, f"a {name} would not come back as one", "Convert it to plain data first.")


def _mapping(items: dict[Any, object], where: str, depth: int, odd: _Strict) -> object:
    odd.count(len(items), where)
    plain: dict[str, object] = {}
    for key, item in items.items():
        wrong = None if type(key) is str and key.isascii() else _wrong_key(key)
        if wrong is not None:
            return odd(items, where, wrong, "Use text keys.")
        if type(item) is str and item.isascii():  # nearly everything is; no place is needed to name it
            odd.room -= len(item)
            plain[key] = item
        else:
            plain[key] = _plain(item, f"{where}.{key}", depth + 1, odd)
    odd.weigh()
    return {key: plain[key] for key in sorted(plain, key=cbor.key_order)} if len(plain) > 1 else plain


def _sequence(items: Sequence[object], where: str, depth: int, odd: _Strict) -> list[object]:
    odd.count(len(items), where)
    return [_plain(item, f"{where}[{at}]", depth + 1, odd) for at, item in enumerate(items)]


def _set(items: set[object], where: str, depth: int, odd: _Strict) -> Tag:
    odd.count(len(items), where)
    inner = odd.in_set()
    encoded = sorted(cbor.encode(_plain(item, f"{where}{{}}", depth + 1, inner)) for item in items)
    return Tag(cbor.TAG_SET if type(items) is set else cbor.TAG_FROZENSET, encoded)


def _time(value: datetime, where: str, odd: _Strict) -> object:
    offset = value.utcoffset()
    if offset is None or offset % timedelta(seconds=1):
        return odd(value, where, "a datetime without a zone names no instant", "Give it a zone.")
    try:
        value.astimezone(UTC)
    except OverflowError:
        return odd(value, where, "in UTC the calendar ends before it", "Store it as text.")
    return Tag(cbor.TAG_TIME, [instant(value), offset // timedelta(seconds=1)])


def _wrong_key(key: object) -> str | None:
    if type(key) is not str:
        return f"a key is of type {type(key).__name__}, not text"
    return None if is_storable_text(key) else "a key has lone surrogates"


def spell_surrogates(text: str) -> str:
    """The text with lone surrogates spelled out, as names of files have them that are no UTF-8."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _key(key: Any, where: str) -> str:
    if (wrong := _wrong_key(key)) is not None:
        raise _unstorable(where, wrong, "Use text keys.")
    return str(key)


def _number(value: Any, where: str) -> Any:
    if type(value) not in (int, float):
        raise _unstorable(where, f"a number is needed, not {type(value).__name__}", "Return a number.")
    return _plain(value, where, 0, _Strict())


def _unstorable(where: str, reason: str, advice: str) -> UnstorableValue:
    if len(where) > PATH_SHOWN_CHARS:  # without its middle: the reason stands after it and would be cut off
        where = f"{where[: PATH_SHOWN_CHARS // 2]}…{where[-PATH_SHOWN_CHARS // 2 :]}"
    return UnstorableValue(path=where, reason=reason, advice=advice)


def _read_time(parts: Any, _key: bool) -> datetime:
    if not isinstance(parts, list) or [type(part) for part in parts] != [int, int] or abs(parts[1]) >= 86400:
        raise cbor.Refused("a time is not a pair of integers")
    return moment(Instant(parts[0])).astimezone(timezone(timedelta(seconds=parts[1])))


def _read_set(make: Callable[[Any], Any]) -> cbor.Maker:
    def read(items: Any, _key: bool) -> Any:
        if not isinstance(items, list) or not all(isinstance(item, bytes) for item in items):
            raise cbor.Refused("a set is not a list of encoded members")
        return make(_hashable(_decode(item, "a member")) for item in items)

    return read


def _hashable(member: Any) -> Any:
    if isinstance(member, list | dict | set):
        raise cbor.Refused("a set has a member that cannot be in one")
    return member


def _read_tuple(items: Any, _key: bool) -> tuple[Any, ...]:
    if not isinstance(items, list):
        raise cbor.Refused("a tuple is not a list")
    return tuple(items)


_decode = cbor.make_decoder(
    {
        cbor.TAG_TUPLE: _read_tuple,
        cbor.TAG_SET: _read_set(set),
        cbor.TAG_FROZENSET: _read_set(frozenset),
        cbor.TAG_TIME: _read_time,
    },
    VALUE_HEADS,
)
