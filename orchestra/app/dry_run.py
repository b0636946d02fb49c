"""Dry runs: a workflow is walked without spending anything, and what a run of it costs at most is added up.

The walk is a run like any other, over a store in memory and a folder that is removed. Stand-ins answer in the
place of agents, somebody who always says the first thing in the place of people.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from orchestra.agents.registry import KINDS
from orchestra.app.definitions import with_overrides
from orchestra.app.forecast import Use, uses
from orchestra.app.orchestra import Orchestra
from orchestra.app.stand_ins import StandIns
from orchestra.config.load import LoadedWorkflow
from orchestra.engine.atlas import Ending
from orchestra.engine.names import local_of, specialist_name
from orchestra.engine.settings import EngineSettings
from orchestra.engine.view import index_of
from orchestra.ids import AgentId, PhaseId, TaskId
from orchestra.model.state import State
from orchestra.model.workflow import Retry, Workflow
from orchestra.ports.agent_kind import Spending

_MOST_ANSWERS: Final = 100


@attrs.frozen(kw_only=True)
class WalkedShare:
    """What was used in the walk, at the prices of the models that would be asked."""

    assignments: int = 0
    requests: int = 0
    tokens: int = 0
    cost_micros: int | None = 0


@attrs.frozen(kw_only=True)
class Share:
    """An agent at a place of a workflow: what it used in the walk, and what it can use at most in a run."""

    use: Use
    kind: str
    spending: Spending | None  # of one assignment; None: the agent's own code decides
    walked: WalkedShare
    gives_errands: bool = False  # which nobody counts before

    def most(self, what: str) -> int | None:
        """The most that all its assignments can use of something; None: nobody knows."""
        one = None if self.spending is None else getattr(self.spending, what)
        return None if one is None else int(one) * self.use.assignments


@attrs.frozen(kw_only=True)
class DryRun:
    """What a dry run found."""

    workflow: str
    ending: Ending
    shares: tuple[Share, ...]
    answered: tuple[tuple[str, str], ...]  # questions to people, and what was taken for the answer
    unknown: tuple[str, ...]  # sentences

    @property
    def asking(self) -> list[Share]:
        """The shares of agents that ask models."""
        return [each for each in self.shares if each.spending is not None and each.spending.models]

    def most(self, what: str) -> int | None:
        """The most that all agents together can use on models; None: nobody knows."""
        found = [each.most(what) for each in self.asking]
        if any(each.gives_errands for each in self.asking):
            return None
        return None if None in found else sum(each for each in found if each is not None)


async def perform_dry_run(loaded: LoadedWorkflow, models: Collection[str]) -> DryRun:
    """Walk a workflow whose inputs were accepted, and add up what a run of it can cost."""
    played = with_overrides(loaded.workflow, (), models, None)
    answered: list[tuple[str, str]] = []
    with TemporaryDirectory(prefix="orchestra-dry-") as folder:
        settings = EngineSettings(outputs=folder, telemetry=False, events=False)
        async with _DryOrchestra("memory:", engine=settings) as orchestra:
            walk = attrs.evolve(loaded, workflow=_unhindered(loaded.workflow))
            ending = await orchestra.run(walk, models=models)
            while ending.kind == "waiting" and len(answered) < _MOST_ANSWERS:
                answered += [each async for each in _answers(orchestra, ending)]
                ending = await orchestra.resume(ending.run, workflow=walk)
            inputs = dict(ending.inputs)
    shares = tuple(_shares(played, loaded.file.parent, ending.state, inputs))
    return DryRun(
        workflow=loaded.workflow.name,
        ending=ending,
        shares=shares,
        answered=tuple(answered),
        unknown=tuple(dict.fromkeys(_unknown(played, shares))),
    )


class _DryOrchestra(Orchestra):
    """An orchestra of stand-ins."""

    def _runner(self, loaded: LoadedWorkflow, workflow: Workflow) -> Any:
        return StandIns(workflow, self.project / loaded.file.parent)


async def _answers(orchestra: Orchestra, ending: Ending) -> Any:
    """Answer each open question with its first choice."""
    for name, wait in ending.questions.items():
        answer = wait.choices[0] if wait.choices else "yes"
        await orchestra.answer(ending.run, answer, question=name)
        yield wait.text, answer


def _unhindered(workflow: Workflow) -> Workflow:
    """The workflow without breakpoints, and without time between attempts."""

    def hasty(retry: Retry) -> Retry:
        return attrs.evolve(retry, backoff_us=0, max_backoff_us=0)

    phases = tuple(
        attrs.evolve(
            phase,
            breakpoint=False,
            specialists=tuple(
                attrs.evolve(each, breakpoint=False, retry=each.retry and hasty(each.retry))
                for each in phase.specialists
            ),
        )
        for phase in workflow.phases
    )
    policy = attrs.evolve(workflow.policy, retry=hasty(workflow.policy.retry))
    return attrs.evolve(workflow, phases=phases, policy=policy)


# --- adding up --------------------------------------------------------------------------------------------


def _shares(workflow: Workflow, folder: Path, state: State, inputs: dict[str, Any]) -> Iterator[Share]:
    walked, lists = _walked(state), _lists(state)
    prices = index_of(workflow).prices
    spending = {
        each.id: KINDS.by_name(each.kind).most_spending(each, folder, prices) for each in workflow.agents
    }
    for use in uses(workflow, inputs, lambda phase, name: lists[phase, name]):
        yield Share(
            use=use,
            kind=workflow.agent(use.agent).kind,
            spending=spending[use.agent],
            walked=walked.get((use.phase, use.name, use.agent), WalkedShare()),
            gives_errands=bool(workflow.agent(use.agent).calls),
        )


def _place(local: str) -> str:
    """The specialist of an assignment, as uses are named: additional ones have a `+`."""
    return specialist_name(local) + ("+" if "+" in local else "")


def _walked(state: State) -> dict[tuple[PhaseId, str, AgentId], WalkedShare]:
    """What each agent at each place used in the walk."""
    answers = defaultdict(list)
    for message in state.messages.values():
        if message.generation is not None and message.status == "complete":
            answers[message.task].append(message.generation)
    found: dict[tuple[PhaseId, str, AgentId], WalkedShare] = {}
    for name, task in state.tasks.items():
        place = task.phase, _place(local_of(name)), task.by or AgentId("")
        held, made = found.get(place, WalkedShare()), answers[TaskId(name)]
        costs = [held.cost_micros, *(each.cost_micros for each in made)]
        found[place] = WalkedShare(
            assignments=held.assignments + (task.status == "completed"),
            requests=held.requests + len(made),
            tokens=held.tokens + sum(each.tokens_in + each.tokens_out for each in made),
            cost_micros=None if None in costs else sum(each for each in costs if each is not None),
        )
    return found


def _lists(state: State) -> Counter[tuple[PhaseId, str]]:
    """How many items the longest list of each specialist had."""
    found: Counter[tuple[PhaseId, str]] = Counter()
    once = Counter(
        (task.phase, task.visit, task.round, specialist_name(local_of(name)))
        for name, task in state.tasks.items()
        if "[" in local_of(name)
    )
    for (phase, _, _, name), items in once.items():
        found[phase, name] = max(found[phase, name], items)
    return found


def _unknown(workflow: Workflow, shares: Sequence[Share]) -> Iterator[str]:
    """What cannot be known before a run, in sentences."""
    asking = {each.use.agent: each.spending for each in shares if each.spending is not None}
    own = sorted({each.use.agent for each in shares} - asking.keys())
    if own:
        listed = ", ".join(own)
        yield f"what these spend by themselves (their code was not run, results were made up): {listed}"
    for each in shares:
        if each.use.items_of and each.spending is not None:
            yield _list_note(each.use, each.spending)
    for agent in dict.fromkeys(each.use.agent for each in shares):
        if called := workflow.agent(agent).calls:
            yield f"what errands use that {agent} gives to {', '.join(called)}: none was given in the walk"
    for agent, spending in asking.items():
        yield from (f"{agent}: {reason}" for reason in spending.unknown)
    if asking:
        yield from _shared_limits(workflow)
    if any(each.cost_micros != 0 for each in asking.values()):
        if _goes_back(workflow):
            yield "what rollbacks repeat; retries share the limits of their assignment"
        yield "whether a provider charges for a request that failed: those are not counted"


def _list_note(use: Use, one: Spending) -> str:
    cost = "" if not one.cost_micros else f", and each further one is {money(one.cost_micros)} at most"
    items = "1 item is" if use.items == 1 else f"{use.items} items are"
    return f"how long `{use.items_of}` is (* in the table): {items} counted, as in the walk{cost}"


def _shared_limits(workflow: Workflow) -> Iterator[str]:
    """The limits of the run and of phases, which hold for several agents together."""
    held = {
        "the run": workflow.policy.limits,
        **{f"phase {each.id}": each.limits for each in workflow.phases},
    }
    for place, limits in held.items():
        if limits is not None:
            said = attrs.asdict(limits, filter=lambda field, value: value is not None)
            course = said.pop("on_limit")
            amounts = ", ".join(f"{value:g} {name}" for name, value in said.items())
            yield f"how much sooner the limits of {place} end it ({amounts}; {course}): not in the sum"


def _goes_back(workflow: Workflow) -> bool:
    ways = [each.on_failure for phase in workflow.phases for each in phase.specialists]
    return any("rollback" in (each or workflow.policy.recovery.on_failure) for each in ways)


def money(micros: int) -> str:
    """An amount of money in words."""
    return f"{micros / 1_000_000:,.4f}".rstrip("0").rstrip(".")
