"""What assignments, conditions and templates get to see of a run, as plain data.

An assignment sees the context as it was when its phase began, plus what the assignments it needs contributed
to it. It therefore sees the same however its siblings are timed. All results of a phase enter the context
when the phase is completed, in the order of declaration.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

import attrs

from orchestra.codec.address import Addresser
from orchestra.codec.definitions import definition_to_plain
from orchestra.codec.values import address_of, address_of_parts, context_data, freeze, pass_on
from orchestra.engine.names import here, item_name, task_id
from orchestra.errors import UnstorableValue
from orchestra.ids import AgentId, Digest, PhaseId, TaskId
from orchestra.limits import INDEXED_WORKFLOWS, NAMES_KEPT
from orchestra.model import reducers as red
from orchestra.model.records import Evaluation, Task
from orchestra.model.reducers import ContextValue, Reducer
from orchestra.model.state import State
from orchestra.model.value import Value
from orchestra.model.workflow import Agent, ContextName, ModelPrice, Phase, Specialist, Workflow

Opener = Callable[[Value], Any]
"""Opens a frozen value, from the store where it is large. What it gives depends on the value alone."""


def _join(held: ContextValue | None, more: ContextValue, name: str) -> ContextValue:
    try:
        return red.combine(held, more)
    except red.ReducerMismatch as mismatch:
        advice = "Let less of it enter the context."
        raise UnstorableValue(path=f"context.{name}", reason=str(mismatch), advice=advice) from None


def _identity(value: Value | None) -> bytes | None:
    return None if value is None else value.digest or value.encoded


def _empty_data(declared: ContextName, opener: Opener) -> Any:
    """What a context name holds before anything entered it."""
    if declared.initial is not None:
        return opener(declared.initial)
    return {"append": [], "merge": {}}.get(declared.reducer)


class LazyMap(Mapping[str, Any]):
    """A mapping whose values are made when they are first looked at, each reader's own copy."""

    __slots__ = ("_made", "_makers")

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers, self._made = makers, {}  # type: tuple[Mapping[str, Callable[[], Any]], dict[str, Any]]

    def __getitem__(self, key: str) -> Any:
        if key not in self._made:
            self._made[key] = self._makers[key]()
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"LazyMap({', '.join(self._makers)})"


def lazy_context(
    declared: Iterable[ContextName], held: Mapping[str, ContextValue], opener: Opener
) -> LazyMap:
    """What context names hold, as data; a declared one that nothing entered is empty."""
    makers: dict[str, Callable[[], Any]] = {
        each.name: partial(_empty_data, each, opener) for each in declared
    }
    return LazyMap(makers | {name: partial(context_data, value, opener) for name, value in held.items()})


NOTHING_NEEDED: Final = LazyMap({})


class LazyWhole(Mapping[str, Any]):
    """A mapping that is made whole when it is first looked at."""

    __slots__ = ("_given", "_made", "_make")

    def __init__(self, make: Callable[[Any], Mapping[str, Any]], given: Any) -> None:
        self._make, self._given = make, given
        self._made: Mapping[str, Any] | None = None

    def _whole(self) -> Mapping[str, Any]:
        if self._made is None:
            self._made = self._make(self._given)
        return self._made

    def __getitem__(self, key: str) -> Any:
        return self._whole()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())


# What is looked up in a workflow again and again, by name, worked out once for each workflow.


@attrs.frozen(kw_only=True)
class PhaseIndex:
    """A phase's specialists by id, and what each needs, directly or not, in the order of declaration."""

    phase: Phase
    specialists: dict[str, Specialist]
    needed: dict[str, tuple[Specialist, ...]]
    in_order: tuple[Specialist, ...]
    """So that each comes after those it needs, else in the order of declaration."""


