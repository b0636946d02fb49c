"""Shapes: the models of answers, for the description at /api/openapi.json. Tests compare both.

Times are whole microseconds since 1970. `Any` is a value of a state in the forms of `docs/reference/http.md`.
"""

from types import GenericAlias
from typing import Any, Final, Literal

from pydantic import ConfigDict
from typing_extensions import TypedDict

OUTCOME = Literal["completed", "failed", "skipped", "retired", "abandoned", "interrupted", "open"]

MESSAGE_STATUS = Literal["streaming", "complete", "interrupted", "error"]


def shape(name: str, said: str | None, /, *parts: Any, closed: bool = False, **fields: Any) -> Any:
    """A model of answers: the fields of `parts`, which are other shapes or rows of fields, then its own.

    To one that is `closed`, nothing else may be added.
    """
    inherited = (part if isinstance(part, dict) else part.__annotations__ for part in parts)
    make: Any = TypedDict
    made = make(name, {field: kind for part in (*inherited, fields) for field, kind in part.items()})
    made.__doc__ = said
    if closed:
        made.__pydantic_config__ = ConfigDict(extra="forbid")
    return made


def many(kind: Any) -> Any:
    """A list of answers of one shape."""
    return GenericAlias(list, (kind,))


# --- what many answers hold, and what every question may be answered with instead

ProblemOut = shape(
    "ProblemOut",
    "What went wrong: the name of the error, and a sentence that says what to do next.",
    {"error": str, "message": str},
)
PlaceOut = shape("PlaceOut", "A snapshot of a run by number.", run=str, seq=int)
ReferenceOut = shape("ReferenceOut", "A snapshot, also as people write it.", PlaceOut, reference=str)
_SAID: Final = {
    400: "It cannot be understood.",
    403: "It is not allowed: the token, the host or the origin is wrong, or the browser only reads.",
    404: "There is no such run, snapshot or place.",
    408: "It took too long.",
    409: "It cannot be done with the run as it is.",
    410: "The snapshot was pruned.",
    413: "It brings too much.",
    422: "A parameter does not fit, or what is stored is damaged.",
    431: "The address and the headers are too long.",
    503: "The store is in trouble, or too much is asked at once.",
}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ProblemOut, "description": said} for status, said in _SAID.items()
}

KNOWN: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "The client has it already."}}


