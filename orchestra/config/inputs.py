"""The inputs of a run: text from the command line becomes what the workflow declares."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from orchestra.codec.values import thaw
from orchestra.config.check.validate import value_text
from orchestra.config.read.scalars import BadScalar, read_plain
from orchestra.config.read.yaml_tree import read_tree
from orchestra.errors import BadInput
from orchestra.model.workflow import Input, Workflow
from orchestra.suggest import closest, meant

TYPES: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "text": ("a text", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "path": ("a path", (str,)),
    "list": ("a list", (list,)),
    "map": ("a mapping", (dict,)),
}
"""Types of inputs: the words for one, and what it may be."""
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def misfit(type_: str, value: Any) -> str | None:
    """Why a value is not of a type, or None."""
    words, kinds = TYPES.get(type_, ("", (type(value),)))
    return None if type(value) in kinds else f"{words} is needed, not {value_text(value)}"


def accept_inputs(workflow: Workflow, given: Mapping[str, Any], *, base: Path) -> dict[str, Any]:
    """Every declared input with its value; raises `BadInput`, which tells all that is wrong at once.

    Text is converted to what is declared, as `--input name=text` needs it. A path is looked for below `base`.
    """
    accepted: dict[str, Any] = {}
    names = [declared.name for declared in workflow.inputs]
    unknown = [name for name in given if name not in names]
    wrong = [(name, "there is no such input" + (meant(name, names) or "; it takes none")) for name in unknown]
    for declared in workflow.inputs:
        try:
            accepted[declared.name] = _accept(declared, given, base)
        except ValueError as error:
            wrong.append((declared.name, str(error)))
    if wrong:
        raise _bad(workflow, wrong)
    return accepted


def accept_input(workflow: Workflow, name: str, value: Any, *, base: Path) -> Any:
    """The value of one declared input, as `accept_inputs` takes it; raises `BadInput`."""
    declared = next(each for each in workflow.inputs if each.name == name)
    try:
        return _accept(declared, {name: value}, base)
    except ValueError as error:
        raise _bad(workflow, [(name, str(error))]) from None


def _bad(workflow: Workflow, wrong: list[tuple[str, str]]) -> BadInput:
    (first, why), *others = wrong
    reason = "; ".join([why, *(f"and {name!r}: {each}" for name, each in others)])
    known = [declared.name for declared in workflow.inputs]
    right = first if first in known else closest(first, known)  # what was probably meant
    advice = f"Give it with --input {right}=VALUE." if right else "Leave it out."
    return BadInput(input=first, workflow=workflow.name, reason=reason, advice=advice, problems=tuple(wrong))


def _accept(declared: Input, given: Mapping[str, Any], base: Path) -> Any:
    if declared.name not in given:
        if declared.required:
            raise ValueError("it is required and was not given")
        value = thaw(declared.default) if declared.default is not None else None
        if value is None:
            return None
        if wrong := misfit(declared.type, value):
            raise ValueError(wrong)
    else:
        value = _fit(declared, given[declared.name])
    choices = [thaw(choice) for choice in declared.choices]
    if choices and value not in choices:
        shown = "what was given" if declared.secret else value_text(value)
        raise ValueError(f"it is one of {', '.join(map(value_text, choices))}, not {shown}")
    if declared.type == "path" and not _exists(base, value):
        place = "what was given" if declared.secret else repr(str(base / value))
        raise ValueError(f"there is nothing at {place}")
    return value


def _fit(declared: Input, given: Any) -> Any:
    """What was given as what is declared; raises `ValueError`, which does not repeat a secret."""
    try:
        read = _READERS.get(declared.type) if isinstance(given, str) else None
        value = given if read is None else read(given)
        wrong = misfit(declared.type, value)
    except ValueError as error:
        value, wrong = None, str(error)
    if wrong is not None:
        hidden = f"{TYPES[declared.type][0]} is needed, not what was given"
        raise ValueError(hidden if declared.secret else wrong)
    return value


def _exists(base: Path, path: str) -> bool:
    try:
        return (base / path).exists()
    except (OSError, ValueError):
        return False


def _number(text: str) -> Any:
    try:
        found = read_plain(text.strip())
    except BadScalar as bad:
        raise ValueError(str(bad)) from None
    return found if type(found) in (int, float) else text


def _boolean(text: str) -> Any:
    return _BOOLEANS.get(text.strip().lower(), text)


def _list(text: str) -> Any:
    """`[a, b]`, or `a,b`."""
    if text.lstrip().startswith("["):
        return _data(text)
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _data(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        tree = read_tree(text)
    if tree.problems or not tree.whole:
        raise ValueError(f"{value_text(text)} cannot be read as YAML or JSON")
    return tree.data


_READERS: Final = {"integer": _number, "number": _number, "boolean": _boolean, "list": _list, "map": _data}
"""What text stands for, by the type of the input; for others it is what it is."""
