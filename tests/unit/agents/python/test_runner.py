"""Whatever an agent returns or raises ends as one result or one failure."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestra.agents.context import Context
from orchestra.agents.failures import stack_of
from orchestra.agents.runners import Runners
from orchestra.errors import AgentFailed
from orchestra.limits import AGENT_STACK_BYTES
from orchestra.ports.agent import Judgement, Result
from tests.unit.agents.support import GRACE, Recorder, assignment, function_agent, run_function

pytestmark = pytest.mark.anyio


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Untouchable(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(7)


class Drastic(float):
    def __float__(self) -> float:
        raise SystemExit(7)


class Stubborn(BaseException):
    pass


class Final(Exception):
    recoverable = False


class Unhashable(type):
    __hash__ = None  # type: ignore[assignment]


class Nameless(metaclass=Unhashable):
    pass


class Faceless:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise self._error


class Closed(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return {}

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        raise OSError("nobody looks into this")


def returning(value: Any) -> Callable[[Context], Any]:
    async def agent(ctx: Context) -> Any:
        return value

    return agent


def raising(error: BaseException, *, plain: bool = False) -> Callable[[Any], Any]:
    def agent(ctx: Any) -> Any:
        raise error

    async def async_agent(ctx: Any) -> Any:
        raise error

    return agent if plain else async_agent


async def _failure(agent: Callable[..., Any], **changes: Any) -> dict[str, Any]:
    with pytest.raises(AgentFailed) as caught:
        await run_function(agent, **changes)
    assert set(caught.value.data) == {"agent", "error", "message", "stack", "recoverable", "details"}
    return dict(caught.value.data)


@pytest.mark.parametrize("value", [None, 1, "x", [1], (1, 2), {"output": 1, "confidence": 5}, b"y"])
async def test_a_bare_value_is_the_output(value: Any) -> None:
    assert await run_function(returning(value)) == Result(output=value)


async def test_a_result_is_taken_as_it_is() -> None:
    given = Result(output={"a": [1]}, confidence=1)
    assert await run_function(returning(given)) == Result(output={"a": [1]}, confidence=1.0)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (
            Judgement(scores={"depth": 1}, verdict="accept"),
            Judgement(scores={"depth": 1.0}, verdict="accept"),
        ),
        ({"scores": {"depth": 0.5}, "feedback": "more"}, Judgement(scores={"depth": 0.5}, feedback="more")),
        (None, Judgement()),
    ],
)
async def test_an_evaluator_judges(returned: Any, expected: Judgement) -> None:
    assert await run_function(returning(returned), role="apollo") == expected


@pytest.mark.parametrize(
    ("returned", "role", "words"),
    [
        (Result(confidence=7), "mercury", "confidence of result must be a number from 0 to 1, not 7"),
        (Result(confidence="high"), "mercury", "not 'high'"),  # type: ignore[arg-type]
        (Judgement(), "mercury", "only an evaluator returns"),
        (Result(output=1), "apollo", "an evaluator returns a Judgement or a mapping with scores"),
        (7, "apollo", "not 7"),
        ({"scores": {"depth": 3}}, "apollo", "each a number from 0 to 1"),
        ({"scores": {}, "grade": 1}, "apollo", "judgement has no field 'grade'"),
        ({"scores": {}, "cls": 1}, "apollo", "judgement has no field 'cls'"),
        ({"scores": {}, 1: 2}, "apollo", "the name of a field must be text, not 1"),
        (Judgement(verdict="maybe"), "apollo", "one of accept, revise, reject"),  # type: ignore[arg-type]
        (Judgement(issues=({"a": 1}, "x")), "apollo", "a list of mappings"),  # type: ignore[arg-type]
    ],
)
async def test_a_wrong_result_is_named(returned: Any, role: str, words: str) -> None:
    data = await _failure(returning(returned), role=role)
    assert data["error"] == "WrongResult"
    assert words in data["message"]


async def _told(returned: Any, role: str) -> Any:
    """What the engine is told at the end of an attempt, if it is told at all."""
    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    runners = Runners(Path(), {"one": returning(returned)}, threads=1, grace=GRACE)
    runners.start(function_agent(), assignment(role=role), Recorder(), told.set_result)
    with anyio.fail_after(180):
        outcome = await told
    assert isinstance(outcome, AgentFailed)
    return outcome.data


@pytest.mark.parametrize("role", ["mercury", "apollo"])
@pytest.mark.parametrize("error", [KeyError("no"), SystemExit(7)])
async def test_a_result_that_hides_its_class_is_a_failure(error: BaseException, role: str) -> None:
    assert (await _told(Faceless(error), role))["error"] == type(error).__name__


async def test_a_result_whose_class_cannot_be_hashed_is_a_failure() -> None:
    assert (await _told(Nameless(), "mercury"))["error"] == "TypeError"


async def test_a_confidence_that_ends_the_process_is_a_failure() -> None:
    assert (await _told(Result(confidence=Drastic(0.5)), "mercury"))["error"] == "SystemExit"


@pytest.mark.parametrize("plain", [False, True])
async def test_an_error_that_ends_the_process_when_it_is_looked_at_is_a_failure(plain: bool) -> None:
    data = await _failure(raising(Untouchable(), plain=plain))
    assert data["error"] == "Untouchable"
    assert "SystemExit when it was looked at" in data["message"]


async def test_a_mapping_that_cannot_be_read_is_a_failure() -> None:
    data = await _told(Closed(), "apollo")
    assert (data["error"], data["message"]) == ("OSError", "nobody looks into this")


async def test_a_forgotten_await_is_named() -> None:
    async def inner() -> int:
        return 1

    async def agent(ctx: Context) -> Any:
        return inner()

    assert "an `await` is missing" in (await _failure(agent))["message"]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (ValueError("no"), "ValueError", "no"),
        (ValueError(), "ValueError", "without a word"),
        (SystemExit(3), "SystemExit", "3"),
        (KeyboardInterrupt(), "KeyboardInterrupt", "interrupted"),
        (GeneratorExit(), "GeneratorExit", "without a word"),
        (Stubborn("mine"), "Stubborn", "mine"),
        (Unspeakable(), "Unspeakable", "its text cannot be had: RuntimeError"),
        (asyncio.CancelledError(), "CancelledError", "without a word"),
        (StopAsyncIteration("x"), "StopAsyncIteration", "x"),
        (ValueError("x" * 100_000), "ValueError", "x" * 4000 + "…"),
    ],
)
async def test_every_error_is_one_failure(error: BaseException, name: str, message: str, plain: bool) -> None:
    data = await _failure(raising(error, plain=plain))
    if not (name == "StopAsyncIteration" and data["error"] == "RuntimeError"):
        assert data["error"] == name
        assert message in data["message"]
    assert data["agent"] == "one"
    assert data["recoverable"] is True
    assert "test_runner.py" in data["stack"]
    assert "orchestra/agents" not in data["stack"]
    assert len(data["stack"].encode()) <= AGENT_STACK_BYTES


async def test_a_group_lists_its_members() -> None:
    inner = ExceptionGroup("inner", [KeyError("b")])
    data = await _failure(raising(ExceptionGroup("outer", [ValueError("a"), inner])))
    assert data["error"] == "ExceptionGroup"
    assert data["message"] == "2 errors: ValueError: a; KeyError: 'b'"
    assert data["details"] == {
        "errors": [{"error": "ValueError", "message": "a"}, {"error": "KeyError", "message": "'b'"}]
    }


async def test_a_group_of_task_groups_is_one_failure() -> None:
    async def child(error: BaseException) -> None:
        await anyio.lowlevel.checkpoint()
        raise error

    async def agent(ctx: Context) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(child, ValueError("a"))
            group.start_soon(child, Stubborn("b"))

    assert (await _failure(agent))["error"] == "BaseExceptionGroup"


@pytest.mark.parametrize("error", [ImportError("x"), NotImplementedError("x"), Final("x")])
async def test_some_errors_come_again(error: Exception) -> None:
    assert (await _failure(raising(error)))["recoverable"] is False


async def test_a_deep_stack_is_bounded_and_keeps_both_ends() -> None:
    def deeper(left: int) -> None:
        if not left:
            raise ValueError("bottom" + "y" * 20_000)
        (lambda: deeper(left - 1))()

    async def agent(ctx: Context) -> None:
        deeper(300)

    stack = (await _failure(agent))["stack"]
    assert len(stack.encode()) <= AGENT_STACK_BYTES
    assert stack.startswith("Traceback")
    assert "left out" in stack


async def test_an_endless_recursion_is_a_failure_like_others() -> None:
    async def agent(ctx: Context) -> None:
        def again() -> None:
            again()

        again()

    assert (await _failure(agent))["error"] == "RecursionError"


async def test_a_cause_is_told_too() -> None:
    async def agent(ctx: Context) -> None:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error

    stack = (await _failure(agent))["stack"]
    assert "KeyError: 'first'" in stack
    assert "ValueError: second" in stack


def test_frames_of_ours_are_folded_and_counted() -> None:
    def broken() -> None:
        raise ValueError("no")

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, broken)

    with pytest.raises(ExceptionGroup) as raised:
        anyio.run(work)
    stack = stack_of(raised.value)
    assert "in broken" in stack
    assert "frames of anyio" in stack
    assert "_backends" not in stack
