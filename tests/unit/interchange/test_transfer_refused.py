"""Export files that are not as they were written: each is refused, and nothing of it comes in."""

import struct
import zlib
from pathlib import Path

import pytest

from orchestra.codec import cbor
from orchestra.errors import (
    Damaged,
    NotAStore,
    OrchestraError,
    StoreTooNew,
)
from orchestra.interchange.export_store import FORMAT, MAGIC, FrameWriter
from orchestra.interchange.transfer import import_run
from orchestra.limits import EXPORT_FRAME_BYTES
from orchestra.stores.memory import MemoryStore
from tests.unit.recordings import FRAMER

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("anyio_backend")]


def sections(data: bytes) -> list[tuple[bytes, bytes]]:
    at, found = len(MAGIC) + 2, []
    while at < len(data):
        kind, length = struct.unpack_from(">cI", data, at)
        found.append((kind, data[at + 9 : at + 9 + length]))
        at += 9 + length
    return found


def rebuilt(path: Path, parts: list[tuple[bytes, bytes]]) -> Path:
    """A file of these sections, with checks and digests that go with them."""
    with path.open("wb") as file:
        writer = FrameWriter(file, FRAMER)
        for kind, content in parts:
            writer.put(kind, content)
        writer.end()
    return path


def without_end(export: Path) -> list[tuple[bytes, bytes]]:
    return sections(export.read_bytes())[:-1]


def refused(path: Path, *kinds: type[OrchestraError]) -> str:
    store = MemoryStore()
    with pytest.raises(kinds or Damaged) as caught:
        import_run(store, path)
    assert store.stats().runs == store.stats().objects == 0
    return str(caught.value)


def test_a_file_cut_off_anywhere_is_refused(export: Path, tmp_path: Path) -> None:
    data = export.read_bytes()
    places = [*range(1, 40), *range(40, len(data), max(1, len(data) // 60)), len(data) - 1]
    for place in places:
        (tmp_path / "cut").write_bytes(data[:place])
        assert "cut off" in refused(tmp_path / "cut")


def test_a_file_without_its_last_sections_is_refused(export: Path, tmp_path: Path) -> None:
    parts = sections(export.read_bytes())
    assert "not hold as many" in refused(rebuilt(tmp_path / "x", parts[:-3]))


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello, I am a text that is long enough to hold a beginning")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("text", "empty", "nothing", "."):
        assert "no store or export of orchestra" in refused(tmp_path / name, NotAStore)


def test_a_newer_format_is_refused(export: Path, tmp_path: Path) -> None:
    data = bytearray(export.read_bytes())
    data[len(MAGIC) : len(MAGIC) + 2] = struct.pack(">H", FORMAT + 1)
    (tmp_path / "new").write_bytes(data)
    assert "newer version" in refused(tmp_path / "new", StoreTooNew)
    data[len(MAGIC) : len(MAGIC) + 2] = b"\0\0"
    (tmp_path / "old").write_bytes(data)
    assert "never was" in refused(tmp_path / "old")


def test_bytes_after_the_end_are_refused(export: Path) -> None:
    with export.open("ab") as file:
        file.write(b"\0")
    assert "1 bytes follow" in refused(export)


@pytest.mark.parametrize("length", [EXPORT_FRAME_BYTES + 1, 0xFFFFFFFF])
def test_a_section_that_claims_too_much_is_refused(tmp_path: Path, length: int) -> None:
    head = struct.pack(">cI", b"M", length)
    (tmp_path / "x").write_bytes(MAGIC + b"\0\1" + head + struct.pack(">I", zlib.crc32(head)))
    assert f"claims {length} bytes" in refused(tmp_path / "x")


def test_a_section_longer_than_the_file_is_not_read(tmp_path: Path) -> None:
    head = struct.pack(">cI", b"M", EXPORT_FRAME_BYTES)
    (tmp_path / "x").write_bytes(MAGIC + b"\0\1" + head + b"\0" * 100)
    assert "cut off" in refused(tmp_path / "x")


def test_a_packed_bomb_is_refused(export: Path, tmp_path: Path) -> None:
    parts = without_end(export)
    bomb = FRAMER.write("leaf", cbor.encode(b"\0" * (15 << 20)))  # small as stored, and within bounds
    assert len(bomb) < 10_000
    parts[1] = (b"O", parts[1][1][:32] + bomb)
    assert "damaged" in refused(rebuilt(tmp_path / "x", parts))


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a/b", "x" * 200, ".hidden", "a\0b"])
def test_hostile_names_are_refused(export: Path, tmp_path: Path, name: str) -> None:
    parts = without_end(export)
    for field in ("run", "family"):
        manifest = cbor.make_decoder({})(parts[0][1])
        manifest[field] = name
        changed = [(b"M", cbor.encode(manifest)), *parts[1:]]
        assert "run" in refused(rebuilt(tmp_path / "x", changed))


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", cbor.encode([]), cbor.encode({}), cbor.encode({"run": "r1"}), b"\xd9\x01\x00\x80"],
)
def test_a_section_of_other_content_is_refused(export: Path, tmp_path: Path, content: bytes) -> None:
    parts = without_end(export)
    for kind in (b"M", b"O", b"R", b"A"):
        at = [each for each, _ in parts].index(kind)
        refused(rebuilt(tmp_path / "x", [*parts[:at], (kind, content), *parts[at + 1 :]]))


@pytest.mark.parametrize("kind", [b"O", b"R", b"A"])
def test_a_part_that_is_missing_or_twice_is_refused(export: Path, tmp_path: Path, kind: bytes) -> None:
    parts = without_end(export)
    at = [each for each, _ in parts].index(kind)
    refused(rebuilt(tmp_path / "x", [*parts[:at], *parts[at + 1 :]]))
    refused(rebuilt(tmp_path / "x", [*parts[:at], parts[at], parts[at], *parts[at + 1 :]]))


def test_sections_out_of_order_are_refused(export: Path, tmp_path: Path) -> None:
    parts = without_end(export)
    refused(rebuilt(tmp_path / "x", parts[1:]))
    refused(rebuilt(tmp_path / "x", [*parts[1:], parts[0]]))
    refused(rebuilt(tmp_path / "x", [parts[0], *parts]))
    refused(rebuilt(tmp_path / "x", [parts[0], (b"Z", b""), *parts[1:]]))
    rows = [at for at, (kind, _) in enumerate(parts) if kind == b"R"]
    parts[rows[3]], parts[rows[4]] = parts[rows[4]], parts[rows[3]]
    assert "in its place stands" in refused(rebuilt(tmp_path / "x", parts))


def test_a_manifest_that_says_otherwise_is_refused(export: Path, tmp_path: Path) -> None:
    parts = without_end(export)
    for field, value in (
        ("rows", 3), ("objects", 1), ("annotations", 0), ("pruned", 1), ("digest", b"x" * 32),
        ("digest", b"x"), ("family", "other"), ("workflow", "other"), ("created_at", 1), ("run", "r7"),
    ):  # fmt: skip
        manifest = cbor.make_decoder({})(parts[0][1])
        manifest[field] = value
        refused(rebuilt(tmp_path / "x", [(b"M", cbor.encode(manifest)), *parts[1:]]))
