"""The page in one piece: its modules joined into one script, its sheets into one style.

A file that is opened from a disk may not load modules beside it. So every module becomes a function that
returns what the module exports, in the order in which they need one another. Only imports and exports are
rewritten; modules keep to the few forms of them that are read here, and a test holds all of them to that.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

Read = Callable[[str], str]
"""Gives the text of a file of the page."""
PAGE_FOLDER: Final = Path(__file__).parents[1] / "page"
SHEETS: Final = ("page.css", "run.css", "pages.css")
_IMPORT: Final = re.compile(r'^import\s+(?:\{([^}]*)\}\s+from\s+)?"\./([\w.]+)";[ \t]*$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export\s+((?:async\s+)?(?:function\*?|class|const)\s+([A-Za-z_$][\w$]*))", re.MULTILINE
)
_OTHER: Final = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_CLOSING: Final = re.compile(r"</script|<!--", re.IGNORECASE)


class Unbundled(Exception):
    """A module that cannot be put into one file as it is written."""


def page_text(name: str, folder: Path = PAGE_FOLDER) -> str:
    """The text of a file of the page."""
    return (folder / name).read_text(encoding="utf-8")


def one_style(read: Read) -> str:
    """All sheets of the page, one after another."""
    return "\n".join(map(read, SHEETS))


def one_script(entry: str, read: Read) -> str:
    """A script that does what a module does together with all it imports; raises `Unbundled`."""
    functions = (_module_function(name, read(name)) for name in modules(entry, read))
    script = "\n".join(('"use strict";', *functions))
    if _CLOSING.search(script):
        raise Unbundled("a module holds what would end the script element")
    return script


def modules(entry: str, read: Read) -> tuple[str, ...]:
    """A module and all it imports, each after those it needs; raises `Unbundled`."""
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

    return tuple(visit(entry, ()))


def imports(source: str) -> list[str]:
    """The modules that a module imports."""
    return [found[2] for found in _IMPORT.finditer(source)]


def _module_function(name: str, source: str) -> str:
    exported = [found[2] for found in _EXPORT.finditer(source)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(_assignment, source))
    if other := _OTHER.search(body):
        raise Unbundled(f"{name}: {other[0]!r} is not a form of import or export that is read")
    handed_out = f"return {{ {', '.join(exported)} }};" if exported else ""
    return f"const {_variable(name)} = (() => {{\n{body}\n{handed_out}\n}})();"


def _assignment(found: re.Match[str]) -> str:
    """What takes the place of an import."""
    if found[1] is None:
        return ""
    names = [part.strip().replace(" as ", ": ") for part in found[1].split(",") if part.strip()]
    return f"const {{ {', '.join(names)} }} = {_variable(found[2])};"


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name)
