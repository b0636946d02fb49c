"""The parts that a language model plays: a specialist answers, a planner plans, an evaluator scores."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestra.agents.context import Context
from orchestra.agents.llm.kind import LlmOptions
from orchestra.agents.llm.markdown import AgentFile
from orchestra.ports.agent import Judgement, Result

_TEXT: Final = {"type": "string"}
_SHOWN_CHARS: Final = 200
_SHARE: Final = {"type": "number", "minimum": 0, "maximum": 1}


def _object(title: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "title": title,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class RolePlay(ABC):
    """What a role asks of the model, and what it makes of the answer."""

    samples = 1
    """How often it is asked."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    @property
    @abstractmethod
    def prompt(self) -> str:
        """What the model is told to do."""

    @property
    @abstractmethod
    def schema(self) -> dict[str, Any] | None:
        """The schema of what it is to answer; None: text."""

    @abstractmethod
    async def conclude(self, answers: Sequence[Any]) -> Result | Judgement:
        """The result that is in its answers; there is one, unless samples were asked for."""


def role_play(ctx: Context, file: AgentFile, options: LlmOptions) -> RolePlay:
    """The part that an assignment gives a model."""
    if ctx.role == "apollo":
        return EvaluatorPlay(ctx)
    if file.role == "planner":
        return PlannerPlay(ctx)
    play = SpecialistPlay(ctx, file.output_schema, asks_confidence=options.confidence)
    play.samples = options.samples or file.samples or 1
    return play


class SpecialistPlay(RolePlay):
    """Answers with text, or with an object of a schema; perhaps says how sure it is."""

    def __init__(self, ctx: Context, schema: Mapping[str, Any] | None, *, asks_confidence: bool) -> None:
        super().__init__(ctx)
        self._schema, self._asks_confidence = schema, asks_confidence

    @property
    def prompt(self) -> str:
        """The task; in a further round, what evaluators said of the last answer."""
        if self.ctx.round > 1 and self.ctx.feedback:
            said = "Your answer was looked at and is to be revised."
            return f"{said}\n\n{self.ctx.feedback[-1]}\n\n{self.ctx.task}"
        return self.ctx.task

    @property
    def schema(self) -> dict[str, Any] | None:
        """That of the file, perhaps with a confidence beside it."""
        own = None if self._schema is None else dict(self._schema)
        if self._asks_confidence:
            return _object("Answer", answer=own or _TEXT, confidence=_SHARE, why=_TEXT)
        return own

    async def conclude(self, answers: Sequence[Any]) -> Result:
        """The answer that most samples give; how many of them, or what the model says, is the confidence."""
        plain = [each["answer"] for each in answers] if self._asks_confidence else list(answers)
        spelt = [_spell(each) for each in plain]
        counted = Counter(spelt)
        winner = max(counted, key=counted.__getitem__)  # of equals the one that came first
        agreed = counted[winner] / len(answers) if len(answers) > 1 else None
        if agreed is not None:
            await self.ctx.decide(
                f"Take the answer that {counted[winner]} of {len(answers)} samples give: {_shorten(winner)}",
                rationale="no other is given by more" if len(counted) > 1 else "all samples agree",
                confidence=agreed,
                alternatives=[_shorten(each) for each in counted if each != winner],
                kind="sample_chosen",
            )
        stated = None
        if self._asks_confidence:  # what was said of this answer: nobody else's reason fits it
            said = [each for each, spelling in zip(answers, spelt, strict=True) if spelling == winner]
            stated = sum(float(each["confidence"]) for each in said) / len(said)
            surest = max(said, key=lambda each: float(each["confidence"]))
            mean = f", the mean of {len(said)} samples" if len(said) > 1 else ""
            await self.ctx.decide(
                f"It says it is {stated * 100:.3g}% sure of its answer{mean}",
                rationale=surest["why"],
                confidence=stated,
            )
        return Result(output=plain[spelt.index(winner)], confidence=stated if agreed is None else agreed)


class PlannerPlay(RolePlay):
    """Plans assignments; each is a decision on the record, and the list is the result."""

    @property
    def prompt(self) -> str:
        """The task."""
        return self.ctx.task

    @property
    def schema(self) -> dict[str, Any]:
        """A list of assignments."""
        alternatives = {"type": "array", "items": _TEXT}
        item = _object("Assignment", name=_TEXT, task=_TEXT, why=_TEXT, alternatives=alternatives)
        return _object("Plan", assignments={"type": "array", "items": item, "minItems": 1})

    async def conclude(self, answers: Sequence[Any]) -> Result:
        """The planned assignments, each put on the record with what else was considered."""
        plan: list[dict[str, Any]] = list(answers[0]["assignments"])
        for each in plan:
            await self.ctx.decide(
                f"Assign {each['name']}: {each['task']}"[:1000],
                rationale=each["why"],
                alternatives=each["alternatives"],
                kind="assignment_planned",
            )
        return Result(output=plan)


class EvaluatorPlay(RolePlay):
    """Scores what specialists did, criterion by criterion, with reasons."""

    @property
    def prompt(self) -> str:
        """The task, what is judged, and by which criteria."""
        criteria = ", ".join(self._criteria())
        results = "\n\n".join(f"## {name}\n\n{_text(held)}" for name, held in self.ctx.results.items())
        task = self.ctx.task or "Judge the results below."
        return f"{task}\n\nScore each from 0 to 1: {criteria}.\n\n# Results\n\n{results}"

    @property
    def schema(self) -> dict[str, Any]:
        """A score and a reason for each criterion, what is wrong, and what to do about it."""
        issue = _object(
            "Issue", description=_TEXT, severity={"type": "string", "enum": ["low", "medium", "high"]}
        )
        score = _object("Score", score=_SHARE, reason=_TEXT)
        scores = _object("Scores", **dict.fromkeys(self._criteria(), score))
        issues = {"type": "array", "items": issue}
        return _object("Judgement", scores=scores, issues=issues, feedback=_TEXT)

    async def conclude(self, answers: Sequence[Any]) -> Judgement:
        """The judgement; scores are put on the record one by one."""
        judged = answers[0]
        scores: dict[str, float] = {}
        for name in self._criteria():
            given = judged["scores"][name]
            scores[name] = float(given["score"])
            if self.ctx.rubric:
                await self.ctx.score(name, scores[name], rationale=given["reason"])
        return Judgement(scores=scores, issues=tuple(judged["issues"]), feedback=judged["feedback"])

    def _criteria(self) -> list[str]:
        """What is scored: each is asked for by name, so that none is left out."""
        return [line.name for line in self.ctx.rubric] or ["quality"]


def _spell(answer: Any) -> str:
    """An answer as it is compared with others: spaces at its ends make no difference."""
    return answer.strip() if isinstance(answer, str) else json.dumps(answer, sort_keys=True)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _text(held: Any) -> str:
    return held if isinstance(held, str) else json.dumps(held, ensure_ascii=False, indent=1)
