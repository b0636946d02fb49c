"""How a specialist works: file by file, saving as it goes, so that an interrupted one goes on where it was.

The specialists are plain functions, which run in a thread: looking through sources keeps the processor busy.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from _finding import Finding, Hit, Rule, finding, order
from _source import Project, Source, open_project

from orchestra import Result

FileCheck = Callable[[Source], Iterable[Hit]]
ProjectCheck = Callable[[Project], Iterable[Hit]]
SAVE_EVERY_FILES = 50
MAX_PER_RULE = 40  # of one kind; the report says that there are more
_REFUTED = re.compile(r"^- (?P<rule>[\w-]+) at (?P<file>.+):(?P<line>\d+): ", re.MULTILINE)


def review(
    ctx: Any,
    kind: str,
    rules: Mapping[str, Rule],
    file_checks: Iterable[FileCheck],
    project_checks: Iterable[ProjectCheck] = (),
) -> Result:
    """Look at every file, then at the project as a whole; give back what was found."""
    project = open_project(root_of(ctx), ctx.context.get("survey"))
    stand = _stand(project)
    done, found = _resumed(ctx, stand)
    checks = tuple(file_checks)
    notes: list[str] = []
    total = len(project.sources)
    for number, source in enumerate(project.sources[done:], start=done + 1):
        found += look_at(kind, rules, source, checks, project, notes)
        if number % SAVE_EVERY_FILES == 0:
            private = {"stand": stand, "done": number, "found": found}
            ctx.save(private, progress=number / (total + 1), step=f"{number} of {total} files")
    hits = (hit for check in project_checks for hit in _held(check, project, project.root.name, notes))
    found += [finding(kind, rules[hit.rule], hit, None, project) for hit in hits]
    kept = bounded(sorted(without_refuted(found, ctx.feedback), key=order))
    ctx.save({"stand": stand, "done": 0, "found": []}, progress=1.0, step=f"{len(kept)} found")
    for note in notes:
        ctx.emit(note + "\n")
    return Result(output=kept, confidence=sureness(project, len(notes)))


def root_of(ctx: Any) -> Path:
    """The folder to look at; a relative one is meant from where the run was started."""
    return (Path(ctx.project) / str(ctx.inputs.get("path") or ".")).resolve()


def look_at(
    kind: str,
    rules: Mapping[str, Rule],
    source: Source,
    checks: Iterable[FileCheck],
    project: Project,
    notes: list[str],
) -> list[Finding]:
    """What is found in one file. Where the author silenced a line, that is respected."""
    hits = (hit for check in checks for hit in _held(check, source, source.name, notes))
    return [
        finding(kind, rules[hit.rule], hit, source, project) for hit in hits if not source.silenced(hit.line)
    ]


def _held(check: Callable[[Any], Iterable[Hit]], subject: Any, name: str, notes: list[str]) -> list[Hit]:
    """What a check yields. A file so strange that a check fails on it must not cost the other findings."""
    try:
        return list(check(subject))
    except Exception as error:
        notes.append(f"{check.__name__} failed on {name}: {type(error).__name__}: {error}")
        return []


def sureness(project: Project, failed: int = 0) -> float:
    """How sure a specialist can be: not for files that do not parse, were left out or made it fail."""
    total = len(project.sources) + len(project.skipped)
    understood = max(0, sum(1 for source in project.sources if source.problem is None) - failed)
    return round(0.5 + 0.45 * (understood / total if total else 1.0), 3)


def without_refuted(found: list[Finding], feedback: Iterable[str]) -> list[Finding]:
    """What is left once findings are dropped that the evaluator could not confirm."""
    refuted = set(_refuted(feedback))
    return [each for each in found if (each["rule"], each["file"], each["line"]) not in refuted]


def _refuted(feedback: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    for text in feedback:
        for match in _REFUTED.finditer(text):
            yield match["rule"], match["file"], int(match["line"])


def bounded(found: list[Finding]) -> list[Finding]:
    """At most so many of one rule: beyond that a list is no longer read, and the rest is counted in words."""
    by_rule: dict[str, list[Finding]] = {}
    for each in found:
        by_rule.setdefault(each["rule"], []).append(each)
    kept = [each for group in by_rule.values() for each in _first(group)]
    return sorted(kept, key=order)


def _first(group: list[Finding]) -> list[Finding]:
    if len(group) <= MAX_PER_RULE:
        return group
    last = dict(group[MAX_PER_RULE - 1])
    last["message"] += f" ({len(group) - MAX_PER_RULE} more like this are not listed.)"
    return [*group[: MAX_PER_RULE - 1], last]


def _resumed(ctx: Any, stand: str) -> tuple[int, list[Finding]]:
    """Where an interrupted attempt was, if it looked at the same sources. A revision begins anew."""
    private = ctx.private
    if ctx.feedback or not isinstance(private, Mapping) or private.get("stand") != stand:
        return 0, []
    return int(private["done"]), [dict(each) for each in private["found"]]


def _stand(project: Project) -> str:
    """Which sources these are, so that work on other ones is not continued."""
    lines = [
        f"{each.name} {each.path.stat().st_size if each.path.exists() else 0}" for each in project.sources
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
