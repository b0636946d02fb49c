"""The snapshot store by itself: recording runs that something else drives, and reading any run back."""

from orchestra.app.compose import SystemClock, open_manager
from orchestra.checkpoint.commit import ActiveRun
from orchestra.checkpoint.manager import CheckpointManager
from orchestra.checkpoint.settings import CheckpointSettings, RetentionSettings
from orchestra.codec.values import freeze, thaw
from orchestra.engine.rollback import RollbackPlan
from orchestra.history.archive import Archive
from orchestra.history.blame import Blame, blame
from orchestra.history.compare import Change, Diff
from orchestra.history.paths import parse_path
from orchestra.history.references import resolve
from orchestra.history.story import StoryEntry
from orchestra.ids import AgentId, Instant, PhaseId, RunId, TaskId, new_run_id
from orchestra.model import events
from orchestra.model.records import Confidence, Decision, Failure, Output, Task, Verdict, Wait
from orchestra.model.snapshot import Header, Headline, Snapshot, Trigger
from orchestra.model.state import RunStatus, State, WorkflowRef
from orchestra.model.value import Value
from orchestra.ports.sink import Notice, Sink
from orchestra.ports.store import Row, RunRow, Store
from orchestra.stores.registry import open_store

__all__ = [
    "ActiveRun",
    "AgentId",
    "Archive",
    "Blame",
    "Change",
    "CheckpointManager",
    "CheckpointSettings",
    "Confidence",
    "Decision",
    "Diff",
    "Failure",
    "Header",
    "Headline",
    "Instant",
    "Notice",
    "Output",
    "PhaseId",
    "RetentionSettings",
    "RollbackPlan",
    "Row",
    "RunId",
    "RunRow",
    "RunStatus",
    "Sink",
    "Snapshot",
    "State",
    "Store",
    "StoryEntry",
    "SystemClock",
    "Task",
    "TaskId",
    "Trigger",
    "Value",
    "Verdict",
    "Wait",
    "WorkflowRef",
    "blame",
    "events",
    "freeze",
    "new_run_id",
    "open_manager",
    "open_store",
    "parse_path",
    "resolve",
    "thaw",
]
