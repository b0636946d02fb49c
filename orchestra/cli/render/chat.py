"""A conversation as people read one: who says what, which tools are called, and what an answer took.

It is printed as it grows: what was printed once is not printed again, so following a conversation and
showing one that is over are the same.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from orchestra.cli.render.screen import Line, Screen, Span, Style
from orchestra.cli.render.text import count
from orchestra.cli.render.times import duration
from orchestra.codec.json_values import to_json
from orchestra.history.conversation import AskedCall, SpokenMessage, SpokenPart
from orchestra.model.records import Generation
from orchestra.ports.store import Row

_INDENT: Final = "  "
_LONG_CHARS: Final = 400
_LONG_LINES: Final = 8
_ROLES: Final[Mapping[str, Style]] = {"assistant": "accent", "user": "bold", "system": "bold", "tool": "bold"}
_STATUSES: Final[Mapping[str, Style]] = {"streaming": "accent", "interrupted": "warn", "error": "bad"}
_CALLS: Final[Mapping[str, tuple[str, Style]]] = {
    "asked": ("is not called yet", "dim"),
    "waiting": ("waits for approval", "warn"),
    "started": ("is at work", "accent"),
    "failed": ("failed", "bad"),
    "refused": ("was refused", "warn"),
}

Said = list[tuple[str, str]]
"""Text by the kind of its part; neighbours of a kind are one."""


class ChatPrinter:
    """Prints messages as they come and grow."""

    def __init__(self, out: Screen, *, whole: bool) -> None:
        self._out, self._whole = out, whole
        self._begun: dict[str, Said] = {}  # what was printed of each message
        self._ended: set[str] = set()
        self._calls: dict[tuple[str, str], str] = {}  # the status that was told last
        self._open = False  # whether the last line may go on
        self._fresh = False  # and nothing stands in it yet
        self._task: str | None = None

    def show(self, messages: Iterable[SpokenMessage], rows: Mapping[str, Row]) -> None:
        """Print what is new, up to the first message that still streams; `rows` are where they ended."""
        for spoken in messages:
            self._begin(spoken)
            if spoken.name not in self._ended:
                self._grow(spoken)
                if spoken.held.status == "streaming":
                    break
                self._end(spoken, rows.get(spoken.name))
            self._tell_calls(spoken, final=False)
        self._out.out.flush()

    def finish(self, messages: Iterable[SpokenMessage], rows: Mapping[str, Row]) -> None:
        """Print the rest when nothing more is waited for: also what streams, and calls that are not over."""
        for spoken in messages:
            self._begin(spoken)
            if spoken.name not in self._ended:
                self._grow(spoken)
                self._end(spoken, rows.get(spoken.name))
            self._tell_calls(spoken, final=True)
        self._out.out.flush()

    def _line(self, *spans: Span | str) -> None:
        self._close_line()
        self._out.line(*spans)

    def _close_line(self) -> None:
        if self._open:
            self._out.line()
            self._open = False

    def _begin(self, spoken: SpokenMessage) -> None:
        if spoken.name in self._begun:
            return
        held = spoken.held
        if self._begun:
            self._line()
        if held.task != self._task:
            self._task = held.task
            self._line((held.task or "", "dim"))
            self._line()
        self._begun[spoken.name] = []
        facts = [f"step {held.step_number}"] if held.role == "assistant" and held.step_number else []
        facts += [f"sums up {count(len(held.stands_for), 'message')}"] if held.stands_for else []
        facts += [f"round {held.round}"] if held.round > 1 else []
        facts += [held.model] if held.model else []
        self._line(
            (held.role, _ROLES.get(held.role, "bold")), ("".join(f"  {fact}" for fact in facts), "dim")
        )

    def _grow(self, spoken: SpokenMessage) -> None:
        """Print the text that was not printed before."""
        before, now = self._begun[spoken.name], said_in(spoken.parts)
        new = rest_of(before, now)
        if new is None:
            self._line((f"{_INDENT}… it was kept as:", "dim"))
            new = now
        for kind, text in new:
            self._text(kind, text, goes_on=self._open and bool(before) and before[-1][0] == kind)
            before = [(kind, text)]
        self._begun[spoken.name] = now

    def _text(self, kind: str, text: str, *, goes_on: bool) -> None:
        style: Style = "dim" if kind == "reasoning" else ""
        if self._open and not goes_on:
            self._out.line()
        self._fresh = self._fresh or not goes_on
        for at, line in enumerate(text.expandtabs(4).split("\n")):
            if at:
                self._out.line()
                self._fresh = True
            self._write(line, style)
        self._open = True

    def _write(self, text: str, style: Style) -> None:
        """Write a line that may go on; spaces at its end are kept, the next words may follow them."""
        if text:
            bare = text.rstrip(" ")
            start = _INDENT if self._fresh else ""
            self._out.out.write(start + self._out.render([(bare, style)]) + text[len(bare) :])
            self._fresh = False

    def _end(self, spoken: SpokenMessage, row: Row | None) -> None:
        """Print what stands below a message: errors, calls, what it took and where it can be forked from."""
        self._ended.add(spoken.name)
        for part in spoken.parts:
            if part.call is not None:
                self._block(
                    [("→ ", "accent"), (part.call.tool, "bold"), ("  ", "")], argument_text(part.call)
                )
            elif part.kind == "answer":
                self._block([], answer_text(part.data))
            elif part.kind == "other":
                error = part.data.get("error") if isinstance(part.data, dict) else None
                style: Style = "dim" if error is None else "bad"
                self._block([], str(error) if error is not None else _as_text(part.data), style)
        self._close_line()
        if foot := foot_line(spoken, row):
            self._line(_INDENT, *foot)

    def _tell_calls(self, spoken: SpokenMessage, *, final: bool) -> None:
        """Print how the calls of a message stand, each status once; those under way only at the end."""
        for call in spoken.calls:
            told = self._calls.get((spoken.name, call.id))
            worth = call.is_over or call.status == "waiting" or (final and not spoken.superseded)
            if not worth or told == call.status:
                continue
            self._calls[spoken.name, call.id] = call.status
            words, style = _CALLS.get(call.status, ("", ""))
            start: list[Span] = [
                ("← ", "good" if call.status == "done" else style),
                (call.tool, "bold"),
                ("  ", ""),
            ]
            text = result_text(call)
            self._block([*start, (f"{words}{': ' if text and words else ''}", style)], text)

    def _block(self, start: Line, text: str, style: Style = "") -> None:
        """A value that may be long, behind what begins its first line."""
        first, *more = (text if self._whole else shorten(text)).expandtabs(4).split("\n")
        self._line(_INDENT, *start, (first, style))
        for line in more:
            self._line(_INDENT * 2, (line, style))


def said_in(parts: Iterable[SpokenPart]) -> Said:
    """What was said in a message, by kind; neighbours of a kind are one, as they are while they stream."""
    said: Said = []
    for part in parts:
        if not part.text:
            continue
        if said and said[-1][0] == part.kind:
            said[-1] = part.kind, said[-1][1] + part.text
        else:
            said.append((part.kind, part.text))
    return said


def rest_of(before: Said, now: Said) -> Said | None:
    """What was said since; None when it is not what was said before and more."""
    if not before:
        return now
    (*same, (kind, text)), at = before, len(before) - 1
    if len(now) <= at or now[:at] != same or now[at][0] != kind or not now[at][1].startswith(text):
        return None
    grown = now[at][1][len(text) :]
    return [*([(kind, grown)] if grown else []), *now[at + 1 :]]


def foot_line(spoken: SpokenMessage, row: Row | None) -> list[Span]:
    """How a message ended if that is not plain, what the answer took, and its snapshot."""
    held = spoken.held
    words: list[Span] = []
    if held.status != "complete":
        words.append((held.status, _STATUSES.get(held.status, "warn")))
    if spoken.superseded:
        words.append(("superseded", "warn"))
    if spoken.compacted:
        words.append(("summed up since", "dim"))
    if held.generation is not None and held.status == "complete":
        words += [(fact, "dim") for fact in generation_facts(held.generation)]
    if row is not None:
        words.append((f"{row.run}@{row.seq}{' (pruned)' if row.pruned else ''}", "dim"))
    line: list[Span] = []
    for at, word in enumerate(words):
        line += [(" · ", "dim"), word] if at else [word]
    return line


def generation_facts(held: Generation) -> Iterator[str]:
    """What an answer took, in words."""
    yield f"{count(held.tokens_in, 'token')} in, {held.tokens_out:,} out"
    if held.cache_read:
        yield f"{held.cache_read:,} from the cache"
    if held.cost_micros is not None:
        yield f"{held.cost_micros / 1_000_000:.4g} paid"
    yield duration(held.latency_us)
    if held.finish not in ("", "stop", "tool_call"):
        yield f"ended by {held.finish}"


def argument_text(call: AskedCall) -> str:
    """The arguments of a call; a model gives them as JSON, or as text that should be."""
    return call.arguments if isinstance(call.arguments, str) else _as_text(call.arguments)


def answer_text(data: Any) -> str:
    """An answer that has a form, a line for each of its fields."""
    held = data.get("arguments") if isinstance(data, dict) else data
    try:
        plain = json.loads(held) if isinstance(held, str) else to_json(held)
    except ValueError:  # it never had the form it should have
        return str(held)
    if not isinstance(plain, dict):
        return json.dumps(plain, ensure_ascii=False)
    fields = ((name, each if isinstance(each, str) else _as_text(each)) for name, each in plain.items())
    return "\n".join(f"{name}: {text}" for name, text in fields)


def result_text(call: AskedCall) -> str:
    """What came of a call."""
    if call.record is not None and call.record.error:
        return call.record.error
    if call.status != "done":
        return ""
    return call.result if isinstance(call.result, str) else _as_text(call.result)


def _as_text(held: Any) -> str:
    return "" if held is None else json.dumps(to_json(held), ensure_ascii=False)


def shorten(text: str) -> str:
    """A text that is not too long to be read in passing; what is left out is counted."""
    lines = text.rstrip("\n").split("\n")
    kept = "\n".join(lines[:_LONG_LINES])
    if len(kept) > _LONG_CHARS:
        return f"{kept[:_LONG_CHARS].rstrip()}… ({count(len(text), 'character')}; --full shows all)"
    if len(lines) > _LONG_LINES:
        return f"{kept}\n… ({count(len(lines), 'line')}; --full shows all)"
    return kept