@attrs.frozen(kw_only=True)
class Index:
    """A workflow's parts by id."""

    workflow: Workflow
    phases: dict[PhaseId, PhaseIndex]
    agents: dict[AgentId, Agent]
    reducers: dict[str, Reducer]
    prices: dict[str, dict[str, float]]  # of models, as agents are handed them
    fingerprints: dict[tuple[Addresser, AgentId], Digest] = attrs.field(factory=dict)
    keys: dict[Any, Digest] = attrs.field(factory=dict)
    """Of assignments that are made from nothing but their task and inputs; the same in many runs."""

    def fingerprint(self, agent: AgentId, addresser: Addresser) -> Digest:
        """The digest of an agent's whole definition, its kind's fingerprint included."""
        found = self.fingerprints.get((addresser, agent))
        if found is None:
            plain = definition_to_plain(self.agents[agent])
            if calls := self.agents[agent].calls:  # what they bring becomes part of its result
                plain = [plain, [self.fingerprint(each, addresser).hex() for each in calls]]
            found = self.fingerprints[addresser, agent] = address_of(plain, addresser)
        return found


_KNOWN: "OrderedDict[int, Index]" = OrderedDict()


def index_of(workflow: Workflow) -> Index:
    """The index of a workflow. It is found by identity: to compare two definitions would cost more."""
    found = _KNOWN.get(id(workflow))
    if found is not None and found.workflow is workflow:
        return found
    made = Index(
        workflow=workflow,
        phases={each.id: _phase(each) for each in workflow.phases},
        agents={each.id: each for each in workflow.agents},
        reducers={each.name: each.reducer for each in workflow.context},
        prices={each.model: _price(each) for each in workflow.prices},
    )
    _KNOWN[id(workflow)] = made
    while len(_KNOWN) > INDEXED_WORKFLOWS:
        _KNOWN.popitem(last=False)
    return made


def _price(price: ModelPrice) -> dict[str, float]:
    given = attrs.asdict(price, filter=lambda field, held: field.name != "model" and held is not None)
    return dict(given)


def _phase(phase: Phase) -> PhaseIndex:
    placed: dict[str, Specialist] = {}
    behind: dict[str, set[str]] = {}  # all that each needs
    waiting = list(phase.specialists)
    while waiting:
        free = [each for each in waiting if all(need in placed for need in each.needs)]
        assert free, "BUG: needs form a circle"
        for each in free:
            placed[each.id] = each
            behind[each.id] = set(each.needs).union(*(behind[need] for need in each.needs))
        waiting = [each for each in waiting if each.id not in placed]
    return PhaseIndex(
        phase=phase,
        specialists={each.id: each for each in phase.specialists},
        needed={
            name: tuple(each for each in phase.specialists if each.id in found) if found else ()
            for name, found in behind.items()
        },
        in_order=tuple(placed.values()),
    )


