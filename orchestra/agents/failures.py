"""One failure for everything that can go wrong in an agent, with all that helps to understand it.

The stack is the agent's own: frames of this package and of what runs its loop are folded into a line, because
whoever reads it wants to know what the agent did. Nothing here may raise, however strange the error is.
"""

import asyncio
import os
import re
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import anyio

from orchestra.codec.values import spell_surrogates
from orchestra.errors import AgentFailed, BadAgent, BadAgentKind
from orchestra.ids import AgentId
from orchestra.limits import AGENT_GROUP_ERRORS, AGENT_MESSAGE_CHARS, AGENT_STACK_BYTES

_FRAME: Final = re.compile(r'(?P<margin>[ |]*)File "(?P<file>[^"]+)", line \d+')
_PACKAGES: Final = {
    "orchestra": f"{Path(__file__).parent.parent}{os.sep}",
    "anyio": f"{Path(anyio.__file__).parent}{os.sep}",
    "asyncio": f"{Path(asyncio.__file__).parent}{os.sep}",
    "threading": threading.__file__,
}
"""Whose frames are folded, and where they are."""
_LASTING: Final = (BadAgent, BadAgentKind, ImportError, NotImplementedError, SyntaxError)
"""Errors that another attempt will meet again."""


def failure_of(agent: AgentId, error: BaseException) -> AgentFailed:
    """The failure of an attempt that ended with an error."""
    try:
        if isinstance(error, AgentFailed):
            return _completed(agent, error)
        return AgentFailed(
            agent=agent,
            error=type(error).__name__,
            message=message_of(error),
            stack=stack_of(error),
            recoverable=_recoverable(error),
            details=_details(error),
        )
    except BaseException as trouble:  # the error's own code ran, and raised in its turn
        words = f"nothing can be told about it: {type(trouble).__name__} when it was looked at"
        return misbehaviour(agent, type(error).__name__, words)


def misbehaviour(
    agent: AgentId, error: str, message: str, *, details: Any = None, recoverable: bool = True
) -> AgentFailed:
    """The failure of an agent that raised nothing and still did not do what it must."""
    return AgentFailed.plain(agent, error, message, recoverable=recoverable, details=details)


def message_of(error: BaseException) -> str:
    """What an error says; the errors of a group are listed."""
    if isinstance(error, BaseExceptionGroup):
        members = list(_members(error))
        listed = "; ".join(f"{type(each).__name__}: {_said(each)}" for each in members[:AGENT_GROUP_ERRORS])
        more = len(members) - AGENT_GROUP_ERRORS
        return _cut(f"{len(members)} errors: {listed}" + (f"; and {more} more" if more > 0 else ""))
    return _cut(_said(error) or _without_words(error))


def stack_of(error: BaseException) -> str:
    """The traceback with frames of ours folded, bounded; its beginning and its end count most."""
    try:
        summary = traceback.TracebackException.from_exception(error, limit=-100)
        return _bounded("".join(_folded("".join(summary.format()).splitlines(keepends=True))))
    except BaseException as trouble:
        return f"{type(error).__name__} (its traceback cannot be shown: {type(trouble).__name__})"


def _completed(agent: AgentId, error: AgentFailed) -> AgentFailed:
    known = {"details": None, "recoverable": True, "error": "AgentFailed", "message": "", **error.data}
    words = {name: spell_surrogates(str(known[name])) for name in ("error", "message")}
    held = known.get("stack")  # empty: whoever made it says that there is none to look at
    stack = spell_surrogates(str(stack_of(error) if held is None else held))
    return AgentFailed(**{**known, **words, "agent": agent, "stack": stack})


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as trouble:
        return f"<its text cannot be had: {type(trouble).__name__}>"


def _without_words(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "the agent ended its own process"
    if isinstance(error, KeyboardInterrupt):
        return "the agent was interrupted"
    return f"the agent raised {type(error).__name__} without a word"


def _recoverable(error: BaseException) -> bool:
    """Whether another attempt may help; an error may say so itself by an attribute of that name."""
    try:
        own = getattr(error, "recoverable", None)
    except BaseException:
        own = None
    return own if isinstance(own, bool) else not isinstance(error, _LASTING)


def _details(error: BaseException) -> Any:
    if isinstance(error, BaseExceptionGroup):
        members = list(_members(error))[:AGENT_GROUP_ERRORS]
        return {"errors": [{"error": type(each).__name__, "message": _cut(_said(each))} for each in members]}
    if isinstance(error, SystemExit):
        return {"exit_code": error.code if isinstance(error.code, int | None) else str(error.code)}
    return None


def _members(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _members(each)
        else:
            yield each


def _folded(lines: list[str]) -> Iterator[str]:
    """The lines of a traceback; frames of ours that follow one another are one line that counts them."""
    ours: list[str] = []
    margin = ""
    within = False  # whether the line belongs to a frame of ours
    for line in lines:
        found = _FRAME.match(line)
        whose = None
        if found:  # the file is one of our packages', or of those that run our loop
            whose = next((name for name, place in _PACKAGES.items() if found["file"].startswith(place)), None)
        within = whose is not None if found else within and line.startswith(f"{margin}  ")
        if found and whose:
            margin = found["margin"]
            ours.append(whose)
        elif not within:
            yield from _fold(margin, ours)
            ours = []
            yield line
    yield from _fold(margin, ours)


def _fold(margin: str, ours: list[str]) -> Iterator[str]:
    if ours:
        frames = "frame" if len(ours) == 1 else "frames"
        yield f"{margin}… {len(ours)} {frames} of {', '.join(dict.fromkeys(ours))}\n"


def _bounded(text: str) -> str:
    encoded = text.encode(errors="backslashreplace")
    if len(encoded) <= AGENT_STACK_BYTES:
        return encoded.decode()
    head, tail = AGENT_STACK_BYTES // 4, AGENT_STACK_BYTES // 4 * 3 - 100
    left = len(encoded) - head - tail
    first, last = encoded[:head].decode(errors="ignore"), encoded[-tail:].decode(errors="ignore")
    return f"{first}\n… {left} bytes left out …\n{last}"


def _cut(text: str) -> str:
    text = spell_surrogates(text)
    return text if len(text) <= AGENT_MESSAGE_CHARS else f"{text[:AGENT_MESSAGE_CHARS]}…"
