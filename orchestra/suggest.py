"""Suggestions: the name that was probably meant."""

import difflib
from collections.abc import Collection
from typing import Final

_CLOSE: Final = 0.6
_LISTED: Final = 9  # as many as a workflow file has keys
_COMPARED_CHARS: Final = 64
_COMPARED_NAMES: Final = 500

_HABITS: Final = {
    "list": "array",
    "boolean": "bool",
    "map": "dict object",
    "path": "directory file folder",
    "number": "float",
    "integer": "int",
    "text": "str string",
    "replace": "overwrite",
    "append": "extend concat",
    "sum": "add",
    "restart": "retry",
    "degrade": "skip",
    "fail": "abort stop",
    "proceed": "continue accept",
    "phases": "steps stages",
    "specialists": "tasks",
    "task": "prompt",
    "needs": "depends_on depends requires after",
    "when": "if condition",
    "to": "goto",
    "attempts": "retries",
    "backoff": "delay",
    "environment": "env",
    "evaluate": "evaluator evaluation",
    "outputs": "output",
    "next": "transitions",
    "foreach": "for_each loop",
    "with": "args parameters params",
    "rubric": "rubrics criteria",
    "retention: {days: …}": "retention_days",
    "retention: {per_phase: …}": "max_checkpoints_per_phase",
    "store": "storage_path",
    "size_limit_bytes": "checkpoint_size_limit_mb",
    "auto": "auto_recovery",
    "max_recoveries": "max_recovery_attempts",
    "timeout": "recovery_timeout_seconds",
    "store: sqlite:…?mmap=10MB": "memory_mapped_threshold_mb",
}
HABITS: Final = {word: ours for ours, words in _HABITS.items() for word in words.split()}
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
    """What was probably meant, if anything is near enough; not looked for among very many names."""
    names = sorted(set(known)) if len(known) <= _COMPARED_NAMES else []
    habit = HABITS.get(word.lower())
    if habit is not None and habit.partition(":")[0] in names:
        return habit
    close = difflib.get_close_matches(word[:_COMPARED_CHARS], names, n=1, cutoff=_CLOSE)
    return next(iter(close or _same_letters(word, names)), None)


def _same_letters(word: str, names: list[str]) -> list[str]:
    plain = word.lower().replace("-", "_")
    return [name for name in names if name.lower().replace("-", "_") == plain]
