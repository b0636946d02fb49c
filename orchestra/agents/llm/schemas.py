"""JSON Schemas as people write them for models: what is wrong with one, and a value that fits one."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestra.limits import WORKFLOW_DEPTH
from orchestra.suggest import closest

_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
_HABITS: Final = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "bool": "boolean",
    "list": "array", "tuple": "array", "dict": "object", "map": "object", "mapping": "object", "none": "null",
}  # fmt: skip
_DEFS: Final = "#/$defs/"
_ONE: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_MANY: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")

_FULL_DEPTH: Final = 4  # below this only what must be there is made up
_MOST_DEPTH: Final = 32
_WORD_CHARS: Final = 6
_FORMATS: Final = {
    "date": "2026-01-{day:02d}",
    "date-time": "2026-01-{day:02d}T12:00:00Z",
    "time": "12:00:{day:02d}Z",
    "duration": "PT{day}M",
    "email": "{word}@example.org",
    "hostname": "{word}.example.org",
    "ipv4": "192.0.2.{day}",
    "ipv6": "2001:db8::{day}",
    "uri": "https://example.org/{word}",
    "uri-reference": "/{word}",
    "uuid": "00000000-0000-4000-8000-{word:0>12}",
}
_PATTERN_TRIES: Final = (
    "{word}", "{name}", "{day}", "{day:02d}", "{day:03d}", "{day:04d}", "A{day}", "A-{day}", "a-{day}",
    "{word}.py", "{word}/{word}", "2026-01-{day:02d}", "12:00", "{word}@example.org",
    "https://example.org/{word}", "1.0.{day}", "v1.0.{day}", "#{word}", "{upper}", "Aa", "Aaa", "AAA", "aaa",
    "0.5", "yes", "true", "",
)  # fmt: skip


def schema_fault(schema: Mapping[str, Any]) -> str:
    """Why something cannot be the schema of what an agent returns; empty when it can.

    It must be what every provider takes: an object whose references lead to its `$defs`, not in circles.
    """
    if schema.get("type") != "object":
        return "it does not begin with `type: object`"
    links: dict[str, set[str]] = {}
    for where, part, depth in _walk(schema):
        place = f" at `{'.'.join(where)}`" if where else ""
        if depth > WORKFLOW_DEPTH:
            return f"it is nested deeper than {WORKFLOW_DEPTH} levels"
        if fault := _part_fault(part, schema):
            return fault + place
        if isinstance(part, dict) and "$ref" in part:
            home = where[1] if where[:1] == ("$defs",) else ""
            links.setdefault(home, set()).add(part["$ref"].removeprefix(_DEFS))
    return "it contains itself, which most providers refuse" if _has_circle(links) else ""


def sample_value(schema: Mapping[str, Any], seed: str, *, full: bool = True) -> Any:
    """A value that fits a schema, always the same for the same `seed`; unless `full`, as little as will do.

    Numbers lie in the upper part of their range and truths are true, so that made-up verdicts let a rehearsal
    go on. A `pattern` is met only when it is a usual one. Raises `ValueError` for a schema without an end.
    """
    return _Sampler(schema, seed, _FULL_DEPTH if full else 0).value(schema, "value", 0)


# --- faults -------------------------------------------------------------------------------------------------


def _walk(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    """Every schema in a schema, with where it stands and how deep."""
    waiting: list[tuple[tuple[str, ...], Any, int]] = [((), schema, 0)]
    while waiting:
        where, part, depth = waiting.pop()
        yield where, part, depth
        if isinstance(part, dict):
            waiting += [((*where, *names), below, depth + 1) for names, below in _parts(part)]


def _part_fault(part: Any, whole: Mapping[str, Any]) -> str:
    if isinstance(part, bool):
        return ""
    if not isinstance(part, dict):
        return f"there is no schema but {json.dumps(part, default=str)[:40]}"
    kinds = part.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            meant = _HABITS.get(str(kind).lower()) or closest(str(kind), _TYPES)
            hint = f", did you mean `{meant}`?" if meant else f"; there are {', '.join(_TYPES)}"
            return f"there is no type {kind!r}{hint}"
    for key, value in part.items():
        if isinstance(value, float) and not math.isfinite(value):
            return f"`{key}` is no finite number"
        if key in _NAMED and not isinstance(value, dict):
            return f"`{key}` is no mapping"
        if (key in _MANY or key in ("enum", "required")) and not isinstance(value, list):
            return f"`{key}` is no list"
    return _reference_fault(part["$ref"], whole) if "$ref" in part else ""


def _reference_fault(reference: Any, whole: Mapping[str, Any]) -> str:
    if not isinstance(reference, str) or not reference.startswith(_DEFS):
        return f"`$ref: {reference}` does not lead to `{_DEFS}…`"
    return (
        "" if isinstance(resolve_reference(whole, reference), dict) else f"`$ref: {reference}` leads nowhere"
    )


def _has_circle(links: Mapping[str, set[str]]) -> bool:
    """Whether somewhere a definition leads back to itself."""
    rest = {home: set(targets) for home, targets in links.items()}
    while ends := [home for home, targets in rest.items() if not targets & rest.keys()]:
        for home in ends:
            del rest[home]
    return bool(rest)


def _parts(part: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The schemas inside a schema, by where they stand."""
    for key in _ONE:
        if key in part:
            many = part[key] if isinstance(part[key], list) else [part[key]]
            yield from (((key,), each) for each in many)
    for key in _MANY:
        if isinstance(part.get(key), list):
            yield from (((key, str(at)), each) for at, each in enumerate(part[key]))
    for key in _NAMED:
        if isinstance(part.get(key), dict):
            yield from (((key, name), each) for name, each in part[key].items())