class View:
    """A run's state as an assignment of the current phase sees it."""

    __slots__ = ("_open", "_phase", "addresser", "cursor", "index", "phase", "state", "workflow")

    def __init__(self, workflow: Workflow, state: State, opener: Opener, addresser: Addresser) -> None:
        self.workflow, self._open, self.addresser = workflow, opener, addresser
        self.index = index_of(workflow)
        self._show(state)

    def _show(self, state: State) -> None:
        self.state, self.cursor = state, state.cursor
        self._phase = self.index.phases[state.cursor.phase] if state.cursor.phase else None
        self.phase: Phase | None = self._phase.phase if self._phase is not None else None

    def of(self, state: State) -> "View":
        made = object.__new__(View)
        made.workflow, made.index = self.workflow, self.index
        made.addresser, made._open = self.addresser, self._open
        made._show(state)
        return made

    def open_value(self, value: Value | None) -> Any:
        """The data of a frozen value; None when there is none."""
        return None if value is None else self._open(value)

    def key(self, by: AgentId, task: str, made_from: list[Any], item: Any = None) -> Digest:
        """What an assignment's result depends on, as a digest: while it is equal the result stays valid."""
        if item is not None or made_from:
            return self._key(by, task, item, made_from)
        cursor, keys = self.state.cursor, self.index.keys
        known = (self.addresser, by, task, self.state.inputs, cursor.visit, cursor.round, self.feedback())
        found = keys.get(known)
        if found is None:
            if len(keys) >= NAMES_KEPT:
                keys.clear()
            found = keys[known] = self._key(by, task, None, made_from)
        return found

    def _key(self, by: AgentId, task: str, item: Any, made_from: list[Any]) -> Digest:
        cursor = self.state.cursor
        given = None if item is None else _identity(freeze(item, self.addresser))
        parts: list[Any] = [
            self.index.fingerprint(by, self.addresser),
            [task, given, _identity(self.state.inputs)],
            made_from,
            [cursor.visit, cursor.round, self.feedback()],
        ]
        return address_of_parts(parts, self.addresser)

    def sources(self, specialist: Specialist | None) -> list[Any]:
        """The results a specialist works from, by identity; the evaluation works from all of the phase."""
        judged = self.phase.specialists if self.phase is not None else ()
        before = self.all_needs(specialist) if specialist is not None else judged
        return [[each.id, [_identity(done.result) for _, done in self.tasks(each)]] for each in before]

    def inputs(self) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.state.inputs is None else self._open(self.state.inputs)
        return found

    def lazy_mapping(self, value: Value | None) -> Mapping[str, Any]:
        """A frozen mapping that is opened when it is looked at."""
        return {} if value is None else LazyWhole(self._open, value)

    def context(self, specialist: Specialist | None = None) -> LazyMap:
        """The context, with what the assignments that `specialist` needs contributed."""
        held = dict(self.state.context.items())
        for each in self.all_needs(specialist) if specialist is not None and specialist.needs else ():
            made = self.contribution(each) if each.into is not None else None
            if each.into is not None and made is not None:
                held[each.into] = _join(held.get(each.into), made, each.into)
        return lazy_context(self.workflow.context, held, self._open)

    def contribution(
        self, specialist: Specialist, done: list[tuple[TaskId, Task]] | None = None
    ) -> ContextValue | None:
        """What a specialist's results add to the context, in order; raises `UnstorableValue`."""
        assert specialist.into is not None, "BUG: only what goes into the context is contributed"
        reducer = self.index.reducers[specialist.into]
        made: ContextValue | None = None
        for name, task in self.tasks(specialist) if done is None else done:
            if task.result is not None:
                where = f"the result of {name}"
                more = pass_on(reducer, task.result, self._open, self.addresser, where=where)
                made = more if made is None else _join(made, more, specialist.into)
        return made

    def all_needs(self, specialist: Specialist) -> tuple[Specialist, ...]:
        """Everything a specialist needs, directly or not, in the order of declaration."""
        assert self._phase is not None, "BUG: specialists belong to a phase"
        return self._phase.needed[specialist.id]

    def in_order(self) -> tuple[Specialist, ...]:
        """The specialists of the phase so that each comes after those it needs."""
        return () if self._phase is None else self._phase.in_order

    def specialist(self, name: str) -> Specialist | None:
        """The specialist of that id in the current phase, if there is one."""
        return None if self._phase is None else self._phase.specialists.get(name)

    def tasks(self, specialist: Specialist, extras: int | None = None) -> list[tuple[TaskId, Task]]:
        """A specialist's assignments that are done, in this visit and round, additional ones last.

        Whoever knows how many additional ones there are says so, and they need not be looked for.
        """
        found: list[tuple[TaskId, Task]] = []
        if specialist.foreach is None:
            self._done(specialist.id, found)
        else:
            index = 0
            while self._done(item_name(specialist.id, index), found):
                index += 1
        for extra in count(1) if extras is None else range(1, extras + 1):
            if not self._done(f"{specialist.id}+{extra}", found):
                break
        return found

    def current_tasks(self) -> dict[TaskId, Task]:
        """All assignments of this visit and round."""
        here = (self.cursor.phase, self.cursor.visit, self.cursor.round)
        found = self.state.tasks.items()
        return {TaskId(name): task for name, task in found if (task.phase, task.visit, task.round) == here}

    def _done(self, local: str, found: list[tuple[TaskId, Task]]) -> bool:
        """Put an assignment with those that are done if it is; whether there is such a one at all."""
        name = task_id(self.state, local)
        task = self.state.tasks.get(name)
        if task is not None and task.status == "completed":
            found.append((name, task))
        return task is not None

    def result(self, specialist: Specialist) -> Any:
        """What a specialist found: its result, or the list of its items' results."""
        task = (
            self.state.tasks.get(task_id(self.state, specialist.id)) if specialist.foreach is None else None
        )
        if task is not None:
            return self.open_value(task.result)
        return [self.open_value(each.result) for _, each in self.tasks(specialist)]

    def needs(self, specialist: Specialist) -> LazyMap:
        """The results of what a specialist needs, by its id."""
        if not specialist.needs:
            return NOTHING_NEEDED
        assert self._phase is not None, "BUG: specialists belong to a phase"
        by_id = self._phase.specialists
        return LazyMap({name: partial(self.result, by_id[name]) for name in specialist.needs})

    def results(self) -> LazyMap:
        """The results of every specialist of the phase, by its id."""
        specialists = self.phase.specialists if self.phase is not None else ()
        makers: dict[str, Callable[[], Any]] = {each.id: partial(self.result, each) for each in specialists}
        for each in specialists:
            for number in count(1):
                local = f"{each.id}+{number}"
                task = self.state.tasks.get(task_id(self.state, local))
                if task is None:
                    break
                makers[local] = partial(self.open_value, task.result)
        return LazyMap(makers)

    def names(
        self, used: Collection[str], specialist: Specialist | None = None, **more: Any
    ) -> dict[str, Any]:
        """What an expression or template of an assignment names; only what it uses is made."""
        if not used:
            return {}
        cursor = self.state.cursor
        makers: dict[str, Callable[[], Any]] = {
            "inputs": self.inputs,
            "context": lambda: dict(self.context(specialist)),
            "needs": lambda: dict(self.needs(specialist)) if specialist is not None else {},
            "visits": self.visits,
            "phase": lambda: cursor.phase,
            "visit": lambda: cursor.visit,
            "round": lambda: cursor.round,
            "feedback": lambda: list(self.feedback()),
            "run": lambda: self.state.run,
            "models": lambda: list(self.state.workflow.models),
            "evaluation": self.evaluation,
            "confidence": lambda: self.state.confidence.overall,
            "results": lambda: dict(self.results()),
        }
        return {name: more[name] if name in more else makers[name]() for name in used}

    def visits(self) -> dict[str, int]:
        return {each.id: self.state.visits.get(each.id) or 0 for each in self.workflow.phases}

    def feedback(self) -> tuple[str, ...]:
        """What evaluations of this visit said so far, oldest first."""
        if self.cursor.round == 1:
            return ()
        evaluation = self._evaluation()
        if evaluation is None:
            return ()
        said = [each for each in evaluation.iterations if each.round < self.state.cursor.round]
        return tuple(each.verdict.feedback for each in said if each.verdict.feedback)

    def evaluation(self) -> dict[str, Any] | None:
        """The evaluation of this visit, once there is a verdict."""
        held = self._evaluation()
        if held is None or held.verdict is None:
            return None
        return {
            "verdict": held.verdict.kind,
            "score": held.verdict.score,
            "feedback": held.verdict.feedback,
            "round": held.round,
            "scores": {each.criterion: each.score for each in held.scores},
        }

    def _evaluation(self) -> Evaluation | None:
        known = self.state.evaluations
        return known.get(here(self.state)) if known.pairs.count and self.cursor.phase else None
