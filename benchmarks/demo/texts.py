"""What the agents of the demo say and find. Only data; the plays decide when it is said."""

from __future__ import annotations

from typing import Any, Final

import attrs


@attrs.frozen(kw_only=True)
class Part:
    """What one specialist does in a task: its progress, its words and what comes of it."""

    agent: str
    task: str
    description: str
    steps: tuple[tuple[float, str], ...]
    words: tuple[str, ...]
    result: dict[str, Any]
    confidence: float
    tokens: int

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What it found wanting."""
        found: list[dict[str, Any]] = self.result["findings"]
        return found


STRUCTURE: Final = Part(
    agent="mercury-structure",
    task="structure",
    description="Map the modules the change touches and judge the new boundary between orders and stock.",
    steps=((0.2, "reading the diff"), (0.55, "following imports"), (0.85, "weighing the new boundary")),
    words=(
        "The change moves reserve() out of the order handler and into a transaction script of its own. ",
        "Orders now call stock, and stock no longer knows what an order is: the direction is right. ",
        "Two call sites live in the generated client, which is not part of the diff. ",
    ),
    result={
        "summary": "The new boundary is sound; two call sites in generated code could not be judged.",
        "findings": [
            {
                "title": "reserve() still returns an order line",
                "severity": "medium",
                "where": "stock/reservations.py",
                "advice": "Return a reservation, so that stock does not have to know about orders.",
            }
        ],
        "modules": ["orders.handler", "stock.reservations", "stock.ledger", "client.generated"],
    },
    confidence=0.73,
    tokens=6_200,
)

SECURITY: Final = Part(
    agent="mercury-security",
    task="security",
    description="Look for input that reaches the database unchecked, and for rights that are too wide.",
    steps=((0.25, "tracing request fields"), (0.6, "reading the migration"), (0.9, "checking grants")),
    words=(
        "Every field of the request is bound as a parameter; there is no text that becomes SQL. ",
        "The migration grants UPDATE on the whole ledger, although the new script only inserts. ",
    ),
    result={
        "summary": "No injection. One grant is wider than the change needs.",
        "findings": [
            {
                "title": "The service may update the ledger",
                "severity": "high",
                "where": "migrations/0042_reservations.sql:17",
                "advice": "Grant INSERT and SELECT; corrections are entries of their own.",
            }
        ],
        "modules": ["api.requests", "migrations.0042"],
    },
    confidence=0.91,
    tokens=4_800,
)

TESTS: Final = Part(
    agent="mercury-tests",
    task="tests",
    description="Say which behaviour of the change no test would notice if it broke.",
    steps=((0.3, "listing the changed branches"), (0.7, "running the suite with one line removed at a time")),
    words=(
        "Of 31 changed branches 27 are noticed when they break. ",
        "Nothing fails when the row lock is removed: two buyers could reserve the last item. ",
    ),
    result={
        "summary": "Good coverage, except for the one thing the change is about.",
        "findings": [
            {
                "title": "No test has two buyers reserve the last item at once",
                "severity": "high",
                "where": "tests",
                "advice": "Run two reservations in two transactions and expect one of them to be refused.",
            }
        ],
        "mutants": {"made": 31, "noticed": 27},
    },
    confidence=0.82,
    tokens=9_400,
)

STRUCTURE_AGAIN: Final = Part(
    agent="mercury-structure",
    task="structure-second-look",
    description="Read the two call sites in the generated client and judge the boundary again.",
    steps=((0.4, "generating the client"), (0.8, "reading the call sites")),
    words=("Both call sites ignore the return value, so returning a reservation breaks nobody. ",),
    result={
        "summary": "The boundary holds in generated code as well; changing the return type is safe.",
        "findings": [],
        "modules": ["client.generated"],
    },
    confidence=0.88,
    tokens=3_900,
)

TESTS_REVISED: Final = Part(
    agent="mercury-tests",
    task="tests-with-evidence",
    description="Give the place and a failing example for every finding.",
    steps=((0.5, "writing the failing example"), (0.9, "running it ten times")),
    words=("With the lock removed the example fails in 10 of 10 runs; with the lock it passes in all. ",),
    result={
        "summary": "The missing test is written down, with the line it protects.",
        "findings": [
            {
                "title": "No test has two buyers reserve the last item at once",
                "severity": "high",
                "where": "stock/reservations.py:58",
                "advice": "Add the attached test; it fails in 10 of 10 runs when the lock is removed.",
            }
        ],
        "mutants": {"made": 31, "noticed": 28},
    },
    confidence=0.93,
    tokens=5_100,
)

WRITER: Final = Part(
    agent="mercury-writer",
    task="report",
    description="Write the review for the author of the change: what to fix first, and why.",
    steps=(
        (0.3, "sorting the findings"),
        (0.75, "writing"),
        (0.95, "checking every claim against its source"),
    ),
    words=(),
    result={"summary": "Two things to fix before merging, one for later.", "findings": []},
    confidence=0.9,
    tokens=7_300,
)

OFFLINE_SECURITY: Final = attrs.evolve(
    SECURITY,
    agent="mercury-security-offline",
    description="The same questions, answered from the advisory list that ships with the program.",
    confidence=0.8,
    tokens=3_200,
)

REPORT: Final = (
    "# Review: reserve stock inside one transaction\n\n",
    "The direction of the change is right: orders call stock, and stock no longer knows orders.\n\n",
    "## Fix before merging\n\n",
    "1. **The service may update the ledger** (migrations/0042_reservations.sql:17). ",
    "Grant INSERT and SELECT; corrections are entries of their own.\n",
    "2. **No test has two buyers reserve the last item at once** (stock/reservations.py:58). ",
    "The attached test fails in 10 of 10 runs when the row lock is removed.\n\n",
    "## Worth doing later\n\n",
    "- Let reserve() return a reservation instead of an order line. Nobody uses the return value today.\n",
)

CRITERIA: Final = (("correctness", 0.40), ("evidence", 0.35), ("clarity", 0.25))
FIRST_ROUND: Final = (
    (0.86, "Each finding follows from the diff; none contradicts another."),
    (0.62, "One finding names a folder instead of a line, and shows no failing example."),
    (0.80, "Short and ordered by weight."),
)
SECOND_ROUND: Final = (
    (0.88, "Nothing changed for the worse."),
    (0.90, "Every finding names its line, and the missing test is attached."),
    (0.84, "Still short; the advice can be followed as it stands."),
)
