"""A workflow file as a Python program that builds the same workflow."""

import builtins
import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final

from orchestra.config.load import LoadedWorkflow
from orchestra.config.problems import printable
from orchestra.config.read.yaml_tree import read_tree

_WIDTH: Final = 88
_FROM_ROOT: Final = ("agent_command", "agent_file", "workflow")
_PARTS: Final = ("agent_entry", "ask", "evaluation", "spawn", "to")
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "text", list: "list"}
_OF_FILES: Final = frozenset({"path", "attribute", "isolation", "description", "with", "environment"})
_OF_COMMANDS: Final = frozenset({"command", "description", "with", "environment"})


def program_text(loaded: LoadedWorkflow) -> str:
    """The program; agents' files are looked for beside it, as the file's are beside that."""
    return _Program(read_tree(loaded.text).data, loaded.file).text()


class _Program:
    """Writes a program from the data of a workflow file, which was checked before."""

    def __init__(self, data: Mapping[str, Any], file: Path) -> None:
        self._data, self._file = data, file
        self._taken = {*_FROM_ROOT, *_PARTS, "Orchestra", "anyio", "main", "sys"}
        agents = data.get("agents") or {}
        self._agents = {name: self._variable(name) for name in agents}
        self._name = self._variable(data["name"])

    def text(self) -> str:
        agents = [
            f"{self._agents[name]} = {self._agent(name, given)}" for name, given in self._given("agents")
        ]
        body = "\n".join([*agents, "", f"{self._name} = (", _indented("\n".join(self._chain())), ")"])
        used = [name for name in _FROM_ROOT if f"{name}(" in body]
        imports = [f"from orchestra import {', '.join(['Orchestra', *used])}"]
        if parts := [name for name in _PARTS if f"{name}(" in body]:
            imports.append(f"from orchestra.workflow import {', '.join(parts)}")
        head = [f'"""The workflow `{self._data["name"]}` as Python."""', ""]
        made = [
            f"# Made from {printable(self._file.name)}: keep it in the same folder, for the agents' files.",
            "",
        ]
        return "\n".join(
            [*head, *made, "import sys", "", "import anyio", "", *imports, "", body, "", "", self._main()]
        )

    def _main(self) -> str:
        settings = self._data.get("checkpoint") or {}
        store = _value(settings["store"]) if settings.get("store") else ""
        rest = sorted(key for key, value in settings.items() if key != "store" and value is not None)
        told = (
            f"    # Settings of the file that belong to `Orchestra(settings=…)`: {', '.join(rest)}\n"
            if rest
            else ""
        )
        return _MAIN.format(told=told, store=store, name=self._name)

    def _chain(self) -> Iterator[str]:
        yield _call("workflow", [_value(self._data["name"]), *_keywords(self._data, "description")])
        for name, given in self._given("inputs"):
            yield _call(".input", [_value(name), *_input(given)])
        for name, given in self._given("context"):
            said = {"reducer": given} if isinstance(given, str) else given or {}
            reducer = [_value(said["reducer"])] if said.get("reducer") else []
            yield _call(".context", [_value(name), *reducer, *_keywords(said, "initial")])
        if self._agents:
            yield _call(".agents", list(self._agents.values()))
        if policy := _without_nothing(self._data.get("policy") or {}):
            yield _call(".policy", [f"{key}={_value(_options(key, value))}" for key, value in policy.items()])
        for name, given in self._given("phases"):
            yield _call(".phase", [_value(name), *self._phase(given)])

    def _given(self, section: str) -> Iterable[tuple[str, Any]]:
        return (self._data.get(section) or {}).items()

    def _variable(self, name: str) -> str:
        made = re.sub(r"\W", "_", name)
        made = f"_{made}" if made[0].isdigit() else made
        while made in self._taken or keyword.iskeyword(made) or hasattr(builtins, made):
            made += "_"
        self._taken.add(made)
        return made

    def _agent(self, name: str, given: Any) -> str:
        entry = _long_agent(given)
        options = ["attribute", "isolation", "description", "environment"]
        settings = [f"settings={_value(entry['with'])}"] if entry.get("with") else []
        named = [] if Path(entry.get("path", "")).stem == name else [f"name={_value(name)}"]
        more = [*named, *_keywords(entry, *options), *settings]
        if "path" in entry and entry.keys() <= _OF_FILES:
            return _call("agent_file", [_value(entry["path"]), *more])
        if "command" in entry and entry.keys() <= _OF_COMMANDS:
            return _call("agent_command", [_value(entry["command"]), *more])
        return _call("agent_entry", [_value(name), _value(given)])

    def _phase(self, given: Mapping[str, Any]) -> Iterator[str]:
        for name, each in (given.get("specialists") or {}).items():
            yield self._specialist(name, {"task": each} if isinstance(each, str) else each or {})
        yield from _keywords(given, "description")
        if given.get("evaluate"):
            yield f"evaluate={self._evaluation(given['evaluate'])}"
        for key, write in (("on_low_confidence", self._reaction), ("next", _way)):
            held = given.get(key)
            if held is not None:
                listed = held if isinstance(held, list) else [held]
                yield f"{key}={_bracketed('[', [write(each) for each in listed], ']')}"
        yield from _keywords(given, "max_visits", "timeout", "breakpoint")

    def _specialist(self, name: str, given: Mapping[str, Any]) -> str:
        by = given.get("agent") or name
        task = [_value(given["task"])] if given.get("task") else []
        named = [f"name={_value(name)}"] if by != name else []
        retry = [f"retry={_value(_options('retry', given['retry']))}"] if given.get("retry") else []
        before = _keywords(given, "needs", "when", "foreach", "into", "outputs")
        after = _keywords(given, "on_failure", "substitute", "threshold", "breakpoint")
        return _call(self._agents[by], [*task, *named, *before, *retry, *after])

    def _evaluation(self, given: Any) -> str:
        said = {"agent": given} if isinstance(given, str) else given
        task = [_value(said["task"])] if said.get("task") else []
        revise = said.get("revise")
        rounds = revise.get("rounds", 1) if isinstance(revise, dict) else revise
        more = [] if rounds is None else [f"rounds={_value(rounds)}"]
        retry = [f"retry={_value(_options('retry', said['retry']))}"] if said.get("retry") else []
        judge = self._agents[said["agent"]]
        return _call("evaluation", [judge, *task, *_keywords(said, "threshold", "rubric"), *more, *retry])

    def _reaction(self, given: Any) -> str:
        if isinstance(given, str):
            return _value(given)
        if given.get("spawn") is not None:
            return _call("spawn", [_value(given["spawn"]), *_keywords(given, "agent", "max")])
        if given.get("ask") is not None:
            return _call("ask", [_value(given["ask"]), *_keywords(given, "choices")])
        return _value(given["proceed or fail"])


