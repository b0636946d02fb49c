"""A narrower schema has an end everywhere, and what fits it fits the schema it was made of."""

from typing import Any

import jsonschema_rs
import pytest

from orchestra.agents.llm.offline.bounds import bounded_schema
from orchestra.agents.llm.schemas import sample_value
from orchestra.limits import LOCAL_MODEL_ITEMS, LOCAL_MODEL_TEXT_CHARS
from tests.unit.agents.llm.test_schemas import TOOLS


@pytest.mark.parametrize("schema", TOOLS, ids=range(len(TOOLS)))
@pytest.mark.parametrize("full", [True, False])
def test_what_fits_the_narrower_fits_the_wider(schema: dict[str, Any], full: bool) -> None:
    narrow = bounded_schema(schema)
    for seed in range(5):
        value = sample_value(narrow, str(seed), full=full)
        jsonschema_rs.Draft202012Validator(narrow).validate(value)
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(value)


def test_the_schema_itself_is_left_alone() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}}
    before = str(schema)
    bounded_schema(schema)
    assert str(schema) == before


@pytest.mark.parametrize(
    ("schema", "narrow"),
    [
        ({"type": "string"}, {"type": "string", "minLength": 1, "maxLength": LOCAL_MODEL_TEXT_CHARS}),
        ({"type": "string", "maxLength": 0}, {"type": "string", "minLength": 0, "maxLength": 0}),
        ({"type": "string", "title": "x", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a{1,9}$"}),
        ({"type": "string", "pattern": "^#"}, {"type": "string", "pattern": "^(#)[a-z0-9.]{0,20}$"}),
        ({"type": "string", "pattern": "(?=a)b", "maxLength": 3},
         {"type": "string", "minLength": 1, "maxLength": 3}),
        ({"type": "string", "pattern": "^a|b", "maxLength": 3},
         {"type": "string", "minLength": 1, "maxLength": 3}),
        ({"type": "integer"}, {"type": "integer", "minimum": 1, "maximum": 10}),
        ({"type": "integer", "minimum": 5}, {"type": "integer", "minimum": 5, "maximum": 1005}),
        ({"type": "integer", "exclusiveMaximum": 5}, {"type": "integer", "minimum": -996, "maximum": 4}),
        ({"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 30}, {"enum": [14, 21, 28]}),
        ({"type": "number", "minimum": 0, "maximum": 1},
         {"enum": [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]}),
        ({"type": "number", "minimum": 0.5}, {"type": "integer", "minimum": 1, "maximum": 1000}),
        ({"type": "number", "minimum": 2, "maximum": 2}, {"enum": [2]}),
        ({"type": ["integer", "null"], "minimum": 1, "maximum": 2},
         {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 2},
                    {"type": "null", "minimum": 1, "maximum": 2}]}),
        ({"type": "array"},
         {"type": "array", "maxItems": LOCAL_MODEL_ITEMS, "items": bounded_schema({"type": "string"})}),
        ({"type": "object"},
         {"type": "object", "additionalProperties": False, "properties": {}, "required": []}),
        ({}, bounded_schema({"type": "string"})),
        ({"const": 5, "title": "x"}, {"const": 5}),
        (True, bounded_schema({"type": "string"})),
        (False, False),
        ({"type": "array", "prefixItems": [{"const": 1}], "items": False},
         {"type": "array", "prefixItems": [{"const": 1}], "maxItems": 1}),
    ],
    ids=range(22),
)  # fmt: skip
def test_what_is_made(schema: Any, narrow: Any) -> None:
    assert bounded_schema(schema) == narrow


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        (r"^\d{4}-\d\d$", "^[0-9]{4}-[0-9][0-9]$"),
        (r"^[\w.-]+\.py$", r"^[A-Za-z0-9_.-]{1,9}\.py$"),
        (r"^[+*]\+a{2,}b{3}c*$", r"^[+*]\+a{2,11}b{3}c{0,9}$"),
        (r"^a\sb$", "^a[ ]b$"),
        (r"^\bword$", None),
        (r"^(a)\1$", None),
        ("^a\\", None),
        ("^a|b$", None),
        ("a|b", "^[a-z0-9.]{0,20}(a|b)[a-z0-9.]{0,20}$"),
    ],
)
def test_patterns(pattern: str, plain: str | None) -> None:
    assert bounded_schema({"type": "string", "pattern": pattern}).get("pattern") == plain
