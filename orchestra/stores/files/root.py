"""The folder of a `files` store. One process uses it at a time.

    format    says that the folder is ours, and of which version; written last when a store is made
    lock      held by the process that has the store open
    ballast   room that is given up when a full disk is to be pruned
    last_no   the highest commit number that a deleted run had
    objects/  runs/  meta/  trash/

A folder that holds anything else and no `format` is not ours and is left alone.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from orchestra.atomic import NO_SPACE, sync
from orchestra.errors import Damaged, NotAStore, StoreBusy, StoreMissing, StoreTooNew
from orchestra.ports.store import StoreProblem
from orchestra.stores.files import disk
from orchestra.stores.files.frames import BadFrame, pack, single
from orchestra.stores.files.log import SEGMENT_BYTES

VERSION = 1
FORMAT = "orchestra files store, version {}\n"
FOLDERS = ("objects", "runs", "meta", "trash")
BALLAST_BYTES = 2 * SEGMENT_BYTES
"""Enough to rewrite any segment that holds more than one frame."""

_FORMAT = re.compile(FORMAT.format(r"(\d{1,9})").encode())
_UNFINISHED = frozenset({"lock", "ballast", "format" + disk.TMP, *FOLDERS})


class StoreFolder:
    """The folder of a store, held by this process until `close`."""

    def __init__(self, path: str, *, create: bool) -> None:
        self.path = path
        with disk.map_errors(path):
            unmade = self._recognise()
            if unmade and not create:
                raise StoreMissing(place=path)
            if unmade:
                os.makedirs(path, exist_ok=True)
            self._lock = self._take_lock()
            try:
                self._prepare()
            except BaseException:
                os.close(self._lock)
                raise

    def at(self, *parts: str) -> str:
        return os.path.join(self.path, *parts)

    def close(self) -> None:
        os.close(self._lock)

    def _recognise(self) -> bool:
        """Whether the store is still to be made. Raises when something else is there; touches nothing."""
        if not os.path.lexists(self.path):
            return True
        if not os.path.isdir(self.path):
            raise NotAStore(place=self.path, reason="it is a file, not a folder")
        names = set(os.listdir(self.path))
        if "format" in names:
            self._read_format()
            return False
        folders = [self.at(name) for name in names.intersection(FOLDERS)]
        if names <= _UNFINISHED and all(os.path.isdir(each) and not os.listdir(each) for each in folders):
            return True
        raise NotAStore(place=self.path, reason="it is a folder with other things in it, and no format file")

    def _read_format(self) -> None:
        found = _FORMAT.fullmatch(disk.read(self.at("format")))
        if found is None:
            raise NotAStore(place=self.path, reason="its format file is not one of ours, or damaged")
        version = int(found[1])
        if version > VERSION:
            raise StoreTooNew(place=self.path, found=version, known=VERSION)
        if version < VERSION:
            raise Damaged(what=self.at("format"), reason=f"there never was a version {version}")

    def _take_lock(self) -> int:
        lock = os.open(self.at("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if not isinstance(error, BlockingIOError):
                raise
            place = f"{self.path} (a files store works for one process at a time)"
            raise StoreBusy(place=place, seconds=0) from None
        return lock

    def _prepare(self) -> None:
        if self._recognise():  # looked at again, now that nobody else can be making it
            self._make()
        for folder in FOLDERS:
            if not os.path.isdir(self.at(folder)):
                raise Damaged(what=self.at(folder), reason="the folder is missing")
        self._tidy()
        for folder in (self.path, self.at("runs")):
            sync(folder)
        self.fill_ballast()

    def _make(self) -> None:
        for folder in FOLDERS:
            disk.make_folder(self.at(folder))
        disk.replace(self.at("format"), FORMAT.format(VERSION).encode())
        sync(self.path)
        sync(os.path.dirname(os.path.abspath(self.path)))

    def _tidy(self) -> None:
        """Finish what a crash interrupted: removals, and files that were never put in place."""
        for name in os.listdir(self.at("trash")):
            disk.remove_tree(self.at("trash", name))
        for folder in (self.path, self.at("meta")):
            for name in os.listdir(folder):
                if name.endswith(disk.TMP):
                    os.unlink(os.path.join(folder, name))

    def with_ballast(self, work: Callable[[], None]) -> None:
        """Do something that makes room but first needs some."""
        try:
            work()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            self.drop_ballast()
            work()
        self.fill_ballast()

    def fill_ballast(self) -> None:
        path = self.at("ballast")
        if os.path.exists(path) and os.path.getsize(path) == BALLAST_BYTES:
            return
        try:
            with open(path, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, BALLAST_BYTES)
        except OSError:
            self.drop_ballast()  # a full disk has no room to set aside, and half of it helps nobody

    def drop_ballast(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.at("ballast"))

    def throw_away(self, run: str) -> None:
        """Take a run's folder out of sight in one step, then remove it."""
        gone = self.at("trash", run)
        os.rename(self.at("runs", run), gone)
        sync(self.at("runs"))
        with suppress(OSError):  # what is left is removed when the store is opened again
            disk.remove_tree(gone)

    def read_meta(self, key: str) -> bytes | None:
        path = self._meta_path(key)
        try:
            return single(disk.read(path))[1]
        except FileNotFoundError:
            return None
        except BadFrame as error:
            raise Damaged(what=path, reason=error.reason) from None

    def write_meta(self, key: str, value: bytes) -> None:
        disk.replace(self._meta_path(key), pack({"key": key}, value))
        sync(self.at("meta"))

    def check_meta(self) -> Iterator[StoreProblem]:
        for name in sorted(os.listdir(self.at("meta"))):
            try:
                single(disk.read(self.at("meta", name)))
            except BadFrame as error:
                yield StoreProblem(what="file", where=self.at("meta", name), reason=error.reason)

    def _meta_path(self, key: str) -> str:
        return self.at("meta", hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())

    def read_last_no(self) -> int:
        """The highest number that was noted; raises `BadFrame` when the note is damaged."""
        if not os.path.exists(self.at("last_no")):
            return 0
        no = single(disk.read(self.at("last_no")))[0].get("no")
        if not isinstance(no, int):
            raise BadFrame(0, "it holds no number")
        return no

    def note_last_no(self, no: int) -> None:
        disk.replace(self.at("last_no"), pack({"no": no}))
        sync(self.path)
