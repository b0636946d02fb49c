"""Runs language-model agents: an attempt is a conversation over a journalled model and journalled tools."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import attrs
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic_ai import Agent as ModelAgent
from pydantic_ai import StructuredDict
from pydantic_ai import exceptions as exc
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits

from orchestra.agents.context import Context
from orchestra.agents.failures import misbehaviour
from orchestra.agents.llm.budget import Budget
from orchestra.agents.llm.history import Told, earlier_messages
from orchestra.agents.llm.journal import Journal
from orchestra.agents.llm.kind import NO_MODEL, LlmOptions, models_of, settings_of
from orchestra.agents.llm.markdown import AgentFile, read_agent_file
from orchestra.agents.llm.model import Choice, JournalledModel
from orchestra.agents.llm.models import TEST, full_name, missing_key, open_model
from orchestra.agents.llm.prices import price_of, read_prices
from orchestra.agents.llm.roles import RolePlay, role_play
from orchestra.agents.llm.skills import find_skills, offer_skills
from orchestra.agents.llm.toolbox import (
    load_functions,
    open_tools,
    policies_of,
    prepare_servers,
    stand_in_tools,
    task_values,
)
from orchestra.agents.llm.tools import JournalledToolset, ToolGuard, ToolPolicy
from orchestra.agents.python.loading import Code
from orchestra.agents.python.runner import LocalRunner
from orchestra.codec.definitions import read_options
from orchestra.expressions.expression import template
from orchestra.expressions.names import TASK_NAMES
from orchestra.model.workflow import Agent, Limits
from orchestra.ports.agent import Assignment, Ended, Judgement, Link, Result, Stop
from orchestra.ports.agent_kind import AnswerBook, Workplace


class LlmRunner:
    """Runs agents in `.md` files, in the loop."""

    def __init__(self, place: Workplace, *, is_dry: bool = False) -> None:
        """`is_dry`: no model is asked but `test`, and no tool is run."""
        self._place, self._is_dry = place, is_dry
        self._local = LocalRunner(place.threads, place.grace)

    def start(self, agent: Agent, assignment: Assignment, link: Link, ended: Ended, /) -> Stop:
        """Begin an attempt, as the port says."""

        async def converse(ctx: Context) -> Result | Judgement:
            file = read_agent_file(self._place.folder / agent.path, file=agent.path)
            options = read_options(agent, LlmOptions)
            talk = DryTalk if self._is_dry else Talk
            return await talk(ctx, file, options, self._place.folder, self._place.answers).hold()

        return self._local.start(Code(converse, is_async=True), assignment, link, ended)


@attrs.define(eq=False)
class Talk:
    """One attempt of a language-model agent."""

    ctx: Context
    file: AgentFile
    options: LlmOptions
    folder: Path
    answers: AnswerBook | None = None
    clock: Callable[[], float] = time.monotonic

    async def hold(self) -> Result | Judgement:
        """Go through the conversation from its start to its result."""
        journal = Journal(self.ctx._assignment, self.ctx._link)
        budget = Budget(self._limits(), self.ctx, journal.paid, journal.calls_begun, self.clock)
        part = role_play(self.ctx, self.file, self.options)
        model = JournalledModel(
            await self._choices(),
            journal,
            self.ctx,
            budget,
            answers=self.answers,
            compact_at=self.options.compact_at or self.file.compact_at,
        )
        policies = self._policies()
        guard = ToolGuard(ctx=self.ctx, journal=journal, budget=budget, policies=policies)
        tools = await self._tools()
        agent = ModelAgent(
            model,
            instructions=told
            if (told := journal.edited_text("system")) is not None
            else self._instructions(),
            output_type=str if part.schema is None else StructuredDict(part.schema),
            toolsets=[JournalledToolset(each, guard) for each in tools],
            model_settings=ModelSettings(**settings_of(self.options, self.file)),  # type: ignore[typeddict-item]
            retries=2,
        )
        if part.schema is not None:
            agent.output_validator(partial(check_answer, part.schema))
        earlier = earlier_messages(journal)
        async with agent:
            answers = []
            for _ in range(part.samples):
                model.begin_conversation(earlier)
                answers.append(await self._answer(agent, part, earlier, journal))
        return await part.conclude(answers)

    def _policies(self) -> Mapping[str, ToolPolicy]:
        return policies_of(self.file, self.options, self.folder)

    async def _tools(self) -> list[AbstractToolset[Any]]:
        functions = await anyio.to_thread.run_sync(load_functions, self.file, self.options, self.folder)
        servers = await prepare_servers(self.ctx, self.file, self.options, self.folder)
        return open_tools(self.ctx, self.file, self.options, self.folder, functions, servers)

    async def _answer(self, agent: Any, part: RolePlay, earlier: list[Told], journal: Journal) -> Any:
        prompt = said if (said := journal.edited_text("user")) is not None else part.prompt
        try:
            told = [each.message for each in earlier]
            limits = UsageLimits(request_limit=None)
            ended = await agent.run(prompt, message_history=told, usage_limits=limits)
        except exc.UserError as error:  # what it was given does not go together: names of tools, a schema
            raise misbehaviour(self.ctx.agent, "Misconfigured", str(error), recoverable=False) from error
        except exc.UnexpectedModelBehavior as error:
            await journal.reject_answer()
            raise misbehaviour(self.ctx.agent, "UnusableAnswer", error.message) from error
        if ended.response.finish_reason == "length":
            await self.ctx.decide(
                "Take an answer that is cut off",
                rationale="the model reached the most that an answer may have (max_tokens)",
                alternatives=["ask again with more room", "fail"],
                kind="answer_cut",
            )
        return ended.output

    def _instructions(self) -> str:
        text = template(self.file.instructions, TASK_NAMES).render(task_values(self.ctx))
        offered = find_skills((*self.file.skills, *self.options.skills), self.folder)
        return "\n\n".join(each for each in (text, offer_skills(offered)) if each)

    def _limits(self) -> Limits:
        limits = Limits(**attrs.asdict(self.options.limits))
        most = [each for each in (limits.requests, self.file.max_steps) if each is not None]
        return attrs.evolve(limits, requests=min(most, default=None))

    async def _choices(self) -> list[Choice]:
        names = models_of(self.options, self.file)
        if not names:
            raise misbehaviour(self.ctx.agent, "NoModel", NO_MODEL, recoverable=False)
        return [await self._choice(name) for name in names]

    async def _choice(self, name: str) -> Choice:
        """A model that may be asked; waits until its key is there."""
        settings = settings_of(self.options, self.file)
        if self.answers is not None and self.answers.mode == "replay":  # nobody is asked
            return Choice(name=full_name(name), open=partial(open_model, TEST, settings=settings))
        variable = missing_key(name)
        key = None if variable is None else await self.ctx.require(variable, f"{name} asks for it")
        opener = partial(open_model, name, settings=settings, key=key)
        return Choice(
            name=full_name(name), open=opener, price=price_of(name, read_prices(self.ctx._assignment.prices))
        )


class DryTalk(Talk):
    """The conversation of a dry run: the test model answers, at the price of the real one."""

    def _policies(self) -> Mapping[str, ToolPolicy]:
        return {}

    async def _tools(self) -> list[AbstractToolset[Any]]:
        return [stand_in_tools(self.file, self.options, self.folder)]

    async def _choice(self, name: str) -> Choice:
        price = price_of(name, read_prices(self.ctx._assignment.prices))
        return Choice(name=full_name(name), open=partial(open_model, TEST), price=price)


def check_answer(schema: Mapping[str, Any], answer: Any) -> Any:
    """An answer that fits its schema; else the model is told what is wrong with it, and asked again."""
    wrong = next(Draft202012Validator(schema).iter_errors(answer), None)
    if wrong is not None:
        raise exc.ModelRetry(f"{wrong.json_path}: {wrong.message}")
    return answer
