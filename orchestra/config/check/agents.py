"""The agents of a file: each is given to the kind that claims it, which knows its keys and its mistakes.

A kind claims an agent by the suffix of its `path` or by a key. Every kind that is used gets a form: the keys
that all agents have, and those of the kind's options.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import attrs
from pydantic import Field, create_model

from orchestra.codec.address import Addresser
from orchestra.codec.definitions import definition_from_plain, options_value
from orchestra.codec.values import freeze
from orchestra.config.check.validate import keys_at, validate_form
from orchestra.config.forms import AgentForm, FileAgentForm, Form, Texts, in_words, key, short
from orchestra.config.problems import Mistake
from orchestra.config.problems import Path as Where
from orchestra.errors import BadAgent, BadAgentKind
from orchestra.ids import AgentId
from orchestra.model.workflow import Agent
from orchestra.ports.agent_kind import AgentKind, AgentKinds, AgentMistake
from orchestra.suggest import meant

_COMMON: Final = frozenset(keys_at(FileAgentForm, ()))


class AgentReader:
    """Reads the agents of a file, and keeps those without mistakes."""

    def __init__(
        self,
        kinds: AgentKinds,
        folder: Path,
        functions: Collection[str] = (),
        models: Collection[str] = (),
    ) -> None:
        """`folder` is the workflow's; agents named in `functions` are functions of a program.

        `models` are asked instead of the agents' own, which then need not be there. Whether those that are
        asked are in order is somebody else's to say.
        """
        self._kinds, self._folder, self._functions = kinds, folder, functions
        self._models = tuple(models)
        self._read: list[tuple[AgentKind, Agent]] = []
        self._calls: dict[str, list[AgentMistake]] = {}  # whom each calls, and where that stands

    def mistakes(self, name: str, written: Any) -> Iterator[Mistake]:
        """What is wrong with an agent; `written` is what stands behind its name."""
        where: Where = ("agents", name)
        try:
            yield from self._mistakes(where, self._long_form(written))
        except BadAgentKind as error:
            claim = str(error.data["kind"])
            key = "path" if claim.startswith(".") else claim
            yield Mistake((*where, key), str(error), at_key=key == claim)

    def _mistakes(self, where: Where, given: Any) -> Iterator[Mistake]:
        kind = self._kind(str(where[-1]), given) if isinstance(given, dict) else None
        if kind is None:
            yield from self._unclaimed(where, given)
            return
        form, claim = agent_form(kind), "path" if kind.claim.startswith(".") else kind.claim
        others = [name for name in given if name not in keys_at(form, ()) and self._kinds.find(str(name))]
        for name in others:
            message = f"an agent has a `{claim}` or a `{name}`, not both"
            yield Mistake((*where, name), message, at_key=True)
        checked = validate_form({name: given[name] for name in given if name not in others}, form, where)
        yield from checked.mistakes
        if isinstance(checked.form, AgentForm):
            agent = _compile(str(where[-1]), checked.form, kind)
            if not any(path[:1] == (claim,) for path in checked.cut):
                other = kind.with_models(agent, self._models) if self._models else agent
                found = [
                    Mistake((*where, *path), said)
                    for path, said in kind.mistakes(other, self._folder)
                    if other is agent or path != ("model",)
                ]
                yield from found
                if not found:
                    self._calls[agent.id] = list(kind.calls(agent, self._folder))
            self._read.append((kind, agent))

    def price_mistakes(
        self, in_budget: Collection[str], prices: Mapping[str, Mapping[str, float]]
    ) -> Iterator[Mistake]:
        """Models that nothing bounds; agents `in_budget`, and those they call, have a limit on money."""
        bounded = set(in_budget)
        while more := {name for each in bounded for _, name in self._calls.get(each, ())} - bounded:
            bounded |= more
        for kind, agent in self._read:
            if agent.id in self._calls:
                asked = kind.with_models(agent, self._models) if self._models else agent
                found = kind.unpriced_models(asked, self._folder, prices, in_budget=agent.id in bounded)
                yield from (Mistake(("agents", agent.id, *path), said) for path, said in found)

    def errand_mistakes(self, known: Collection[str]) -> Iterator[Mistake]:
        """Agents that are named as tools and are not there, or would call one another without end."""
        for name, calls in self._calls.items():
            for path, called in calls:
                if called not in known:
                    message = (
                        f"there is no agent `{called}` for the tool `agent:{called}`{meant(called, known)}"
                    )
                    yield Mistake(("agents", name, *path), message)
        circle = call_circle({name: [each for _, each in calls] for name, calls in self._calls.items()})
        if circle:
            path = next(path for path, called in self._calls[circle[0]] if called == circle[1])
            shown = " → ".join(f"`{each}`" for each in circle)
            message = f"an agent cannot be a tool of its own, also not of one it calls: {shown}"
            yield Mistake(("agents", circle[0], *path), message)

    def agents(self) -> tuple[Agent, ...]:
        """The agents with their fingerprints, once no mistake was found."""
        called = {name for calls in self._calls.values() for _, name in calls}
        return tuple(
            attrs.evolve(
                agent,
                source=kind.fingerprint(agent, self._folder),
                calls=tuple(dict.fromkeys(AgentId(name) for _, name in self._calls.get(agent.id, ()))),
                description=agent.description or self._description(kind, agent)
                if agent.id in called
                else agent.description,
            )
            for kind, agent in self._read
        )

    def _description(self, kind: AgentKind, agent: Agent) -> str:
        """What an agent's file says it is for: whoever may call it is told."""
        try:
            return kind.describe(self._folder / agent.path) if agent.path else ""
        except (BadAgent, OSError):
            return ""

    # --- which kind

    def _long_form(self, written: Any) -> Any:
        """A text is a file, and what stands behind a colon is for its kind."""
        if not isinstance(written, str):
            return written
        path, _, word = written.rpartition(":")
        kind = self._kinds.find(_suffix(path)) if path and word.isidentifier() else None
        return {"path": path, kind.after_colon: word} if kind and kind.after_colon else {"path": written}

    def _kind(self, name: str, given: Mapping[Any, Any]) -> AgentKind | None:
        """The kind that claims an agent, by the suffix of its path or by a key."""
        if name in self._functions:
            return self._kinds.by_name("function")
        path = given.get("path")
        if path is not None:
            return self._kinds.find(_suffix(path)) if isinstance(path, str) else None
        own = (str(key) for key, value in given.items() if key not in _COMMON and value is not None)
        return next((kind for key in own if (kind := self._kinds.find(key))), None)

    def _unclaimed(self, where: Where, given: Any) -> Iterator[Mistake]:
        keys = [each for each in self._kinds.claims if not each.startswith(".")]
        if not isinstance(given, dict) or not isinstance(given.get("path"), str | None):
            wrong = {"path": given["path"]} if isinstance(given, dict) else given
            yield from validate_form(wrong, FileAgentForm, where).mistakes
        elif given.get("path") is not None:
            ends = " or ".join(f"`{each}`" for each in self._kinds.claims if each.startswith("."))
            advice = f"use a file that ends in {ends}, or give {_or(keys)}"
            yield Mistake((*where, "path"), f"`{given['path']}` is of no known kind of agent; {advice}")
        else:
            for key in given.keys() - _COMMON:
                message = f"unknown key `{key}`{meant(str(key), {*_COMMON, *keys})}"
                yield Mistake((*where, key), message, at_key=True)
            yield Mistake(where, f"the agent `{where[-1]}` needs {_or(['path', *keys])}", at_key=True)


