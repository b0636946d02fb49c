"""The building blocks of the models. A short form becomes the long one before it is validated."""

from collections.abc import Callable
from itertools import chain
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from orchestra.config.units import DURATION_PATTERN, SIZE_PATTERN, duration_us, size_bytes
from orchestra.limits import ROLLBACK_TRIES, WORKFLOW_NAME_CHARS
from orchestra.model.workflow import FailureStep

NAME_PATTERN = rf"^[A-Za-z0-9][A-Za-z0-9_-]{{0,{WORKFLOW_NAME_CHARS - 1}}}$"
T = TypeVar("T")


class Form(BaseModel):
    """A mapping with a fixed set of keys. A key without a value counts as not given."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, validate_default=False)
    nulls: ClassVar[frozenset[str]] = frozenset()  # keys for which "nothing" is a value

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key in cls.nulls}


def key(default: Any, help: str, **bounds: Any) -> Any:
    """A key that need not be given."""
    return Field(default=default, description=help, **bounds)


def short(convert: Callable[[Any], Any], written: Any) -> BeforeValidator:
    """Makes the long form of a short one; `written` is the type of everything that may be written."""
    return BeforeValidator(convert, json_schema_input_type=written)


def refusal(sentence: str) -> PydanticCustomError:
    """A mistake in words of our own."""
    return PydanticCustomError("said", "{sentence}", {"sentence": sentence})


def in_words(convert: Callable[[Any], T]) -> Callable[[Any], T]:
    """A conversion whose `ValueError` is told in its own words."""

    def validate(value: Any) -> T:
        try:
            return convert(value)
        except ValueError as error:
            raise refusal(str(error)) from None

    return validate


def as_list(value: Any) -> Any:
    """One thing as a list of it."""
    return [] if value is None else value if isinstance(value, list) else [value]


def as_expression(value: Any) -> Any:
    """`true` and `false` as expressions."""
    return str(value).lower() if isinstance(value, bool) else value


Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(ge=0)]
Duration = Annotated[
    int, short(in_words(duration_us), Annotated[str, Field(pattern=DURATION_PATTERN)] | _Seconds)
]
Size = Annotated[int, short(in_words(size_bytes), Annotated[str, Field(pattern=SIZE_PATTERN)] | Count)]
Texts = Annotated[list[str], short(as_list, str | list[str])]


class RollbackForm(Form):
    """Go back more often than once before the next step is tried."""

    rollback: Annotated[int, Field(ge=1, le=ROLLBACK_TRIES)] = Field(description="How often.")


def _tries(value: Any, validate: Callable[[Any], Any]) -> list[Any]:
    """A step of `on_failure` as often as it is to be tried."""
    if not isinstance(value, dict):
        return [validate(value)]
    times = value.get("rollback")
    if len(value) != 1 or type(times) is not int or not 1 <= times <= ROLLBACK_TRIES:
        sentence = f"only `rollback` can be tried more than once: `{{rollback: N}}`, N up to {ROLLBACK_TRIES}"
        raise refusal(sentence)
    return ["rollback"] * times


_Step = Annotated[FailureStep, WrapValidator(_tries, json_schema_input_type=FailureStep | RollbackForm)]
Steps = Annotated[
    list[_Step],
    short(as_list, FailureStep | RollbackForm | list[_Step]),
    AfterValidator(lambda tries: list(chain.from_iterable(tries))),
]
"""Steps of `on_failure`; one that is to be tried three times is there three times."""
When = Annotated[str, short(as_expression, str | bool)]

Table = Annotated[dict[str, T], Field(json_schema_extra={"propertyNames": {"pattern": NAME_PATTERN}})]


class AgentForm(Form):
    """Something that can do a task. Its kind adds keys of its own."""

    description: str = key("", "What it does, for people and for Atlas.")
    with_: dict[str, Any] = Field(default={}, alias="with", description="Handed to the agent as it is.")


class FileAgentForm(AgentForm):
    """An agent that is a file."""

    path: str = Field(description="The agent's file, relative to this file's folder.")
