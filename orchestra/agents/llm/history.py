"""What a model is told again: the messages of earlier rounds of its assignment, as it saw them."""

from collections.abc import Iterator

import attrs
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart

from orchestra.agents.llm.journal import Journal
from orchestra.agents.llm.messages import response_of
from orchestra.ports.agent import ChatMessage, ChatPlace

ACCEPTED = "done"
"""What a call is answered with that no tool runs for: it gave the answer its form."""


@attrs.frozen
class Told:
    """A message as a model is told it, and where on the record that stands."""

    message: ModelMessage
    places: tuple[ChatPlace, ...] = ()


def earlier_messages(journal: Journal) -> list[Told]:
    """The conversation of the rounds before this one; every call in it is answered, as providers demand."""
    found: list[Told] = []
    said: list[UserPromptPart | ToolReturnPart] = []
    places: list[ChatPlace] = []
    for message in _shortened(journal):
        if message.role == "assistant" and not message.stands_for:
            if said:
                found.append(Told(ModelRequest(parts=list(said)), tuple(places)))
            found.append(Told(response_of(message), (message.place,)))
            said, places = _returns(journal, message), []
        elif message.stands_for:
            task = said.pop().content if said and isinstance(said[-1], UserPromptPart) else ""
            said.append(UserPromptPart(content=told_summary(summary_text(message), str(task))))
            places.append(message.place)
        elif message.role != "system":
            said.extend(UserPromptPart(content=part.text) for part in message.parts)
            places.append(message.place)
    if said:
        found.append(Told(ModelRequest(parts=list(said)), tuple(places)))
    return found


def _shortened(journal: Journal) -> Iterator[ChatMessage]:
    """The messages of earlier rounds; where some were summed up, the summary stands in their place."""
    summaries = [each for each in journal.earlier if each.stands_for and summary_text(each)]
    gone = {place for each in summaries for place in each.stands_for}
    instead = {max(each.stands_for): each for each in summaries if each.place not in gone}
    for message in journal.earlier:
        if message.place in instead:
            yield instead[message.place]
        elif message.place not in gone and not message.stands_for:
            yield message


def told_summary(summary: str, task: str = "") -> str:
    """A summary as the model is told it, behind the task if that is gone otherwise."""
    told = f"What was said and done before this was long; you summed it up so:\n\n{summary}"
    return f"{task}\n\n{told}" if task else told


def summary_text(message: ChatMessage) -> str:
    """What a summary says."""
    return "".join(part.text for part in message.parts if part.kind == "text").strip()


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
