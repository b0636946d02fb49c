"""Verify a file by itself: a snapshot in its JSON form, or an export of a run.

All problems are reported, each with line and column or with the path of the field.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

import attrs

from orchestra.atomic import file_error
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.json_values import BadForm, from_json
from orchestra.errors import BadName, Damaged, DamageError, NotAStore
from orchestra.history.archive import Archive
from orchestra.history.verify.ledger import reason_of
from orchestra.history.verify.report import Finding
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import Digest, matches_uuid, run_id
from orchestra.interchange.export_frames import MAGIC
from orchestra.interchange.export_store import ExportStore, open_file
from orchestra.interchange.json_form import ALGORITHM, VERSION, digest_of
from orchestra.limits import EXPORT_FRAME_BYTES

Problem: TypeAlias = tuple[str, str]
"""Where, and what is wrong."""
Check: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a field, or None."""
Fields: TypeAlias = dict[str, Check]

STATUSES: Final = ("in_progress", "completed", "failed", "cancelled")


@attrs.frozen(kw_only=True)
class FileReport:
    """What a file turned out to be."""

    path: Path
    kind: Literal["json", "export"]
    findings: tuple[Finding, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong with it."""
        return not any(finding.is_damage for finding in self.findings)


def verify_file(path: str | Path, *, framer: Framer | None = None) -> FileReport:
    """Verify a JSON file or an export file; raises `NotAStore` when there is no file, `StoreTooNew`."""
    place = Path(path)
    try:
        with open_file(place, "a file") as file:
            is_export = file.read(9) == MAGIC[:9]
    except OSError as error:
        raise file_error(error, place) from None
    if is_export:
        return _verify_export(place, framer or Framer(Addresser()))
    findings = [
        Finding(severity="damage", what=f"{place}{where}", reason=reason) for where, reason in _check(place)
    ]
    return FileReport(path=place, kind="json", findings=tuple(findings))


def read_form(path: str | Path) -> dict[str, Any]:
    """The JSON form in a file that is whole; raises `Damaged` with everything that is wrong."""
    report = verify_file(path)
    wrong = "; ".join(f"{finding.what}: {finding.reason}" for finding in report.findings)
    if report.kind != "json" or not report.is_whole:
        raise Damaged(what=f"file {path}", reason=wrong or "it is no JSON file")
    form: dict[str, Any] = json.loads(Path(path).read_bytes())
    return form


def _verify_export(path: Path, framer: Framer) -> FileReport:
    try:
        with ExportStore(path, framer) as export:
            findings = verify_store(Archive(export, framer)).findings
    except (DamageError, NotAStore) as error:
        what = str(error.data.get("what", f"export file {path}"))
        findings = (Finding(severity="damage", what=what, reason=reason_of(error)),)
    return FileReport(path=path, kind="export", findings=findings)


# --- JSON


class _Refused(Exception):
    """JSON that is not used here, although Python's reader would take it."""


def _check(path: Path) -> Iterator[Problem]:
    size = path.stat().st_size
    if size > EXPORT_FRAME_BYTES:
        yield "", f"it has {size} bytes; no snapshot has so many"
        return
    try:
        text = path.read_bytes().decode()
        form = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        yield "", f"it is not UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        yield f":{error.lineno}:{error.colno}", error.msg
    except (_Refused, ValueError) as error:
        yield "", str(error)
    except RecursionError:
        yield "", "it is nested too deeply"
    else:
        yield from _check_form(form)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f"the key {twice!r} stands twice in one object")
    return found


def _refuse(name: str) -> None:
    raise _Refused(f"{name} is not JSON")


def _check_form(form: Any) -> Iterator[Problem]:
    if not isinstance(form, dict):
        yield "", "it is not an object"
        return
    version = form.get("version")
    if version != VERSION:
        yield " at /version", f"it is {version!r}; this program reads {VERSION!r}"
    yield from _fields(form, _TOP, "")
    yield from _check_parts(form)
    yield from _check_identity(form)
    try:
        from_json(form)
    except BadForm as error:
        yield "", str(error)


def _check_parts(form: dict[str, Any]) -> Iterator[Problem]:
    for name, fields in _PARTS.items():
        if isinstance(form.get(name), dict):
            yield from _fields(form[name], fields, f"/{name}")
    agents = form.get("agents")
    for name, agent in agents.items() if isinstance(agents, dict) else ():
        yield from _fields(agent, _AGENT, f"/agents/{name}")
    for name, fields in _ITEMS.items():
        items = form.get(name)
        for at, item in enumerate(items if isinstance(items, list) else ()):
            yield from _fields(item, fields, f"/{name}/{at}")


def _fields(held: Any, fields: Fields, path: str) -> Iterator[Problem]:
    if not isinstance(held, dict):
        yield f" at {path}", "it is not an object"
        return
    for name, check in fields.items():
        wrong = check(held[name]) if name in held else "it is missing"
        if wrong is not None:
            yield f" at {path}/{name}", wrong


