"""A model whose every answer is on the record: what was answered before is taken from there, at no cost."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
from pydantic_ai.exceptions import ContentFilterError, ModelConnectionError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from orchestra.agents.context import Context
from orchestra.agents.failures import misbehaviour
from orchestra.agents.llm.budget import Budget
from orchestra.agents.llm.faults import ProviderFault, fault_of
from orchestra.agents.llm.journal import Journal, used_by
from orchestra.agents.llm.messages import (
    AskedDigest,
    chat_parts,
    generation_of,
    plain_message,
    request_parts,
    response_of,
    stored_response,
    token_count,
    with_own_ids,
)
from orchestra.agents.llm.models import is_free
from orchestra.agents.llm.prices import FREE, Price, cost_micros
from orchestra.ids import Digest
from orchestra.limits import LLM_BACKOFF_MOST_SECONDS, LLM_BACKOFF_SECONDS, LLM_RETRIES, LLM_WAIT_MOST_SECONDS
from orchestra.model.records import MessageStatus
from orchestra.ports.agent import ChatGeneration
from orchestra.ports.agent_kind import AnswerBook

_SHOWN: Final = ("temperature", "max_tokens", "top_p", "seed", "timeout")


@attrs.frozen(kw_only=True)
class Choice:
    """A model that may be asked: its name as people write it, how to open it, and its price."""

    name: str
    open: Callable[[], Model]
    price: Price | None = None


class JournalledModel(WrapperModel):
    """Asks the first of some models, or the next when it does not answer; keeps every step in a journal."""

    def __init__(
        self,
        choices: Sequence[Choice],
        journal: Journal,
        ctx: Context,
        budget: Budget,
        answers: AnswerBook | None = None,
    ) -> None:
        self._choices, self._answers = list(choices), answers
        super().__init__(self._choices[0].open())
        self._journal, self._ctx, self._budget = journal, ctx, budget
        self._digest = AskedDigest()
        self._step = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The answer to a request: the one on the record, or a new one, which is put there."""
        self._step += 1
        asked = self._digest.of(messages)
        known = self._journal.find_answer(self._step, asked)
        if known is not None:
            return response_of(known)
        if self._journal.changed_at == self._step:
            await self._ctx.decide(
                f"Ask the model again from step {self._step} on",
                rationale="what it is asked is not what the record has: the prompt or a result was changed",
                alternatives=["use the old answers"],
                kind="conversation_changed",
            )
        failures = 0
        while True:
            try:
                return await self._ask(asked, messages, model_settings, model_request_parameters)
            except Exception as error:
                fault = fault_of(error)
                if fault is None:
                    raise
                failures += 1
                failures = await self._cope(fault, failures, error)

    async def _ask(
        self,
        asked: Digest,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make a request, and stream what comes."""
        await self._stay_in_budget(token_count(messages), settings)
        choice = self._choices[0]
        shown = {name: held for name, held in (settings or {}).items() if name in _SHOWN and held is not None}
        last = messages[-1]
        said = request_parts(last) if isinstance(last, ModelRequest) else ()
        started = ChatGeneration(model=choice.name, asked=asked, settings=shown)
        answer = await self._journal.begin_step(self._step, said, started)
        began = time.perf_counter()
        try:
            response = self._played(asked)
            price = choice.price if response is None else FREE
            if response is None:
                response = await self._request(choice.name, messages, settings, parameters)
        except Exception as error:
            await self._journal.break_off(answer, f"{type(error).__name__}: {error}")
            raise
        response = with_own_ids(response, self._journal.call_ids)
        cost = None if price is None else cost_micros(price, response.usage)
        generation = generation_of(
            response,
            model=choice.name,
            asked=asked,
            cost_micros=cost,
            latency_us=round((time.perf_counter() - began) * 1_000_000),
            settings=shown,
        )
        self._budget.add(generation)
        is_filtered = response.finish_reason == "content_filter"
        status: MessageStatus = "error" if is_filtered else "complete"
        used = used_by(generation)
        kept = await self._journal.end_step(answer, chat_parts(response), status, generation, used)
        if is_filtered:
            raise ContentFilterError(f"{choice.name} stopped its answer by its content filter")
        found = response_of(kept)
        if self._answers is not None and self._answers.mode == "record":
            told = self._journal.asked_text()
            self._answers.add(self._ctx.agent, self._step, asked.hex(), told, plain_message(found))
        return found

    def _played(self, asked: Digest) -> ModelResponse | None:
        """The answer on the cassette that is played; None when a model is to be asked."""
        if self._answers is None or self._answers.mode == "record":
            return None
        found = self._answers.find(self._ctx.agent, asked.hex())
        if found is None:
            raise self._answers.miss(self._ctx.agent, self._step, self._journal.asked_text())
        return stored_response(found)

    async def _request(
        self,
        name: str,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.wrapped.request_stream(messages, settings, parameters) as stream:
            async for event in stream:
                self._show(event)
            response = stream.get()
        if not is_free(name) and is_cut(response):
            raise ModelConnectionError(name, "the stream ended before the answer did")
        return response

    async def _stay_in_budget(self, tokens_in: int, settings: ModelSettings | None) -> None:
        """Check what the next request may use; where that is too much, a cheaper model may be asked."""
        tokens_out = (settings or {}).get("max_tokens")
        while True:
            choice = self._choices[0]
            crossed = self._budget.next_crossing(choice.price, tokens_in, tokens_out)
            if crossed is None:
                return
            others = [each.name for each in self._choices[1:]]
            if not await self._budget.prefers_other(crossed, choice.name, others):
                return
            self._choices.pop(0)
            self.wrapped = self._choices[0].open()

    def _show(self, event: Any) -> None:
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ):
                self._journal.stream_text(text)
            case PartStartEvent(part=ThinkingPart(content=text)):
                self._journal.stream_text(text, "reasoning")
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                self._journal.stream_text(text, "reasoning")
            case _:
                pass

    async def _cope(self, fault: ProviderFault, failures: int, error: Exception) -> int:
        """Do what a fault calls for; returns how often the model that is asked next has failed."""
        too_long = fault.seconds is not None and fault.seconds > LLM_WAIT_MOST_SECONDS
        if too_long:
            told = f"{fault.message} (it asks to wait {fault.seconds:,.0f} s)"
            fault = attrs.evolve(fault, course="other", message=told)
        waits = fault.course == "wait" and failures <= LLM_RETRIES * 5
        if waits or (fault.course == "again" and failures <= LLM_RETRIES):
            await self._ctx.limited(_backoff(fault, failures), f"{self._choices[0].name}: {fault.name}")
            return failures
        if len(self._choices) == 1:
            details = {"model": self._choices[0].name, "requests": failures}
            raise misbehaviour(
                self._ctx.agent, fault.name, fault.message, recoverable=fault.recoverable, details=details
            ) from error
        given_up = self._choices.pop(0)
        await self._ctx.decide(
            f"Ask {self._choices[0].name} instead of {given_up.name}",
            rationale=f"{fault.name}: {fault.message}",
            alternatives=["fail", "wait longer"],
            kind="model_fallback",
        )
        self.wrapped = self._choices[0].open()
        return 0


def is_cut(response: ModelResponse) -> bool:
    """Whether a provider's stream ended without saying that the answer did."""
    told = (response.provider_details or {}).keys()
    return response.state != "complete" or not told & {"finish_reason", "refusal"}


def _backoff(fault: ProviderFault, failures: int) -> float:
    if fault.seconds is not None:
        return float(fault.seconds)
    return float(min(LLM_BACKOFF_SECONDS * 2 ** (failures - 1), LLM_BACKOFF_MOST_SECONDS))
