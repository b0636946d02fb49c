"""Schemas made narrower, for a small model that writes on and on where it may.

Every text, list and number gets an end, every object its keys, and what grammars do not know is put in words
they know. Whatever fits the schema that is made fits the one it was made of; the reverse is not so. Patterns
that grammars cannot follow are left out.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from orchestra.agents.llm.schemas import merge_schemas, number_range, resolve_reference
from orchestra.limits import LOCAL_MODEL_ITEMS, LOCAL_MODEL_TEXT_CHARS

_FOR_PEOPLE: Final = frozenset(("title", "description", "default", "examples", "$schema", "$id", "$comment"))
_NAMED: Final = ("properties", "$defs", "definitions")
_MANY: Final = ("anyOf", "oneOf", "prefixItems")
_ONE: Final = ("items", "additionalProperties")
_CHOICES: Final = frozenset(("$ref", "enum", "const", "anyOf", "oneOf"))
_CLASSES: Final = {"d": "0-9", "w": "A-Za-z0-9_", "s": " "}
_REPEATS: Final = {"+": "{1,9}", "*": "{0,9}"}
_OPEN_REPEAT: Final = re.compile(r"\{(\d+),\}")
_MOST_DEPTH: Final = 32
_ANYTHING: Final = "[a-z0-9.]{0,20}"
_SPAN: Final = 1000
_STEPS: Final = 10
_PATTERNS: Final = {
    "duration": r"^PT[1-9][0-9]?M$",
    "email": r"^[a-z0-9]{1,12}@example\.org$",
    "hostname": r"^[a-z0-9]{1,12}\.example\.org$",
    "ipv4": r"^192\.0\.2\.[1-9][0-9]?$",
    "ipv6": r"^2001:db8::[1-9][0-9]?$",
    "uri": r"^https://example\.org/[a-z0-9]{1,12}$",
    "uri-reference": r"^/[a-z0-9]{1,12}$",
}
_KNOWN_FORMATS: Final = ("date", "date-time", "time", "uuid")


def bounded_schema(schema: Any) -> Any:
    """A schema with an end everywhere, for grammars of llama.cpp."""
    return _narrow(schema, schema, 0)


def _narrow(schema: Any, whole: Any, depth: int) -> Any:
    if schema is True:
        return _with_ends({})
    if not isinstance(schema, Mapping) or depth > _MOST_DEPTH:
        return schema
    made = {key: value for key, value in schema.items() if key not in _FOR_PEOPLE}
    if isinstance(made.get("allOf"), list):
        parts = [
            resolve_reference(whole, each["$ref"]) if "$ref" in each else each for each in made.pop("allOf")
        ]
        return _narrow(merge_schemas([made, *parts]), whole, depth + 1)
    for key in _NAMED:
        if isinstance(made.get(key), Mapping):
            made[key] = {name: _narrow(each, whole, depth + 1) for name, each in made[key].items()}
    for key in _MANY:
        if isinstance(made.get(key), list):
            made[key] = [_narrow(each, whole, depth + 1) for each in made[key]]
    for key in _ONE:
        if key in made:
            made[key] = _narrow(made[key], whole, depth + 1)
    return made if _CHOICES & made.keys() else _with_ends(made)


def _with_ends(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with ends of its own; those inside it have theirs."""
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kinds, list):
        return {"anyOf": [_NARROWED.get(kind, dict)({**schema, "type": kind}) for kind in kinds]}
    return _NARROWED.get(kinds, dict)({**schema, "type": kinds})


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """An object of the keys it has, or of a few where it may have any."""
    others = schema.pop("additionalProperties", True)
    schema["additionalProperties"] = False
    if not schema.get("properties"):
        names = schema.get("required") or [f"key{at + 1}" for at in range(schema.get("minProperties", 0))]
        each = others if isinstance(others, Mapping) else _with_ends({})
        schema |= {"properties": dict.fromkeys(names, each), "required": list(names)}
    return schema


def _array(schema: dict[str, Any]) -> dict[str, Any]:
    first = len(schema.get("prefixItems", ()))
    if first:  # grammars know such a list as that long and no longer
        return {**{key: value for key, value in schema.items() if key != "items"}, "maxItems": first}
    most = max(LOCAL_MODEL_ITEMS, schema.get("minItems", 0))
    return {"maxItems": most, "items": _with_ends({}), **schema}


def _string(schema: dict[str, Any]) -> dict[str, Any]:
    """A text of some length; a pattern only where grammars know it."""
    wanted = schema.pop("format", None)
    pattern = _whole_pattern(schema.pop("pattern", _PATTERNS.get(wanted, "")))
    if wanted in _KNOWN_FORMATS:
        return {"type": "string", "format": wanted}
    if pattern:
        return {"type": "string", "pattern": pattern}
    longest = max(LOCAL_MODEL_TEXT_CHARS, schema.get("minLength", 0))
    return {"minLength": min(1, schema.get("maxLength", 1)), "maxLength": longest, **schema}


def _whole_pattern(pattern: str) -> str:
    """A pattern for a whole text, which is what grammars want; empty when it is not that simple."""
    inner = pattern.removeprefix("^").removesuffix("$")
    if not pattern or "(?" in pattern or (inner != pattern and "|" in pattern):
        return ""
    plain = _without_classes(inner)
    if plain is None:
        return ""
    before = "" if pattern.startswith("^") else _ANYTHING
    after = "" if pattern.endswith("$") else _ANYTHING
    return f"^{before}({plain}){after}$" if before or after else f"^{plain}$"


def _without_classes(pattern: str) -> str | None:
    """A pattern with `\\d` and the like written out, and with an end to `+`; None when that cannot be."""
    made, inside, signs = [], False, iter(pattern)
    for sign in signs:
        if sign == "\\":
            escaped = next(signs, "")
            if escaped in _CLASSES:
                sign = _CLASSES[escaped] if inside else f"[{_CLASSES[escaped]}]"
            elif not escaped or escaped.isalnum():
                return None
            else:
                sign = f"\\{escaped}"
        elif sign in "[]":
            inside = sign == "["
        elif not inside:
            sign = _REPEATS.get(sign, sign)
        made.append(sign)
    return _OPEN_REPEAT.sub(lambda found: f"{{{found[1]},{int(found[1]) + 9}}}", "".join(made))


def _integer(schema: dict[str, Any]) -> dict[str, Any]:
    step = schema.get("multipleOf", 1)
    low, high = number_range(schema, 1, _SPAN)
    if step == 1 and int(low) == low and int(high) == high:
        return {"type": "integer", "minimum": int(low), "maximum": int(high)}
    first = -(-low // step)
    values = [int((first + at) * step) for at in range(_STEPS) if (first + at) * step <= high]
    return {"enum": values} if values else schema


def _number(schema: dict[str, Any]) -> dict[str, Any]:
    """Numbers of a few digits: grammars do not know how large a number may be."""
    step = schema.get("multipleOf", 0)
    low, high = number_range(schema, step or 0.001, _SPAN)
    if not step and high - low > _STEPS:
        return _integer({"type": "integer", "minimum": -(-low // 1), "maximum": high // 1})
    first = -(-low // step) * step if step else low
    width = step or (high - low) / _STEPS
    values = [round(first + at * width, 6) for at in range(_STEPS + 1)]
    return {"enum": list(dict.fromkeys(each for each in values if low <= each <= high)) or [low]}


_NARROWED: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
}