def _check_identity(form: dict[str, Any]) -> Iterator[Problem]:
    """What the digests in the file say of the rest of it."""
    snapshot, integrity = form.get("snapshot"), form.get("integrity")
    if isinstance(snapshot, dict) and _digest(snapshot.get("digest")) is None:
        named = _uuid(form.get("checkpoint_id"))
        if named is None or not matches_uuid(Digest(bytes.fromhex(snapshot["digest"])), named):
            yield " at /checkpoint_id", "it is not the one that follows from the snapshot's digest"
    if isinstance(integrity, dict) and integrity.get("digest") != _digest_of(form):
        yield " at /integrity/digest", "the content does not match it: the file was changed"


def _digest_of(form: dict[str, Any]) -> str | None:
    try:
        return digest_of(form)
    except (UnicodeEncodeError, RecursionError):
        return None


# --- what fields hold


def _of(*kinds: type, name: str) -> Check:
    return lambda held: None if type(held) in kinds else f"it is not {name}"


def _number(held: Any) -> str | None:
    plain = type(held) in (int, float)
    marked = isinstance(held, dict) and held.keys() <= {"$float", "$int"} and len(held) == 1
    return None if plain or marked else "it is not a number"


def _or_null(check: Check) -> Check:
    return lambda held: None if held is None else check(held)


def _digest(held: Any) -> str | None:
    try:
        return None if len(bytes.fromhex(held)) == 32 else "it is not a digest"
    except (TypeError, ValueError):
        return "it is not a digest"


def _time(held: Any) -> str | None:
    try:
        if isinstance(held, str) and held.endswith("Z") and from_json({"$datetime": held}):
            return None
    except BadForm:
        pass
    return "it is not a time in UTC that ends with Z"


def _uuid(held: Any) -> UUID | None:
    try:
        return UUID(held) if isinstance(held, str) else None
    except ValueError:
        return None


def _is_uuid(held: Any) -> str | None:
    return None if _uuid(held) is not None else "it is not a UUID"


def _run(held: Any) -> str | None:
    try:
        return None if isinstance(held, str) and run_id(held) else "it is not a run id"
    except BadName as error:
        return str(error)


def _one_of(*allowed: str) -> Check:
    return lambda held: None if held in allowed else f"it is none of {', '.join(allowed)}"


_TEXT = _of(str, name="text")
_TEXT_OR_NULL = _of(str, type(None), name="text or null")
_INTEGER = _of(int, name="an integer")
_FLAG = _of(bool, name="true or false")
_LIST = _of(list, name="a list")
_MAP = _of(dict, name="an object")
_NUMBER_OR_NULL = _or_null(_number)

_TOP: Final[Fields] = {
    "checkpoint_id": _is_uuid,
    "workflow_id": _run,
    "timestamp": _time,
    "phase": _INTEGER,
    "status": _one_of(*STATUSES),
    "resumable": _FLAG,
    "agents": _MAP,
    **dict.fromkeys(("decisions", "outputs"), _LIST),
    **dict.fromkeys(("metrics", "confidence", "snapshot"), _MAP),
    **dict.fromkeys(("tasks", "messages"), _LIST),
    "context": _MAP,
    **dict.fromkeys(("evaluations", "waits", "effects"), _LIST),
    "integrity": _MAP,
}
_PARTS: Final[dict[str, Fields]] = {
    "metrics": dict.fromkeys(("elapsed_time", "api_calls", "tokens_used", "memory_peak"), _number),
    "confidence": {"overall": _NUMBER_OR_NULL, "thresholds": _LIST, "history": _LIST},
    "snapshot": {
        "digest": _digest,
        "seq": _INTEGER,
        "parent": _or_null(_digest),
        "triggers": _LIST,
        "run": _run,
        "family": _run,
    },
    "integrity": {"algorithm": _one_of(ALGORITHM), "digest": _digest},
}
_AGENT: Final[Fields] = {
    "type": _one_of("atlas", "mercury", "apollo"),
    "status": _TEXT,
    "confidence": _NUMBER_OR_NULL,
    "progress": _number,
    "step": _TEXT_OR_NULL,
    "last_decision": _TEXT_OR_NULL,
    "output_ref": _TEXT_OR_NULL,
    "blockers": _LIST,
    "state": _TEXT,
}
_ITEMS: Final[dict[str, Fields]] = {
    "decisions": {
        "timestamp": _time,
        "agent": _TEXT,
        "type": _TEXT,
        "description": _TEXT,
        "rationale": _TEXT,
        "confidence": _NUMBER_OR_NULL,
        "alternatives_considered": _LIST,
    },
    "outputs": {"path": _TEXT, "digest": _digest, "media_type": _TEXT, "size": _INTEGER},
    "tasks": {"id": _TEXT, "agent": _TEXT, "status": _TEXT},
    "messages": {"id": _TEXT, "role": _TEXT, "status": _TEXT, "parts": _LIST},
}
