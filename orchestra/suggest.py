"""Suggestions: the name that was probably meant."""

import difflib
from collections.abc import Collection
from typing import Final

_CLOSE: Final = 0.6
_LISTED: Final = 8
_COMPARED_CHARS: Final = 64
_COMPARED_NAMES: Final = 500

HABITS: Final = {
    "array": "list",
    "bool": "boolean",
    "dict": "map",
    "directory": "path",
    "file": "path",
    "float": "number",
    "folder": "path",
    "int": "integer",
    "object": "map",
    "str": "text",
    "string": "text",
    "overwrite": "replace",
    "extend": "append",
    "concat": "append",
    "add": "sum",
    "retry": "restart",
    "skip": "degrade",
    "abort": "fail",
    "stop": "fail",
    "continue": "proceed",
    "accept": "proceed",
    "steps": "phases",
    "stages": "phases",
    "tasks": "specialists",
    "prompt": "task",
    "depends_on": "needs",
    "depends": "needs",
    "requires": "needs",
    "after": "needs",
    "if": "when",
    "condition": "when",
    "goto": "to",
    "retries": "attempts",
    "delay": "backoff",
    "env": "environment",
    "evaluator": "evaluate",
    "evaluation": "evaluate",
    "output": "outputs",
    "transitions": "next",
    "for_each": "foreach",
    "loop": "foreach",
    "args": "with",
    "parameters": "with",
    "params": "with",
    "rubrics": "rubric",
    "criteria": "rubric",
    "retention_days": "retention: {days: …}",
    "max_checkpoints_per_phase": "retention: {per_phase: …}",
    "storage_path": "store",
    "checkpoint_size_limit_mb": "size_limit_bytes",
    "auto_recovery": "auto",
    "max_recovery_attempts": "max_recoveries",
    "recovery_timeout_seconds": "timeout",
    "memory_mapped_threshold_mb": "store: sqlite:…?mmap=10MB",
}
"""What other tools and the source documents call some of our words."""


def meant(word: str, known: Collection[str]) -> str:
    """A half sentence that names what was probably meant, or what there is; empty when there is nothing."""
    if not known or len(known) > _COMPARED_NAMES:
        return ""
    names = sorted(set(known))
    close = closest(word, names)
    if close:
        return f"; did you mean `{close}`?"
    more = ", …" if len(names) > _LISTED else ""
    verb = "is" if len(names) == 1 else "are"
    return f"; there {verb} {', '.join(f'`{name}`' for name in names[:_LISTED])}{more}"


def closest(word: str, known: Collection[str]) -> str | None:
    """What was probably meant, if anything is near enough.

    Comparing takes time, so it is not done with more names than a person keeps apart.
    """
    names = sorted(set(known)) if len(known) <= _COMPARED_NAMES else []
    habit = HABITS.get(word.lower())
    if habit is not None and habit.partition(":")[0] in names:
        return habit
    close = difflib.get_close_matches(word[:_COMPARED_CHARS], names, n=1, cutoff=_CLOSE)
    return next(iter(close or _same_letters(word, names)), None)


def _same_letters(word: str, names: list[str]) -> list[str]:
    plain = word.lower().replace("-", "_")
    return [name for name in names if name.lower().replace("-", "_") == plain]
