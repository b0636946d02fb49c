"""Agents as files: a `.py` file loaded by its path, once per content.

What the file has under the wanted name is an agent: an async function, a plain function, or a class whose
method `run` is either. A changed file is loaded anew; who runs goes on with the old one. Where its helper
modules come from is told in `packages`.
"""

import inspect
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from orchestra.agents.failures import message_of
from orchestra.agents.python.packages import import_agent
from orchestra.agents.python.source import helper_files, parse_file
from orchestra.errors import BadAgent

Stamp: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, time of change and size of every file that counts."""


@attrs.frozen
class Code:
    """A Python agent, ready to be called with its context."""

    call: Callable[[Any], Any]
    is_async: bool


class AgentLoader:
    """Loads agents and remembers them. May be used from several threads."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str], tuple[Stamp, Code]] = {}
        self._loading: dict[Path, threading.Lock] = {}

    def find(self, path: Path, attribute: str) -> Code | None:
        """The agent if it is loaded already and has not changed since; quick."""
        found = self._known.get((path, attribute))
        return found[1] if found and _unchanged(found[0]) else None

    def load(self, path: Path, attribute: str = "agent", *, agent: str = "") -> Code:
        """The agent in a file; raises `BadAgent`. May take as long as its imports do."""
        with self._loading.setdefault(path, threading.Lock()):
            code = self.find(path, attribute)
            if code is None:
                stamp, code = _loaded(path, attribute, agent or path.stem)
                self._known[path, attribute] = stamp, code
            return code


def code_of(target: Any, agent: str, place: str) -> Code:
    """How to call a function, class or object that is to be an agent; raises `BadAgent`."""
    is_class = inspect.isclass(target)
    run = target if callable(target) and not is_class else getattr(target, "run", None)
    if not callable(run):
        kind = f"it is of type {type(target).__name__}, which cannot be called"
        raise BadAgent(agent=agent, place=place, reason="the class has no method `run`" if is_class else kind)
    inner = run if inspect.isroutine(run) else getattr(run, "func", None) or type(run).__call__
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise BadAgent(agent=agent, place=place, reason="it yields; an agent returns its result once")
    is_async = inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(inner)
    return Code((lambda context: target().run(context)) if is_class else run, is_async)


def _loaded(path: Path, attribute: str, agent: str) -> tuple[Stamp, Code]:
    parse_file(path, agent)
    files = [(str(file), file.stat()) for file in (path, *helper_files(path))]
    stamp = tuple((file, found.st_mtime_ns, found.st_size) for file, found in files)
    try:
        module = import_agent(path)
    except BaseException as error:
        reason = f"importing it raised {type(error).__name__}: {message_of(error)}"
        raise BadAgent(agent=agent, place=_place(error, path), reason=reason) from None
    if not hasattr(module, attribute):
        own = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        reason = f"it has no {attribute!r}; it has {', '.join(own) or 'nothing'}"
        raise BadAgent(agent=agent, place=path, reason=reason)
    return stamp, code_of(getattr(module, attribute), agent, f"{path}:{attribute}")


def _place(error: BaseException, path: Path) -> str:
    """The file, with the last line of it or of its helpers that the error went through."""
    found, step = str(path), error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if Path(file).parent == path.parent:
            found = f"{file}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _unchanged(stamp: Stamp) -> bool:
    try:
        return all(
            (found.st_mtime_ns, found.st_size) == (changed, size)
            for file, changed, size in stamp
            for found in [os.stat(file)]  # noqa: PTH116 - asked before every attempt
        )
    except OSError:
        return False
