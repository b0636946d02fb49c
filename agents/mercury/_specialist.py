"""How a specialist works: it lets ruff look for its rules, adds what no tool sees, and says what failed.

The specialists are plain functions, which run in a thread.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from _finding import Finding, Hit, Rule, finding, listed, load_rules, order
from _project import Project, Source, open_project
from _tools import ToolFailed, Tools

from orchestra import Result

Check = Callable[[Project, Tools], Iterable[Hit]]
Filters = Mapping[str, Callable[[Source, Hit], bool]]  # whether a hit of ruff is worth telling, by rule
BATCH_FILES = 1_000
MAX_PER_RULE = 40  # of one kind; the report says that there are more
TOOL_FAILED = Rule("high", "Mend or install it, and review again: what it would have found is missing here.")
_NAMED = re.compile(r"\b(?:def|class)\s+(\w+)")
_REFUTED = re.compile(r"^- (?P<rule>[\w-]+) at (?P<file>.+):(?P<line>\d+): ", re.MULTILINE)


def review(ctx: Any, kind: str, filters: Filters, checks: Sequence[Check]) -> Result:
    """Let ruff look for the rules that name its codes, then every check; give back what was found."""
    project = open_project(root_of(ctx), ctx.context.get("survey"))
    rules, tools = load_rules(kind), Tools(project, ctx.settings)
    names = list(project.sources)
    batches = [names[at : at + BATCH_FILES] for at in range(0, len(names), BATCH_FILES)]
    steps = [*(_Ruff(rules, filters, batch) for batch in batches), *checks]
    hits: list[Hit] = []
    troubles: list[str] = []
    for number, step in enumerate(steps, start=1):
        hits += _held(step, project, tools, troubles)
        ctx.save(progress=number / (len(steps) + 1), step=f"{number} of {len(steps)} steps")
    for trouble in dict.fromkeys(troubles):
        hits.append(Hit("tool-failed", ".", 0, trouble))
        ctx.emit(trouble + "\n")
        ctx.decide(f"Go on without a part of {kind}", rationale=trouble)
    found = [finding(kind, rules.get(hit.rule, TOOL_FAILED), hit, project) for hit in hits]
    kept = bounded(without_refuted(found, ctx.feedback))
    return Result(output=kept, confidence=sureness(project, len(set(troubles))))


def root_of(ctx: Any) -> Path:
    """The folder to look at; a relative one is meant from where the run was started."""
    return (Path(ctx.project) / str(ctx.inputs.get("path") or ".")).resolve()


def _held(step: Check, project: Project, tools: Tools, troubles: list[str]) -> list[Hit]:
    """What a step yields. One that fails, whatever met it, must not cost the other findings."""
    try:
        return list(step(project, tools))
    except ToolFailed as error:
        troubles.append(f"{error}. What it looks for was not looked for.")
    except Exception as error:
        name = getattr(step, "__name__", "ruff")
        troubles.append(
            f"`{name}` failed: {type(error).__name__}: {error}. What it looks for was not looked for."
        )
    return []


class _Ruff:
    """Some files, looked at by ruff."""

    def __init__(self, rules: Mapping[str, Rule], filters: Filters, names: list[str]) -> None:
        self._rules, self._filters, self._names = rules, filters, names
        self._by_code = {code: name for name, rule in rules.items() for code in rule.ruff.split()}

    def __call__(self, project: Project, tools: Tools) -> Iterator[Hit]:
        """What ruff finds, as hits of our rules."""
        codes = [code for code in self._by_code if code != "invalid-syntax"]
        seen: dict[tuple[str, str], dict[int, Hit]] = {}
        for raw in tools.ruff(codes, self._names, lowest_python(project)):
            hit = self._hit(raw, project)
            if hit is not None:
                seen.setdefault((hit.rule, hit.file), {}).setdefault(hit.line, hit)
        for (rule, file), hits in seen.items():
            found = list(hits.values())
            yield from [_together(found, project.sources[file])] if self._rules[rule].once else found

    def _hit(self, raw: Mapping[str, Any], project: Project) -> Hit | None:
        """A diagnostic as a hit of one of our rules, if it is one that counts where it stands."""
        code = raw["code"] or raw["name"]
        file = Path(raw["filename"]).relative_to(project.root).as_posix()
        if code == "invalid-syntax" and "syntax was added" not in raw["message"]:
            project.broken.add(file)
        name, source = self._by_code.get(code), project.sources.get(file)
        if name is None or source is None:
            return None
        line, end = raw["location"]["row"], raw["end_location"]["row"]
        if source.line(line).strip(" \trR") in ('"""', "'''"):  # the quotes of a docstring show nothing
            line, end = source.function(line)[0] or line, 0
        message = (self._rules[name].message or raw["message"]).rstrip(".") + "."
        hit = Hit(name, file, line, message, raw["location"]["column"], end, code=code)
        here = {"product": source.is_product, "tests": source.is_test, "all": True}[self._rules[name].where]
        silenced = code.startswith("S") and "nosec" in source.line(line)
        wanted = self._filters.get(name, lambda *_: True)
        return hit if here and not silenced and wanted(source, hit) else None


def _together(hits: list[Hit], source: Source) -> Hit:
    """Several hits of one rule in one file as one, with the names they speak of, or their number."""
    names = [match[1] for each in hits if (match := _NAMED.search(source.line(each.line)))]
    if len(hits) == 1 and not names:
        return hits[0]
    words = listed(names) if len(names) == len(hits) else f"{len(hits)} times in this file"
    return replace(hits[0], message=f"{hits[0].message.rstrip('.')}: {words}.")


def lowest_python(project: Project) -> int:
    """The minor version of the oldest Python 3 the project says it works with; 0 where it does not say."""
    text = project.read("pyproject.toml") + project.read("setup.cfg")
    said = re.search(r"^(?:requires-python|python_requires)\W+3\.(\d+)", text, re.MULTILINE)
    return int(said[1]) if said else 0


def sureness(project: Project, troubles: int = 0) -> float:
    """How sure a specialist can be: less where files do not parse or were left out, or a tool failed."""
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
    for each in sorted(found, key=order):
        by_rule.setdefault(each["rule"], []).append(each)
    for group in by_rule.values():
        if len(group) > MAX_PER_RULE:
            group[MAX_PER_RULE - 1]["message"] += (
                f" ({len(group) - MAX_PER_RULE} more like this are not listed.)"
            )
    return sorted((each for group in by_rule.values() for each in group[:MAX_PER_RULE]), key=order)