def sends(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """A description of answers that are not JSON, by their media types."""
    return {200: {"content": {kind: {} for kind in kinds}}}


# --- runs: the list of them, one in full, what it waits for, its files and forks

InfoOut = shape(
    "InfoOut",
    "What this browser looks at, and what it may do.",
    {"version": str, "store": str, "durable": bool, "read_only": bool, "actions": bool, "now": int},
    {"triggers": list[str], "bundle": bool},
    closed=True,
)
DoneOut = shape("DoneOut", "How many of all.", done=int, total=int)
RunOut = shape(
    "RunOut",
    "A run in a line.",
    {"run": str, "family": str, "workflow": str, "status": str, "standing": str, "phase": str | None},
    {"snapshots": int, "owned": bool, "created_at": int, "updated_at": int, "confidence": float | None},
    {"spark": list[float | None], "tasks": DoneOut, "tokens": int, "cost_micros": int, "elapsed_us": int},
    # Of a run that went on without some of its agents, `note` says without whom.
    {"questions": int, "note": str | None, "failure": ProblemOut | None, "origin": PlaceOut | None},
    {"damage": str | None},
)
RunsOut = shape(
    "RunsOut",
    "Some runs, whether there are more, and how many stand how.",
    {"runs": many(RunOut), "more": bool, "counts": dict[str, int]},
    closed=True,
)
AddedOut = shape(
    "AddedOut",
    "What one snapshot added to what was spent.",
    {"tokens": int, "cost_micros": int, "api_calls": int, "elapsed_us": int},
)
MetricsOut = shape(
    "MetricsOut",
    "What was spent.",
    AddedOut,
    {"tokens_in": int, "tokens_out": int, "memory_peak_bytes": int, "recoveries": int, "rollbacks": int},
)
AgentOut = shape(
    "AgentOut",
    "An agent as it is now.",
    {"agent": str, "role": str | None, "status": str, "phase": str | None, "step": str | None},
    {"progress": float, "confidence": float | None, "tokens": int, "attempts": int, "task": str | None},
    {"messages": int},
)
WaitOut = shape(
    "WaitOut",
    "Something that a run waits for, or has waited for.",
    {"run": str, "wait": str, "kind": str, "status": Literal["open", "closed"], "agent": str | None},
    {"task": str | None, "text": str, "choices": list[str], "details": Any, "until": int | None},
    {"opened_at": int, "closed_at": int | None, "answer": Any},
)
WaitsOut = shape("WaitsOut", "What runs wait for.", waits=many(WaitOut))
OutputOut = shape(
    "OutputOut",
    "A file that a run made.",
    {"path": str, "media_type": str, "size": int, "digest": str, "agent": str | None, "task": str | None},
    {"at": int, "stored": bool},
)
OutputsOut = shape("OutputsOut", "The files that a run made.", outputs=many(OutputOut))
ForkOut = shape("ForkOut", "A run that began at a snapshot of this one.", PlaceOut, status=str)
RollbackOut = shape(
    "RollbackOut",
    "That a run went back. `seq` is its snapshot, if it is one of this run.",
    {"seq": int | None, "from_seq": int, "to_seq": int, "reason": str, "at": int, "kept": list[str]},
    {"undone": list[str]},
)
RunInFullOut = shape(
    "RunInFullOut",
    "Everything about one run.",
    RunOut,
    {"head": int, "digest": str, "workflow_digest": str | None, "workflow_file": str | None, "inputs": Any},
    {"environment": Any, "metrics": MetricsOut, "agents": many(AgentOut), "waits": many(WaitOut)},
    {"outputs": many(OutputOut), "forks": many(ForkOut), "rollbacks": many(RollbackOut)},
    {"thresholds": list[float], "resumable": bool, "playing": bool},
)
RelativeOut = shape(
    "RelativeOut",
    "A run of a family.",
    {"run": str, "status": str, "standing": str, "created_at": int, "head": int, "origin": PlaceOut | None},
)
FamilyOut = shape("FamilyOut", "A run with all its forks.", family=str, runs=many(RelativeOut))
FindingOut = shape(
    "FindingOut", "Something that a verification found.", what=str, where=str, reason=str, severity=str
)
VerifiedOut = shape(
    "VerifiedOut",
    "What is known of a run after it was verified.",
    {"whole": bool, "problems": many(FindingOut), "newest_whole": str | None},
)

# --- snapshots: all as columns, what happened in some, the outline, one in full

ColumnsOut = shape(
    "ColumnsOut",
    "A list for each column; status, phase, triggers and agents are positions in `words`.",
    {"seq": list[int] | None, "at": list[int], "status": list[int], "phase": list[int]},
    {"triggers": list[int], "agents": list[int], "flags": list[int], "size": list[int]},
)
WordsOut = shape(
    "WordsOut",
    "What the numbers in columns stand for.",
    {"status": list[str], "phase": list[str], "triggers": list[list[str]], "agents": list[list[str]]},
)
SnapshotsOut = shape(
    "SnapshotsOut",
    "The snapshots of a run as columns. Without `seq` they follow one another from `first` on.",
    {"run": str, "head": int, "no": int, "count": int, "first": int | None, "columns": ColumnsOut},
    {"words": WordsOut},
    closed=True,
)
EventOut = shape(
    "EventOut",
    "One thing that happened, with the sentence that people read.",
    {"kind": str, "who": str | None, "what": str, "figures": dict[str, float], "sentence": str},
)
HeadlineRowOut = shape(
    "HeadlineRowOut",
    "What happened in one snapshot.",
    {"seq": int, "digest": str | None, "at": int, "main": str, "events": many(EventOut)},
    {"confidence": float | None, "generation": int | None, "damage": str | None},
)
HeadlinesOut = shape(
    "HeadlinesOut", "What happened in some snapshots.", first=int, rows=many(HeadlineRowOut), closed=True
)
SeriesOut = shape("SeriesOut", "A value that changed, and where.", seq=list[int], value=list[float | None])
SpentOut = shape("SpentOut", "Tokens that snapshots added.", seq=list[int], tokens=list[int])
BarOut = shape(
    "BarOut",
    None,
    {"agent": str, "task": str, "attempt": int, "from": int, "to": int | None, "from_at": int},
    {"to_at": int | None, "outcome": OUTCOME},
)
StretchOut = shape("StretchOut", None, {"phase": str, "visit": int, "from": int, "to": int | None})
JumpOut = shape("JumpOut", None, {"seq": int, "from": int | None, "to": int | None, "reason": str})
OutlineOut = shape(
    "OutlineOut",
    "What a strip over all snapshots shows.",
    {"run": str, "upto": int, "more": bool, "confidence": SeriesOut, "bars": many(BarOut)},
    {"phases": many(StretchOut), "jumps": many(JumpOut), "errors": list[int], "decisions": list[int]},
    {"waits": list[int], "spent": SpentOut, "thresholds": list[float]},
    closed=True,
)
DecisionOut = shape(
    "DecisionOut",
    "A choice, why, and what else was considered.",
    {"seq": int, "at": int, "agent": str, "kind": str, "description": str, "rationale": str},
    {"confidence": float | None, "alternatives": list[str], "details": Any, "undone": bool},
    {"inherited": bool},
)
DecisionsOut = shape("DecisionsOut", "The decisions of a run.", decisions=many(DecisionOut))
SnapshotMetricsOut = shape(
    "SnapshotMetricsOut", "What was spent up to a snapshot, and in it.", MetricsOut, added=AddedOut
)
SnapshotOut = shape(
    "SnapshotOut",
    "One snapshot without its state.",
    ReferenceOut,
    {"digest": str, "uuid": str, "parent": str | None, "at": int, "status": str, "phase": str | None},
    {"ordinal": int | None, "generation": int | None, "triggers": list[str], "marked": bool},
    {"agents": list[str], "confidence": float | None, "size": int, "pruned": bool, "sealed": bool},
    {"pin": str | None, "note": str | None, "events": many(EventOut), "decisions": many(DecisionOut)},
    {"metrics": SnapshotMetricsOut | None, "verified": bool, "damage": str | None},
    {"builds_on": PlaceOut | None, "undone": bool, "forks": list[str]},
    closed=True,
)

# --- states: what stands at a path, what differs, who set it, where it holds

StateOut = shape(
    "StateOut",
    "What stands at a path of a state.",
    {"reference": str, "path": list[str | int], "text": str, "kind": str, "count": int | None, "value": Any},
    {"whole": bool},
    closed=True,
)
ChangeOut = shape(
    "ChangeOut",
    "One difference.",
    {"path": list[str | int], "text": str, "kind": Literal["added", "removed", "changed"], "before": Any},
    {"after": Any},
)
CountsOut = shape(
    "CountsOut", "How many differences of each kind are listed.", added=int, removed=int, changed=int
)
DiffOut = shape(
    "DiffOut",
    None,
    {"from": ReferenceOut | None, "to": ReferenceOut, "changes": many(ChangeOut), "counts": CountsOut},
    {"truncated": bool},
)
BlameOut = shape(
    "BlameOut",
    "Who last set a value.",
    ReferenceOut,
    {"at": int, "who": str | None, "event": EventOut | None, "exact": bool, "before": Any, "after": Any},
    {"was_there": bool, "text": str},
    closed=True,
)
SeqsOut = shape("SeqsOut", "Snapshots by number.", seqs=list[int])
MatchesOut = shape("MatchesOut", "Snapshots where a condition holds.", SeqsOut, truncated=bool)
FirstOut = shape(
    "FirstOut",
    "The first snapshot where a condition holds, if there is one.",
    seq=int | None,
    reference=str | None,
)

# --- conversations of agents with language models

TalkOut = shape(
    "TalkOut",
    "That an agent has a conversation with a language model, and what it took.",
    {"agent": str, "tasks": list[str], "messages": int, "model": str | None, "status": MESSAGE_STATUS},
    {"tokens": int, "cost_micros": int, "updated_at": int},
)
TalksOut = shape(
    "TalksOut", "Who has a conversation at a snapshot.", ReferenceOut, conversations=many(TalkOut)
)
CallQuestionOut = shape(
    "CallQuestionOut",
    "What a person was asked about a tool call: whether it may run, or whether it is run again.",
    {"wait": str, "text": str, "status": Literal["open", "closed"], "opened_at": int},
    {"closed_at": int | None, "answer": Any},
)
CallOut = shape(
    "CallOut",
    "A tool call that a message asks for. `name` is that of its record; it has none before it began.",
    {"id": str, "name": str, "tool": str, "arguments": Any, "result": Any, "error": str, "risky": bool},
    {"status": Literal["asked", "waiting", "started", "done", "failed", "refused"], "attempts": int},
    {"started_at": int | None, "ended_at": int | None, "questions": many(CallQuestionOut)},
)
PartOut = shape(
    "PartOut",
    "One piece of a message. At `path` the state has its whole text.",
    {"kind": Literal["text", "reasoning", "answer", "tool_call", "tool_result", "other"], "text": Any},
    {"path": list[str | int], "data": Any, "call": CallOut | None},
)
GenerationOut = shape(
    "GenerationOut",
    "What a language model was asked with, and what its answer used.",
    {"model": str, "tokens_in": int, "tokens_out": int, "cache_read": int, "cache_write": int},
    {"cost_micros": int | None, "latency_us": int, "finish": str, "asked": str | None, "settings": Any},
)
MessageOut = shape(
    "MessageOut",
    "A message. `snapshot` is where it got its last words; one superseded was said again, one that is "
    "compacted is seen by the model no more: a summary `stands_for` it.",
    {"message": str, "agent": str | None, "task": str | None, "round": int, "step": int},
    {"role": Literal["user", "assistant", "system", "tool"], "status": MESSAGE_STATUS, "model": str | None},
    {"superseded": bool, "compacted": bool, "stands_for": many(str)},
    {"snapshot": PlaceOut | None, "created_at": int, "updated_at": int},
    {"completed_at": int | None, "generation": GenerationOut | None, "parts": many(PartOut)},
)
ConversationOut = shape(
    "ConversationOut",
    "Some messages of a conversation: those from number `first` on, of `count`.",
    ReferenceOut,
    {"who": str, "count": int, "first": int, "messages": many(MessageOut)},
    closed=True,
)

# --- a workflow: its graph, with the way a run took

SpecialistOut = shape(
    "SpecialistOut",
    "An assignment of a phase.",
    {"id": str, "agent": str, "task": str, "needs": list[str], "foreach": str | None, "into": str | None},
)
CriterionOut = shape("CriterionOut", "What is judged, and how much it counts.", name=str, weight=float)
EvaluateOut = shape(
    "EvaluateOut",
    "The evaluation at the end of a phase.",
    {"agent": str, "threshold": float, "rubric": many(CriterionOut)},
)
PhaseOut = shape(
    "PhaseOut",
    "A node of the graph.",
    {"id": str, "description": str, "specialists": many(SpecialistOut), "evaluate": EvaluateOut | None},
    {"visits": int, "status": Literal["done", "current", "not reached"]},
)
EdgeOut = shape("EdgeOut", None, {"from": str, "to": str, "when": str | None, "taken": int})
VisitOut = shape(
    "VisitOut",
    "One visit of a phase, and the snapshot it began with.",
    {"phase": str, "visit": int, "seq": int | None, "started_at": int, "completed_at": int | None},
)
WorkflowOut = shape(
    "WorkflowOut",
    "A definition as a graph, with the way a run took.",
    {"name": str, "digest": str | None, "file": str | None, "phases": many(PhaseOut), "edges": many(EdgeOut)},
    {"entry": str | None, "exits": list[str], "path": many(VisitOut)},
)

# --- actions: what one would mean, and what came of it

PlannedOut = shape(
    "PlannedOut",
    "What an action would mean.",
    {"action": Literal["fork", "resume", "rollback", "replay"], "run": str, "at": int, "to": int | None},
    {"phase": str | None, "undone": list[str], "kept": list[str], "again": list[str], "effects": list[str]},
    {"tokens": int, "cost_micros": int, "sentences": list[str]},
)
BegunOut = shape("BegunOut", "A run, and whether it is played by this process.", run=str, playing=bool)
WentBackOut = shape("WentBackOut", "A run that went back, and where to.", BegunOut, to=int)
OrderedOut = shape("OrderedOut", "A run after an order.", BegunOut, status=str, standing=str)
PinnedOut = shape("PinnedOut", "A snapshot and what its pin says, if it has one.", PlaceOut, pin=str | None)
NotedOut = shape("NotedOut", "A snapshot and its note, if it has one.", PlaceOut, note=str | None)
RestoredOut = shape("RestoredOut", "That a run was restored.", success=bool, message=str)
NotRestoredOut = shape("NotRestoredOut", "That a run could not be restored.", error=str)
