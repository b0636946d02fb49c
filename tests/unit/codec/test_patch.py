"""Patches say as little as possible, and documents change as they say."""

from typing import Any

import attrs
import pytest

from orchestra.codec import cbor, patch
from orchestra.codec.cbor import TAG_TABLE, Tag
from orchestra.codec.document import BadPatch, apply_patch
from orchestra.codec.writers import Writer
from orchestra.ids import AgentId, Digest, Instant, PhaseId, RunId
from orchestra.model.records import AgentState, Blocker, Decision, Evaluation, Metrics, Score, Task
from orchestra.model.reducers import Appended, Summed
from orchestra.model.state import Cursor, State, WorkflowRef
from orchestra.model.tree import Table, Vec
from orchestra.model.value import Value

AT = Instant(1)
LONG = "The quick brown fox jumps over the lazy dog, again and again and again and again."
TASK = Task(agent=AgentId("a"), phase=PhaseId("p"))
AGENT = AgentState(role="mercury")
BASE = State(
    run=RunId("r"),
    family=RunId("r"),
    workflow=WorkflowRef(name="w"),
    created_at=AT,
    updated_at=AT,
    tasks=Table([("t", TASK)]),
    agents=Table([("a", AGENT)]),
)


def changes(old: State, new: State) -> list[bytes]:
    return patch.make(Writer(), old, new)


def with_agent(**fields: Any) -> State:
    return attrs.evolve(BASE, agents=BASE.agents.set("a", attrs.evolve(AGENT, **fields)))


def _decision(text: str) -> Decision:
    return Decision(at=AT, agent=AgentId("a"), kind="k", description=text)


PLAIN_DECISION = {"at": 1, "kind": "k", "agent": "a", "description": "d"}
BLOCKERS = tuple(Blocker(by=str(n), reason="r", at=AT) for n in range(4))


def _blocker(number: int) -> dict[str, Any]:
    return {"at": 1, "by": str(number), "reason": "r"}


