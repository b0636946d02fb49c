"""How a specialist works: it lets a tool look, adds what no tool sees, and saves after each step.

The specialists are plain functions, which run in a thread.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from _finding import Finding, Hit, Rule, finding, listed, order
from _project import Project, open_project
from _tools import ToolFailed, Tools

from orchestra import Result

Check = Callable[[Project, Tools], Iterable[Hit]]
BATCH_FILES = 500
MAX_PER_RULE = 40  # of one kind; the report says that there are more
TOOL_FAILED = Rule("high", "Mend or install it and run the review again: what it would have found is missing here.")
_NAMED = re.compile(r"\b(?:def|class)\s+(\w+)")
_REFUTED = re.compile(r"^- (?P<rule>[\w-]+) at (?P<file>.+):(?P<line>\d+): ", re.MULTILINE)


def review(ctx: Any, kind: str, rules: Mapping[str, Rule], checks: Sequence[Check] = ()) -> Result:
    """Let ruff look for the rules that name its codes, then every check; give back what was found."""
    project = open_project(root_of(ctx), ctx.context.get("survey"))
    tools = Tools(project, ctx.settings)
    steps = [*_ruff_steps(rules, list(project.sources)), *checks]
    stand = _stand(project)
    done, found, troubles = _resumed(ctx, stand, project)
    for number, step in enumerate(steps[done:], start=done + 1):
        for hit in _held(step, project, tools, troubles):
            found.append(finding(kind, rules.get(hit.rule, TOOL_FAILED), hit, project))
        private = {"stand": stand, "done": number, "found": found, "troubles": troubles, "broken": [*project.broken]}
        ctx.save(private, progress=number / (len(steps) + 1), step=f"{number} of {len(steps)} steps")
    for trouble in troubles:
        found.append(finding(kind, TOOL_FAILED, Hit("tool-failed", ".", 0, trouble), project))
        ctx.emit(trouble + "\n")
        ctx.decide(f"Go on without a part of {kind}", rationale=trouble)
    kept = bounded(sorted(without_refuted(found, ctx.feedback), key=order))
    ctx.save(None, progress=1.0, step=f"{len(kept)} found")
    return Result(output=kept, confidence=sureness(project, len(troubles)))


def root_of(ctx: Any) -> Path:
    """The folder to look at; a relative one is meant from where the run was started."""
    return (Path(ctx.project) / str(ctx.inputs.get("path") or ".")).resolve()


def _held(step: Check, project: Project, tools: Tools, troubles: list[str]) -> list[Hit]:
    """What a step yields. One that fails, whatever met it, must not cost the other findings."""
    name = getattr(step, "__name__", "ruff")
    try:
        return list(step(project, tools))
    except ToolFailed as error:
        trouble = f"{error}; what it looks for was not looked for."
    except Exception as error:
        trouble = f"`{name}` failed: {type(error).__name__}: {error}."
    troubles += [trouble] if trouble not in troubles else []
    return []


# What ruff finds.


def _ruff_steps(rules: Mapping[str, Rule], names: list[str]) -> list[Check]:
    by_code = {code: name for name, rule in rules.items() for code in rule.ruff.split()}
    batches = [names[at : at + BATCH_FILES] for at in range(0, len(names), BATCH_FILES)]
    return [_Batch(rules, by_code, batch) for batch in batches] if by_code else []


class _Batch:
    """Some files, looked at by ruff."""

    def __init__(self, rules: Mapping[str, Rule], by_code: Mapping[str, str], names: list[str]) -> None:
        self._rules, self._by_code, self._names = rules, by_code, names

    def __call__(self, project: Project, tools: Tools) -> Iterator[Hit]:
        codes = [code for code in self._by_code if code != "invalid-syntax"]
        seen: dict[tuple[str, str], list[Hit]] = {}
        for raw in tools.ruff(codes, self._names, lowest_python(project) or 14):
            hit = self._hit(raw, project)
            if hit is not None:
                seen.setdefault((hit.rule, hit.file), []).append(hit)
        for (rule, _), hits in seen.items():
            unique = list({hit.line: hit for hit in reversed(hits)}.values())[::-1]
            yield from [_together(unique, project)] if self._rules[rule].once else unique

    def _hit(self, raw: Mapping[str, Any], project: Project) -> Hit | None:
        """A diagnostic of ruff as a hit of one of our rules, if it is one that counts where it stands."""
        code = raw["code"] or raw["name"]
        name = self._by_code.get(code)
        file = Path(raw["filename"]).relative_to(project.root).as_posix()
        if raw["name"] == "invalid-syntax" and "syntax was added" not in raw["message"]:
            project.broken.add(file)
        if name is None or file not in project.sources:
            return None
        source, rule, line = project.sources[file], self._rules[name], raw["location"]["row"]
        message = raw["message"].rstrip(".") + "."
        end = raw.get("end_location", {}).get("row", 0)
        hit = Hit(name, file, line, message, raw["location"]["column"], end, code=code)
        here = {"product": source.is_product, "tests": source.is_test, "all": True}[rule.where]
        silenced = "nosec" in source.line(line) and code.startswith("S")
        return hit if here and not silenced and (rule.only is None or rule.only(source, hit)) else None


def _together(hits: list[Hit], project: Project) -> Hit:
    """Several hits of one rule in one file as one, with their number or the names they speak of."""
    first, count = hits[0], len(hits)
    if count == 1:
        return first
    lines = [project.sources[each.file].line(each.line) for each in hits]
    names = [match[1] for line in lines if (match := _NAMED.search(line))]
    words = f"{listed(names)}" if len(names) == count else f"{count} times in this file"
    return replace(first, message=f"{first.message.rstrip('.')} ({words}).")


def lowest_python(project: Project) -> int:
    """The minor version of the oldest Python 3 the project says it works with; 0 where it does not say."""
    text = project.read("pyproject.toml") + project.read("setup.cfg")
    match = re.search(r"^(?:requires-python|python_requires)\s*=\s*[\"']?\s*(?:>=|~=|==)\s*3\.(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else 0


# What is left of it.


def sureness(project: Project, troubles: int = 0) -> float:
    """How sure a specialist can be: not where files do not parse or were left out, nor where a tool failed."""
    total = len(project.sources) + len(project.skipped)
    strange = project.broken | {each.name for each in project.sources.values() if each.problem}
    understood = (len(project.sources) - len(strange)) / total if total else 1.0
    return round((0.5 + 0.45 * understood) * 0.6 ** min(troubles, 2), 3)


def without_refuted(found: list[Finding], feedback: Iterable[str]) -> list[Finding]:
    """What is left once findings are dropped that the evaluator could not confirm."""
    matches = [match for text in feedback for match in _REFUTED.finditer(text)]
    refuted = {(match["rule"], match["file"], int(match["line"])) for match in matches}
    return [each for each in found if (each["rule"], each["file"], each["line"]) not in refuted]


def bounded(found: list[Finding]) -> list[Finding]:
    """At most so many of one rule: beyond that a list is no longer read, and the rest is counted in words."""
    by_rule: dict[str, list[Finding]] = {}
    for each in found:
        by_rule.setdefault(each["rule"], []).append(each)
    return sorted((each for group in by_rule.values() for each in _first(group)), key=order)


def _first(group: list[Finding]) -> list[Finding]:
    if len(group) <= MAX_PER_RULE:
        return group
    last = dict(group[MAX_PER_RULE - 1])
    last["message"] += f" ({len(group) - MAX_PER_RULE} more like this are not listed.)"
    return [*group[: MAX_PER_RULE - 1], last]


def _resumed(ctx: Any, stand: str, project: Project) -> tuple[int, list[Finding], list[str]]:
    """Where an interrupted attempt was, if it looked at the same sources. A revision begins anew."""
    private = ctx.private
    if ctx.feedback or not isinstance(private, Mapping) or private.get("stand") != stand:
        return 0, [], []
    project.broken.update(private["broken"])
    return int(private["done"]), [dict(each) for each in private["found"]], list(private["troubles"])


def _stand(project: Project) -> str:
    """Which sources these are, so that work on other ones is not continued."""
    sizes = [f"{each.name} {each.path.stat().st_size if each.path.exists() else 0}" for each in project.sources.values()]
    return hashlib.sha256("\n".join(sizes).encode()).hexdigest()[:16]
