"""Markdown agents: a file's front matter says what a model is given, its text what the model is told.

Files that people wrote for coding agents are read as they are: `tools` as a list, a mapping or a text with
commas, `model` as `provider:model` or `inherit`, and keys of other programs, which are named and left alone.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias, get_args

import attrs

from orchestra.agents.llm.front_matter import (
    FrontMatter,
    bad_file,
    decode_text,
    read_file,
    split_front_matter,
)
from orchestra.agents.llm.schemas import schema_fault
from orchestra.limits import AGENT_COUNT, AGENT_TEXT_BYTES

Role: TypeAlias = Literal["specialist", "evaluator", "planner"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh", "max")
"""How much a model may think before it answers."""
_SPELLINGS: Final = {
    "allowed_tools": "tools",
    "effort": "thinking",
    "maxtokens": "max_tokens",
    "max_turns": "max_steps",
    "maxturns": "max_steps",
    "outputschema": "output_schema",
    "mcp_servers": "mcp",
    "mcpservers": "mcp",
}
_INHERIT: Final = ("", "inherit", "default")
_SHOWN_CHARS: Final = 60


@attrs.frozen(kw_only=True)
class AgentFile:
    """A Markdown agent as it is written."""

    file: str = ""
    name: str = ""
    description: str = ""
    model: str | None = None  # None: the one the workflow has
    fallback: tuple[str, ...] = ()  # models that stand in for it
    role: Role = "specialist"
    tools: tuple[str, ...] = ()
    tool_options: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)  # what is written beside a name
    risky: tuple[str, ...] | bool | None = None  # tools that need an approval, all of them, or none
    skills: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()  # files that name servers of tools, or servers that such a file names
    mcp_servers: Mapping[str, Any] = attrs.field(factory=dict)  # servers that are written out
    instructions: str = ""
    output_schema: Mapping[str, Any] | None = None
    thinking: str | bool | None = None  # one of `EFFORTS`, or whether at all
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_steps: int | None = None
    samples: int | None = None
    compact_at: int | None = None  # tokens
    unknown: tuple[str, ...] = ()  # keys that mean nothing here
    lines: Mapping[str, int] = attrs.field(factory=dict)  # where each key of ours stands
    line: int = 1  # where the instructions begin


def read_agent_file(source: Path | str, *, file: str = "") -> AgentFile:
    """The agent in a file, or in a text that is said to be from `file`; raises `BadAgentFile`."""
    if isinstance(source, Path):
        file = file or str(source)
        text = read_file(source, limit=AGENT_TEXT_BYTES)
    else:
        file = file or "the agent"
        text = decode_text(source.encode("utf-8", "surrogatepass"), file, limit=AGENT_TEXT_BYTES)
    return _agent(split_front_matter(text, file, _KNOWN), file)


def split_names(text: str, *, spaces: bool = False) -> tuple[str, ...]:
    """The names in a text, separated by commas that stand in no brackets; without any, also by spaces."""
    names = _split(text, ",")
    if spaces and len(names) == 1:
        names = _split(text, " \t\n")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _split(text: str, signs: str) -> list[str]:
    names, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth = max(0, depth + (char == "(") - (char == ")"))
        if not depth and char in signs:
            names.append(text[begin:at])
            begin = at + 1
    return [*names, text[begin:]]


def _agent(matter: FrontMatter, file: str) -> AgentFile:
    reader = _Reader(matter, file)
    found: dict[str, Any] = {}
    lines: dict[str, int] = {}
    unknown: list[str] = []
    for key, value in matter.values.items():
        field = _field(key)
        if field in lines:
            twice = f"`{key}` says again what line {lines[field]} says"
            raise bad_file(file, matter.lines[key], twice, "Remove one of them.")
        if field not in _KNOWN or _is_foreign(field, value):
            unknown.append(key)
        else:
            lines[field] = matter.lines[key]
            found |= {} if value is None else _READERS[field](reader, key, value)
    found.setdefault("name", Path(file).stem)
    return AgentFile(
        file=file,
        instructions=matter.body,
        line=matter.body_line,
        lines=lines,
        unknown=tuple(unknown),
        **found,
    )


def _is_foreign(field: str, value: Any) -> bool:
    """Whether a key of ours says something that only another program understands."""
    match field:
        case "role":
            return value not in (*ROLES, None)
        case "thinking":
            return value not in (*EFFORTS, True, False, None)
        case _:
            return False


def _field(key: str) -> str:
    plain = key.lower().replace("-", "_")
    return _SPELLINGS.get(plain, plain)


@attrs.frozen
class _Reader:
    """Reads the values of one file; each method returns fields and raises `BadAgentFile`."""

    matter: FrontMatter
    file: str

    def refuse(self, key: str, reason: str, advice: str) -> NoReturn:
        raise bad_file(self.file, self.matter.lines[key], reason, advice)

    def text(self, key: str, value: Any) -> dict[str, Any]:
        if isinstance(value, dict | list):
            self.refuse(key, f"`{key}` is a text", f"Write `{key}: …` on one line.")
        return {_field(key): self.matter.texts[key].strip()}

    def word(self, key: str, value: Any) -> dict[str, Any]:
        return {_field(key): value}

    def model(self, key: str, value: Any) -> dict[str, Any]:
        names = self.names(key, value) if isinstance(value, list) else self.text(key, value).values()
        models = [each for each in names if each.lower() not in _INHERIT]
        return {"model": models[0], "fallback": tuple(models[1:])} if models else {}

    def texts(self, key: str, value: Any) -> dict[str, Any]:
        return {_field(key): self.names(key, value)}

    def names(self, key: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            return split_names(value)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(dict.fromkeys(each.strip() for each in value if each.strip()))
        self.refuse(key, f"`{key}` is a list of names", f"Write `{key}: one, two`.")

    def tools(self, key: str, value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            return {"tools": split_names(value, spaces=True)}
        options: dict[str, dict[str, Any]] = {}
        for entry in value if isinstance(value, list) else [value]:
            for name, more in self.tool(key, entry):
                options.setdefault(name, {}).update(more)
        told = {name: more for name, more in options.items() if more}
        return {"tools": tuple(options), "tool_options": told}

    def tool(self, key: str, entry: Any) -> list[tuple[str, dict[str, Any]]]:
        """One entry of `tools`: a name, a mapping with `name`, or names with their options."""
        if isinstance(entry, str) and entry.strip():
            return [(entry.strip(), {})]
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            return [(entry["name"], {word: more for word, more in entry.items() if word != "name"})]
        if isinstance(entry, dict) and all(isinstance(more, dict | bool | None) for more in entry.values()):
            named = {name: more for name, more in entry.items() if more is not False}
            return [(name, more if isinstance(more, dict) else {}) for name, more in named.items()]
        self.refuse(key, f"`{key}` is a list of tools", f"Write `{key}: one, two`, or a `- name` a line.")

    def mcp(self, key: str, value: Any) -> dict[str, Any]:
        entries = [value] if isinstance(value, dict) else value
        if not isinstance(entries, list):
            return self.texts(key, value)
        servers: dict[str, Any] = {}
        for entry in entries:
            servers |= entry if isinstance(entry, dict) else {}
        files = self.names(key, [entry for entry in entries if not isinstance(entry, dict)])
        return {"mcp": files, "mcp_servers": servers}

    def risky(self, key: str, value: Any) -> dict[str, Any]:
        return {"risky": value if isinstance(value, bool) else self.names(key, value)}

    def number(self, key: str, value: Any) -> dict[str, Any]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            self.refuse(key, f"`{key}` is a number from 0 on, not {_shown(value)}", f"Write `{key}: 0.5`.")
        return {_field(key): float(value)}

    def count(self, key: str, value: Any) -> dict[str, Any]:
        least = 0 if _field(key) == "seed" else 1
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= AGENT_COUNT:
            wanted = f"`{key}` is a whole number from {least} on, not {_shown(value)}"
            self.refuse(key, wanted, f"Write `{key}: 3`.")
        return {_field(key): value}

    def schema(self, key: str, value: Any) -> dict[str, Any]:
        advice = "Write it below the key, indented: `type: object`, `properties:` and so on."
        odd = self.matter.odd.get(key)
        if odd or not isinstance(value, dict):
            reason = f" and cannot be read ({odd})" if odd else f", not {_shown(value)}"
            self.refuse(key, f"`{key}` is a JSON Schema{reason}", advice)
        if fault := schema_fault(value):
            self.refuse(key, f"`{key}` is no JSON Schema: {fault}", advice)
        return {"output_schema": value}


def _shown(value: Any) -> str:
    """A value in a sentence."""
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a mapping"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


_Read: TypeAlias = Callable[[_Reader, str, Any], dict[str, Any]]
_READERS: Final[Mapping[str, _Read]] = {
    "name": _Reader.text,
    "description": _Reader.text,
    "role": _Reader.word,
    "thinking": _Reader.word,
    "model": _Reader.model,
    "fallback": _Reader.texts,
    "tools": _Reader.tools,
    "risky": _Reader.risky,
    "skills": _Reader.texts,
    "mcp": _Reader.mcp,
    "output_schema": _Reader.schema,
    "temperature": _Reader.number,
    "top_p": _Reader.number,
    "seed": _Reader.count,
    "max_tokens": _Reader.count,
    "max_steps": _Reader.count,
    "samples": _Reader.count,
    "compact_at": _Reader.count,
}
_KNOWN: Final = _READERS.keys()
