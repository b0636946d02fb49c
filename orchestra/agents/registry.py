"""Kinds of agents: ours, and those that other packages announce.

Another package adds a kind by an entry point in the group `orchestra.agents`. Its name is what the kind
claims in YAML, a key such as `robot` or a suffix of files such as `.md`; its value is an `AgentKind`, the
class or an object. Entry points are looked through only when a claim is not ours, because that takes a while.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final

import attrs

from orchestra.errors import BadAgentKind
from orchestra.model.workflow import Agent
from orchestra.ports.agent_kind import AgentKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "orchestra.agents"


@attrs.frozen
class Offer:
    """A kind that a package offers, not imported yet."""

    name: str  # that stored definitions have
    claim: str
    load: Callable[[], object]
    package: str = "orchestra"
    extra: str = ""  # of that package: what has to be installed with it for this kind


def _ours(module: str, kind: str) -> Callable[[], object]:
    return lambda: getattr(import_module(f"orchestra.agents.{module}.kind"), kind)


OURS: Final = (
    Offer("python", ".py", _ours("python", "PythonKind")),
    Offer("command", "command", _ours("command", "CommandKind")),
    Offer("llm", ".md", _ours("llm", "LlmKind")),
    Offer("function", "", _ours("python", "FunctionKind")),
)


class KindRegistry:
    """Finds kinds by what they claim, and by name. Imports each when it is first wanted; an `AgentKinds`."""

    def __init__(self, ours: Sequence[Offer] = OURS) -> None:
        self._ours = ours

    @property
    def claims(self) -> tuple[str, ...]:
        """What each known kind claims, ours first."""
        return tuple(dict.fromkeys(offer.claim for offer in self._offers if offer.claim))

    @property
    def kinds(self) -> list[AgentKind]:
        """Every kind; raises `BadAgentKind` when one cannot be imported or two have one claim."""
        return [_load(self._only(claim)) for claim in self.claims]

    def find(self, claim: str) -> AgentKind | None:
        """The kind that claims a suffix or key, or None; raises `BadAgentKind`."""
        for offer in self._ours:
            if claim and offer.claim == claim:
                return _load(offer)
        return _load(self._only(claim)) if claim in self._theirs else None

    def by_name(self, name: str) -> AgentKind:
        """The kind that stored definitions call so; raises `BadAgentKind`."""
        for offer in self._ours:
            if offer.name == name:
                return _load(offer)
        found = self.find(name) or self.find(f".{name}")
        if found is None:
            known = ", ".join(dict.fromkeys(offer.name for offer in self._offers))
            advice = f"There are {known}; install the package that it came with."
            raise BadAgentKind(kind=name, reason="no package that is installed announces it", advice=advice)
        return found

    @cached_property
    def _theirs(self) -> dict[str, list[Offer]]:
        found: dict[str, list[Offer]] = {}
        for point in sorted(_announced(), key=lambda each: each.name):
            package = (point.dist and point.dist.name) or point.module  # a folder may have no metadata
            name = point.name.removeprefix(".")
            offer = Offer(name, point.name, point.load, package, ",".join(point.extras))
            found.setdefault(point.name, []).append(offer)
        return found

    @property
    def _offers(self) -> Iterable[Offer]:
        yield from self._ours
        for offers in self._theirs.values():
            yield from offers

    def _only(self, claim: str) -> Offer:
        """The one offer of a claim; raises `BadAgentKind` when there are two."""
        first, *more = (offer for offer in self._offers if offer.claim == claim)
        if more:
            packages = " and ".join(each.package for each in (first, *more))
            advice = f"Uninstall one: `pip uninstall {more[-1].package}`."
            raise BadAgentKind(kind=claim, reason=f"it is registered twice, by {packages}", advice=advice)
        return first


KINDS: Final = KindRegistry()
"""The kinds of this process."""


def _announced() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # loads a good part of the standard library

    return entry_points(group=GROUP)


@cache
def _load(offer: Offer) -> AgentKind:
    try:
        found = offer.load()
        kind = found() if isinstance(found, type) else found
    except Exception as error:  # somebody else's module can fail in any way
        wanted = f"{offer.package}[{offer.extra}]" if offer.extra else offer.package
        reason = f"its package {offer.package} cannot be imported ({type(error).__name__}: {error})"
        advice = f"Install what it needs: `pip install '{wanted}'`."
        raise BadAgentKind(kind=offer.claim, reason=reason, advice=advice) from error
    wrong = _fault(kind, offer)
    if wrong or not isinstance(kind, AgentKind):
        reason = f"what {offer.package} announces {wrong}"
        raise BadAgentKind(kind=offer.claim, reason=reason, advice="Tell whoever wrote that package.")
    return kind


def _fault(kind: object, offer: Offer) -> str:
    """Why something cannot be a kind; empty when it can."""
    if not isinstance(kind, AgentKind):
        return "is not an AgentKind"
    if (kind.name, kind.claim) != (offer.name, offer.claim):
        return f"is called {kind.name!r} and claims {kind.claim!r}"
    if not attrs.has(kind.options):
        return "has options that are no attrs class"
    own = {field.name for field in attrs.fields(kind.options)}
    if taken := own & _TAKEN:
        return f"has options that all agents have: {', '.join(sorted(taken))}"
    if kind.claim and not kind.claim.startswith(".") and kind.claim not in own:
        return f"has no option {kind.claim!r}, which it claims"
    return ""


_TAKEN: Final = frozenset(field.name for field in attrs.fields(Agent)) | {"with"}
