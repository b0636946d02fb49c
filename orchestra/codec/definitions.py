"""Definitions: frozen values that people write, as plain data and back, through our own cattrs converter.

A definition is written once for a workflow and read once for a resumed run, so it does without the compiled
writers and readers that states need. A field that has its default is left out, so that a field added later
does not change the digest of what is there; unknown keys are refused. The options of an agent stand beside
its other fields: a key that is none of these is an option, for the agent's kind to read.
"""

from functools import cache, lru_cache
from typing import Any, TypeVar, cast

import attrs
import cattrs
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.strategies import configure_tagged_union

from orchestra.codec.address import Addresser
from orchestra.codec.values import freeze, thaw
from orchestra.errors import Damaged
from orchestra.limits import AGENT_OPTIONS_KEPT
from orchestra.model.value import Value
from orchestra.model.workflow import Agent, Reaction

T = TypeVar("T")


def definition_to_plain(definition: Any) -> Any:
    """A definition as plain data: dictionaries, lists, texts, numbers and bytes."""
    return _converter().unstructure(definition)


def definition_from_plain(plain: Any, kind: type[T], *, what: str) -> T:
    """A definition from plain data; raises `Damaged`."""
    try:
        return _converter().structure(plain, kind)
    except (BaseValidationError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise Damaged(what=what, reason=f"it is not a definition ({type(error).__name__})") from None


def options_value(options: Any) -> Value | None:
    """The options of an agent, an object of its kind's class, as its definition keeps them."""
    plain = definition_to_plain(options)
    return freeze(plain, Addresser()) if plain else None


def read_options(agent: Agent, options: type[T]) -> T:
    """The options of an agent as an object of its kind's class; raises `Damaged`."""
    found: T = _read_options(agent.options, cast(Any, options))
    return found


@lru_cache(maxsize=AGENT_OPTIONS_KEPT)
def _read_options(value: Value | None, options: Any) -> Any:
    return definition_from_plain(
        {} if value is None else thaw(value), options, what="the options of an agent"
    )


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=True)
    converter.register_unstructure_hook(Value, _small)
    converter.register_structure_hook(Value, lambda encoded, _: Value(_check(encoded, bytes)))
    for atom in (str, int, bool):
        converter.register_structure_hook(atom, _check)
    converter.register_structure_hook(float, lambda number, _: _check(number, (int, float)))
    configure_tagged_union(
        Reaction, converter, tag_name="kind", tag_generator=lambda member: attrs.fields(member).kind.default
    )
    _add_agents(converter)
    return converter


def _add_agents(converter: cattrs.Converter) -> None:
    fields = {field.name for field in attrs.fields(Agent)} - {"options"}
    hidden = override(omit=True)
    write = make_dict_unstructure_fn(Agent, converter, _cattrs_omit_if_default=True, options=hidden)
    read = make_dict_structure_fn(Agent, converter, _cattrs_forbid_extra_keys=True, options=hidden)

    def to_plain(agent: Agent) -> dict[str, Any]:
        return write(agent) | ({} if agent.options is None else thaw(agent.options))

    def from_plain(plain: dict[str, Any], kind: Any) -> Agent:
        agent = read({name: value for name, value in plain.items() if name in fields}, kind)
        own = {_check(name, str): value for name, value in plain.items() if name not in fields}
        return attrs.evolve(agent, options=freeze(own, Addresser())) if own else agent

    converter.register_unstructure_hook(Agent, to_plain)
    converter.register_structure_hook(Agent, from_plain)


def _small(value: Value) -> bytes:
    assert value.encoded is not None, "BUG: a definition holds small values only"
    return value.encoded


def _check(held: Any, kind: Any) -> Any:
    if not isinstance(held, kind) or (isinstance(held, bool) and kind is not bool):
        raise TypeError(f"{type(held).__name__} where {kind} belongs")
    return held
