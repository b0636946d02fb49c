"""The page in one piece: its modules put together as one script, its sheets as one style.

A file that is opened from a disk may not load modules beside it. So every module becomes a function of its
own that hands out what the module exports, in the order in which they need one another. Nothing is renamed
and nothing else is rewritten; modules keep to the few forms of import and export that are read here, and a
test holds all of them to that.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

Read = Callable[[str], str]
"""Gives the text of a file of the page."""

FOLDER: Final = Path(__file__).parents[1] / "page"
_IMPORT: Final = re.compile(r'^import\s+(?:\{([^}]*)\}\s+from\s+)?"\./([\w.]+)";[ \t]*$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export\s+((?:async\s+)?(?:function\*?|class|const)\s+([A-Za-z_$][\w$]*))", re.MULTILINE
)
_OTHER: Final = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_CLOSING: Final = re.compile(r"</script|<!--", re.IGNORECASE)


class Unbundled(Exception):
    """A module that cannot be put into one file as it is written."""


def page_text(name: str) -> str:
    """The text of a file of the page."""
    return (FOLDER / name).read_text(encoding="utf-8")


def one_script(entry: str, read: Read) -> str:
    """A script that does what a module does together with all it imports; raises `Unbundled`."""
    parts = ['"use strict";']
    for name in _in_order(entry, read):
        parts.append(_wrapped(name, read(name)))
    script = "\n".join(parts)
    if _CLOSING.search(script):
        raise Unbundled("a module holds what would end the script element")
    return script


def modules(entry: str, read: Read) -> tuple[str, ...]:
    """A module and all it imports, each after those it needs; raises `Unbundled`."""
    return tuple(_in_order(entry, read))


def _in_order(entry: str, read: Read) -> Iterator[str]:
    done: dict[str, bool] = {}  # False while it is being looked at

    def visit(name: str, way: tuple[str, ...]) -> Iterator[str]:
        if done.get(name):
            return
        if name in done:
            raise Unbundled(f"modules import one another in a circle: {' → '.join((*way, name))}")
        done[name] = False
        for needed in imports(read(name)):
            yield from visit(needed, (*way, name))
        done[name] = True
        yield name

    yield from visit(entry, ())


def imports(source: str) -> list[str]:
    """The modules that a module imports."""
    return [found[2] for found in _IMPORT.finditer(source)]


def _wrapped(name: str, source: str) -> str:
    exported = [found[2] for found in _EXPORT.finditer(source)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(_taken, source))
    other = _OTHER.search(body)
    if other is not None:
        raise Unbundled(f"{name}: {other[0]!r} is not a form of import or export that is read")
    handed_out = f"return {{ {', '.join(exported)} }};" if exported else ""
    return f"const {_variable(name)} = (() => {{\n{body}\n{handed_out}\n}})();"


def _taken(found: re.Match[str]) -> str:
    if found[1] is None:
        return ""
    names = [part.strip().replace(" as ", ": ") for part in found[1].split(",") if part.strip()]
    return f"const {{ {', '.join(names)} }} = {_variable(found[2])};"


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name)