_MAIN: Final = """\
async def main() -> None:
    inputs = dict(each.split("=", 1) for each in sys.argv[1:])  # NAME=VALUE
{told}    async with Orchestra({store}) as orchestra:
        ending = await orchestra.run({name}, inputs)
        print(ending.run, ending.kind)


if __name__ == "__main__":
    anyio.run(main)
"""


def _input(given: Any) -> Iterator[str]:
    if type(given) in _TYPES:
        given = {"type": _TYPES[type(given)], "default": given}
    said = given or {}
    yield from _keywords(said, "type")
    if "default" in said:
        yield f"default={_value(said['default'])}"
    yield from _keywords(said, "required", "choices", "secret", "help")


def _long_agent(given: Any) -> dict[str, Any]:
    """An agent with its keys, also where the file says it in a word."""
    if not isinstance(given, str):
        return _without_nothing(given)
    path, _, attribute = given.rpartition(":")
    return {"path": path, "attribute": attribute} if path and attribute.isidentifier() else {"path": given}


def _way(given: Any) -> str:
    if isinstance(given, str):
        return _value(given)
    return _call("to", [_value(given["to"]), *_keywords(given, "when")])


def _options(key: str, value: Any) -> Any:
    """Options without what counts as not given; that an attempt has no time limit is said with nothing."""
    if not isinstance(value, dict):
        return value
    return {
        name: each for name, each in value.items() if each is not None or (key, name) == ("retry", "timeout")
    }


def _without_nothing(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}


def _keywords(given: Mapping[str, Any], *keys: str) -> list[str]:
    return [f"{key}={_value(given[key])}" for key in keys if given.get(key) is not None]


def _value(value: Any) -> str:
    """Plain data as Python."""
    match value:
        case str():
            return _text(value)
        case list():
            return _bracketed("[", [_value(each) for each in value], "]")
        case dict():
            return _bracketed("{", [f"{_value(key)}: {_value(each)}" for key, each in value.items()], "}")
        case float() if not isfinite(value):
            return f'float("{value}")'
        case _:
            return repr(value)


def _text(text: str) -> str:
    """A text, line by line where it has several."""
    lines = text.splitlines(keepends=True) or [""]
    quoted = [_quoted(line) for line in lines]
    return quoted[0] if len(quoted) == 1 else f"(\n{_indented(chr(10).join(quoted))}\n)"


def _quoted(line: str) -> str:
    plain = line.rstrip("\n").isprintable() and '"' not in line
    return json.dumps(line, ensure_ascii=False) if plain else repr(line)


def _call(function: str, arguments: list[str]) -> str:
    return function + _bracketed("(", arguments, ")")


def _bracketed(opening: str, items: list[str], closing: str) -> str:
    """On one line where that is short, else an item a line."""
    line = f"{opening}{', '.join(items)}{closing}"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return "\n".join([opening, *(_indented(f"{item},") for item in items), closing])


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
