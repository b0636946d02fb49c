"""Values that are made quickly are the values their classes make."""

import copy
import pickle
from typing import Any

import attrs
import pytest

from orchestra.checkpoint.commit import RecordedTurn
from orchestra.engine.rules.moves import Move
from orchestra.ids import AgentId, Instant, PhaseId, TaskId
from orchestra.model import events as ev
from orchestra.model.frozen import changer, converter, maker
from orchestra.model.records import AgentState, Task
from orchestra.model.reducers import Appended
from orchestra.model.snapshot import Header
from orchestra.ports.agent import Assignment, Result, Used
from orchestra.ports.store import Commit, Row
from orchestra.telemetry.records import Span

TASK = {"agent": AgentId("a"), "phase": PhaseId("p"), "visit": 2, "status": "running"}


def test_what_is_made_is_what_the_class_makes() -> None:
    given: dict[str, Any] = dict(TASK)
    made = maker(Task)(**given)
    assert type(made) is Task
    assert made == Task(**given)
    assert hash(made) == hash(Task(**given))
    assert repr(made) == repr(Task(**given))
    assert copy.copy(made) == made
    assert pickle.loads(pickle.dumps(made)) == made


def test_what_is_made_is_frozen() -> None:
    made = maker(Task)(agent=AgentId("a"), phase=PhaseId("p"))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.visit = 3  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del made.visit
    changed = changer(Task, "visit")(made, visit=3)
    assert (changed.visit, made.visit) == (3, 1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        changed.visit = 4  # type: ignore[misc]


def test_defaults_that_are_made_anew_are_not_shared() -> None:
    one, other = maker(Appended)(), maker(Appended)()
    assert one == other == Appended()
    assert one.items is not other.items
    make = maker(Span)
    spans = [
        make(run="r", trace="t", id=each, name="n", seq=0, start=Instant(0))  # type: ignore[arg-type]
        for each in "ab"
    ]
    spans[0].add_event("x", Instant(1), {})
    assert [len(each.events) for each in spans] == [1, 0]


def test_a_value_is_made_from_one_of_another_class() -> None:
    agent, phase = AgentId("a"), PhaseId("p")
    planned = ev.TaskPlanned(at=Instant(1), task=TaskId("p/a"), agent=agent, phase=phase, visit=2)
    made = converter(ev.TaskPlanned, Task, "status")(planned, status="running")
    assert made == Task(agent=agent, phase=phase, visit=2, status="running")
    spent = converter(Used, ev.Spent, "at", "agent")(Used(tokens_in=3), at=Instant(1), agent=None)
    assert spent == ev.Spent(at=Instant(1), tokens_in=3)
    with pytest.raises(TypeError, match="'at' to be given"):
        converter(Used, ev.Spent)
    with pytest.raises(TypeError, match="no field 'colour'"):
        converter(Used, ev.Spent, "at", "colour")


def test_the_parameters_are_those_of_the_class() -> None:
    make: Any = maker(Task)
    with pytest.raises(TypeError, match="agent"):
        make(phase=PhaseId("p"))
    with pytest.raises(TypeError, match="colour"):
        make(**TASK, colour="red")
    with pytest.raises(TypeError, match="positional"):
        make(AgentId("a"), PhaseId("p"))


@attrs.frozen
class _Placed:
    first: int
    _second: int = 2


def test_fields_may_be_given_by_their_place() -> None:
    make = maker(_Placed)
    assert make(1) == _Placed(1)
    assert make(1, second=3) == _Placed(1, second=3) == make(1, 3)


@attrs.frozen
class _Checked:
    size: int = attrs.field(validator=attrs.validators.gt(0))


@attrs.frozen
class _Converted:
    size: int = attrs.field(converter=int)


@attrs.frozen
class _Finished:
    size: int

    def __attrs_post_init__(self) -> None:
        assert self.size


@attrs.frozen(slots=False)
class _Loose:
    size: int


@pytest.mark.parametrize("kind", [_Checked, _Converted, _Finished, _Loose])
def test_a_class_that_does_more_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match=kind.__name__):
        maker(kind)


@pytest.mark.parametrize(
    "kind",
    [
        *(ev.AgentLaunched, ev.ContextContributed, ev.PhaseCompleted, ev.PhaseStarted, ev.Spent),
        *(
            ev.TaskCompleted,
            ev.TaskPlanned,
            AgentState,
            Assignment,
            Commit,
            Header,
            Move,
            Result,
            Row,
            RecordedTurn,
        ),
    ],
)
def test_every_default_is_the_classes_own(kind: Any) -> None:
    needed = {
        field.alias: object()
        for field in attrs.fields(kind)
        if field.default is attrs.NOTHING and field.alias not in ("task", "agent")
    }
    more: dict[str, Any] = {"task": TaskId("p/a"), "agent": AgentId("a")}
    names = {field.alias for field in attrs.fields(kind)}
    given = {**needed, **{name: value for name, value in more.items() if name in names}}
    assert attrs.asdict(maker(kind)(**given), recurse=False) == attrs.asdict(kind(**given), recurse=False)
