"""What is looked up in a workflow again and again, by name, worked out once for each workflow."""

from collections import OrderedDict
from typing import Any

import attrs

from orchestra.codec.address import Addresser
from orchestra.codec.definitions import definition_to_plain
from orchestra.codec.values import address_of
from orchestra.ids import AgentId, Digest, PhaseId
from orchestra.limits import INDEXED_WORKFLOWS
from orchestra.model.reducers import Reducer
from orchestra.model.workflow import Agent, Phase, Specialist, Workflow


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
    fingerprints: dict[tuple[Addresser, AgentId], Digest] = attrs.field(factory=dict)
    keys: dict[Any, Digest] = attrs.field(factory=dict)
    """Of assignments that are made from nothing but their task and inputs; the same in many runs."""

    def fingerprint(self, agent: AgentId, addresser: Addresser) -> Digest:
        """The digest of an agent's whole definition, its kind's fingerprint included."""
        found = self.fingerprints.get((addresser, agent))
        if found is None:
            plain = definition_to_plain(self.agents[agent])
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
    )
    _KNOWN[id(workflow)] = made
    while len(_KNOWN) > INDEXED_WORKFLOWS:
        _KNOWN.popitem(last=False)
    return made


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
