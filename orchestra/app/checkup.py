"""The checkup behind `orchestra doctor`: each check says whether something is well, and else what to do."""

import errno
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, ParamSpec, TypeAlias
from urllib.parse import urlsplit

import attrs

from orchestra import limits
from orchestra.app.compose import SystemClock
from orchestra.app.resumable import playable_runs
from orchestra.codec.frame import Framer
from orchestra.config.settings.resolve import checkpoint_settings, engine_settings, read_settings, resolve
from orchestra.errors import BadSetting, BadWorkflow, OrchestraError, StoreMissing, StoreReadOnly
from orchestra.history.addressing import KEY_VARIABLE, address_key, addresser_for
from orchestra.history.archive import Archive
from orchestra.ports.store import RunQuery, Store
from orchestra.stores.audit.log import AuditLog
from orchestra.stores.registry import audit_file, open_store
from orchestra.telemetry.collector import EXTRA, endpoints, is_exporter_installed, without_secrets
from orchestra.version import VERSION

Health = Literal["ok", "warn", "fail"]
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph", "lustre"}
)
_FLEETING: Final = frozenset({"tmpfs", "ramfs"})
_SQLITE: Final = (3, 51, 3)
"""Before this one SQLite could damage a store that several processes write to."""
_LIBRARIES: Final = ("apsw", "anyio", "cattrs", "cbor2", "blake3", "pydantic", "opentelemetry-sdk")
_DEVELOPMENT: Final = frozenset({"test", "dev", "bench"})
_2025: Final = 1_735_689_600
_MORE_SPACE: Final = "`orchestra prune` and `orchestra store compact` give space back"


@attrs.frozen
class CheckupFinding:
    """What one check found."""

    check: str
    health: Health
    said: str
    advice: str = ""  # what to do, unless all is well


Findings: TypeAlias = Iterator[CheckupFinding]
P = ParamSpec("P")


def checkup(url: str, *, environment: Mapping[str, str] = os.environ) -> Findings:
    """Look at everything that a run needs; nothing is changed but a probe that is removed again."""
    shown = ".".join(map(str, sys.version_info[:3]))
    yield _judge("python", sys.version_info >= (3, 11), f"Python {shown}", "use 3.11 or newer")
    yield from _guarded("packages", _packages)
    yield from _guarded("extras", _extras)
    yield from _guarded("settings", _settings, environment)
    yield from _guarded("clock", _clock)
    yield from _guarded("address key", _key, environment)
    yield from _guarded("telemetry", _telemetry, environment)
    yield from _guarded("store", _store, url, environment)


def _guarded(check: str, look: Callable[P, Findings], *given: P.args, **named: P.kwargs) -> Findings:
    """A check that fails by itself says so and leaves the others alone."""
    try:
        yield from look(*given, **named)
    except OrchestraError as error:
        yield CheckupFinding(check, "fail", str(error))
    except Exception as error:  # whatever it is, the other checks go on
        said = f"{type(error).__name__}: {error}"
        yield CheckupFinding(check, "fail", said, "set ORCHESTRA_TRACE=1 and report it")


def _judge(check: str, well: bool, said: str, advice: str) -> CheckupFinding:
    return CheckupFinding(check, "ok", said) if well else CheckupFinding(check, "fail", said, advice)


def _packages() -> Findings:
    found = {name: _version(name) for name in _LIBRARIES}
    missing = ", ".join(name for name, version in found.items() if version is None)
    shown = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    said = f"missing: {missing}" if missing else f"orchestra {VERSION}; {shown}"
    yield _judge("packages", not missing, said, "pip install -e . again")
    if (sqlite := found["apsw"]) is not None:  # apsw carries an SQLite of the same number
        parts = sqlite.split(".")[:3]
        recent = tuple(int(part) for part in parts if part.isdecimal()) >= _SQLITE
        yield _judge("sqlite", recent, f"SQLite {'.'.join(parts)}", "pip install -U apsw")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _extras() -> Findings:
    declared = _declared()
    here = sorted(extra for extra, needed in declared.items() if all(map(_version, needed)))
    absent = sorted(set(declared) - set(here))
    said = f"installed: {', '.join(here) or 'none'}; not installed: {', '.join(absent) or 'none'}"
    yield CheckupFinding("extras", "ok", said)


