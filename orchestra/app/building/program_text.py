"""A workflow file as a Python program that builds the same workflow."""

import builtins
import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final

from orchestra.config import models
from orchestra.config.forms import Form, as_list
from orchestra.config.load import LoadedWorkflow
from orchestra.config.problems import printable
from orchestra.config.read.yaml_tree import read_tree

_WIDTH: Final = 88
_FROM_ROOT: Final = ("agent_command", "agent_file", "workflow")
_PARTS: Final = ("agent_entry", "ask", "evaluation", "spawn", "to")
_OF_COMMANDS: Final = frozenset({"command", "description", "with", "environment"})
_OF_FILES: Final = _OF_COMMANDS - {"command"} | {"path", "attribute", "isolation"}
_OPTIONS: Final = frozenset({"confidence", "retry", "recovery"})
_PROGRAM: Final = '''\
"""The workflow `{workflow}` as Python."""

# Made from {file}: keep it in the same folder, for the agents' files.

import sys

import anyio

{imports}

{body}


async def main() -> None:
    inputs = dict(each.split("=", 1) for each in sys.argv[1:])  # NAME=VALUE
{settings}    async with Orchestra({store}) as orchestra:
        ending = await orchestra.run({variable}, inputs)
        print(ending.run, ending.kind)


if __name__ == "__main__":
    anyio.run(main)
'''
_SETTINGS: Final = "    # Settings of the file that belong to `Orchestra(settings=…)`: {}\n"


class _Python(str):
    """What is Python already, among data that is going to be."""


def program_text(loaded: LoadedWorkflow) -> str:
    """The program; agents' files are looked for beside it, as the file's are beside that."""
    return _Program(read_tree(loaded.text).data, loaded.file).text()


class _Program:
    """Writes a program from the data of a workflow file, which was checked before."""

    def __init__(self, data: Mapping[str, Any], file: Path) -> None:
        self._data, self._file = data, file
        self._taken = {*_FROM_ROOT, *_PARTS, "Orchestra", "anyio", "main", "sys"}
        self._agents = {name: self._variable(name) for name, _ in self._given("agents")}
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
        settings = {key: value for key, value in self._given("checkpoint") if value is not None}
        store = settings.pop("store", None)
        return _PROGRAM.format(
            workflow=self._data["name"],
            file=printable(self._file.name),
            imports="\n".join(imports),
            body=body,
            settings=_SETTINGS.format(", ".join(sorted(settings))) if settings else "",
            store=_value(store) if store else "",
            variable=self._name,
        )

    def _chain(self) -> Iterator[str]:
        yield _call("workflow", self._data["name"], description=self._data.get("description"))
        for name, given in self._given("inputs"):
            said = models.short_input(given)
            default = {"default": _Python(_value(said["default"]))} if "default" in said else {}
            yield _call(".input", name, **_keys(models.InputForm, said, **default))
        for name, given in self._given("context"):
            said = {"reducer": given} if isinstance(given, str) else given or {}
            yield _call(".context", name, said.get("reducer"), initial=said.get("initial"))
        if self._agents:
            yield _call(".agents", *self._agents.values())
        if any(value is not None for _, value in self._given("policy")):
            yield _call(".policy", **dict(self._given("policy")))
        for name, given in self._given("prices"):
            yield _call(".price", name, **given)
        for name, given in self._given("phases"):
            yield self._phase(name, given)

    def _given(self, section: str) -> Iterable[tuple[str, Any]]:
        return (self._data.get(section) or {}).items()

    def _variable(self, name: str) -> _Python:
        made = re.sub(r"\W", "_", name)
        made = f"_{made}" if made[0].isdigit() else made
        while made in self._taken or keyword.iskeyword(made) or hasattr(builtins, made):
            made += "_"
        self._taken.add(made)
        return _Python(made)

    def _agent(self, name: str, given: Any) -> str:
        entry = given
        if isinstance(given, str):  # in a word
            path, _, attribute = given.rpartition(":")
            split = path and attribute.isidentifier()
            entry = {"path": path, "attribute": attribute} if split else {"path": given}
        entry = {key: value for key, value in entry.items() if value is not None}
        more = {key: entry.get(key) for key in ("attribute", "isolation", "description", "environment")}
        more["settings"] = entry.get("with") or None
        named = None if Path(entry.get("path", "")).stem == name else name
        if "path" in entry and entry.keys() <= _OF_FILES:
            return _call("agent_file", entry["path"], name=named, **more)
        if "command" in entry and entry.keys() <= _OF_COMMANDS:
            return _call("agent_command", entry["command"], name=named, **more)
        return _call("agent_entry", name, given)

    def _phase(self, name: str, given: Mapping[str, Any]) -> str:
        specialists = [self._specialist(*each) for each in (given.get("specialists") or {}).items()]
        written: dict[str, Any] = {"specialists": None}
        if given.get("evaluate"):
            written["evaluate"] = self._evaluation(given["evaluate"])
        for key, write in (("on_low_confidence", _reaction), ("next", _way)):
            if given.get(key) is not None:
                written[key] = [write(each) for each in as_list(given[key])]
        return _call(".phase", name, *specialists, **_keys(models.PhaseForm, given, **written))

    def _specialist(self, name: str, given: Any) -> str:
        said = {"task": given} if isinstance(given, str) else given or {}
        by = said.get("agent") or name
        named = name if by != name else None
        options = _keys(models.SpecialistForm, said, agent=None, task=None)
        return _call(self._agents[by], said.get("task") or None, name=named, **options)

    def _evaluation(self, given: Any) -> str:
        said = {"agent": given} if isinstance(given, str) else given
        revise, retry = said.get("revise"), said.get("retry")
        rounds = revise.get("rounds", 1) if isinstance(revise, dict) else revise
        scored = {"threshold": said.get("threshold"), "rubric": said.get("rubric")}
        judge = self._agents[said["agent"]]
        return _call("evaluation", judge, said.get("task") or None, **scored, rounds=rounds, retry=retry)


def _reaction(given: Any) -> str:
    if isinstance(given, str):
        return given
    if given.get("spawn") is not None:
        return _call("spawn", given["spawn"], agent=given.get("agent"), max=given.get("max"))
    if given.get("ask") is not None:
        return _call("ask", given["ask"], choices=given.get("choices"))
    return str(given["proceed or fail"])


def _way(given: Any) -> str:
    return given if isinstance(given, str) else _call("to", given["to"], when=given.get("when"))


def _keys(form: type[Form], given: Mapping[str, Any], **instead: Any) -> dict[str, Any]:
    """The keys of a form in its order, as they are given, or with something else instead."""
    return {key: given.get(key) for key in form.model_fields} | instead


def _call(function: str, *first: Any, **named: Any) -> _Python:
    """A call with what is given; of options, that an attempt has no time limit is said with nothing."""
    for key in _OPTIONS & named.keys():
        nulls = {"timeout"} if key == "retry" else set()
        held = (named[key] or {}).items()
        named[key] = {each: value for each, value in held if value is not None or each in nulls} or None
    arguments = [_value(each) for each in first if each is not None]
    arguments += [f"{key}={_value(each)}" for key, each in named.items() if each is not None]
    return _Python(function + _bracketed("(", arguments, ")"))


def _value(value: Any) -> str:
    """Plain data as Python."""
    match value:
        case _Python():
            return value
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


def _bracketed(opening: str, items: list[str], closing: str) -> str:
    """On one line where that is short, else an item a line."""
    line = f"{opening}{', '.join(items)}{closing}"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return "\n".join([opening, *(_indented(f"{item},") for item in items), closing])


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
