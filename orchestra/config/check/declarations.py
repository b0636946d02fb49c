"""The names that a file declares, also where what they stand for is wrong: one mistake is told once."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from orchestra.config.models import WorkflowForm
from orchestra.config.problems import Path


@attrs.frozen(kw_only=True)
class Declarations:
    """Declared names."""

    agents: frozenset[str]
    inputs: frozenset[str]
    context: frozenset[str]
    phases: frozenset[str]
    specialists: Mapping[str, frozenset[str]]  # by phase
    input_types: Mapping[str, str]
    graph_whole: bool  # no phase and no transition was cut out
    cut: frozenset[Path] = frozenset()


def read_declarations(data: Any, form: WorkflowForm, cut: Iterable[Path]) -> Declarations:
    """The names that the data of a file declares."""
    phases = _mapping(data, "phases")
    of_graph = (path[:1] == ("phases",) and (len(path) <= 2 or path[2] == "next") for path in cut)
    return Declarations(
        **{key: frozenset(_mapping(data, key)) for key in ("agents", "inputs", "context", "phases")},
        specialists={name: frozenset(_mapping(each, "specialists")) for name, each in phases.items()},
        input_types={name: each.type for name, each in form.inputs.items()},
        graph_whole=not any(of_graph),
        cut=frozenset(cut),
    )


def _mapping(data: Any, key: str) -> Mapping[str, Any]:
    found = data.get(key) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}