def _declared() -> dict[str, set[str]]:
    """The extras for users, and the packages each needs."""
    found = {"otlp": {"opentelemetry-exporter-otlp-proto-http"}}
    try:
        needed = metadata.requires("orchestra") or []
    except metadata.PackageNotFoundError:  # run from a checkout
        return found
    for each in needed:
        package, _, condition = each.partition(";")
        extra = condition.partition("extra == ")[2].strip(" '\")")
        if extra and extra not in _DEVELOPMENT:
            found.setdefault(extra, set()).add(re.split(r"[\[>=]", package)[0].strip())
    return found


def _settings(environment: Mapping[str, str]) -> Findings:
    try:
        settings = engine_settings(resolve(file=read_settings(), environment=environment))
    except (BadSetting, BadWorkflow) as error:
        yield CheckupFinding("settings", "fail", str(error), "see `orchestra config`")
        return
    yield CheckupFinding("settings", "ok", "every setting can be used")
    outputs = Path(settings.outputs).absolute()
    there = next(each for each in (outputs, *outputs.parents) if each.exists())
    yield _writable("outputs", Path(settings.outputs) if there == outputs else there)


def _clock() -> Findings:
    well = time.time() >= _2025
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    said = shown if well else "the clock of this machine is years behind"
    yield _judge("clock", well, said, "set it, e.g. with NTP")


def _key(environment: Mapping[str, str]) -> Findings:
    try:
        key = address_key(environment.get(KEY_VARIABLE))
    except BadSetting as error:
        yield CheckupFinding("address key", "fail", str(error), f"{KEY_VARIABLE} is 64 hexadecimal digits")
    else:
        said = f"{KEY_VARIABLE} is set" if key else "none is set, none is needed"
        yield CheckupFinding("address key", "ok", said)


def _telemetry(environment: Mapping[str, str]) -> Findings:
    found = sorted(set(endpoints(environment).values()))
    if not found:
        yield CheckupFinding("telemetry", "ok", "no collector is named; files only")
        return
    if not is_exporter_installed():
        yield CheckupFinding("telemetry", "warn", "a collector is named, but nothing can send to it", EXTRA)
    for url in found:
        yield _reached(url)


def _reached(url: str) -> CheckupFinding:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), limits.CHECKUP_CONNECT_SECONDS).close()
    except OSError as error:
        said = f"{without_secrets(url)} cannot be reached: {error.strerror or error}"
        advice = "start the collector, or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        return CheckupFinding("telemetry", "warn", said, advice)
    return CheckupFinding("telemetry", "ok", f"{without_secrets(url)} answers")


def _store(url: str, environment: Mapping[str, str]) -> Findings:
    try:
        opened = open_store(url, read_only=True, audited=_audited(environment))
    except StoreMissing as missing:
        yield CheckupFinding("store", "warn", str(missing), "`orchestra run` makes one")
        return
    with opened:
        yield CheckupFinding("store", "ok", f"{opened.place} can be read")
        place = Path(opened.place)
        if place.exists():
            yield from _place(place if place.is_dir() else place.parent)
        yield from _guarded("audit", _audit, url)
        yield from _guarded("runs", _runs, opened, environment)
        yield from _guarded("address key", _keyed, opened, environment)
    yield from _guarded("store writable", _opened_for_writing, url)


def _audited(environment: Mapping[str, str]) -> bool:
    """Whether settings ask for an audit; that they cannot be used is said elsewhere."""
    try:
        return checkpoint_settings(resolve(file=read_settings(), environment=environment)).audit
    except (BadSetting, BadWorkflow):
        return False


def _audit(url: str) -> Findings:
    file = audit_file(url)
    log = AuditLog(file) if file is not None else None
    if log is None or not log.is_there:
        yield CheckupFinding("audit", "ok", "off: nobody notes who reads snapshots")
        return
    found = log.check()
    said = f"on: {found.lines:,} lines in {log.file}, none is missing"
    if found.broken is not None:
        said = f"line {found.broken:,} of {log.file}: {found.reason}"
    advice = "find out who changed that file; `orchestra audit --check`"
    yield _judge("audit", found.broken is None, said, advice)


def _place(folder: Path) -> Findings:
    yield _writable("store folder", folder)
    free = shutil.disk_usage(folder).free
    said = f"{free // limits.MB:,} MB free at {folder}"
    if limits.CHECKUP_DISK_FAIL_BYTES <= free < limits.CHECKUP_DISK_WARN_BYTES:
        yield CheckupFinding("disk", "warn", said, _MORE_SPACE)
    else:
        yield _judge("disk", free >= limits.CHECKUP_DISK_WARN_BYTES, said, _MORE_SPACE)
    yield _filesystem(folder)


