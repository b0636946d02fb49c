"""The builder of workflows: each method adds to it and returns another one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from orchestra.agents.registry import KINDS
from orchestra.app.building.data import Entry, WorkflowData, doubles, shown_file, with_functions
from orchestra.app.building.elements import (
    AgentRef,
    ConfidenceOptions,
    Duration,
    PhasePart,
    RecoveryOptions,
    RetryOptions,
    SourceLine,
    SpecialistSpec,
    caller,
    has_place,
    list_of,
    part_data,
    plain_copy,
    refs_in,
    without_empty,
)
from orchestra.config.load import LoadedWorkflow, check_data
from orchestra.config.problems import Path as DataPath
from orchestra.config.problems import Problem, bad_workflow
from orchestra.model.reducers import Reducer
from orchestra.model.workflow import InputType

_NOT_GIVEN: Final[Any] = object()


@attrs.frozen(kw_only=True)
class WorkflowBuilder:
    """A workflow that is being built. `Orchestra.run` takes it as it is and checks it first."""

    name: str
    _place: SourceLine = attrs.field(eq=False, repr=False)
    _entries: tuple[Entry, ...] = attrs.field(default=(), repr=False)
    _made: list[LoadedWorkflow] = attrs.field(factory=list, init=False, eq=False, repr=False)

    def input(
        self,
        name: str,
        *,
        type: InputType = "any",
        default: Any = _NOT_GIVEN,
        required: bool | None = None,
        choices: Sequence[Any] = (),
        secret: bool = False,
        help: str = "",
    ) -> "WorkflowBuilder":
        """Declare a value that is given when a run starts.

        A workflow that declares none takes what its texts name as `inputs.…`, all required.
        """
        data = without_empty(
            {
                "type": type,
                "required": required,
                "choices": list(choices),
                "secret": secret or None,
                "help": help,
            }
        )
        return self._with("inputs", name, data if default is _NOT_GIVEN else {**data, "default": default})

    def context(self, name: str, reducer: Reducer = "replace", *, initial: Any = None) -> "WorkflowBuilder":
        """Declare a name that results enter through a reducer.

        A workflow that declares none has those that its specialists' `into` name.
        """
        return self._with("context", name, without_empty({"reducer": reducer, "initial": initial}))

    def agents(self, *agents: AgentRef) -> "WorkflowBuilder":
        """Declare agents that are only named by text, or in another order than that of their use."""
        return attrs.evolve(self, entries=(*self._entries, Entry(("agents",), None, {}, agents)))

    def policy(
        self,
        *,
        confidence: ConfidenceOptions | None = None,
        retry: RetryOptions | None = None,
        recovery: RecoveryOptions | None = None,
        concurrency: int | None = None,
        max_iterations: int | None = None,
        grace: Duration | None = None,
    ) -> "WorkflowBuilder":
        """Say what holds for every phase unless it says otherwise."""
        given = {"confidence": confidence, "retry": retry, "recovery": recovery, "grace": grace}
        data = {**given, "concurrency": concurrency, "max_iterations": max_iterations}
        return self._with("policy", None, without_empty(plain_copy(data)))

    def phase(
        self,
        name: str,
        /,
        *specialists: SpecialistSpec,
        description: str = "",
        evaluate: PhasePart | AgentRef | str | None = None,
        on_low_confidence: PhasePart
        | Literal["proceed", "fail"]
        | Sequence[PhasePart | Literal["proceed", "fail"]] = (),
        next: PhasePart | str | Sequence[PhasePart | str] | None = None,
        max_visits: int | None = None,
        timeout: Duration | None = None,
        breakpoint: bool = False,
    ) -> "WorkflowBuilder":
        """Add a phase. Without `next` the run goes on with the phase that is added after it, or ends."""
        reactions, ways = list_of(on_low_confidence), list_of(next)
        data = {
            "description": description,
            "specialists": {each.name: dict(each.data) for each in specialists},
            "evaluate": part_data(evaluate),
            "on_low_confidence": [part_data(each) for each in reactions],
            "max_visits": max_visits,
            "timeout": timeout,
            "breakpoint": breakpoint or None,
        }
        parts: dict[DataPath, Any] = {("specialists", each.name): each for each in specialists}
        parts |= {("evaluate",): evaluate}
        parts |= {("on_low_confidence", at): each for at, each in enumerate(reactions)}
        parts |= {("next", at): each for at, each in enumerate(ways)}
        said = without_empty(data)
        if next is not None:
            said["next"] = [part_data(each) for each in ways]
        return self._with("phases", name, said, parts, tuple(doubles(specialists)))

    def build(self) -> LoadedWorkflow:
        """The checked workflow; raises `BadWorkflow` with every mistake and where it stands."""
        if self._made:
            return self._made[0]
        draft = WorkflowData(self.name, self._place, self._entries)
        functions = {name: ref.function for name, ref in draft.agents.items() if ref.function is not None}
        file = Path(self._place.file).absolute()
        checked = check_data(draft.data, file.parent, KINDS, functions)
        problems = [*draft.problems, *(draft.locate(each) for each in checked.mistakes)]
        if problems or checked.workflow is None:
            raise bad_workflow(shown_file(self._place.file), problems)
        made = LoadedWorkflow(
            workflow=with_functions(checked.workflow, functions),
            file=Path(f"{file}:{self._place.line}"),
            text="",
            settings=checked.settings,
            functions=functions,
        )
        if len(functions) == len(draft.agents):  # files may change until the next run
            self._made.append(made)
        return made

    def _with(
        self,
        section: str,
        name: str | None,
        data: Mapping[str, Any],
        parts: Mapping[DataPath, Any] | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> "WorkflowBuilder":
        path: DataPath = (section,) if name is None else (section, name)
        held = {below: part for below, part in (parts or {}).items() if has_place(part)}
        places = {(): caller()} | {below: part.place for below, part in held.items()}
        agents = tuple(ref for part in held.values() for ref in refs_in(part))
        return attrs.evolve(self, entries=(*self._entries, Entry(path, data, places, agents, problems)))


def workflow(name: str, *, description: str = "") -> WorkflowBuilder:
    """Begin a workflow; its methods add to it, and the first phase that is added is the entry."""
    entries = (Entry(("description",), description, {}),) if description else ()
    return WorkflowBuilder(name=name, place=caller(), entries=entries)
