"""Every error of the operating system becomes one of ours."""

import errno
import os
from pathlib import Path

import pytest

from orchestra.errors import StoreError, StoreFailed, StoreFull, StoreReadOnly
from orchestra.stores.files import disk

NAMED = {
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EFBIG: StoreFull,
    errno.EROFS: StoreReadOnly,
    errno.EACCES: StoreReadOnly,
    errno.EPERM: StoreReadOnly,
}


@pytest.mark.parametrize("code", sorted(errno.errorcode))
def test_the_map_is_complete(code: int) -> None:
    expected: type[StoreError] = NAMED.get(code, StoreFailed)
    with pytest.raises(expected, match="the place"), disk.map_errors("the place", 10_000):
        raise OSError(code, os.strerror(code))


def test_an_error_without_a_number() -> None:
    with pytest.raises(StoreFailed, match="OSError"), disk.map_errors("the place"):
        raise OSError


def test_a_failed_replacement_leaves_the_old_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    disk.replace(str(path), b"old")

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="broken"):
        disk.replace(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_links_are_not_followed_when_removing(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    for folder in (kept, gone):
        folder.mkdir()
        (folder / "file").write_bytes(b"x")
    (gone / "link").symlink_to(kept)
    disk.remove_tree(str(gone))
    assert (kept / "file").exists()
    assert not gone.exists()
