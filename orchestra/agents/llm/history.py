"""What a model is told again: the messages of earlier rounds of its assignment, as it saw them."""

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart

from orchestra.agents.llm.journal import Journal
from orchestra.agents.llm.messages import response_of
from orchestra.ports.agent import ChatMessage

ACCEPTED = "done"
"""What a call is answered with that no tool runs for: it gave the answer its form."""


def earlier_messages(journal: Journal) -> list[ModelMessage]:
    """The conversation of the rounds before this one; every call in it is answered, as providers demand."""
    found: list[ModelMessage] = []
    said: list[UserPromptPart | ToolReturnPart] = []
    for message in journal.earlier:
        if message.role == "user":
            said.extend(UserPromptPart(content=part.text) for part in message.parts)
        elif message.role == "assistant":
            if said:
                found.append(ModelRequest(parts=list(said)))
            found.append(response_of(message))
            said = _returns(journal, message)
    if said:
        found.append(ModelRequest(parts=list(said)))
    return found


def _returns(journal: Journal, message: ChatMessage) -> list[UserPromptPart | ToolReturnPart]:
    returns: list[UserPromptPart | ToolReturnPart] = []
    for part in message.parts:
        if part.kind not in ("tool_call", "answer"):
            continue
        held = journal.call_of(part.data["id"])
        content = ACCEPTED if held is None else held.result if held.status == "done" else held.error
        returns.append(
            ToolReturnPart(tool_name=part.data["name"], content=content, tool_call_id=part.data["id"])
        )
    return returns