def _filesystem(folder: Path) -> CheckupFinding:
    kind = filesystem_of(folder)
    if kind in _NETWORK:
        said = f"{folder} is on {kind}: its locks cannot be relied on"
        return CheckupFinding("filesystem", "warn", said, "keep the store on a disk of this machine")
    if kind in _FLEETING:
        said = f"{folder} is on {kind}: it is gone when the machine restarts"
        return CheckupFinding("filesystem", "warn", said, "keep the store on a disk")
    return CheckupFinding("filesystem", "ok", kind or "unknown")


def filesystem_of(folder: Path) -> str:
    """The kind of filesystem a folder is on; empty when it cannot be told."""
    import psutil

    whole = folder.resolve()
    mounts = [(Path(each.mountpoint), each.fstype) for each in psutil.disk_partitions(all=True)]
    fitting = [(len(at.parts), kind) for at, kind in mounts if whole.is_relative_to(at)]
    return max(fitting)[1] if fitting else ""


def _writable(check: str, folder: Path) -> CheckupFinding:
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"probe")
    except OSError as error:
        said = f"{folder} cannot be written: {error.strerror or error}"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return CheckupFinding(
            check, "fail", said, _MORE_SPACE if full else f"let this user write to {folder}"
        )
    return CheckupFinding(check, "ok", f"{folder} can be written")


def _opened_for_writing(url: str) -> Findings:
    """A write of nothing takes every step of a write and leaves nothing behind."""
    try:
        with open_store(url) as opened:
            opened.put_objects(())
    except StoreReadOnly as error:
        said = f"{error.data['place']} cannot be written: {error.data['reason']}"
        yield CheckupFinding("store writable", "fail", said, "change its permissions, or name another store")
    else:
        yield CheckupFinding("store writable", "ok", "it takes changes")


def _runs(store: Store, environment: Mapping[str, str]) -> Findings:
    rows = store.runs(RunQuery(limit=1 << 40))
    left = [row for row in rows if not row.owned]
    stuck = [found.run for found in playable_runs(_archive(store, environment))]
    waiting = [row.run for row in left if row.status == "waiting"]
    paused = [row.run for row in left if row.status == "paused" and row.run not in set(stuck)]
    yield _some("stuck runs", stuck, "were cut off or answered, and can go on", "orchestra resume --all")
    yield _some("waiting runs", waiting, "wait for somebody", "orchestra questions")
    yield _some("paused runs", paused, "stand still until somebody resumes them", "orchestra resume RUN")
    ahead = [row for row in rows if row.updated_at - SystemClock().now() > limits.CHECKUP_SKEW_SECONDS * 1e6]
    if ahead:
        said = f"run {ahead[0].run} was written in the future: a clock was or is wrong"
        yield CheckupFinding("clock of the store", "warn", said, "set the clocks, e.g. with NTP")
    else:
        yield CheckupFinding("clock of the store", "ok", "no run is ahead of this machine's clock")


def _archive(store: Store, environment: Mapping[str, str]) -> Archive:
    return Archive(store, Framer(addresser_for(store, address_key(environment.get(KEY_VARIABLE)))))


def _some(check: str, runs: Sequence[str], what: str, command: str) -> CheckupFinding:
    if not runs:
        return CheckupFinding(check, "ok", "none")
    shown = ", ".join(runs[:3]) + (f" and {len(runs) - 3:,} more" if len(runs) > 3 else "")
    return CheckupFinding(check, "warn", f"{len(runs):,} {what}: {shown}", f"`{command}`")


def _keyed(store: Store, environment: Mapping[str, str]) -> Findings:
    archive = _archive(store, environment)
    damaged, rows = list[str](), store.runs(RunQuery(limit=limits.CHECKUP_HEADS))
    for row in rows:
        try:
            newest = archive.newest(row.run)
            archive.header(newest)
            if not newest.pruned:
                archive.step(newest)
        except OrchestraError:
            damaged.append(row.run)
    said = "the newest snapshot of 1 run is whole"
    if damaged:
        said = f"{len(damaged):,} of {len(rows):,} newest snapshots looked at are damaged: {damaged[0]}"
    elif len(rows) != 1:
        said = f"the newest snapshots of {len(rows):,} runs are whole"
    yield _judge("heads", not damaged, said, "`orchestra verify` says what is still whole")