def call_circle(calls: Mapping[str, Collection[str]]) -> list[str]:
    """Agents that would call one another without end, the first again at the end; empty for none."""
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _suffix(path: str) -> str:
    _, dot, end = path.rpartition("/")[2].rpartition(".")
    return dot + end if dot else ""


def _or(keys: list[str]) -> str:
    return " or ".join(f"a `{key}`" for key in keys)


def _compile(name: str, form: AgentForm, kind: AgentKind) -> Agent:
    own = form.model_dump(include={field.name for field in attrs.fields(kind.options)}, exclude_unset=True)
    return Agent(
        id=AgentId(name),
        kind=kind.name,
        path=form.path if isinstance(form, FileAgentForm) else "",
        options=options_value(definition_from_plain(own, kind.options, what="the options of an agent")),
        description=form.description,
        settings=freeze(form.with_, Addresser()) if form.with_ else None,
    )


# --- forms of kinds


@cache
def agent_form(kind: AgentKind) -> type[AgentForm]:
    """The form of agents of a kind."""
    base: type[AgentForm] = AgentForm
    fields = _fields(kind.options)
    if kind.claim.startswith("."):
        base, path = FileAgentForm, FileAgentForm.model_fields["path"]
        ends: dict[str, Any] = {"pattern": f"{re.escape(kind.claim)}$"}
        fields["path"] = (str, Field(description=path.description, json_schema_extra=ends))
    title = "".join(word.capitalize() for word in re.split(r"\W|_", kind.name))
    return create_model(f"{title}AgentForm", __base__=base, __doc__=kind.__doc__, **fields)


def _fields(options: type[Any]) -> dict[str, Any]:
    """The keys of a class of options, as pydantic wants them."""
    found: dict[str, Any] = {}
    for each in attrs.fields(attrs.resolve_types(options)):
        default = ... if each.default is attrs.NOTHING else each.default
        default = list(default) if isinstance(default, tuple) else default
        if attrs.has(type(default)):  # a mapping of keys that all have defaults
            default = {}
        found[each.name] = _type(each), key(default, each.metadata.get("help"))
    return found


def _type(field: "attrs.Attribute[Any]") -> Any:
    kind, read = _plain(field.type), field.metadata.get("read")
    if read is None:
        return Texts if kind == list[str] else kind
    written = field.metadata["written"] or kind
    return Annotated[kind, short(in_words(read), written)]


def _plain(kind: Any) -> Any:
    """A type as it stands in a file: lists for tuples, forms for classes."""
    if isinstance(kind, type) and attrs.has(kind):
        return create_model(f"{kind.__name__}Form", __base__=Form, __doc__=kind.__doc__, **_fields(kind))
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return list[_plain(arguments[0])]  # type: ignore[misc]
    if get_origin(kind) in (Union, UnionType):
        return Union[tuple(_plain(each) for each in arguments)]  # noqa: UP007
    return kind
