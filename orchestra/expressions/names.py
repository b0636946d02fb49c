"""The names that expressions and templates may use; the check of a file and the engine share these lists."""

from typing import Final

TASK_NAMES: Final = frozenset(
    {"inputs", "context", "needs", "item", "index", "phase", "visit", "round", "feedback", "run"}
)
"""In the `task` of a specialist and of an evaluation."""

SPECIALIST_NAMES: Final = frozenset(
    {"inputs", "context", "needs", "visits", "phase", "visit", "round", "run", "models"}
)
"""In `when` and `foreach` of a specialist."""

TRANSITION_NAMES: Final = frozenset(
    {
        "inputs",
        "context",
        "evaluation",
        "visits",
        "confidence",
        "results",
        "phase",
        "visit",
        "run",
        "models",
    }
)
"""In `when` of a transition."""

EVALUATION_KEYS: Final = frozenset({"verdict", "score", "scores", "feedback", "round"})
"""What `evaluation` has, once there is a verdict."""

RESERVED_SPECIALISTS: Final = frozenset({"evaluation"})
"""Names of assignments that the engine makes itself."""
