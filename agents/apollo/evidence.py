"""Evidence: an evaluator that believes no finding it has not seen for itself.

It opens the named file at the named line, compares the quoted code with what stands there, and for many
rules checks in its own, simpler way that the place shows what is claimed. It shares no code with the
specialists, so that it cannot repeat their mistakes. It scores two criteria, one after the other, so that
an interrupted evaluation goes on:

- `evidence`: the share of findings that hold;
- `coverage`: the share of the project's files that were looked at, times the share of specialists that
  answered.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from _proof import Places, why_not

from orchestra import Judgement

MAX_NAMED = 50  # in feedback; more are not read
Finding = Mapping[str, Any]


def agent(ctx: Any) -> Judgement:
    """Scores for the findings of the phase, and which of them do not hold."""
    root = root_of(ctx)
    found = list(findings_in(ctx.results))
    places = Places(root)
    refuted = [(each, reason) for each in found if (reason := why_not(places, each))]
    scores: dict[str, float] = {}
    feedback = feedback_of(refuted)
    for line in ctx.rubric:
        score, rationale = _score(line.name, ctx, root, len(found), len(refuted))
        scores[line.name] = score if line.score is None else line.score
        if line.score is None:
            ctx.score(line.name, score, rationale=rationale)
    issues = tuple(issue(each, reason) for each, reason in refuted[:MAX_NAMED])
    return Judgement(scores=scores, issues=issues, feedback=feedback)


def root_of(ctx: Any) -> Path:
    """The folder the findings speak of."""
    root = (Path(ctx.project) / str(ctx.inputs.get("path") or ".")).resolve()
    return root.parent if root.is_file() else root


def _score(name: str, ctx: Any, root: Path, found: int, refuted: int) -> tuple[float, str]:
    if name == "coverage":
        return coverage(ctx.context.get("survey"), ctx.results, root)
    return evidence(found, refuted)


def evidence(found: int, refuted: int) -> tuple[float, str]:
    """The share of findings that hold. No finding at all is no false one."""
    score = 1.0 if not found else (found - refuted) / found
    return round(score, 3), f"{found - refuted} of {found} findings show what they claim"


def coverage(survey: Any, results: Mapping[str, Any], root: Path) -> tuple[float, str]:
    """How much of the project was looked at, by how many of those who should have."""
    listed = survey if isinstance(survey, Mapping) else {"files": [], "skipped": []}
    files, skipped = list(listed["files"]), list(listed["skipped"])
    present = sum((root / name).is_file() for name in files)
    looked = present / (len(files) + len(skipped)) if files or skipped else 1.0
    answers = [name for name, result in results.items() if is_list(result)]
    answered = len(answers) / len(results) if results else 0.0
    words = (
        f"{present} files looked at, {len(skipped)} left out; {len(answers)} of {len(results)} specialists "
        "answered"
    )
    return round(looked * answered, 3), words


def is_list(result: Any) -> bool:
    """Whether a specialist gave a list of findings."""
    return isinstance(result, list | tuple)


def findings_in(results: Mapping[str, Any]) -> Iterator[Finding]:
    """All findings, whoever made them."""
    for result in results.values():
        for each in result if is_list(result) else ():
            if isinstance(each, Mapping):
                yield each


def feedback_of(refuted: Iterable[tuple[Finding, str]]) -> str:
    """What the specialists are told: one line for each finding to drop, in the form they look for."""
    lines = [f"- {name(each)}: {reason}" for each, reason in refuted]
    if not lines:
        return ""
    head = "These findings do not hold; drop them or correct them:"
    return "\n".join([head, *lines[:MAX_NAMED]])


def name(each: Finding) -> str:
    """A finding by rule and place."""
    return f"{each.get('rule')} at {each.get('file')}:{each.get('line')}"


def issue(each: Finding, reason: str) -> dict[str, Any]:
    """A refuted finding as an issue of the evaluation."""
    return {"description": f"{name(each)}: {reason}", "severity": "medium", "where": str(each.get("file"))}
