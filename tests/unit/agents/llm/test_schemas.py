"""Schemas are looked at before a model is, and made-up values fit them."""

import json
from typing import Any

import jsonschema_rs
import pytest
from pydantic_ai import Agent, StructuredDict

from orchestra.agents.llm.schemas import sample_value, schema_fault


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name", "below"],
}
CHAIN = {
    "$defs": {"link": _object(next={"anyOf": [{"$ref": "#/$defs/link"}, {"type": "null"}]})},
    "type": "object",
    "properties": {"first": {"$ref": "#/$defs/link"}},
    "required": ["first"],
}
FITTING = [
    _object(a={"type": "string"}, b={"type": "integer"}, c={"type": "number"}, d={"type": "boolean"}),
    _object(a={"type": "null"}, b={"type": ["null", "integer"]}, c={}, d=True),
    _object(a={"const": 5}, b={"enum": ["x", "y"]}, c={"examples": ["z"], "type": "string"}),
    _object(a={"type": "string", "minLength": 40}, b={"type": "string", "maxLength": 3}),
    _object(a={"type": "string", "minLength": 0, "maxLength": 0}),
    _object(a={"type": "integer", "minimum": 3, "maximum": 3}, b={"type": "integer", "exclusiveMinimum": 7}),
    _object(a={"type": "integer", "maximum": -5}, b={"type": "integer", "multipleOf": 7, "minimum": 20}),
    _object(a={"type": "number", "minimum": 0, "maximum": 1}, b={"type": "number", "exclusiveMaximum": 0}),
    _object(a={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
    _object(a={"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 10}),
    _object(a={"type": "array", "items": {"type": "integer"}, "minItems": 3}),
    _object(a={"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True}),
    _object(a={"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True}),
    _object(a={"type": "array", "maxItems": 0, "items": {"type": "string"}}, b={"type": "array"}),
    _object(a={"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}),
    _object(a={"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}),
    {"type": "object", "required": ["only", "named"]},
    _object(a={"anyOf": [{"type": "null"}, {"type": "integer"}]}),
    _object(a={"oneOf": [{"type": "string"}, {"type": "integer"}], "description": "either"}),
    _object(a={"allOf": [_object(b={"type": "integer"}), _object(c={"type": "string"})]}),
    {"$defs": {"p": _object(x={"type": "integer"})}, **_object(a={"allOf": [{"$ref": "#/$defs/p"}]})},
    {"$defs": {"p": {"$ref": "#/$defs/q"}, "q": {"type": "string"}}, **_object(a={"$ref": "#/$defs/p"})},
    {"$defs": {"a": {"type": "integer"}}, **_object(a={"$ref": "#/$defs/a"}, b={"$ref": "#/$defs/a"})},
    *(
        _object(a={"type": "string", "format": each})
        for each in (
            "date",
            "date-time",
            "time",
            "email",
            "ipv4",
            "ipv6",
            "uuid",
            "uri",
            "duration",
            "hostname",
        )
    ),
    *(
        _object(a={"type": "string", "pattern": each})
        for each in (r"^[a-z0-9]+$", r"^\d{4}-\d\d-\d\d$", r"^#", r"^v?\d+\.\d+\.\d+$", r"@", r"^[A-Z]{3}$")
    ),
]


@pytest.mark.parametrize("schema", FITTING, ids=range(len(FITTING)))
def test_what_is_accepted_the_library_takes(schema: dict[str, Any]) -> None:
    assert schema_fault(schema) == ""
    Agent(output_type=StructuredDict(schema))


TOOLS = [
    *FITTING,
    {"$defs": {"a/b": {"type": "integer"}}, **_object(a={"$ref": "#/$defs/a~1b"})},
    {"properties": {"a": {"type": "integer"}}},
    _object(a={"$ref": "#/properties/b"}, b={"type": "string"}),
    TREE,
    CHAIN,
]


@pytest.mark.parametrize("schema", TOOLS, ids=range(len(TOOLS)))
@pytest.mark.parametrize("seed", ["", "one", "two", "\ud800"])
@pytest.mark.parametrize("full", [True, False])
def test_samples_fit(schema: dict[str, Any], seed: str, full: bool) -> None:
    value = sample_value(schema, seed, full=full)
    jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(value)
    assert json.loads(json.dumps(value)) == value
    assert sample_value(schema, seed, full=full) == value


def test_as_little_as_will_do() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    assert sample_value({**schema, "required": ["a"]}, "x", full=False).keys() == {"a"}
    assert sample_value({**schema, "required": ["a"]}, "x").keys() == {"a", "b"}


def test_samples_differ_by_seed() -> None:
    schema = _object(text={"type": "string"}, score={"type": "number", "minimum": 0, "maximum": 1})
    assert len({json.dumps(sample_value(schema, str(seed))) for seed in range(20)}) == 20


def test_samples_let_a_rehearsal_go_on() -> None:
    schema = _object(score={"type": "number", "minimum": 0, "maximum": 1}, good={"type": "boolean"})
    for seed in range(50):
        value = sample_value(schema, str(seed))
        assert value["score"] >= 0.75
        assert value["good"] is True


def test_texts_say_what_they_stand_for() -> None:
    assert sample_value(_object(summary={"type": "string"}), "x")["summary"].startswith("summary ")


def test_a_schema_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="contains itself without end"):
        sample_value({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "x")


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({}, "does not begin with `type: object`"),
        ({"title": "string"}, "does not begin with `type: object`"),
        ({"type": "array"}, "does not begin with `type: object`"),
        (TREE, "`$ref: #` does not lead to `#/$defs/…`"),
        (CHAIN, "contains itself"),
        (_object(a={"type": "str"}), "no type 'str', did you mean `string`? at `properties.a`"),
        (_object(a={"type": "strnig"}), "did you mean `string`?"),
        (_object(a={"type": ["integer", "list"]}), "did you mean `array`?"),
        (_object(a={"type": "zzzzz"}), "there are object, array"),
        (_object(a={"type": 5}), "no type 5"),
        (_object(a="string"), 'there is no schema but "string" at `properties.a`'),
        (
            _object(a={"type": "array", "items": {"type": "object", "properties": []}}),
            "`properties` is no mapping",
        ),
        (_object(a={"enum": "x"}), "`enum` is no list"),
        ({"type": "object", "required": "a"}, "`required` is no list"),
        (_object(a={"type": "number", "maximum": float("inf")}), "no finite number"),
        (_object(a={"$ref": "#/$defs/none"}), "`$ref: #/$defs/none` leads nowhere"),
        (_object(a={"$ref": "https://example.org/schema"}), "does not lead to"),
        (_object(a={"$ref": 5}), "does not lead to"),
        (_object(a={"anyOf": [{"type": "string"}, {"type": "int"}]}), "at `properties.a.anyOf.1`"),
    ],
)
def test_faults(schema: dict[str, Any], fault: str) -> None:
    assert fault in schema_fault(schema)


def test_depth_is_bounded() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(100):
        schema = _object(a=schema)
    assert "deeper than" in schema_fault(schema)
