"""What a dry run found: the way it took, and what a run can cost at most, agent by agent."""

from typing import Any

from orchestra.app.dry_run import DryRun, Share, money
from orchestra.cli.exit_codes import FAILED, OK
from orchestra.cli.render.screen import Column, Screen, pick, print_table
from orchestra.cli.render.summary import label_line, path_of
from orchestra.cli.render.text import count

_UNKNOWN = "not known"


def exit_code_of(found: DryRun) -> int:
    """Whether the workflow could be walked to its end."""
    return OK if found.ending.kind == "completed" else FAILED


def print_dry_run(out: Screen, found: DryRun) -> None:
    """Print what a dry run found."""
    done, state = exit_code_of(found) == OK, found.ending.state
    out.line(
        ("✔ " if done else "✖ ", "good" if done else "bad"),
        (f"dry run of {found.workflow}", "bold"),
        (": no model was asked, nothing of yours was run, nothing is kept", "dim"),
    )
    if state.failure is not None:
        why = f"{state.failure.error}: {state.failure.message}"
        out.paragraph(label_line("ended", (why, "bad")), indent=13)
    elif not done:
        out.paragraph(label_line("ended", (f"the walk is {found.ending.kind}", "bad")), indent=13)
    out.paragraph(label_line("walked", path_of(state)), indent=13)
    for question, answer in found.answered:
        out.paragraph(label_line("asks", question, (f" (taken: {answer})", "dim")), indent=13)
    out.line()
    if not found.asking:
        out.line("No agent of it asks a language model.")
    else:
        print_table(out, _COLUMNS, found.asking)
        amounts = (
            _amount(found.most("requests"), "request"),
            _amount(found.most("tokens"), "token"),
            _money(found.most("cost_micros")),
        )
        out.line()
        out.paragraph(label_line("at most", (", ".join(amounts), "bold")), indent=13)
    for sentence in found.unknown:
        out.paragraph(label_line(_UNKNOWN, sentence), indent=13)


def dry_run_json(found: DryRun) -> dict[str, Any]:
    """What a dry run found, as data; null is what nobody knows."""
    state = found.ending.state
    failure = None if state.failure is None else pick(state.failure, "error", "message")
    return {
        "workflow": found.workflow,
        "walk": {
            "status": found.ending.kind,
            "phases": [each.phase for each in state.path],
            "failure": failure,
            "answered": [{"question": text, "answer": answer} for text, answer in found.answered],
        },
        "agents": [_share_json(each) for each in found.shares],
        "at_most": {key: found.most(key) for key in ("requests", "tokens", "cost_micros")},
        "not_known": list(found.unknown),
    }


def _share_json(share: Share) -> dict[str, Any]:
    use, one = share.use, share.spending
    return {
        **pick(use, "phase", "name", "agent"),
        "kind": share.kind,
        "models": list(one.models) if one is not None else [],
        "walked": pick(share.walked, "assignments", "requests", "tokens", "cost_micros"),
        "at_most": {
            "assignments": use.assignments,
            **{key: share.most(key) for key in ("requests", "tokens", "cost_micros")},
        },
        "of_each": pick(one, "requests", "tokens", "cost_micros") if one is not None else None,
        "goes_over": use.items_of or None,
    }


def _amount(number: int | None, noun: str) -> str:
    return f"an unknown number of {noun}s" if number is None else count(number, noun)


def _money(micros: int | None) -> str:
    return "an unknown price" if micros is None else f"{money(micros)} to pay"


def _pair(walked: int | None, most: int | None) -> str:
    return f"{_number(walked)} of {_number(most)}"


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _paid(share: Share) -> str:
    held, most = share.walked.cost_micros, share.most("cost_micros")
    return f"{'?' if held is None else money(held)} of {'no price' if most is None else money(most)}"


_COLUMNS: list[Column[Share]] = [
    Column("agent", lambda each: f"{each.use.phase}/{each.use.name}", name=True),
    Column("model", lambda each: ", ".join(each.spending.models if each.spending else ()), least=8, drop=1),
    Column(
        "assignments",
        lambda each: (
            _pair(each.walked.assignments, each.use.assignments) + ("*" if each.use.items_of else "")
        ),
        align="right",
    ),
    Column("requests", lambda each: _pair(each.walked.requests, each.most("requests")), align="right"),
    Column("tokens", lambda each: _pair(each.walked.tokens, each.most("tokens")), align="right"),
    Column("cost", _paid, align="right"),
]
"""In the walk, of at most so much in a run."""
