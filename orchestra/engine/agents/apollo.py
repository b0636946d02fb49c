"""Apollo: from what an evaluator returned to a verdict."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import attrs

from orchestra.codec.values import freeze
from orchestra.engine.names import here
from orchestra.engine.view import View
from orchestra.errors import AgentFailed
from orchestra.ids import Instant, TaskId
from orchestra.limits import TEXT_CHARS
from orchestra.model import events as ev
from orchestra.model.records import Evaluation, Issue, Score, Task, Verdict, VerdictKind
from orchestra.model.workflow import Criterion, Evaluate
from orchestra.ports.agent import Judgement, RubricLine, Scored

_SEVERITIES = frozenset({"low", "medium", "high"})


def rubric(view: View, key: bytes | None) -> tuple[RubricLine, ...]:
    """What is to be scored, with the scores an interrupted evaluation of the same results has already."""
    evaluate = view.phase.evaluate if view.phase is not None else None
    held = _begun(view, key)
    known = {each.criterion: each.score for each in held.scores} if held is not None else {}
    return tuple(
        RubricLine(name=each.name, weight=each.weight, score=known.get(each.name))
        for each in (evaluate.rubric if evaluate is not None else ())
    )


def _begun(view: View, key: bytes | None) -> Evaluation | None:
    """What there is of an evaluation of the same results in this round."""
    held = view.state.evaluations.get(here(view.state))
    fits = held is not None and held.round == view.state.cursor.round and held.judged == key
    return held if fits else None


def _place(view: View, task: Task) -> dict[str, Any]:
    """What all events of an evaluation say of it."""
    same = {name: getattr(task, name) for name in ("agent", "phase", "visit", "round")}
    return {**same, "evaluation": here(view.state), "judged": task.key}


def score_event(
    view: View, evaluate: Evaluate, name: TaskId, report: Scored, now: Instant
) -> ev.CriterionScored:
    """One criterion, as soon as it is scored; raises `AgentFailed` for a score that is none."""
    task, weights = view.state.tasks[name], {each.name: each.weight for each in evaluate.rubric}
    if evaluate.rubric and report.criterion not in weights:
        raise _wrong(task.agent, f"it scored {report.criterion!r}; the rubric has {', '.join(weights)}")
    score = Score(
        criterion=report.criterion,
        score=_number(task.agent, report.criterion, report.score),
        weight=weights.get(report.criterion, 1.0),
        rationale=report.rationale,
    )
    issues = _issues(task.agent, report.issues)
    return ev.CriterionScored(
        at=now, score=score, issues=issues, feedback=report.feedback, **_place(view, task)
    )


def judgement_events(
    view: View, evaluate: Evaluate, name: TaskId, judgement: Judgement, now: Instant
) -> tuple[ev.Event, ...]:
    """The end of an evaluation; raises `AgentFailed` when what came back is not a judgement."""
    task = view.state.tasks[name]
    begun = _begun(view, task.key)
    scores = _scores(evaluate, task.agent, begun, judgement.scores)
    weights = sum(each.weight for each in scores)
    score = round(sum(each.score * each.weight for each in scores) / weights, 6) if weights else 0.0
    kind = _kind(evaluate, judgement, score, task.agent)
    said = begun.feedback if begun is not None else ""  # with single criteria
    feedback = "\n".join(filter(None, (said, judgement.feedback)))
    verdict = Verdict(kind=kind, score=score, feedback=feedback)
    issues = _issues(task.agent, judgement.issues)
    finished = ev.EvaluationCompleted(
        at=now, verdict=verdict, scores=scores, issues=issues, **_place(view, task)
    )
    plain = {"verdict": kind, "score": score, "scores": {each.criterion: each.score for each in scores}}
    result = freeze(plain, view.addresser)
    done = ev.TaskCompleted(at=now, task=name, result=result, confidence=judgement.confidence)
    return done, finished


def _scores(
    evaluate: Evaluate, agent: str, begun: Evaluation | None, given: Mapping[str, float]
) -> tuple[Score, ...]:
    """One score for each criterion: given now, or saved on the way."""
    saved = {each.criterion: each for each in begun.scores} if begun is not None else {}
    found: list[Score] = []
    for each in evaluate.rubric or tuple(Criterion(name=name) for name in {**saved, **given}):
        if each.name in given:
            value = _number(agent, each.name, given[each.name])
            rationale = saved[each.name].rationale if each.name in saved else ""
            found.append(Score(criterion=each.name, score=value, weight=each.weight, rationale=rationale))
        elif each.name in saved:
            found.append(attrs.evolve(saved[each.name], weight=each.weight))
        else:
            raise _wrong(agent, f"it gave no score for {each.name!r}")
    return tuple(found)


def _kind(evaluate: Evaluate, judgement: Judgement, score: float, agent: str) -> VerdictKind:
    if judgement.verdict is not None:
        if judgement.verdict not in get_args(VerdictKind):
            raise _wrong(agent, f"the verdict {judgement.verdict!r} is none of accept, revise, reject")
        return judgement.verdict
    if not judgement.scores and not evaluate.rubric:
        raise _wrong(agent, "it gave neither scores nor a verdict")
    return "accept" if score >= evaluate.threshold else "revise"


def _issues(agent: str, given: Iterable[Any]) -> tuple[Issue, ...]:
    """What an evaluator found wanting; raises `AgentFailed` for what is no issue."""
    found = []
    for each in given:
        text = {"description": each} if isinstance(each, str) else each
        if not isinstance(text, Mapping) or not isinstance(text.get("description"), str):
            raise _wrong(agent, f"an issue needs a description, and this has none: {each!r:.200}")
        severity: Any = text.get("severity")
        where = text.get("where")
        issue = Issue(
            description=text["description"],
            severity=severity if severity in _SEVERITIES else "medium",
            where=None if where is None else str(where),
        )
        if len(issue.description) + len(issue.where or "") > TEXT_CHARS:
            raise _wrong(agent, f"an issue has at most {TEXT_CHARS:,} characters")
        found.append(issue)
    return tuple(found)


def _number(agent: str, criterion: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise _wrong(agent, f"the score of {criterion!r} must be between 0 and 1, not {value!r:.200}")
    return float(value)


def _wrong(agent: str, message: str) -> AgentFailed:
    return AgentFailed.plain(agent, "WrongJudgement", message)
