"""Verify a file by itself: a snapshot in its JSON form, or an export of a run.

All problems are reported, each with line and column or with the path of the field.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

import attrs

from orchestra.atomic import file_error
from orchestra.codec.address import Addresser
from orchestra.codec.frame import Framer
from orchestra.codec.json_values import BadForm, from_json
from orchestra.errors import BadName, DamageError, NotAStore
from orchestra.history.archive import Archive
from orchestra.history.verify.ledger import reason_of
from orchestra.history.verify.report import Finding, Report
from orchestra.history.verify.verifier import verify_store
from orchestra.ids import DIGEST_BYTES, Digest, matches_uuid, run_id
from orchestra.interchange.export_store import MAGIC, ExportStore, open_file
from orchestra.interchange.json_form import ALGORITHM, VERSION, digest_of
from orchestra.limits import EXPORT_FRAME_BYTES

Problem: TypeAlias = tuple[str, str]
"""Where, and what is wrong."""
Check: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a field, or None."""

STATUSES: Final = ("in_progress", "completed", "failed", "cancelled")


@attrs.frozen(kw_only=True)
class FileReport(Report):
    """What a file turned out to be."""

    path: Path
    kind: Literal["json", "export"]


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
    findings = tuple(Finding(what=f"{place}{where}", reason=reason) for where, reason in _check(place))
    return FileReport(path=place, kind="json", findings=findings)


def _verify_export(path: Path, framer: Framer) -> FileReport:
    try:
        with ExportStore(path, framer) as export:
            findings = verify_store(Archive(export, framer)).findings
    except (DamageError, NotAStore) as error:
        what = str(error.data.get("what", f"export file {path}"))
        findings = (Finding(what=what, reason=reason_of(error)),)
    return FileReport(path=path, kind="export", findings=findings)


# --- JSON


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
    except ValueError as error:
        yield "", str(error)
    except RecursionError:
        yield "", "it is nested too deeply"
    else:
        yield from _check_form(form)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object with every key once; Python's reader would take more."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


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


def _fields(held: Any, fields: str, path: str) -> Iterator[Problem]:
    """What is wrong with an object that has to have these fields, each `name=check`."""
    if not isinstance(held, dict):
        yield f" at {path}", "it is not an object"
        return
    for name, check in (field.split("=") for field in fields.split()):
        wrong = _CHECKS[check](held[name]) if name in held else "it is missing"
        if wrong is not None:
            yield f" at {path}/{name}", wrong


def _check_identity(form: dict[str, Any]) -> Iterator[Problem]:
    """What the digests in the file say of the rest of it."""
    snapshot, integrity = form.get("snapshot"), form.get("integrity")
    if isinstance(snapshot, dict) and _CHECKS["digest"](snapshot.get("digest")) is None:
        digest, named = Digest(bytes.fromhex(snapshot["digest"])), form.get("checkpoint_id")
        if _CHECKS["uuid"](named) is not None or not matches_uuid(digest, UUID(named)):
            yield " at /checkpoint_id", "it is not the one that follows from the snapshot's digest"
    found = None
    with suppress(UnicodeEncodeError, RecursionError):
        found = digest_of(form)
    if isinstance(integrity, dict) and integrity.get("digest") != found:
        yield " at /integrity/digest", "the content does not match it: the file was changed"


# --- what fields hold


def _of(name: str, *kinds: type) -> Check:
    return lambda held: None if type(held) in kinds else f"it is not {name}"


def _read_by(name: str, read: Callable[[Any], object]) -> Check:
    def check(held: Any) -> str | None:
        try:
            return None if read(held) else f"it is not {name}"
        except (TypeError, ValueError, AttributeError, BadForm):
            return f"it is not {name}"

    return check


def _or_null(check: Check) -> Check:
    return lambda held: None if held is None else check(held)


def _one_of(*allowed: str) -> Check:
    return lambda held: None if held in allowed else f"it is none of {', '.join(allowed)}"


def _number(held: Any) -> str | None:
    plain = type(held) in (int, float)
    marked = isinstance(held, dict) and held.keys() <= {"$float", "$int"} and len(held) == 1
    return None if plain or marked else "it is not a number"


def _run(held: Any) -> str | None:
    try:
        return None if isinstance(held, str) and run_id(held) else "it is not a run id"
    except BadName as error:
        return str(error)


_DIGEST: Final = _read_by("a digest", lambda held: len(bytes.fromhex(held)) == DIGEST_BYTES)
_CHECKS: Final[dict[str, Check]] = {
    "uuid": _read_by("a UUID", UUID),
    "run": _run,
    "time": _read_by(
        "a time in UTC that ends with Z", lambda held: held.endswith("Z") and from_json({"$datetime": held})
    ),
    "digest": _DIGEST,
    "digest?": _or_null(_DIGEST),
    "number": _number,
    "number?": _or_null(_number),
    "integer": _of("an integer", int),
    "text": _of("text", str),
    "text?": _of("text or null", str, type(None)),
    "flag": _of("true or false", bool),
    "list": _of("a list", list),
    "map": _of("an object", dict),
    "status": _one_of(*STATUSES),
    "role": _one_of("atlas", "mercury", "apollo"),
    "algorithm": _one_of(ALGORITHM),
}
_TOP: Final = """
    checkpoint_id=uuid workflow_id=run timestamp=time phase=integer status=status resumable=flag agents=map
    decisions=list outputs=list metrics=map confidence=map snapshot=map tasks=list messages=list
    tool_calls=list context=map evaluations=list waits=list effects=list integrity=map
"""
_PARTS: Final = {
    "metrics": "elapsed_time=number api_calls=number tokens_used=number memory_peak=number",
    "confidence": "overall=number? thresholds=list history=list",
    "snapshot": "digest=digest seq=integer parent=digest? triggers=list run=run family=run",
    "integrity": "algorithm=algorithm digest=digest",
}
_AGENT: Final = """
    type=role status=text confidence=number? progress=number step=text? last_decision=text? output_ref=text?
    blockers=list state=text
"""
_ITEMS: Final = {
    "decisions": """
        timestamp=time agent=text type=text description=text rationale=text confidence=number?
        alternatives_considered=list
    """,
    "outputs": "path=text digest=digest media_type=text size=integer",
    "tasks": "id=text agent=text status=text",
    "messages": "id=text role=text status=text parts=list",
    "tool_calls": "id=text tool=text status=text",
}
