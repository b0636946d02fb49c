"""A model whose every answer is on the record: what was answered before is taken from there, at no cost."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
from pydantic_ai.exceptions import ContentFilterError, ModelConnectionError, ModelContextWindowExceededError
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
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from orchestra.agents.context import Context
from orchestra.agents.failures import misbehaviour
from orchestra.agents.llm.budget import Budget
from orchestra.agents.llm.excerpt import Excerpt
from orchestra.agents.llm.faults import ProviderFault, fault_of
from orchestra.agents.llm.history import Told
from orchestra.agents.llm.journal import Journal, used_by
from orchestra.agents.llm.messages import (
    AskedDigest,
    chat_parts,
    generation_of,
    plain_message,
    request_parts,
    response_of,
    stored_response,
    with_own_ids,
)
from orchestra.agents.llm.models import is_free
from orchestra.agents.llm.prices import FREE, Price, cost_micros, most_it_can_cost, token_price
from orchestra.ids import Digest
from orchestra.limits import (
    LLM_BACKOFF_MOST_SECONDS,
    LLM_BACKOFF_SECONDS,
    LLM_COMPACTION_GAIN,
    LLM_RETRIES,
    LLM_WAIT_MOST_SECONDS,
)
from orchestra.model.records import MessageStatus
from orchestra.ports.agent import ChatGeneration, ChatPlace
from orchestra.ports.agent_kind import AnswerBook

_SHOWN: Final = ("temperature", "max_tokens", "top_p", "seed", "timeout")


@attrs.frozen(kw_only=True)
class Choice:
    """A model that may be asked: its name as people write it, how to open it, and its price."""

    name: str
    open: Callable[[], Model]
    price: Price | None = None


@attrs.frozen(kw_only=True)
class Inquiry:
    """A request to a model: what it is shown, and of a summary the messages that it stands for."""

    asked: Digest
    tokens: int
    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters
    stands_for: tuple[ChatPlace, ...] = ()


class JournalledModel(WrapperModel):
    """Asks the first of some models, or the next when it does not answer; keeps every step in a journal."""

    def __init__(
        self,
        choices: Sequence[Choice],
        journal: Journal,
        ctx: Context,
        budget: Budget,
        *,
        answers: AnswerBook | None = None,
        compact_at: int | None = None,
    ) -> None:
        self._choices, self._answers = list(choices), answers
        super().__init__(self._choices[0].open())
        self._journal, self._ctx, self._budget = journal, ctx, budget
        self._compact_at = compact_at
        self._digest = AskedDigest()
        self._excerpt = Excerpt(journal)
        self._step = 0

    def begin_conversation(self, earlier: Sequence[Told]) -> None:
        """Let the next request begin a conversation, which goes on from what earlier rounds had."""
        self._excerpt = Excerpt(self._journal, earlier)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The answer to a request: the one on the record, or a new one, which is put there."""
        self._step += 1
        self._excerpt.begin_step(messages, self._step)
        compacted = await self._compact_at_mark(messages, model_settings)
        inquiry = self._inquiry(messages, model_settings, model_request_parameters)
        if compacted:
            return await self._settle(inquiry)
        refused: Exception | None = None
        model = self._choices[0].name
        if not self._journal.is_too_long(self._step, inquiry.asked, model):
            try:
                return await self._settle(inquiry, shortens=True)
            except ModelContextWindowExceededError as error:
                refused = error
        if await self._compact(messages, model_settings, f"{model} refused the request as too long"):
            inquiry, refused = self._inquiry(messages, model_settings, model_request_parameters), None
        return await self._settle(inquiry, refused)

    def _inquiry(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> Inquiry:
        shown = self._excerpt.view(messages)
        return Inquiry(
            asked=self._digest.of(shown),
            tokens=self._digest.tokens,
            messages=shown,
            settings=settings,
            parameters=parameters,
        )

    async def _compact_at_mark(self, messages: list[ModelMessage], settings: ModelSettings | None) -> bool:
        """Shorten the conversation where the record says so, or the next request would pass the mark."""
        mark, excerpt = self._compact_at, self._excerpt
        excerpt.is_whole |= self._journal.is_summed_up_in_vain(self._step)
        if self._journal.holds(self._step, summary=True):
            return await self._compact(messages, settings)
        if mark is None or excerpt.is_whole or self._journal.holds(self._step, summary=False):
            return False
        size = excerpt.size(messages)
        cut = excerpt.next_cut(messages, mark) if size > mark else None
        if cut is None or excerpt.gain(messages, cut) < mark // LLM_COMPACTION_GAIN:
            return False
        why = f"the next request has about {size:,} tokens, and compact_at is {mark:,}"
        return await self._compact(messages, settings, why)

    async def _compact(
        self, messages: list[ModelMessage], settings: ModelSettings | None, why: str = ""
    ) -> bool:
        """Have the model sum up what came first; False when that cannot be. `why` it is decided now."""
        cut = self._excerpt.next_cut(messages, self._compact_at)
        if cut is None:
            return False
        places = self._excerpt.places(cut)
        if why:
            await self._ctx.decide(
                f"Compact the conversation: the model sums up {count_of(places)}",
                rationale=why,
                alternatives=["go on with the whole conversation", "ask another model", "fail"],
                kind="conversation_compacted",
            )
        prompt: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart(content=self._excerpt.prompt(messages, cut))])
        ]
        digest = AskedDigest()
        inquiry = Inquiry(
            asked=digest.of(prompt),
            tokens=digest.tokens,
            messages=prompt,
            settings=settings,
            parameters=ModelRequestParameters(),
            stands_for=places,
        )
        try:
            summary = (await self._settle(inquiry, shortens=True)).text
        except ModelContextWindowExceededError:
            summary = None
        if not summary or not summary.strip():
            self._excerpt.is_whole = True
            await self._ctx.decide(
                "Go on with the whole conversation",
                rationale="the model refused to sum it up: it is too long"
                if summary is None
                else "the summary is empty",
                alternatives=["ask for a summary again", "fail"],
                kind="compaction_failed",
            )
            return False
        self._excerpt.shorten(messages, cut, summary.strip(), self._journal.summary_place(self._step))
        return True

    async def _settle(
        self, inquiry: Inquiry, refused: Exception | None = None, *, shortens: bool = False
    ) -> ModelResponse:
        """The answer to an inquiry, from the record or whatever it takes.

        `refused` is how it was refused already. Raises what says that it is too long if it can be made
        shorter, and what is no provider's doing.
        """
        known = self._journal.find_answer(self._step, inquiry.asked, summary=bool(inquiry.stands_for))
        if known is not None:
            return response_of(known)
        if self._journal.changed_at == self._step:
            self._journal.changed_at = None
            await self._ctx.decide(
                f"Ask the model again from step {self._step} on",
                rationale="what it is asked is not what the record has: the prompt or a result was changed",
                alternatives=["use the old answers"],
                kind="conversation_changed",
            )
        failures = 0
        while True:
            if refused is None:
                try:
                    return await self._ask(inquiry)
                except Exception as error:
                    refused = error
            fault = fault_of(refused)
            if fault is None or (shortens and fault.course == "shorten"):
                raise refused
            failures = await self._cope(fault, failures + 1, refused)
            refused = None

    async def _ask(self, inquiry: Inquiry) -> ModelResponse:
        """Make a request, and stream what comes."""
        settings = inquiry.settings
        shown = {name: held for name, held in (settings or {}).items() if name in _SHOWN and held is not None}
        last = inquiry.messages[-1]
        said = request_parts(last) if isinstance(last, ModelRequest) and not inquiry.stands_for else ()
        most = inquiry.tokens, (settings or {}).get("max_tokens") or 0
        while True:
            await self._stay_in_budget(*most)
            choice = self._choices[0]
            started = started_generation(choice, inquiry.asked, shown, *most)
            others = len(self._choices) > 1
            answer = await self._journal.begin_step(
                self._step, said, started, inquiry.stands_for, has_other=others
            )
            if answer is not None:
                break
            self._give_up_first()
        began = time.perf_counter()
        try:
            response = self._played(inquiry.asked)
            price = choice.price if response is None else FREE
            if response is None:
                response = await self._request(choice.name, inquiry)
        except Exception as error:
            await self._journal.break_off(answer, f"{type(error).__name__}: {error}")
            raise
        response = with_own_ids(response, self._journal.call_ids)
        cost = None if price is None else cost_micros(price, response.usage)
        generation = generation_of(
            response,
            model=choice.name,
            asked=inquiry.asked,
            cost_micros=cost,
            price=None if price is None else token_price(price, response.usage.input_tokens),
            latency_us=round((time.perf_counter() - began) * 1_000_000),
            settings=shown,
        )
        self._budget.add(generation)
        parts = chat_parts(response, {form.name for form in inquiry.parameters.output_tools})
        is_filtered = response.finish_reason == "content_filter"
        status: MessageStatus = "error" if is_filtered else "complete"
        kept = await self._journal.end_step(answer, parts, status, generation, used_by(generation))
        if is_filtered:
            raise ContentFilterError(f"{choice.name} stopped its answer by its content filter")
        found = response_of(kept)
        if self._answers is not None and self._answers.mode == "record":
            told, asked = self._journal.asked_text(), inquiry.asked.hex()
            self._answers.add(self._ctx.agent, self._step, asked, told, plain_message(found))
        return found

    def _played(self, asked: Digest) -> ModelResponse | None:
        """The answer on the cassette that is played; None when a model is to be asked."""
        if self._answers is None or self._answers.mode == "record":
            return None
        found = self._answers.find(self._ctx.agent, asked.hex())
        if found is None:
            missed = self._answers.miss(self._ctx.agent, self._step, self._journal.asked_text())
            name = type(missed).__name__
            raise misbehaviour(self._ctx.agent, name, str(missed), recoverable=False)
        return stored_response(found)

    async def _request(self, name: str, inquiry: Inquiry) -> ModelResponse:
        asked = inquiry.messages, inquiry.settings, inquiry.parameters
        async with self.wrapped.request_stream(*asked) as stream:
            async for event in stream:
                self._show(event)
            response = stream.get()
        if not is_free(name) and is_cut(response):
            raise ModelConnectionError(name, "the stream ended before the answer did")
        return response

    async def _stay_in_budget(self, tokens_in: int, tokens_out: int) -> None:
        """Check what the next request may use; where that is too much, a cheaper model may be asked."""
        while True:
            choice = self._choices[0]
            crossed = self._budget.next_crossing(choice.price, tokens_in, tokens_out)
            if crossed is None:
                return
            others = [each.name for each in self._choices[1:]]
            if not await self._budget.prefers_other(crossed, choice.name, others):
                return
            self._give_up_first()

    def _give_up_first(self) -> None:
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


def started_generation(
    choice: Choice, asked: Digest, settings: Mapping[str, Any], tokens_in: int, tokens_out: int
) -> ChatGeneration:
    """What is recorded of a request before it is made: also the most that it may use."""
    price = choice.price
    return ChatGeneration(
        model=choice.name,
        asked=asked,
        settings=settings,
        price=None if price is None else token_price(price, tokens_in),
        most_tokens=tokens_in + tokens_out,
        most_micros=None if price is None else most_it_can_cost(price, tokens_in, tokens_out),
    )


def count_of(places: Sequence[ChatPlace]) -> str:
    """How many messages there are, in words."""
    return "1 message" if len(places) == 1 else f"{len(places)} messages"


def is_cut(response: ModelResponse) -> bool:
    """Whether a provider's stream ended without saying that the answer did."""
    told = (response.provider_details or {}).keys()
    return response.state != "complete" or not told & {"finish_reason", "refusal"}


def _backoff(fault: ProviderFault, failures: int) -> float:
    if fault.seconds is not None:
        return float(fault.seconds)
    return float(min(LLM_BACKOFF_SECONDS * 2 ** (failures - 1), LLM_BACKOFF_MOST_SECONDS))
