"""Language-model agents as a kind: Markdown files with front matter, `path: agents/writer.md`."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from orchestra.agents.fingerprint import digest_files
from orchestra.agents.llm.markdown import AgentFile, read_agent_file
from orchestra.agents.llm.models import mistakes_of
from orchestra.agents.llm.prices import price_of, read_prices
from orchestra.agents.llm.skills import find_skills
from orchestra.agents.llm.toolbox import AGENT, OnUnknown, agent_names, tool_files, tool_mistakes
from orchestra.codec.definitions import options_value, read_options
from orchestra.errors import BadAgentFile, BadExpression
from orchestra.expressions.expression import template
from orchestra.expressions.names import TASK_NAMES
from orchestra.limits import LLM_STEPS
from orchestra.model.workflow import Agent, OnLimit
from orchestra.ports.agent import Runner
from orchestra.ports.agent_kind import MODEL_VARIABLE, AgentKind, AgentMistake, Spending, Workplace, option

NO_MODEL = (
    "no model is named: write `model: provider:name` in the file or in YAML, "
    f"run with `--model`, or set {MODEL_VARIABLE}"
)
INHERIT = ("inherit",)
"""In YAML: the run names the model, whatever the file says."""


@attrs.frozen(kw_only=True)
class LimitOptions:
    """What one assignment may use."""

    requests: int = option(LLM_STEPS, help="How often the model may be asked.")
    tokens: int | None = option(None, help="How many tokens, in and out, it may use.")
    cost: float | None = option(None, help="How much money it may cost.")
    tool_calls: int | None = option(None, help="How many tools it may call.")
    seconds: float | None = option(None, help="How long one attempt may take, waits included.")
    on_limit: OnLimit = option("stop", help="`stop`, `ask` a person, `proceed`, or ask a `cheaper` model.")


@attrs.frozen(kw_only=True)
class LlmOptions:
    """The keys of language-model agents; each goes before what the file says."""

    model: tuple[str, ...] = option(
        (),
        help="`provider:name`, and models that stand in for it; `inherit`: what the run names.",
        written=str | list[str],
    )
    temperature: float | None = option(None, help="How freely the model answers.")
    max_tokens: int | None = option(None, help="How long an answer may be.")
    compact_at: int | None = option(
        None, help="A request of more tokens has its beginning summed up; without, only one that is refused."
    )
    tools: tuple[str, ...] = option(
        (), help="Modules, built-in tools, `mcp:SERVER`, `agent:NAME`; beside the file's."
    )
    risky: tuple[str, ...] = option((), help="Tools of which a person must allow each call; `*` for all.")
    on_unknown: OnUnknown | None = option(
        None, help="A call that an interruption cut off: `rerun`, `ask` or `fail`."
    )
    tool_timeout: float | None = option(None, help="How many seconds a tool may take.")
    folder: str = option("", help="A folder that its file tools read, instead of its workspace; a template.")
    mcp: str = option("", help="A file with `mcpServers`.")
    skills: tuple[str, ...] = option((), help="Folders with a SKILL.md, beside the file's.")
    limits: LimitOptions = option(LimitOptions(), help="What one assignment may use.")
    confidence: bool = option(False, help="Have the model say how sure it is, and why.")
    samples: int | None = option(
        None, help="Ask a specialist so many times; how many agree is the confidence."
    )


class LlmKind(AgentKind):
    """Agents in `.md` files."""

    name = "llm"
    claim = ".md"
    options = LlmOptions

    def mistakes(self, agent: Agent, folder: Path) -> Iterator[AgentMistake]:
        """A file that cannot be read, a model or tool that nobody knows, a template that is wrong."""
        options = read_options(agent, LlmOptions)
        try:
            file = read_agent_file(folder / agent.path, file=agent.path)
            template(file.instructions, TASK_NAMES)
            template(options.folder, TASK_NAMES)
        except FileNotFoundError:
            yield ("path",), f"there is no file `{agent.path}` (looked in `{folder}`)"
            return
        except OSError as error:
            yield ("path",), f"`{agent.path}` cannot be read ({error.strerror or error})"
            return
        except BadAgentFile as error:
            yield ("path",), str(error)
            return
        except BadExpression as error:
            yield ("path",), f"in `{agent.path}`: {error}"
            return
        for name in ("samples", "compact_at"):
            if (given := getattr(options, name)) is not None and given < 1:
                yield (name,), f"`{name}` is a whole number from 1 on, not {given}"
        models = models_of(options, file)
        if not models and options.model != INHERIT:
            yield ("model",) if options.model else ("path",), NO_MODEL
        for name in models:
            for reason in mistakes_of(name):
                yield ("model",) if options.model else ("path",), reason
        yield from tool_mistakes(file, options, folder)

    def calls(self, agent: Agent, folder: Path) -> Iterator[AgentMistake]:
        """The agents among its tools."""
        options = read_options(agent, LlmOptions)
        for name in agent_names(read_agent_file(folder / agent.path, file=agent.path), options):
            yield ("tools",) if f"{AGENT}{name}" in options.tools else ("path",), name

    def unpriced_models(
        self, agent: Agent, folder: Path, prices: Mapping[str, Mapping[str, float]], *, in_budget: bool
    ) -> Iterator[AgentMistake]:
        """Models without a price, when nothing but money bounds them."""
        options = read_options(agent, LlmOptions)
        limits, known = options.limits, read_prices(prices)
        if limits.tokens is not None or (limits.cost is None and not in_budget):
            return
        where = ("limits", "cost") if limits.cost is not None else ("model",) if options.model else ("path",)
        for name in models_of(options, read_agent_file(folder / agent.path, file=agent.path)):
            if price_of(name, known) is None:
                advice = "set `tokens` beside `cost`, or its price under `prices`"
                yield where, f"`{name}` has no price that is known: {advice}"

    def fingerprint(self, agent: Agent, folder: Path) -> str:
        """The digest of the file, and of the modules, servers and skills that it names."""
        options = read_options(agent, LlmOptions)
        path = folder / agent.path
        file = read_agent_file(path, file=agent.path)
        return digest_files([path, *tool_files(file, options, folder), *_skill_files(file, options, folder)])

    def make_runner(self, place: Workplace) -> Runner:
        """A runner in this process; the model library is loaded with it."""
        from orchestra.agents.llm.runner import LlmRunner

        return LlmRunner(place)

    def most_spending(
        self, agent: Agent, folder: Path, prices: Mapping[str, Mapping[str, float]]
    ) -> Spending:
        """What its limits, the lengths of contexts and the prices leave it."""
        from orchestra.agents.llm.forecast import most_spending

        file = read_agent_file(folder / agent.path, file=agent.path)
        return most_spending(file, read_options(agent, LlmOptions), read_prices(prices))

    def templates(self, agent: Agent, folder: Path) -> tuple[str, ...]:
        """Its instructions, and the folder that it reads."""
        file = read_agent_file(folder / agent.path, file=agent.path)
        return file.instructions, read_options(agent, LlmOptions).folder

    def make_stand_in(self, place: Workplace) -> Runner:
        """The runner, with the model `test` in the place of each model, and tools that do nothing."""
        from orchestra.agents.llm.runner import LlmRunner

        return LlmRunner(place, is_dry=True)

    def with_models(self, agent: Agent, models: tuple[str, ...]) -> Agent:
        """The agent with these models in the place of its own."""
        options = attrs.evolve(read_options(agent, LlmOptions), model=models)
        return attrs.evolve(agent, options=options_value(options))

    def describe(self, path: Path) -> str:
        """What the file says it is for."""
        return read_agent_file(path).description.partition("\n")[0]


def models_of(options: LlmOptions, file: AgentFile) -> tuple[str, ...]:
    """The models to ask, the first first: those of the YAML, else the file's; empty when none is named."""
    if options.model and options.model != INHERIT:
        return options.model
    if file.model and not options.model:
        return file.model, *file.fallback
    return tuple(each.strip() for each in os.environ.get(MODEL_VARIABLE, "").split(",") if each.strip())


def _skill_files(file: AgentFile, options: LlmOptions, folder: Path) -> Iterator[Path]:
    for skill in find_skills((*file.skills, *options.skills), folder):
        yield skill.folder / "SKILL.md"


def settings_of(options: LlmOptions, file: AgentFile) -> dict[str, Any]:
    """What is asked of a model beside its messages."""
    chosen = {
        "temperature": options.temperature if options.temperature is not None else file.temperature,
        "max_tokens": options.max_tokens if options.max_tokens is not None else file.max_tokens,
        "top_p": file.top_p,
        "seed": file.seed,
    }
    return {name: held for name, held in chosen.items() if held is not None}
