"""Calibration: how sure agents said they were of results, and what verdicts said of the same results.

It is read from headlines, which are there for every snapshot, also for pruned ones and those that a rollback
undid. A verdict judges the results that the specialists of its round completed with; additional specialists
are not judged. Each result counts once for each verdict on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from orchestra.errors import DamageError, OrchestraError
from orchestra.history.archive import Archive
from orchestra.history.pages import Broken, Pages
from orchestra.limits import CALIBRATION_RESULTS
from orchestra.model.snapshot import Headline
from orchestra.ports.store import Row, RowQuery, RunRow

BANDS: Final = (0.0, 0.5, 0.7, 0.8, 0.9, 1.0)
VERDICTS: Final = ("accept", "revise", "reject")
_VERDICT: Final = "evaluation_completed"
_TOLD: Final = ("agent_launched", "specialist_finished", _VERDICT, "milestone")
_ANSWER: Final = "assistant complete "


@attrs.frozen(kw_only=True)
class JudgedResult:
    """A result of which an agent said how sure it was, and the verdict on it."""

    workflow: str
    agent: str
    model: str  # that gave the result; empty when it was none
    confidence: float
    verdict: str


@attrs.frozen(kw_only=True)
class ConfidenceBand:
    """Judged results whose stated confidence lies from `least` up to, but not including, `below`."""

    least: float
    below: float | None  # None: the last band, with 1
    results: int
    accept: int
    revise: int
    reject: int
    stated: float  # the mean
    accepted: float  # the share
    gap: float  # stated minus accepted: above 0 it is surer than verdicts bear out
    enough: bool  # whether there are so many that share and gap say something


@attrs.frozen(kw_only=True)
class Calibration:
    """How the stated confidence of an agent with a model compares with verdicts."""

    workflow: str
    agent: str
    model: str
    total: ConfidenceBand
    bands: tuple[ConfidenceBand, ...]  # those that have results


def calibrations(judged: Iterable[JudgedResult]) -> tuple[Calibration, ...]:
    """Judged results by workflow, agent and model."""
    groups: dict[tuple[str, str, str], list[JudgedResult]] = {}
    for each in judged:
        groups.setdefault((each.workflow, each.agent, each.model), []).append(each)
    return tuple(
        Calibration(
            workflow=workflow,
            agent=agent,
            model=model,
            total=_band(BANDS[0], None, some),
            bands=tuple(_bands(some)),
        )
        for (workflow, agent, model), some in sorted(groups.items())
    )


def _bands(judged: Sequence[JudgedResult]) -> Iterator[ConfidenceBand]:
    for least, most in pairwise(BANDS):
        below = None if most == BANDS[-1] else most
        above = [each for each in judged if each.confidence >= least]
        held = [each for each in above if below is None or each.confidence < below]
        if held:
            yield _band(least, below, held)


def _band(least: float, below: float | None, judged: Sequence[JudgedResult]) -> ConfidenceBand:
    counts = {kind: sum(each.verdict == kind for each in judged) for kind in VERDICTS}
    stated = sum(each.confidence for each in judged) / len(judged)
    accepted = counts["accept"] / len(judged)
    return ConfidenceBand(
        least=least,
        below=below,
        results=len(judged),
        stated=round(stated, 6),
        accepted=round(accepted, 6),
        gap=round(stated - accepted, 6),
        enough=len(judged) >= CALIBRATION_RESULTS,
        **counts,
    )


def judged_results(archive: Archive, run: RunRow) -> list[JudgedResult]:
    """The results of a run that were judged and of which a confidence was stated; damage is passed over."""
    asked = RowQuery(run=run.run, triggers=(_VERDICT,), limit=1, content=False)
    try:
        if not archive.store.rows(asked):
            return []
    except DamageError:
        pass  # some other row of the run may be readable
    reader = _Reader(run.workflow)
    for row in Pages(archive.store, RowQuery(run=run.run, triggers=("forked", *_TOLD)), run.head):
        if isinstance(row, Broken):
            continue
        if "forked" in row.triggers:
            reader.inherit(archive, row)
        header, _ = archive.try_header(row)
        for line in () if header is None else header.events:
            reader.read(line)
    return reader.judged


@attrs.define
class _Reader:
    """Goes through the headlines of a run."""

    workflow: str
    judged: list[JudgedResult] = attrs.field(factory=list)
    _stated: dict[str, tuple[str, float]] = attrs.field(factory=dict)  # agent and confidence, by task
    _models: dict[str, str] = attrs.field(factory=dict)  # by task
    _finished: str = ""  # the task that was completed last: before a verdict, the evaluator's

    def inherit(self, archive: Archive, row: Row) -> None:
        """Take over what was completed before a fork: the verdict on it may come after."""
        try:
            part = archive.part_of(row, ("tasks", "messages"))
        except OrchestraError:
            return
        for task, held in part.get("tasks", {}).items():
            if held.get("confidence") is not None:
                self._stated[task] = str(held["agent"]), float(held["confidence"])
        for held in part.get("messages", {}).values():
            if held.get("model") and held.get("task"):
                self._models[held["task"]] = held["model"]

    def read(self, line: Headline) -> None:
        """Read what happened."""
        match line.kind:
            case "agent_launched":
                self._stated.pop(line.what, None)
            case "message_posted" if line.what.startswith(_ANSWER):
                model, _, message = line.what.removeprefix(_ANSWER).rpartition(" ")
                self._models[message.rpartition("#")[0]] = model
            case "task_completed":
                self._finished = line.what
                said: Any = dict(line.figures).get("confidence")
                if said is not None and line.who is not None:
                    self._stated[line.what] = line.who, float(said)
            case "evaluation_completed" if line.what in VERDICTS:
                self._judge(line.what)
            case _:
                pass

    def _judge(self, verdict: str) -> None:
        """Put a verdict on the results of its visit and round; the evaluator's own task says which."""
        place = _place(self._finished)
        for task, (agent, confidence) in self._stated.items():
            if task != self._finished and _place(task) == place and "+" not in task:
                self.judged.append(
                    JudgedResult(
                        workflow=self.workflow,
                        agent=agent.partition("[")[0],
                        model=self._models.get(task, ""),
                        confidence=confidence,
                        verdict=verdict,
                    )
                )


def _place(task: str) -> tuple[str, str]:
    """The visit and the round of an assignment, from its name."""
    visit, _, name = task.partition("/")
    return visit, name.rpartition("~")[2] if "~" in name else ""