def resolve_reference(whole: Mapping[str, Any], reference: Any) -> Any:
    """What a reference inside a schema leads to, or None."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = whole
    for name in reference[1:].split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


# --- samples ------------------------------------------------------------------------------------------------


class _Sampler:
    """Makes up one value."""

    def __init__(self, whole: Mapping[str, Any], seed: str, full_depth: int) -> None:
        self._whole = whole
        self._seed = seed
        self._full_depth = full_depth
        self._drawn = 0

    def value(self, schema: Any, name: str, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise ValueError(f"the schema of `{name}` contains itself without end")
        if not isinstance(schema, Mapping):
            return self._word()
        if "const" in schema:
            return schema["const"]
        for key in ("enum", "examples"):
            if schema.get(key):
                return schema[key][self._draw() % len(schema[key])]
        if "$ref" in schema:
            return self.value(resolve_reference(self._whole, schema["$ref"]), name, depth + 1)
        if schema.get("allOf"):
            return self.value(
                merge_schemas([{**schema, "allOf": []}, *self._flat(schema["allOf"])]), name, depth + 1
            )
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                rest = {word: more for word, more in schema.items() if word != key}
                chosen = self._choice(schema[key], depth)
                return self.value(merge_schemas([rest, *self._flat([chosen])]), name, depth + 1)
        return self._typed(schema, _kind(schema), name, depth)

    def _typed(self, schema: Mapping[str, Any], kind: str, name: str, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer" | "number":
                return _number(schema, whole=kind == "integer", part=self._draw())
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return self._text(schema, name)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        wanted = [key for key in properties if key in required or depth < self._full_depth]
        made = {key: self.value(properties[key], key, depth + 1) for key in wanted}
        made |= {key: self._word() for key in required if key not in properties}
        others = schema.get("additionalProperties")
        for at in range(len(made), schema.get("minProperties", 0)):
            made[f"key{at + 1}"] = self.value(others, f"key{at + 1}", depth + 1)
        return made

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        first = schema.get("prefixItems", ())
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        usual = len(first) or (1 if depth < self._full_depth and "items" in schema else 0)
        count = min(most, max(least, usual))
        made: list[Any] = []
        for at in range(int(count)):
            each = self.value(first[at] if at < len(first) else schema.get("items"), name, depth + 1)
            if schema.get("uniqueItems") and each in made:
                each = self._another(schema.get("items"), name, depth, made)
            made.append(each)
        return made

    def _another(self, schema: Any, name: str, depth: int, made: list[Any]) -> Any:
        """An item that is not there yet, if a few tries find one."""
        tries = (self.value(schema, name, depth + 1) for _ in range(64))
        return next((each for each in tries if each not in made), None)

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        words = {"word": self._word(), "name": name, "day": self._draw() % 28 + 1}
        words["upper"] = str(words["word"]).upper()
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]].format(**words)
        least: int = schema.get("minLength", 0)
        most: float = schema.get("maxLength", math.inf)
        tries = (each.format(**words) for each in (*_PATTERN_TRIES, *_FORMATS.values()))
        texts: list[str] = [f"{name} {words['word']}", *tries]
        if "pattern" in schema:
            texts = [text for text in texts if _matches(schema["pattern"], text)] or texts
            return next((text for text in texts if least <= len(text) <= most), texts[0])
        text = texts[0] if len(texts[0]) <= most else texts[0][: int(most)]
        return text + "." * max(0, least - len(text))

    def _choice(self, options: list[Any], depth: int) -> Any:
        """One of several schemas; deep down the simplest, else the first that is more than nothing."""
        plain = [
            each for each in options if _kind(each) not in ("object", "array", "null") and "$ref" not in each
        ]
        empty = [each for each in options if _kind(each) == "null" and "$ref" not in each]
        if depth >= self._full_depth and (empty or plain):
            return (empty or plain)[0]
        return next((each for each in options if each not in empty), options[0])

    def _flat(self, schemas: list[Any]) -> list[Any]:
        found = [resolve_reference(self._whole, each["$ref"]) if "$ref" in each else each for each in schemas]
        return [each for each in found if isinstance(each, Mapping)]

    def _word(self) -> str:
        return f"{self._draw():x}"[:_WORD_CHARS].rjust(_WORD_CHARS, "0")

    def _draw(self) -> int:
        """A number that depends on the seed and on how many were drawn."""
        self._drawn += 1
        digest = hashlib.sha256(f"{self._seed}\0{self._drawn}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big")


def _kind(schema: Any) -> str:
    """The type a schema asks for, or seems to."""
    if not isinstance(schema, Mapping):
        return "string"
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kinds = next((each for each in kinds if each != "null"), "null")
    if isinstance(kinds, str):
        return kinds
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def merge_schemas(schemas: list[Any]) -> dict[str, Any]:
    """Several schemas that all hold, as one."""
    whole: dict[str, Any] = {}
    for schema in schemas:
        for key, value in schema.items():
            held = whole.get(key)
            if isinstance(held, dict) and isinstance(value, dict):
                whole[key] = held | value
            elif isinstance(held, list) and isinstance(value, list) and key == "required":
                whole[key] = [*held, *(each for each in value if each not in held)]
            else:
                whole[key] = value
    return whole


def _number(schema: Mapping[str, Any], *, whole: bool, part: int) -> int | float:
    """A number in the upper quarter of its range; at the one end it has, if it has one."""
    step = schema.get("multipleOf") or (1 if whole else 0)
    low, high = number_range(schema, step or 0.001)
    drawn = high - (high - low) / 4 * (part % 101) / 100
    if step:
        drawn = max(math.floor(drawn / step), math.ceil(low / step)) * step
    return int(drawn) if whole else round(float(drawn), 6)


def number_range(schema: Mapping[str, Any], tiny: float, span: float = 0) -> tuple[float, float]:
    """The least and the greatest number of a schema; `tiny` is how far from an end that is left out.

    A schema with one end has the other `span` away; one without any has the numbers from 1 to 10.
    """
    lows = [schema["minimum"]] if "minimum" in schema else []
    lows += [schema["exclusiveMinimum"] + tiny] if "exclusiveMinimum" in schema else []
    highs = [schema["maximum"]] if "maximum" in schema else []
    highs += [schema["exclusiveMaximum"] - tiny] if "exclusiveMaximum" in schema else []
    if not lows and not highs:
        return 1, 10
    low = max(lows) if lows else min(highs) - span
    return low, min(highs) if highs else low + span


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True
