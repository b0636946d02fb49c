"""What an agent is told when it is launched again, word for word. CHECKLIST 000.38."""

import pytest

from orchestra.engine.agents.mercury import resume_text
from orchestra.ids import AgentId, Instant, PhaseId
from orchestra.model.records import AgentState, Failure, Task

FAILURE = Failure(error="RuntimeError", message="the light went out", at=Instant(1))
TASK = Task(agent=AgentId("reader"), phase=PhaseId("read"))
FAILED = Task(agent=AgentId("reader"), phase=PhaseId("read"), failure=FAILURE)


def test_of_an_agent_that_never_said_where_it_is() -> None:
    """Nothing failed, so there is no reason to name."""
    assert resume_text(TASK, AgentState(role="mercury")).splitlines() == [
        "# Resuming from Checkpoint",
        "",
        "## Previous State",
        "- Phase: read",
        "- Step: none",
        "- Progress: 0%",
        "- Tokens Used: 0",
        "",
        "Checkpoint Type: milestone",
        "",
        "## Instructions",
        "Resume from where you left off. Do not repeat completed work.",
        "Continue with the next step.",
    ]


def test_of_an_agent_that_said_where_it_is() -> None:
    held = AgentState(role="mercury", step="chapter 3", progress=0.456, tokens=70)
    assert resume_text(FAILED, held).splitlines() == [
        "# Resuming from Checkpoint",
        "",
        "## Previous State",
        "- Phase: read",
        "- Step: chapter 3",
        "- Progress: 46%",
        "- Tokens Used: 70",
        "",
        "Checkpoint Type: error",
        "Reason: RuntimeError: the light went out",
        "",
        "## Instructions",
        "Resume from where you left off. Do not repeat completed work.",
        "Continue with: chapter 3",
    ]


@pytest.mark.parametrize(
    ("task", "kind", "reason"),
    [(TASK, "milestone", False), (FAILED, "error", True)],
    ids=["interrupted", "failed"],
)
@pytest.mark.parametrize("step", [None, "chapter 3"])
def test_the_reason_and_the_step_do_not_depend_on_one_another(
    task: Task, kind: str, reason: bool, step: str | None
) -> None:
    text = resume_text(task, AgentState(role="mercury", step=step))
    assert f"\nCheckpoint Type: {kind}\n" in text
    assert ("\nReason: RuntimeError: the light went out\n" in text) == reason
    assert text.endswith(f"\nContinue with: {step}" if step else "\nContinue with the next step.")
    assert text == text.strip()
