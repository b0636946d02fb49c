"""A second reader of the format, written from `docs/format.md` alone: standard library, BLAKE3 and zstd.

It shares no code with the package. It proves every digest it uses and gives the state at every snapshot as
plain data: maps, lists, text, numbers, booleans, null, and `("value", bytes)`, `("large", digest, size)`,
`("digest", bytes)`.
"""

import struct
import sys
from collections.abc import Mapping
from typing import Any

from blake3 import blake3

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KINDS = ("header", "patch", "root", "branch", "leaf", "value", "definition", "blob", "annotation", "export")
DecompressError = zstd.ZstdError
VEC, VEC_REF, TABLE, TABLE_REF, VALUE_REF, DIGEST = 28530, 28531, 28532, 28533, 28534, 28539


def decode(data: bytes) -> Any:
    """One CBOR item, and nothing after it."""
    item, end = _item(data, 0)
    assert end == len(data), "bytes follow after the end"
    return item


def _item(data: bytes, at: int) -> tuple[Any, int]:
    major, info = data[at] >> 5, data[at] & 31
    if major == 7:
        return _simple(data, at, info)
    if info < 24:
        number, at = info, at + 1
    else:
        size = 1 << (info - 24)
        number, at = int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
    if major == 0:
        return number, at
    if major == 1:
        return -1 - number, at
    if major == 2:
        return data[at : at + number], at + number
    if major == 3:
        return data[at : at + number].decode(), at + number
    if major == 6:
        content, at = _item(data, at)
        return ("tag", number, content), at
    return _many(data, at, number, major == 5)


def _many(data: bytes, at: int, count: int, is_map: bool) -> tuple[Any, int]:
    items = []
    for _ in range(count * 2 if is_map else count):
        item, at = _item(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2], strict=True)) if is_map else items), at


def _simple(data: bytes, at: int, info: int) -> tuple[Any, int]:
    if info == 27:
        return struct.unpack(">d", data[at + 1 : at + 9])[0], at + 9
    return {20: False, 21: True, 22: None}[info], at + 1


def opened(digest: bytes, frame: bytes, kind: str) -> bytes:
    """The canonical bytes in a frame, proved."""
    method, code, version = frame[:3]
    assert KINDS[code] == kind, (KINDS[code], kind)
    canonical = zstd.decompress(frame[3:]) if method else frame[3:]
    assert blake3(f"orchestra/{kind}/{version}\0".encode() + canonical).digest() == digest, kind
    return canonical


class Reader:
    """Reads states from rows and objects."""

    def __init__(self, objects: Mapping[Any, bytes]) -> None:
        self._objects = objects

    @staticmethod
    def header(digest: bytes, frame: bytes) -> Any:
        """The fields of a header, proved."""
        return decode(opened(digest, frame, "header"))

    def states(self, rows: list[tuple[bytes, bytes, bytes]]) -> list[Any]:
        """The state after each row (digest, header frame, patch frame) of one run, in order."""
        states: list[Any] = []
        parent = None
        for digest, head, patch in rows:
            header = self.header(digest, head)
            assert not states or header["parent"] == parent
            _, operations = decode(opened(header["patch"], patch, "patch"))
            sealed = self._root(header["seal"]) if header["sealed_at"] == header["seq"] else None
            states.append(self._next(states, operations, sealed))
            parent = digest
        return states

    def _next(self, states: list[Any], operations: list[Any], sealed: Any) -> Any:
        if operations and operations[0][0] == "reset":
            assert sealed is not None
            return sealed
        state = states[-1]
        for operation in operations:
            state = self._applied(state, operation)
        assert sealed is None or sealed == state, "the seal says something else than the patches"
        return state

    def _root(self, digest: bytes) -> Any:
        return self._plain(decode(opened(digest, self._objects[digest], "root"))[1])

    def _plain(self, item: Any) -> Any:
        """Tags resolved; tables are lists of pairs marked as such, to keep their order."""
        if isinstance(item, bytes):
            return ("value", item)
        if isinstance(item, dict):
            return {key: self._plain(each) for key, each in item.items()}
        if isinstance(item, list):
            return [self._plain(each) for each in item]
        if not isinstance(item, tuple):
            return item
        _, tag, content = item
        if tag == DIGEST:
            return ("digest", content)
        if tag == VALUE_REF:
            return ("large", *content)
        if tag in (VEC_REF, TABLE_REF):
            content = self._leaves(content)
        items = [self._plain(each) for each in content]
        return dict(items) if tag in (TABLE, TABLE_REF) else items

    def _leaves(self, parts: list[Any]) -> list[Any]:
        count, tree, tail = parts
        height, full = 0, (count - 1) // 32 * 32
        while full > 32 ** (height + 1):
            height += 1
        items = [] if tree is None else self._below(tree, height)
        items += decode(opened(tail, self._objects[tail], "leaf"))[1]
        assert len(items) == count
        return items

    def _below(self, digest: bytes, height: int) -> list[Any]:
        if height == 0:
            return list(decode(opened(digest, self._objects[digest], "leaf"))[1])
        children = decode(opened(digest, self._objects[digest], "branch"))[0]
        return [item for child in children for item in self._below(child, height - 1)]

    def _applied(self, state: Any, operation: list[Any]) -> Any:
        name, path, *rest = operation
        if name == "unset":
            return _without(state, path)
        held = _held(state, path)
        arguments = [self._plain(each) for each in rest]
        if name == "set":
            return _with(state, path, arguments[0])
        if name == "append":
            return _with(state, path, arguments[0] if held is None else held + arguments[0])
        if name == "splice":
            start, count, insert = arguments
            return _with(state, path, held[:start] + insert + held[start + count :])
        if name == "push":
            return _with(state, path, [*(held or []), *arguments[0]])
        assert name == "put", name
        return _with(state, path, {**(held or {}), **dict(arguments[0])})


def _held(state: Any, path: list[Any]) -> Any:
    for step in path:
        state = state.get(step) if isinstance(state, dict) else state[step]
        if state is None:
            return None
    return state


def _with(state: Any, path: list[Any], value: Any) -> Any:
    if not path:
        return value
    copy = dict(state) if isinstance(state, dict) else list(state)
    inner = copy.get(path[0]) if isinstance(copy, dict) else copy[path[0]]
    copy[path[0]] = _with(inner, path[1:], value)
    return copy


def _without(state: Any, path: list[Any]) -> Any:
    if len(path) == 1:
        return {key: each for key, each in state.items() if key != path[0]}
    inner = state[path[0]]
    return _with(state, path[:1], _without(inner, path[1:]))