CASES: dict[str, tuple[State, State, list[Any]]] = {
    "nothing": (BASE, attrs.evolve(BASE), []),
    "a field is set": (BASE, attrs.evolve(BASE, status="running"), [["set", ("status",), "running"]]),
    "a field has its default again": (attrs.evolve(BASE, status="running"), BASE, [["unset", ("status",)]]),
    "a field deep inside": (
        BASE,
        attrs.evolve(BASE, cursor=Cursor(visit=1)),
        [["set", ("cursor",), {"visit": 1}]],
    ),
    "a field inside what is there": (
        attrs.evolve(BASE, metrics=Metrics(api_calls=1)),
        attrs.evolve(BASE, metrics=Metrics(api_calls=2)),
        [["set", ("metrics", "api_calls"), 2]],
    ),
    "a digest": (
        BASE,
        attrs.evolve(BASE, workflow=WorkflowRef(name="w", digest=Digest(bytes(32)))),
        [["set", ("workflow", "digest"), Tag(28539, bytes(32))]],
    ),
    "a new entry": (
        BASE,
        attrs.evolve(BASE, tasks=BASE.tasks.set("u", TASK)),
        [["put", ("tasks",), [["u", {"agent": "a", "phase": "p"}]]]],
    ),
    "an entry changes": (
        BASE,
        attrs.evolve(BASE, tasks=BASE.tasks.set("t", attrs.evolve(TASK, status="running"))),
        [["set", ("tasks", "t", "status"), "running"]],
    ),
    "a new item": (
        BASE,
        attrs.evolve(BASE, decisions=BASE.decisions.append(_decision("d"))),
        [["push", ("decisions",), [PLAIN_DECISION]]],
    ),
    "an item changes": (
        attrs.evolve(BASE, decisions=Vec([_decision("d")])),
        attrs.evolve(BASE, decisions=Vec([_decision("dd")])),
        [["append", ("decisions", 0, "description"), "d"]],
    ),
    "text begins": (BASE, with_agent(partial="ab"), [["set", ("agents", "a", "partial"), "ab"]]),
    "text grows": (
        with_agent(partial="ab"),
        with_agent(partial="abc"),
        [["append", ("agents", "a", "partial"), "c"]],
    ),
    "short text changes": (
        with_agent(partial="abc"),
        with_agent(partial="axc"),
        [["set", ("agents", "a", "partial"), "axc"]],
    ),
    "long text changes": (
        with_agent(partial=LONG),
        with_agent(partial=LONG.replace("fox", "hare")),
        [["splice", ("agents", "a", "partial"), 16, 3, "hare"]],
    ),
    "text ends": (with_agent(partial="ab"), BASE, [["unset", ("agents", "a", "partial")]]),
    "a list grows": (
        with_agent(blockers=BLOCKERS[:1]),
        with_agent(blockers=BLOCKERS[:2]),
        [["append", ("agents", "a", "blockers"), [_blocker(1)]]],
    ),
    "a list loses something": (
        with_agent(blockers=BLOCKERS),
        with_agent(blockers=(BLOCKERS[0], BLOCKERS[3])),
        [["splice", ("agents", "a", "blockers"), 1, 2, []]],
    ),
    "an item of a list changes": (
        with_agent(blockers=BLOCKERS),
        with_agent(blockers=(BLOCKERS[0], attrs.evolve(BLOCKERS[1], reason="other"), *BLOCKERS[2:])),
        [["set", ("agents", "a", "blockers", 1, "reason"), "other"]],
    ),
    "a value": (BASE, attrs.evolve(BASE, inputs=Value(b"\x01")), [["set", ("inputs",), b"\x01"]]),
    "a value changes": (
        attrs.evolve(BASE, inputs=Value(b"\x01")),
        attrs.evolve(BASE, inputs=Value(b"\x02")),
        [["set", ("inputs",), b"\x02"]],
    ),
    "another kind of thing": (
        attrs.evolve(BASE, context=Table([("c", Summed(total=1))])),
        attrs.evolve(BASE, context=Table([("c", Appended())])),
        [["set", ("context", "c"), {"reducer": "append"}]],
    ),
    "a table that is shorter": (
        BASE,
        attrs.evolve(BASE, tasks=Table([])),
        [["unset", ("tasks",)]],
    ),
    "a sequence that is shorter": (
        attrs.evolve(BASE, decisions=Vec([_decision("d"), _decision("e")])),
        attrs.evolve(BASE, decisions=Vec([_decision("d")])),
        [["set", ("decisions",), Tag(28530, [PLAIN_DECISION])]],
    ),
    "a table with other keys": (
        BASE,
        attrs.evolve(BASE, visits=Table([("b", 1)]), tasks=Table([("u", TASK)])),
        [
            ["put", ("visits",), [["b", 1]]],
            ["set", ("tasks",), Tag(TAG_TABLE, [["u", {"agent": "a", "phase": "p"}]])],
        ],
    ),
    "an integer that becomes a float": (
        attrs.evolve(BASE, context=Table([("c", Summed(total=1))])),
        attrs.evolve(BASE, context=Table([("c", Summed(total=1.0))])),
        [["set", ("context", "c", "total"), 1.0]],
    ),
    "a number in a list": (
        attrs.evolve(
            BASE,
            evaluations=Table(
                [
                    (
                        "e",
                        _evaluation := Evaluation(
                            agent=AgentId("a"), phase=PhaseId("p"), scores=(Score(criterion="c", score=0.5),)
                        ),
                    )
                ]
            ),
        ),
        attrs.evolve(
            BASE,
            evaluations=Table([("e", attrs.evolve(_evaluation, scores=(Score(criterion="c", score=0.75),)))]),
        ),
        [["set", ("evaluations", "e", "scores", 0, "score"), 0.75]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_operations(name: str) -> None:
    old, new, expected = CASES[name]
    assert changes(old, new) == [cbor.encode(operation) for operation in expected]


def test_what_a_patch_refers_to_is_collected() -> None:
    writer = Writer()
    large = Value(b"\x01", digest=Digest(b"d" * 32))
    patch.make(writer, BASE, attrs.evolve(BASE, inputs=large))
    assert writer.references == [large.digest]
    assert writer.large == [large]


# --- documents

DOCUMENT: dict[str, Any] = {"text": "abc", "list": [1, 2], "vec": Vec([1]), "table": Table([("a", {"x": 1})])}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        (["set", ["text"], "x"], "text", "x"),
        (["set", ["new"], 1], "new", 1),
        (["unset", ["text"]], "text", None),
        (["unset", ["absent"]], "absent", None),
        (["append", ["text"], "d"], "text", "abcd"),
        (["append", ["list"], [3]], "list", [1, 2, 3]),
        (["append", ["absent"], "x"], "absent", "x"),
        (["splice", ["text"], 1, 1, "xy"], "text", "axyc"),
        (["splice", ["list"], 0, 2, []], "list", []),
        (["splice", ["text"], 3, 0, "d"], "text", "abcd"),
        (["set", ["list", 1], 5], "list", [1, 5]),
        (["push", ["vec"], [2, 3]], "vec", Vec([1, 2, 3])),
        (["push", ["absent"], [2]], "absent", Vec([2])),
        (["put", ["table"], [["b", 2]]], "table", Table([("a", {"x": 1}), ("b", 2)])),
        (["put", ["absent"], [["b", 2]]], "absent", Table([("b", 2)])),
        (["set", ["table", "a", "x"], 2], "table", Table([("a", {"x": 2})])),
        (["unset", ["table", "a", "x"]], "table", Table([("a", {})])),
    ],
    ids=range(17),
)
def test_documents_change_as_told(operation: list[Any], path: str, expected: Any) -> None:
    kept = repr(DOCUMENT)
    assert apply_patch(DOCUMENT, [operation]).get(path) == expected
    assert repr(DOCUMENT) == kept


def test_operations_follow_one_another() -> None:
    operations: list[Any] = [
        ["append", ["text"], "d"],
        ["splice", ["text"], 0, 3, ""],
        ["append", ["text"], "e"],
    ]
    assert apply_patch(DOCUMENT, operations)["text"] == "de"


def test_characters_are_code_points() -> None:
    assert apply_patch({"t": "a🎼b"}, [["splice", ["t"], 1, 1, "é"]]) == {"t": "aéb"}


def test_a_bad_operation_is_named() -> None:
    with pytest.raises(BadPatch, match="splice"):
        apply_patch(DOCUMENT, [["splice", ["text"], 0, 9, ""]])
    with pytest.raises(BadPatch, match="unknown operation"):
        apply_patch(DOCUMENT, [["explode", ["text"]]])


@pytest.mark.parametrize("count", [0, 1, 23, 24, 255, 256, 70_000])
def test_bytes_are_those_of_the_pair(count: int) -> None:
    operations: list[Any] = [["set", ("status",), "running"], ["unset", ("failure",)]]
    operations += [["set", ("tasks", "t", "visit"), 7], ["splice", ("agents", "a", "partial"), 1, 2, "x"]]
    operations = (operations * (count // 4 + 1))[:count]
    encoded = [cbor.encode(operation) for operation in operations]
    digests = [Digest(bytes(32)), Digest(b"x" * 32), Digest(bytes(32))]
    assert patch.encode([], encoded) == cbor.encode([[], operations])
    assert patch.encode(digests, encoded) == cbor.encode([digests[:2], operations])
