"""`orchestra audit`: who read or removed snapshots of a store, and the proof that the list is whole."""

from collections import deque
from typing import Annotated, Final, NamedTuple

import attrs
from cyclopts import Parameter

from orchestra.cli.exit_codes import DAMAGE, OK
from orchestra.cli.options import AsJson, Limit, Since, StoreUrl, parse_limit
from orchestra.cli.render.screen import PAGE, Column, Screen, Span, print_json, print_table, screen
from orchestra.cli.render.text import count
from orchestra.cli.render.times import parse_time, short
from orchestra.cli.store import open_for_reading, option, store_url
from orchestra.errors import AmbiguousReference, BadSetting
from orchestra.history.archive import Archive
from orchestra.history.references import resolve_run
from orchestra.ids import RunId, instant, iso
from orchestra.stores.audit.log import AuditLine, AuditLog, ChainReport
from orchestra.stores.registry import audit_file

_SHOWN: Final = 5


class _Found(NamedTuple):
    """Some lines, the newest last."""

    lines: list[AuditLine]
    older: bool  # there are others before them
    unreadable: int


def audit(
    run: Annotated[
        str | None, Parameter(help="Only what was done with this run; any beginning of its id.")
    ] = None,
    /,
    *,
    since: Since = None,
    check: Annotated[bool, Parameter(help="Prove that no line was changed, moved or removed.")] = False,
    limit: Limit = PAGE,
    store: StoreUrl = None,
    json: AsJson = False,
) -> int:
    """List who read or removed snapshots of a store, the newest last.

    Lines are written once the setting checkpoint.audit was on. With --check the chain of their digests is
    proved; exits with 4 and names the first line that is damaged.
    """
    if check and (run is not None or since is not None):
        reason = "it proves all lines; leave RUN and --since out"
        raise BadSetting(setting="--check", value=True, reason=reason)
    most, first = parse_limit(limit), iso(parse_time(since, option="--since")) if since else ""
    log = _log(store)
    if log is None and check:
        reason = "nobody audits this store, so there is nothing to prove; see the setting checkpoint.audit"
        raise BadSetting(setting="--check", value=True, reason=reason)
    if log is None:
        _say_off(store, json)
        return OK
    if check:
        return _report_check(log, log.check(), json)
    found = _find(log, None if run is None else _resolve_run(log, run, store), first, most)
    if json:
        print_json([{"no": line.no} | attrs.asdict(line) for line in found.lines], more=found.older)
    else:
        _print(screen(), found, log, store)
    return DAMAGE if found.unreadable else OK


def _log(store: str | None) -> AuditLog | None:
    """The audit of a store, or None; raises `StoreMissing` when there is no store either."""
    url = store_url(store)
    file = audit_file(url)
    if file is None:
        raise BadSetting(setting="--store", value=url, reason="this kind of store keeps no audit")
    log = AuditLog(file)
    if log.is_there:
        return log
    open_for_reading(store, begin_audit=False).close()
    return None


def _say_off(store: str | None, as_json: bool) -> None:
    if as_json:
        print_json([])
        return
    out = screen()
    out.line(f"{store_url(store)} is not audited: nobody notes who reads its snapshots.")
    out.line("Set checkpoint: {audit: true} in configs/orchestra.yaml, or ORCHESTRA_CHECKPOINT_AUDIT=true.")


def _resolve_run(log: AuditLog, text: str, store: str | None) -> RunId:
    """The run in the audit that an id, or its beginning, names; else in the store, so that typos are said."""
    known = {line.run for line in log.lines() if line is not None and line.run is not None}
    near = sorted(run for run in known if run.startswith(text))
    if text in known or len(near) == 1:
        return RunId(text) if text in known else near[0]
    if near:
        examples = ", ".join(near[:_SHOWN])
        raise AmbiguousReference(prefix=text, count=len(near), what="runs", examples=examples)
    with open_for_reading(store, begin_audit=False) as opened:
        return resolve_run(Archive(opened), text)


def _find(log: AuditLog, run: RunId | None, first: str, most: int | None) -> _Found:
    fitting: deque[AuditLine] = deque(maxlen=most)
    total = unreadable = 0
    for line in log.lines():
        if line is None:
            unreadable += 1
        elif line.at >= first and run in (None, line.run):
            total += 1
            fitting.append(line)
    return _Found(list(fitting), total > len(fitting), unreadable)


def _print(out: Screen, found: _Found, log: AuditLog, store: str | None) -> None:
    if found.lines:
        print_table(out, _COLUMNS, found.lines)
    else:
        out.line("No such lines.")
    if found.unreadable:
        out.line(("damaged: ", "bad"), f"{count(found.unreadable, 'line')} of {log.file} cannot be read.")
    everything = (f"orchestra audit --limit 0{option(store)}", "all of it")
    check = (f"orchestra audit --check{option(store)}", "whether it is whole")
    out.hints(*[everything] * found.older, check)


def _time(at: str) -> str:
    from datetime import datetime

    try:
        return short(instant(datetime.fromisoformat(at)), with_date=True)
    except (ValueError, AssertionError):
        return at


def _snapshots(line: AuditLine) -> str:
    if line.first is None or line.last is None:
        return count(line.objects, "object")
    if line.first == line.last:
        return str(line.first)
    whole = line.count == line.last - line.first + 1
    return f"{line.first}–{line.last}" + ("" if whole else f", {line.count:,} of them")


_COLUMNS: Final[tuple[Column[AuditLine], ...]] = (
    Column("#", lambda line: (str(line.no), "dim"), align="right", drop=3),
    Column("time", lambda line: (_time(line.at), "dim")),
    Column("user", lambda line: line.user, least=6),
    Column("process", lambda line: (str(line.pid), "dim"), align="right", drop=2),
    Column("what", lambda line: (line.what, "bold"), least=10),
    Column("run", lambda line: line.run or "", least=20, name=True),
    Column("did", lambda line: _DID.get((line.act, line.content), (line.act, "warn"))),
    Column("snapshots", lambda line: (_snapshots(line), "dim"), drop=1),
)
_DID: Final[dict[tuple[str, bool], Span]] = {("read", True): ("read", ""), ("read", False): ("listed", "")}


def _report_check(log: AuditLog, found: ChainReport, as_json: bool) -> int:
    whole, out = found.broken is None, screen()
    if as_json:
        broken = None if whole else {"line": found.broken, "reason": found.reason}
        print_json({"file": log.file, "whole": whole, "lines": found.lines, "broken": broken})
    elif whole:
        out.line(("✔ ", "good"), f"{log.file} is whole: {count(found.lines, 'line')}.")
    else:
        out.line(("✖ ", "bad"), f"Line {found.broken:,} of {log.file}: {found.reason}.")
        out.line(f"Whole before it: {count(found.lines, 'line')}.")
    return OK if whole else DAMAGE
