"""The port for kinds of agents: one object says how an agent of its kind is written, checked and run.

`orchestra.agents.registry` lists our kinds and finds those of other packages. Nothing else in the program
knows a kind by name: what differs between kinds is asked of the object.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias

import attrs

from orchestra.limits import AGENT_GRACE_SECONDS
from orchestra.model.workflow import Agent
from orchestra.ports.agent import Runner

if TYPE_CHECKING:
    from anyio import CapacityLimiter  # who only reads workflows needs no event loop

MODEL_VARIABLE: Final = "ORCHESTRA_MODEL"
"""Which language model is asked by agents that name none; several are separated by commas."""
AgentMistake: TypeAlias = tuple[tuple[str | int, ...], str]
"""Where something is wrong, below the agent (`("command", 0)`), and a sentence that says what."""


def option(
    default: Any = attrs.NOTHING, *, help: str, read: Callable[[Any], Any] | None = None, written: Any = None
) -> Any:
    """A key of a kind: a field of its class of options. Without a default the key must be given.

    `read` turns a short form into the long one and raises `ValueError` with a sentence; `written` is then the
    type of everything that may be written.
    """
    return attrs.field(default=default, metadata={"help": help, "read": read, "written": written})


@attrs.frozen(kw_only=True)
class NoOptions:
    """The options of a kind that has no keys of its own."""


@attrs.frozen(kw_only=True)
class Spending:
    """The most that one assignment of an agent can spend on models; None: nobody knows."""

    models: tuple[str, ...] = ()
    requests: int | None = None
    tokens: int | None = None
    cost_micros: int | None = None
    unknown: tuple[str, ...] = ()  # why something is not known, in sentences


class AnswerBook(Protocol):
    """Answers of language models that are recorded in a file, or played from one."""

    mode: Literal["record", "replay"]

    def find(self, agent: str, digest: str) -> dict[str, Any] | None:
        """The answer to a question of an agent, or None when there is none, or while it is recorded."""

    def add(self, agent: str, step: int, digest: str, asked: str, response: Mapping[str, Any]) -> None:
        """Write an answer down."""

    def miss(self, agent: str, step: int, asked: str) -> Exception:
        """The error for a question without an answer."""

    def close(self) -> None:
        """Nothing is asked any more."""


@attrs.frozen(kw_only=True)
class Workplace:
    """What a runner of any kind is given."""

    folder: Path  # the workflow's, absolute
    threads: "CapacityLimiter"  # for agents that block, shared by all kinds
    functions: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)  # that a program handed over
    grace: float = AGENT_GRACE_SECONDS  # given to an agent that is asked to stop
    answers: AnswerBook | None = None  # of language models


class AgentKind(ABC):
    """A kind of agent. The object keeps nothing: what one workflow needs is kept by its runner."""

    name: ClassVar[str] = ""
    """What stored definitions call it: its claim without the dot, for a kind of another package."""
    claim: ClassVar[str] = ""
    """How it is written in YAML: a suffix of `path` (`.py`), or a key (`command`). Empty: only in Python."""
    options: ClassVar[type[Any]] = NoOptions
    """A frozen attrs class: a field for each key beside `path`, `description` and `with`. See `option`."""
    after_colon: ClassVar[str] = ""
    """The option that `file.py:NAME` gives; empty when a colon has no meaning."""

    @abstractmethod
    def mistakes(self, agent: Agent, folder: Path) -> Iterable[AgentMistake]:
        """What is wrong with an agent, found without running it. `folder` is the workflow's."""

    @abstractmethod
    def fingerprint(self, agent: Agent, folder: Path) -> str:
        """A digest of what changes the agent's results and is not in its definition; empty for nothing.

        That is the content of files, for example, or the version of an interpreter. The digest is stored
        with the definition. While both stay the same, results are used again. Raises `OSError`.
        """

    @abstractmethod
    def make_runner(self, place: Workplace) -> Runner:
        """A runner for the agents of one workflow."""

    def with_models(self, agent: Agent, models: tuple[str, ...]) -> Agent:
        """The agent as it asks other language models; one that asks none stays as it is."""
        return agent

    def calls(self, agent: Agent, folder: Path) -> Iterable[AgentMistake]:
        """The agents of the workflow that it may give errands to: where each is named, and its name."""
        return ()

    def unpriced_models(
        self, agent: Agent, folder: Path, prices: Mapping[str, Mapping[str, float]], *, in_budget: bool
    ) -> Iterable[AgentMistake]:
        """Models without a known price that a limit on money would not bound: where, and a sentence.

        `in_budget` says that such a limit is set for a phase or the run, and none on tokens beside it.
        """
        return ()

    def most_spending(
        self, agent: Agent, folder: Path, prices: Mapping[str, Mapping[str, float]]
    ) -> Spending | None:
        """The most that one assignment can spend on models; None: only the agent's own code knows."""
        return None

    def make_stand_in(self, place: Workplace) -> Runner | None:
        """A runner for dry runs: it spends nothing, and runs nothing that somebody wrote.

        None: agents of this kind are not run at all then, and a made-up result stands for theirs.
        """
        return None

    def templates(self, agent: Agent, folder: Path) -> Iterable[str]:
        """The agent's own templates, which name what a run has, as tasks do."""
        return ()

    def describe(self, path: Path) -> str:
        """What the agent in a file does, in a line; raises `BadAgent`. The file is read, not run."""
        return ""


class AgentKinds(Protocol):
    """The kinds there are. Importing one may fail: then `BadAgentKind` says what to install."""

    @property
    def claims(self) -> tuple[str, ...]:
        """What each known kind claims, ours first. Imports none of them."""

    def find(self, claim: str) -> AgentKind | None:
        """The kind that claims a suffix or key, or None."""

    def by_name(self, name: str) -> AgentKind:
        """The kind that stored definitions call so; raises `BadAgentKind` also when there is none."""
