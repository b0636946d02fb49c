"""JSON lines between a runner and a program: what a line says, and how it is written.

Every line is one JSON object with a `type`. Values are in the JSON form of
`orchestra.codec.json_values`: what JSON has stands as it is, the rest in marked forms that come back
exact. `docs/reference/json-lines.md` is the protocol for people who write programs.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import attrs

from orchestra.codec.address import Addresser
from orchestra.codec.json_values import BadForm, from_json, to_json
from orchestra.codec.values import freeze, freeze_leniently, thaw
from orchestra.limits import AGENT_LINE_SHOWN_CHARS
from orchestra.ports.agent import Assignment, Judgement, Report, Result, RubricLine

PROTOCOL: Final = 1
_LISTS: Final = ("alternatives", "blockers", "choices", "feedback", "issues", "outputs")
_ADDRESSER: Final = Addresser()


class BadLine(Exception):
    """A line that is no message; the text says why."""


def line_of(message: Mapping[str, Any], *, lenient: bool = False) -> bytes:
    """A message as a line; raises `UnstorableValue` for what could not be stored either."""
    frozen = (freeze_leniently if lenient else freeze)(dict(message), _ADDRESSER)
    return json.dumps(to_json(thaw(frozen)), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def message_of(line: bytes) -> dict[str, Any]:
    """The message in a line; raises `BadLine`."""
    try:
        found = from_json(json.loads(line, parse_constant=_no_constant))
    except BadForm as error:
        raise BadLine(f"it holds a form that cannot be read: {error}") from None
    except RecursionError:
        raise BadLine("it is nested too deeply") from None
    except ValueError:
        raise BadLine("it is no JSON") from None
    if not isinstance(found, dict):
        raise BadLine("it is no JSON object")
    if not isinstance(found.get("type"), str):
        raise BadLine('it has no "type"')
    return found


def shown_line(line: bytes) -> str:
    """The beginning of a line, for people."""
    text = line[: AGENT_LINE_SHOWN_CHARS * 4].decode(errors="replace").rstrip("\n")
    return text if len(text) <= AGENT_LINE_SHOWN_CHARS else f"{text[:AGENT_LINE_SHOWN_CHARS]}…"


def assignment_message(assignment: Assignment) -> dict[str, Any]:
    """The first line to a program."""
    fields = _lists(attrs.asdict(assignment, recurse=False))
    for name in ("inputs", "context", "needs", "settings", "results"):
        fields[name] = dict(fields[name])
    fields["rubric"] = [attrs.asdict(line) for line in assignment.rubric]
    return {"type": "assignment", "protocol": PROTOCOL, **fields}


def assignment_of(message: Mapping[str, Any]) -> Assignment:
    """The assignment in such a line, which must be one of ours."""
    assert message.get("type") == "assignment", "BUG: the first line to a process is its assignment"
    assert message.get("protocol") == PROTOCOL, "BUG: both ends are of one version"
    fields = {name: value for name, value in message.items() if name not in ("type", "protocol")}
    for name in ("feedback", "outputs"):
        fields[name] = tuple(fields[name])
    fields["rubric"] = tuple(RubricLine(**line) for line in fields["rubric"])
    return Assignment(**fields)


def report_message(report: Report) -> dict[str, Any]:
    """A report as a program says it; content of outputs is left to whoever sends it."""
    fields = _lists(attrs.asdict(report, recurse=False))
    fields.pop("content", None)
    return {"type": fields.pop("kind"), **fields}


def result_message(result: Result | Judgement) -> dict[str, Any]:
    """The last line of a program that did its work."""
    fields = attrs.asdict(result, recurse=False)
    if isinstance(result, Result):
        return {"type": "result", **fields}
    return {"type": "judgement", **fields, "issues": list(result.issues), "scores": dict(result.scores)}


def _lists(fields: dict[str, Any]) -> dict[str, Any]:
    for name in _LISTS:
        if isinstance(fields.get(name), tuple):
            fields[name] = list(fields[name])
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
