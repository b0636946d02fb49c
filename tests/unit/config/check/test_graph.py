"""Mistakes in how phases lead to one another."""

from pathlib import Path

import pytest

from tests.unit.config.support import HEAD, problems, workflow


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: {next: b}", ["4:13: there is no phase `b`; there are `a`, `end`"]),
        ("a: {next: end}\n  b: {}", ["5:3: the phase `b` is never reached"]),
        ("a: {next: b}\n  b: {next: a}", ["4:13: this loop has no way out: `a` → `b` → `a`; add"]),
        ("a: {next: a}", ["4:13: this loop has no way out: `a` → `a`; add"]),
        ("a: {}\n  b: {}\n  c: {next: b}", ["5:6: this loop has no way out: `b` → `c` → `b`; add"]),
        ("a: {next: [{to: a, when: visits.a < 3}]}", ["4:13: this loop has no way out: `a` → `a`; add"]),
        (
            "a: {next: [{to: a, when: 'true'}, end]}",
            ["4:13: this loop", "4:37: this transition is never reached"],
        ),
        ("a: {next: [{to: end, when: false}, a]}", ["4:13: this loop has no way out: `a` → `a`; add"]),
        ("a: {next: [{to: end, when: false}]}", ["4:13: no transition of this phase can ever be taken"]),
        ("a: {next: [end, a]}", ["4:19: this transition is never reached: the one before it always holds"]),
        ("a: {next: [b, c]}\n  b: {}\n  c: {}", ["4:17: this transition is never reached"]),
        ("a: {next: [{to: b, when: visit > 1}, nope]}\n  b: {next: a}", ["4:40: there is no phase `nope`"]),
    ],
)
def test_graph_mistakes(text: str, expected: list[str], tmp_path: Path) -> None:
    found = problems(f"{HEAD}phases:\n  {text}\n", tmp_path)
    assert len(found) == len(expected), found
    assert all(each.startswith(start) for each, start in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    "text",
    [
        "a: {next: [{to: a, when: visits.a < 3}, end]}",
        "a: {next: [{to: b, when: visit > 1}, end]}\n  b: {next: a}",
        "a: {max_visits: 3, next: [a, end]}",
        "a: {next: [{to: c, when: visit == 1}, b]}\n  b: {}\n  c: {next: []}",
    ],
)
def test_loops_and_branches_with_a_way_out_are_fine(text: str, tmp_path: Path) -> None:
    assert workflow(f"{HEAD}phases:\n  {text}\n", tmp_path).phases


def test_two_loops_are_two_mistakes(tmp_path: Path) -> None:
    text = "a: {next: [{to: b, when: visit > 1}, c]}\n  b: {next: b}\n  c: {next: d}\n  d: {next: c}"
    found = problems(f"{HEAD}phases:\n  {text}\n", tmp_path)
    assert [each.partition(";")[0] for each in found] == [
        "5:13: this loop has no way out: `b` → `b`",
        "6:13: this loop has no way out: `c` → `d` → `c`",
    ]


def test_every_circle_of_needs_is_told(tmp_path: Path) -> None:
    text = (
        "p:\n    specialists:\n      a: {agent: one, needs: c}\n      b: {agent: one, needs: a}\n"
        "      c: {agent: one, needs: b}\n      d: {agent: one, needs: e}\n      e: {agent: one, needs: d}\n"
    )
    found = problems(f"{HEAD}phases:\n  {text}", tmp_path)
    assert len(found) == 2
    assert all("these wait for one another" in each for each in found)


def test_a_long_chain_of_phases_and_needs_is_no_problem(tmp_path: Path) -> None:
    phases = "".join(f"  p{at}: {{}}\n" for at in range(3000))
    assert len(workflow(f"{HEAD}phases:\n{phases}", tmp_path).phases) == 3000
    chain = "".join(f"      s{at}: {{agent: one, needs: s{at - 1}}}\n" for at in range(1, 2000))
    made = workflow(f"{HEAD}phases:\n  p:\n    specialists:\n      s0: {{agent: one}}\n{chain}", tmp_path)
    assert len(made.phases[0].specialists) == 2000
