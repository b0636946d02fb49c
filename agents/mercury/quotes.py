"""Quotes: makes findings of what language models say, of those alone whose quoted lines stand in the file.

Models count lines badly and quote well. So a finding is put where its quote stands, nearest to the line that
was named; one whose quote is nowhere is dropped, on the record. The evaluator looks at the others as at those
of any specialist, and what it refutes is dropped in the next round.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from _finding import EXCERPT_LINES, SEVERITIES, Finding, narrow, order
from _specialist import root_of, without_refuted

from orchestra import Result

KIND = "models"
MAX_BYTES = 4_000_000


def agent(ctx: Any) -> Result:
    """The findings of the models that this one needs, each with who found it."""
    root = root_of(ctx)
    found: list[Finding] = []
    for who, said in ctx.needs.items():
        told = list(opinions(said))
        placed = [made for each in told if (made := in_place(root, each, who)) is not None]
        if len(placed) < len(told):
            dropped = len(told) - len(placed)
            ctx.decide(
                f"Drop {dropped} of {len(told)} findings of {who}",
                rationale="the lines that they quote do not stand in the files that they name",
                alternatives=["report them all the same"],
            )
        found += placed
    return Result(output=sorted(without_refuted(found, ctx.feedback), key=order), confidence=0.9)


def opinions(said: Any) -> Iterator[Mapping[str, Any]]:
    """What a model found; nothing when it did not answer."""
    listed = said.get("findings") if isinstance(said, Mapping) else None
    for each in listed if isinstance(listed, list | tuple) else ():
        if isinstance(each, Mapping):
            yield each


def in_place(root: Path, said: Mapping[str, Any], who: str) -> Finding | None:
    """A model's finding at the place where its quote stands; None when that is nowhere in the project."""
    name = str(said["file"]).removeprefix("./")
    quote = [each.strip() for each in str(said["quote"]).strip().splitlines()]
    lines = lines_of(root, name)
    if not any(quote):
        return None
    places = [
        at
        for at in range(len(lines) - len(quote) + 1)
        if [each.strip() for each in lines[at : at + len(quote)]] == quote
    ]
    if not places:
        return None
    at = min(places, key=lambda place: abs(place + 1 - int(said["line"])))
    return {
        "rule": "-".join(str(said["rule"]).lower().split()),
        "severity": said["severity"] if said["severity"] in SEVERITIES else "low",
        "kind": KIND,
        "file": name,
        "line": at + 1,
        "message": str(said["message"]),
        "advice": str(said["advice"]),
        "excerpt": "\n".join(narrow(each) for each in lines[at : at + min(len(quote), EXCERPT_LINES)]),
        "found_by": who,
    }


def lines_of(root: Path, name: str) -> list[str]:
    """The lines of a file of the project; none when there is no such file in it."""
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return []
    return path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
